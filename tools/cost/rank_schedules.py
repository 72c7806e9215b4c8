"""The schedules that the cost model likes best over all that actions reach: structures, numbers and words, all regions at once."""

from __future__ import annotations

from dataclasses import replace

from tools.codegen import OperatorGraph, Schedule, initial_schedule
from tools.codegen.rewrite.bind import bind
from tools.codegen.schedule.options import stands_alone
from tools.codegen.schedule.plan import is_writable
from tools.cost.alternatives import LAST, Alternatives
from tools.cost.choice import Choice, in_order
from tools.cost.fusion_plans import structures
from tools.cost.library import convolves_on_tensor_cores
from tools.cost.library_convolutions import library_convolution_choices
from tools.cost.loop_bodies import has_bodies, left_loops, loops_apart, with_bodies
from tools.cost.prepack import WORTH_WHOLE
from tools.cost.rewrites import rewriting_words, rewritings
from tools.cost.schedule_model import ScheduleModel, is_convolution
from tools.cost.walks import Walks
from tools.records import HardwareSheet, PrecisionPolicy

MOST = 6
"""Choices of one reference."""


def modelled_choices(
    graph: OperatorGraph, sheet: HardwareSheet, policy: PrecisionPolicy, most: int = MOST, known: frozenset[str] | None = None
) -> tuple[Choice, ...]:
    """Name at most `most` schedules, the one that the model expects to be fastest first, the others fast and different.

    Regions of a template that is not among the `known` ones keep the coder's own first values, and the choice names them.
    """
    if graph.blocked:
        return ()
    pool = _pool(graph, sheet, policy, known, most)

    def fits(choice: Choice) -> bool:
        # what a schedule says of layouts is looked at once more, as it will be written
        return LAST not in choice.words or is_writable(graph, choice.schedule)

    first = in_order(pool, 1, fits=fits)
    plain = [choice for choice in pool if not _convolves(graph, choice)]
    if plain and first and _convolves(graph, first[0]):
        first = in_order(plain, 2, first, fits)
    return in_order(pool, most, first, fits)


def _pool(graph: OperatorGraph, sheet: HardwareSheet, policy: PrecisionPolicy, known: frozenset[str] | None, most: int) -> list[Choice]:
    """List choices of each rewriting of a graph; one that packs only where that saves enough of a call, compared with its like."""
    pool: list[Choice] = []
    worth, walks = rewritings(graph), Walks(sheet)
    for rewriting in worth:
        changed = bind(graph, rewriting).rewritten
        model = ScheduleModel(changed, sheet, policy, known, walks)
        start = with_bodies(model, initial_schedule(changed))
        schedules = structures(changed, sheet, model.glance, model.prefers_own, start, whole=model.glance_of_all)
        if apart := loops_apart(model):
            schedules += structures(changed, sheet, model.glance, model.prefers_own, apart, left_loops(apart), model.glance_of_all)
        if not schedules and has_bodies(start):
            schedules = (start,)
        of_each = [model.choices(schedule, most) for schedule in schedules]
        by_library = model.choices(start, 1)
        found = [choice for choices in of_each for choice in choices]
        found += Alternatives(model).of([choices[0] for choices in of_each or [by_library]])
        found += Alternatives(model).launching([choice for choices in of_each for choice in choices[1:]])
        if rewriting_words(rewriting) and all(stands_alone(changed, start, region.id) for region in start.regions):
            # nothing is left around products and convolutions: the library's may be best, and are not what the reference calls
            found += by_library
        if rewriting.prepacked:
            unpacked = rewriting.model_copy(update={"prepacked": ()})
            fastest = min(one.order_us for one in pool)
            alike = {words: min(one.order_us for one in pool if one.words == words) for words in {one.words for one in pool}}
            found = [one for one in found if one.order_us <= WORTH_WHOLE * alike.get(_rewriting(one, unpacked).words, fastest)]
        pool += [_rewriting(choice, rewriting) for choice in found]
    if convolves_on_tensor_cores(graph, sheet, policy):
        pool += library_convolution_choices(graph, worth[0], ScheduleModel(graph, sheet, policy, known, walks), most)
    return pool


def _rewriting(choice: Choice, rewriting: Schedule) -> Choice:
    """Say in a choice's schedule what its regions are of."""
    schedule = rewriting.model_copy(update={name: getattr(choice.schedule, name) for name in ("regions", "together", "captured")})
    return replace(choice, schedule=schedule, words=(*choice.words, *rewriting_words(rewriting)))


def _convolves(graph: OperatorGraph, choice: Choice) -> bool:
    """Whether a choice generates a convolution: another one leaves them all to the library and is among the first two."""
    graph = bind(graph, choice.schedule).rewritten
    return any(is_convolution(graph, region) for region in choice.schedule.regions if region.is_generated)
