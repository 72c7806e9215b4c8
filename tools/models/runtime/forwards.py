"""Writes what stands in the place of a module's forward: in a compiler's eyes guards, operator and original, all of them flat.

What such a text names lies in a namespace of its own, which all modules of a kind share: a compiler guards it once, not for each module.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import torch
from torch.compiler import is_compiling

from tools.models.runtime.call_text import CallText
from tools.models.runtime.known import UNLIKE, answered
from tools.models.runtime.texts import function_of

if TYPE_CHECKING:
    from tools.models.runtime.patching import Entry, Installed


def forward_of(installed: Installed, answer: Any, *, interpreted: bool) -> Any:
    """Make the forward; `answer` takes a call that no compiler traces, and that is like none before."""
    parts = [_Traced(entry, place, interpreted=interpreted) for place, entry in enumerate(installed.entries) if entry.compiled]
    text = [
        "def forward(self, *args, **kwargs):",
        "    if compiling():",
        *(f"        {line}" for part in parts for line in part.lines()),
        "        return original(self, *args, **kwargs)",
        "    found = answered(self, args, kwargs)",
        "    return answer(self, installed, args, kwargs) if found is unlike else found",
    ]
    names = {"compiling": is_compiling, "original": installed.original, "answered": answered, "answer": answer, "unlike": UNLIKE}
    values = {name: value for part in parts for name, value in part.names.items()}
    return function_of("\n".join(text), "forward", {**values, **names, "installed": installed})


class _Traced(CallText):
    """What a compiler traces of one entry."""

    def __init__(self, entry: Entry, place: int, *, interpreted: bool) -> None:
        self._prefix = f"e{place}_"
        super().__init__(entry.structure)
        self._entry, self._interpreted = entry, interpreted
        own = {"fits": entry.within or entry.fits, "state": entry.state, "op": entry.operator.overload}
        self.names |= {f"{self._prefix}{name}": value for name, value in own.items()}
        self.names |= {"grads": torch.is_grad_enabled, "rounds": torch.is_autocast_enabled, "rounding": torch.get_autocast_dtype}

    def name(self, value: Any) -> str:
        name = f"{self._prefix}{len(self.names)}"
        self.names[name] = value
        return name

    def lines(self) -> Iterator[str]:
        """Write that the operator answers a call that guards let through."""
        own, prefix = self._entry.operator, self._prefix
        given = [f"t{place}" for place in range(len(self.tensors))]
        held = [f"t{place}" for place in range(len(given), len(given) + len(self._entry.parameters))]
        # a class that several texts named would be compared between their namespaces in each call
        are_tensors = [f"hasattr({text}, 'is_cuda')" for text in self.tensors]
        yield f"if {' and '.join([*self.conditions, *are_tensors, 'not self.training'])}:"
        for name, text in zip(given, self.tensors, strict=True):
            yield f"    {name} = {text}"
        for line in self._taken(held):
            yield f"    {line}"
        every = [*given, *held]
        wanted = " or ".join(f"{name}.requires_grad" for name in every)
        asked = [
            f"{prefix}fits({', '.join(given)})",
            f"{prefix}state({', '.join(held)})",
            f"not (grads() and ({wanted}))",
            f"(t0.is_cuda{' or t0.is_cpu' if self._interpreted else ''})",
            *(f"{name}.device == t0.device" for name in every[1:]),
            *self._rounding(),
        ]
        yield f"    if {' and '.join(asked)}:"
        listed = f"{', '.join(given)}, [{', '.join(held)}]" if own.many else ", ".join(every)
        yield f"        found = {prefix}op({listed})"
        yield f"        return {self.filled(self._entry.result, itertools.count())}"

    def _rounding(self) -> Iterator[str]:
        """Write that autocast does what it did where the kernel was captured."""
        if self._entry.autocast is None:
            yield "not rounds(t0.device.type)"
        else:
            yield f"rounds(t0.device.type) and rounding(t0.device.type) is {self.name(self._entry.autocast)}"

    def _taken(self, held: list[str]) -> Iterator[str]:
        """Take parameters of the module, what several of them have before their names once."""
        known: dict[tuple[str, ...], str] = {(): "self"}
        for name, path in zip(held, self._entry.parameters, strict=True):
            for end in range(1, len(path)):
                if path[:end] not in known:
                    known[path[:end]] = f"m{len(known)}"
                    yield f"{known[path[:end]]} = getattr({known[path[: end - 1]]}, {path[end - 1]!r})"
            yield f"{name} = getattr({known[path[:-1]]}, {path[-1]!r})"
