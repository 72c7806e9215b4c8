"""The settings of one region that actions reach, ranked by the cost model: its numbers, and the words that the model understands."""

from __future__ import annotations

import heapq
import math
from bisect import bisect_left
from collections.abc import Iterator
from itertools import islice

from tools.codegen.schedule.plan import Planned
from tools.codegen.templates.shared.knob import ROUGH, Parameters, Value, may_round
from tools.cost.launches import region_launches, timed_once
from tools.cost.region_settings import Setting
from tools.records import HardwareSheet, PrecisionPolicy

SCORED = 1500
"""Settings of one region that the model looks at."""


class Walk:
    """Changes one parameter at a time from the settings that the model likes best; asked for more it goes on where it stopped.

    Every other step is taken from another set of words, so that no words are left out because the neighbours of others are cheap.
    With a policy, words it does not allow are left out, and products add their partial sums as its digits need.
    """

    def __init__(
        self, planned: Planned, start: Parameters, names: tuple[str, ...], sheet: HardwareSheet, policy: PrecisionPolicy | None = None
    ) -> None:
        """Begin with `start`; `names` are those of the parameters to change."""
        self._planned, self._start, self._names, self._sheet = planned, start, names, sheet
        self._timed = timed_once(sheet)
        self._settles = policy is not None
        rough = policy is not None and may_round(policy)
        self._values = {name: [value for value in planned.template.knobs[name].values if rough or value not in ROUGH] for name in names}
        self._seen: dict[frozenset[tuple[str, Value]], Setting] = {}
        self._ends: list[int] = []
        """How many were seen after each step."""
        self._open = _Open()
        self._untried: dict[tuple[str, frozenset[tuple[str, Value]]], set[Value]] = {}
        """Of each parameter, beside what the others are: settings that differ in it alone have the same neighbours along it."""
        self._look(start)
        self._ends.append(1)

    @property
    def first(self) -> Setting:
        """What it begins with."""
        return next(iter(self._seen.values()))

    def ranked(self, most: int = SCORED) -> list[Setting]:
        """Rank all that was seen when there were at least `most`, or all there are; the start is among them."""
        while self._open and self._ends[-1] < most:
            for new in self._steps(self._open.pop().parameters):
                self._look(new)
            self._ends.append(len(self._seen))
        end = self._ends[min(bisect_left(self._ends, most), len(self._ends) - 1)]
        seen = islice(self._seen.values(), end)
        return sorted(
            (each for each in seen if each.us < math.inf or each.parameters == self._start), key=lambda each: (each.us, each.name)
        )

    def _look(self, parameters: Parameters) -> None:
        name = frozenset(parameters.items())
        if name not in self._seen:
            us = self._timed(region_launches(self._planned, parameters, self._sheet))
            assert us is not None
            self._seen[name] = Setting(us, parameters)
            self._open.push(self._seen[name])

    def _steps(self, setting: Parameters) -> Iterator[Parameters]:
        template, kernel, items = self._planned.template, self._planned.kernel, frozenset(setting.items())
        for name in self._names:
            own = setting.get(name)
            along = name, items - {(name, own)}
            untried = self._untried.get(along)
            if untried is None:
                untried = self._untried[along] = set(self._values[name])
            for value in [value for value in self._values[name] if value != own and value in untried] if untried else ():
                untried.remove(value)
                for changed in template.steps(kernel, setting, self._start, name, value):
                    # what was seen fits, and is settled
                    if frozenset(changed.items()) not in self._seen and self._planned.fits(changed, name, self._sheet):
                        yield template.settled(changed, self._start) if self._settles else changed


class _Open:
    """Settings whose neighbours have not been looked at, a heap for each set of words."""

    def __init__(self) -> None:
        self._heaps: dict[tuple[tuple[str, str], ...], list[tuple[float, str, Setting]]] = {}
        self._taken = 0

    def __bool__(self) -> bool:
        return any(self._heaps.values())

    def push(self, setting: Setting) -> None:
        """Add one."""
        heapq.heappush(self._heaps.setdefault(setting.words, []), (setting.us, setting.name, setting))

    def pop(self) -> Setting:
        """Take the cheapest of all, or the cheapest with the words whose turn it is."""
        heaps = [heap for heap in self._heaps.values() if heap]
        self._taken += 1
        turn, rest = divmod(self._taken, 2)
        chosen = heaps[turn % len(heaps)] if rest == 0 else min(heaps, key=lambda heap: heap[0][:2])
        return heapq.heappop(chosen)[2]
