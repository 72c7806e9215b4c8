"""Bounds what is interpreted in a proof without a GPU: where calls of an operator take long, the original answers later ones."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

from torch import nn

from tools.models.runtime.patching import INSTALLED
from tools.models.runtime.sections import named

INTERPRETED_S = 120.0
"""Seconds of the processor's time that operators are interpreted for in one proof, all of them together: each gets its part."""


@dataclass
class Spent:
    """What one operator took."""

    calls: int = 0
    seconds: float = 0.0
    longest: float = 0.0
    left_out: int = 0
    """Calls that the original answered for want of time."""


class Pace:
    """The time that a package's operators take in one proof. Each is interpreted once at least."""

    def __init__(self, limit_s: float = INTERPRETED_S, clock: Callable[[], float] = time.thread_time) -> None:
        """Begin to count; no limit where it is 0."""
        self._limit_s, self._clock = limit_s, clock
        self._spent: dict[str, Spent] = {}
        self._begun: list[tuple[dict[str, int], float]] = []
        self.over: set[str] = set()
        """Operators for which there is no time for another call."""
        self._aside: dict[int, set[str]] = {}
        """By a module's id: the operators that are no longer in its place."""

    @contextmanager
    def watching(self, model: nn.Module) -> Iterator[None]:
        """Have modules of a run step aside once there is no time left for any of their operators."""
        self._begun.clear()
        with ExitStack() as hooks:
            installed: list[Any] = [module for _, module in named(model) if self._is_watched(module)] if self._limit_s else []
            share_s = self._limit_s / max(1, len({name for module in installed for name in _hits(module)}))

            def enter(module: Any, args: Any) -> None:
                self._begun.append((_hits(module), self._clock()))

            def leave(module: Any, args: Any, result: Any) -> None:
                before, begun = self._begun.pop()
                for name in self._aside.get(id(module), set()) if not before else ():
                    self._spent[name].left_out += 1
                for name, hits in _hits(module).items():
                    if hits > before.get(name, hits):
                        self._charge(name, self._clock() - begun, share_s)
                self._step_aside(installed)

            for module in installed:
                hooks.callback(module.register_forward_pre_hook(enter).remove)
                hooks.callback(module.register_forward_hook(leave).remove)
            yield

    def notes(self) -> Iterator[str]:
        """Say what was left out."""
        for name, found in sorted(self._spent.items()):
            if found.left_out:
                yield (
                    f"{name} was interpreted in {found.calls} of {found.calls + found.left_out} calls, the original gave the others: "
                    f"one takes up to {found.longest:.0f} s of the processor's time. On a GPU all are compared."
                )

    def _is_watched(self, module: nn.Module) -> bool:
        return hasattr(type(module), INSTALLED) or id(module) in self._aside

    def _charge(self, name: str, seconds: float, share_s: float) -> None:
        found = self._spent.setdefault(name, Spent())
        found.calls, found.seconds, found.longest = found.calls + 1, found.seconds + seconds, max(found.longest, seconds)
        if found.seconds + found.longest > share_s:
            self.over.add(name)

    def _step_aside(self, modules: list[Any]) -> None:
        for module in modules if self.over else ():
            if (names := _hits(module).keys()) and names <= self.over:
                self._aside[id(module)] = set(names)
                module.__class__ = module.kernelwright_class


def _hits(module: Any) -> dict[str, int]:
    """Count by operator how often those of a module ran; none where it has stepped aside."""
    installed = getattr(type(module), INSTALLED, None)
    return {entry.operator.name: entry.operator.hits for entry in installed.entries} if installed is not None else {}
