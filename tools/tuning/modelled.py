"""The schedules that the cost model likes best over all that actions reach: structures, numbers and words, all regions at once."""

from __future__ import annotations

import math
from dataclasses import dataclass

from tools.codegen import OperatorGraph, Region, Schedule
from tools.codegen.capture import WHOLE
from tools.codegen.regions import Planned, can_generate, plan_region
from tools.records import Action, ActionKind, HardwareSheet, PrecisionPolicy
from tools.tuning.library import library_us
from tools.tuning.settings import SCORED, Parameters, Setting, key, modelled_names, ranked, spread, words_of
from tools.tuning.shapes import MODELLED, region_us
from tools.tuning.structures import structures

MOST = 6
"""Choices of one reference."""
CHOICE, MODELLED_CHOICE = "choice", "modelled"
"""Parameter that numbers a choice from 1, and the word that says who chose."""
GLANCED = 80
"""Settings of a region that are looked at to decide on a fusion."""
SEEN = 3000
"""Settings of all regions of one structure, so that a network takes no longer than an operator."""
FEWEST = 60
HEAVY = 0.25
"""Share of a schedule's time from which on a region is worth trying in another setting."""
AGAIN = 1.3
"""Factor by which a choice counts as slower for each before it with the same words in its heavy regions: if those fail, all do."""
FAMILY = 2.0
"""The same for each one before it that generates the same operators: whether the library is the better one is where the model errs most."""


@dataclass(frozen=True)
class Choice:
    """One schedule that the model names."""

    schedule: Schedule
    us: float
    """What the model expects of the regions that can be generated, those left to the library included, microseconds."""
    unmodelled: tuple[str, ...] = ()
    """Generated regions of which the model knows nothing: they have the coder's own first values."""
    words: tuple[object, ...] = ()
    """Templates and words of the regions that take most of the time."""
    order_us: float = 0.0
    """Never less than that of a choice which the model cannot tell apart and which stands nearer to the coder's own first values."""

    @property
    def family(self) -> frozenset[str]:
        """Operators that are generated."""
        return frozenset(name for region in self.schedule.regions if region.is_generated for name in region.nodes)


def modelled_choices(
    graph: OperatorGraph, sheet: HardwareSheet, policy: PrecisionPolicy, most: int = MOST, known: frozenset[str] = MODELLED
) -> tuple[Choice, ...]:
    """Name at most `most` schedules, the one that the model expects to be fastest first, the others fast and different.

    Regions of a template that is not among the `known` ones keep the coder's own first values, and the choice names them.
    """
    if graph.blocked:
        return ()
    model = ScheduleModel(graph, sheet, policy, known)
    pool = [choice for schedule in structures(graph, sheet, model.glance) for choice in model.choices(schedule, most)]
    return in_order(pool, most)


def in_order(pool: list[Choice], most: int) -> tuple[Choice, ...]:
    """Choose from a pool: the fastest, and then again and again the fastest of those that differ most from all before."""
    chosen: list[Choice] = []
    while pool and len(chosen) < most:
        best = min(pool, key=lambda one: one.order_us * _repeats(one, chosen))
        chosen.append(best)
        pool = [one for one in pool if one.schedule != best.schedule]
    return tuple(chosen)


def choice_action(number: int) -> Action:
    """Make the action that writes the whole forward as the model's choice of that number."""
    return Action(kind=ActionKind.ALGORITHM, region=WHOLE, parameters={"implementation": MODELLED_CHOICE, CHOICE: number})


def chosen_number(action: Action) -> int:
    """Read the number of a choice; 0 of any other action."""
    return int(action.parameters.get(CHOICE, 0))


def _repeats(one: Choice, chosen: list[Choice]) -> float:
    words, family = (sum(getattr(one, name) == getattr(other, name) for other in chosen) for name in ("words", "family"))
    return float(AGAIN**words * FAMILY**family)


class ScheduleModel:
    """What the cost model says of regions; each set of nodes is lowered and looked at once."""

    def __init__(self, graph: OperatorGraph, sheet: HardwareSheet, policy: PrecisionPolicy, known: frozenset[str] = MODELLED) -> None:
        """Model schedules of one graph on one device."""
        self.graph, self.sheet, self.policy, self.known = graph, sheet, policy, known
        self._planned: dict[tuple[str, ...], Planned] = {}
        self._glances: dict[tuple[str, ...], float] = {}
        self._libraries: dict[tuple[str, ...], float] = {}
        self._times: dict[tuple[tuple[str, ...], str], float] = {}
        self._rankings: dict[tuple[tuple[str, ...], str, int], list[Setting]] = {}

    def planned(self, region: Region) -> Planned:
        """Lower a region."""
        if region.nodes not in self._planned:
            self._planned[region.nodes] = plan_region(self.graph, region.nodes)
        return self._planned[region.nodes]

    def glance(self, graph: OperatorGraph, schedule: Schedule) -> float:
        """Time of the generated regions of a schedule at about their best settings; no end of it where one is not modelled."""
        return sum(self._glance(region) for region in schedule.regions if region.is_generated)

    def _glance(self, region: Region) -> float:
        if region.nodes not in self._glances:
            self._glances[region.nodes] = self._ranked(region, GLANCED)[0].us if region.template in self.known else math.inf
        return self._glances[region.nodes]

    def _ranked(self, region: Region, most: int) -> list[Setting]:
        start: Parameters = dict(region.parameters)
        name = (region.nodes, key(start), most)
        if name not in self._rankings:
            names = modelled_names(region.template)
            self._rankings[name] = ranked(self.planned(region), start, names, self.sheet, self.policy, most)
        return self._rankings[name]

    def choices(self, schedule: Schedule, most: int) -> list[Choice]:
        """Set a structure's regions to their best settings, then the heavy ones to their next different ones."""
        known = [region for region in schedule.regions if region.template in self.known]
        share = max(FEWEST, min(SCORED, SEEN // max(1, len(known))))
        spreads = {region.id: spread(self._ranked(region, share), dict(region.parameters), most) for region in known}
        others = self._left(schedule)
        total = others + sum(settings[0].us for settings in spreads.values())
        heavy = {name for name, settings in spreads.items() if settings[0].us >= HEAVY * total}
        unmodelled = tuple(region.id for region in schedule.regions if region.is_generated and region.template not in self.known)
        found: list[Choice] = []
        for place in range(max([len(spreads[name]) for name in heavy] or [1])):
            chosen = {name: each[min(place, len(each) - 1) if name in heavy else 0] for name, each in spreads.items()}
            changed = schedule
            for region in known:
                changed = changed.replaced(region.model_copy(update={"parameters": chosen[region.id].parameters}))
            us = others + sum(one.us for one in chosen.values())
            words = tuple((region.template, words_of(dict(region.parameters))) for region in changed.regions if region.id in heavy)
            found.append(Choice(changed, us, unmodelled, words, max([us, *(one.order_us for one in found)])))
        return found

    def _left(self, schedule: Schedule) -> float:
        """Time of the products and convolutions that a structure leaves to the library though they could be generated."""
        return sum(self._library(region) for region in schedule.regions if not region.is_generated)

    def _library(self, region: Region) -> float:
        if region.nodes not in self._libraries:
            able = can_generate(self.graph, region.nodes)
            self._libraries[region.nodes] = library_us(self.planned(region), self.sheet, self.policy) if able else 0.0
        return self._libraries[region.nodes]

    def schedule_us(self, schedule: Schedule) -> float | None:
        """Time of all regions that can be generated, as a schedule has them; None where one of its templates is not modelled."""
        total = self._left(schedule)
        for region in schedule.regions:
            if region.is_generated:
                if region.template not in self.known:
                    return None
                name = (region.nodes, key(dict(region.parameters)))
                if name not in self._times:
                    self._times[name] = region_us(self.planned(region), region.parameters, self.sheet) or 0.0
                total += self._times[name]
        return total
