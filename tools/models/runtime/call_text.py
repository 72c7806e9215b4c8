"""Writes of a call's structure, as Python: whether a call is like it, where its tensors are, and its result made of tensors."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tools.models.runtime.trees import TENSOR


class CallText:
    """The structure of `[arguments, keywords]`, of a function that calls them `args` and `kwargs`."""

    def __init__(self, structure: Any) -> None:
        """Take the structure."""
        self.names: dict[str, Any] = {"TUPLES": (tuple, list)}
        """What the text finds by its names."""
        self.tensors: list[str] = []
        """Where the call has its tensors, in order."""
        self.conditions: list[str] = []
        """What has to hold before these are asked for: the same as `is_like`, but for what a tensor is."""
        for name, part in zip(("args", "kwargs"), structure, strict=True):
            self._like(name, part)

    def _like(self, text: str, shape: Any) -> None:
        if isinstance(shape, str) and shape == TENSOR:
            self.tensors.append(text)
        elif isinstance(shape, list):
            self.conditions.append(f"{'' if text == 'args' else f'isinstance({text}, TUPLES) and '}len({text}) == {len(shape)}")
            for place, item in enumerate(shape):
                self._like(f"{text}[{place}]", item)
        elif isinstance(shape, dict):
            keys = self.name(list(shape))
            self.conditions.append(f"isinstance({text}, dict) and list({text}) == {keys}" if shape or text != "kwargs" else "not kwargs")
            for key, item in shape.items():
                self._like(f"{text}[{key!r}]", item)
        else:
            self.conditions.append(f"type({text}) is {self.name(type(shape))} and {text} == {self.name(shape)}")

    def filled(self, shape: Any, places: Iterator[int]) -> str:
        """Write a result of which the tensors are in a list `found`, its lists as tuples."""
        if isinstance(shape, str) and shape == TENSOR:
            return f"found[{next(places)}]"
        if isinstance(shape, list):
            return f"({''.join(f'{self.filled(item, places)}, ' for item in shape)})"
        if isinstance(shape, dict):
            return "{" + ", ".join(f"{key!r}: {self.filled(item, places)}" for key, item in shape.items()) + "}"
        return self.name(shape)

    def name(self, value: Any) -> str:
        """Give the text a name for a value."""
        name = f"c{len(self.names)}"
        self.names[name] = value
        return name
