"""The action `tune`: every number of a schedule's generated regions at once, found by trials instead of by one step after another."""

from __future__ import annotations

from collections.abc import Collection

from agents.coder.protocol import Draft
from agents.coder.traced import traced_graph
from agents.coder.written import WrittenSpace, numbers_region
from agents.records.tune import TRIALS
from tools.codegen import LoweringError, Schedule, emit
from tools.codegen.ir.schedule import INSIDE
from tools.codegen.rewrite.bind import bind
from tools.codegen.schedule.bodies import generated_regions
from tools.records import Action, ActionKind, Candidate, HardwareSheet, Problem, content_hash
from tools.records.renamed import first_parameters, first_templates
from tools.tuning import Parameters, Tunable, Tuned, sizes_of, tunable, tunable_regions, work_of


def structure_of(schedule_json: str) -> str:
    """Sign what of a schedule a tuning leaves as it is: its regions, their templates, and the parameters that are words."""
    schedule = Schedule.model_validate_json(schedule_json)
    regions = (*schedule.regions, *(region for region in schedule.generated if INSIDE in region.id))
    first = [first_parameters(region.parameters) for region in regions]
    words = [sorted((name, value) for name, value in each.items() if isinstance(value, str)) for each in first]
    return content_hash(*(f"{region.nodes} {first_templates(region.template)} {each}" for region, each in zip(regions, words, strict=True)))


def structure_in(problem: Problem, candidate: Candidate) -> str:
    """Sign what of a candidate a tuning leaves as it is: of its schedule, or where it has none of its text."""
    return structure_of(candidate.schedule) if candidate.schedule else WrittenSpace(problem, candidate.source).structure


def tuning_action(parent: Candidate | None, trials: int, tuned: Collection[str], problem: Problem | None = None) -> Action | None:
    """Make the action that tunes a parent; None where it has nothing that can be tuned, or its structure is among those `tuned`.

    A parent without a schedule is tuned by the numbers that stand in its text, where its `problem` is given.
    """
    if parent is None or trials <= 0:
        return None
    if parent.schedule is None:
        space = WrittenSpace(problem, parent.source) if problem else None
        region = numbers_region(parent.source) if space and space.numbers and space.structure not in tuned else ""
    else:
        known = structure_of(parent.schedule) in tuned
        region = "" if known else "+".join(tunable_regions(Schedule.model_validate_json(parent.schedule)))
    return Action(kind=ActionKind.LAUNCH, region=region, parameters={TRIALS: trials}) if region else None


class TuningSpace:
    """The points of one parent's schedule, each of which can be written as a source."""

    def __init__(self, problem: Problem, parent: Candidate, action: Action, sheet: HardwareSheet) -> None:
        """Trace the problem and list the points; the time of some seconds is spent here."""
        assert parent.schedule is not None
        self._problem, self._sheet = problem, sheet
        schedule = Schedule.model_validate_json(parent.schedule)
        self._graph = traced_graph(problem)
        names = tuple(action.region.split("+"))
        every = generated_regions(bind(self._graph, schedule).rewritten, schedule.regions)
        regions = [(graph, region) for graph, region in every if region.id in names]
        self._regions = tuple(region for _, region in regions)
        self.tunable: Tunable = tunable(self._graph, schedule, names, sheet)
        self.work, self.sizes = work_of(regions), sizes_of(regions)

    def draft(self, point: str) -> Draft | None:
        """Write a point as a source; None where it cannot be written."""
        schedule = self.tunable.at(point)
        try:
            emission = emit(self._problem, self._graph, schedule)
        except LoweringError:
            return None
        return Draft(source=emission.source, schedule=schedule.model_dump_json(), notes=emission.notes)

    def known(self, found: tuple[Tuned, ...]) -> tuple[str, ...]:
        """Name the points that were found before and that this schedule has too."""
        settings = [dict(zip((r.id for r in self._regions), one.parameters, strict=False)) for one in found]
        return tuple(name for each in settings if (name := self.tunable.find(each)))

    def parameters(self, point: str) -> tuple[Parameters, ...]:
        """Parameters of each tuned region at a point, in order."""
        return tuple(self.tunable.settings[point][region.id] for region in self._regions)
