"""Runs a search method over a recorded landscape: a planner that knows the table's steps, and no evaluation at all."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

from agents.planner.rating import DIFFICULTY
from agents.planner.scores import SCORES, value_points
from benchmarks.search.landscape import Landscape, Place, Step
from graphs.search import open_search
from graphs.search.archive import Offer, Portrait
from graphs.search.protocol import Ask, SearchSettings, Survey, Told
from graphs.search.wishes import Answer, Wish, unanswered
from tools.records import ROOT, Bottleneck, Record, Verdict, content_hash

NEAR_FLOOR = 1.5
"""Up to this multiple of the roofline floor a place counts as bound by the memory's rate."""
IDLE = 100
"""Rounds without a new plan after which a simulation stops: a method that only asks in vain would never end."""


class Point(Record):
    """The state of a simulated search after one evaluation."""

    evaluations: int
    best: float
    """Best speed-up so far against the better baseline, at least 1: the user keeps the reference."""


class Simulation:
    """One method on one problem of a table; it stands for graph, planner, coder, evaluator and archive."""

    designs = False

    def __init__(self, landscape: Landscape, name: str, settings: SearchSettings, state: str = "") -> None:
        """Open the method called `name`, fresh or continued."""
        self.landscape = landscape
        self.name = name
        self.settings = settings
        self.tried: dict[str, set[str]] = {}
        """Ids of the actions tried, by parent."""
        self.evaluated: dict[str, Verdict] = {}
        """Places evaluated, in order: leading to one again costs nothing."""
        self.surveys: set[str] = set()
        self.fresh: set[str] = set()
        """Parents surveyed in this round."""
        self.asked: list[Ask] = []
        self._ranked: dict[str, list[tuple[str, Step, Offer]]] = {}
        """All steps from a place in the planner's order, with the ids of their actions, which take a hash each."""
        self.method = open_search(name, settings, state, self)

    def offers(self, parent: str, *, fresh: bool = False, rated: bool = False) -> tuple[Offer, ...] | None:
        """The archive's part: steps of the table that were not tried on `parent`, by the planner's prior for its bottleneck."""
        if parent not in (self.fresh if fresh else self.surveys):
            return None
        return tuple(offer for _, _, offer in self._left(parent))

    def answer(self, wish: Wish) -> Answer | None:
        """The archive's part: nobody is there to ask."""
        return unanswered(wish)

    def portrait(self, candidate: str) -> Portrait:
        """The archive's part: what the table says of a place."""
        place = self.landscape.by_id[candidate]
        figures = place.model_dump(include={"signature", "lines", "time_us", "registers", "shared_bytes", "threads"})
        share = self.landscape.floor_us / place.time_us if place.time_us else 0.0
        return Portrait(candidate=candidate, saturation={"dram": min(1.0, share)} if share else {}, **figures)

    def reopen(self) -> None:
        """Continue from the dumped state, as a resume does."""
        self.method = open_search(self.name, self.settings, self.method.dump(), self)

    def scout(self) -> None:
        """Make every survey that the method wants."""
        while wanted := self.method.scout():
            self._survey(wanted)

    def run(self, budget: int) -> list[Point]:
        """Search until `budget` evaluations or until the method ends; return the curve."""
        curve: list[Point] = []
        idle = 0
        while len(self.evaluated) < budget and idle < IDLE:
            results = self.round(budget)
            if results is None:
                break
            idle = 0 if any(told.plan for told in results) else idle + 1
            curve.extend(self._points(len(curve)))
        return curve

    def round(self, budget: int) -> tuple[Told, ...] | None:
        """One round of the loop: scout, ask, plan, look the results up, tell; None where the method has ended."""
        self.fresh = set()
        self.scout()
        asks = self.method.ask()
        if not asks:
            return None
        self.asked.extend(asks)
        results: list[Told] = []
        for ask in asks:
            steps = self._plan(ask, budget)
            results.extend(self._told(ask, step) for step in steps)
            if not steps and len(self.evaluated) < budget:
                results.append(Told(parent=ask.parent, constrained=ask.constrained, tag=ask.tag))
        self.method.tell(results)
        return tuple(results)

    def speedup(self, place: str) -> float:
        """Of a place that passed against the better baseline; 0 for others."""
        found = self.landscape.by_id.get(place)
        return self.landscape.baseline_us / found.time_us if found and found.time_us else 0.0

    def _survey(self, wanted: Iterable[Survey | Wish]) -> None:
        for survey in wanted:
            assert isinstance(survey, Survey)
            self.surveys.add(survey.parent)
            self.fresh.add(survey.parent)

    def _left(self, parent: str) -> list[tuple[str, Step, Offer]]:
        """Untried steps from a place, in the planner's order, with the ids of their actions."""
        if parent not in self._ranked:
            found = [(step.action.id, step, self._offer(parent, step)) for step in self.landscape.from_place.get(parent, ())]
            self._ranked[parent] = sorted(found, key=lambda one: -one[2].score)
        tried = self.tried.get(parent, set())
        return [one for one in self._ranked[parent] if one[0] not in tried]

    def _plan(self, ask: Ask, budget: int) -> list[Step]:
        """The planner's part: the given step, or the best ones within the constraint, as the budget allows."""
        left = [(name, step) for name, step, _ in self._left(ask.parent) if _fits(ask, step)]
        chosen = []
        for name, step in left[: ask.plans]:
            if step.end not in self.evaluated and len(self.evaluated) >= budget:
                break
            self.tried.setdefault(ask.parent, set()).add(name)
            self.evaluated.setdefault(step.end, self._place(step.end).verdict)
            chosen.append(step)
        return chosen

    def _told(self, ask: Ask, step: Step) -> Told:
        place = self._place(step.end)
        speedup, before = self.speedup(place.id), self.speedup(ask.parent) or 1.0
        return Told(
            parent=ask.parent,
            plan=content_hash(ask.parent, step.action.id),
            candidate=place.id,
            verdict=place.verdict,
            speedup=speedup,
            accepted=speedup > before,
            kind=step.action.kind,
            region=step.action.region,
            tag=ask.tag,
        )

    def _place(self, name: str) -> Place:
        found = self.landscape.by_id.get(name)
        return found or Place(id=ROOT, time_us=self.landscape.eager_us)

    def _offer(self, parent: str, step: Step) -> Offer:
        return Offer(action=step.action, score=self._score(parent, step), difficulty=DIFFICULTY[step.action.kind])

    def _score(self, parent: str, step: Step) -> float:
        """The built-in planner's prior for the place's bottleneck; equals are told apart by a hash, as the table has no ladder."""
        bottleneck = self._bottleneck(parent)
        points = sum(value_points(name, value, bottleneck) for name, value in step.action.parameters.items())
        return max(0.0, min(10.0, SCORES[bottleneck][step.action.kind] + points)) + _jitter(step.action.id)

    def _bottleneck(self, parent: str) -> Bottleneck:
        """A rule in place of the profiler, which a table does not carry."""
        place = self.landscape.by_id.get(parent)
        if place is None or parent == ROOT or place.left:
            return Bottleneck.EXCESS_TRAFFIC
        if place.time_us <= NEAR_FLOOR * self.landscape.floor_us:
            return Bottleneck.DRAM_BANDWIDTH
        return Bottleneck.COMPUTE if "matmul" in self.landscape.families else Bottleneck.MEMORY_LATENCY

    def _points(self, known: int) -> list[Point]:
        best, points = 1.0, []
        for count, name in enumerate(self.evaluated, 1):
            best = max(best, self.speedup(name))
            points.append(Point(evaluations=count, best=best))
        return points[known:]


def _fits(ask: Ask, step: Step) -> bool:
    action = step.action
    given = ask.action is None or ask.action.id == action.id
    return given and (not ask.kinds or action.kind in ask.kinds) and (not ask.regions or action.region in ask.regions)


def _jitter(text: str) -> float:
    return int(hashlib.sha256(text.encode()).hexdigest()[:6], 16) / 2**24 * 0.1
