"""Choices that have cuDNN do a forward's dense convolutions on tensor cores: their biases apart, their channels last or not."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from tools.codegen import OperatorGraph, Schedule, initial_schedule
from tools.codegen.ir.graph import Node
from tools.codegen.ir.operators.families import CONVOLUTIONS, EITHER_LAYOUT
from tools.codegen.ir.schedule import CHANNELS_LAST, EPILOGUE, FORMAT
from tools.codegen.rewrite.bind import bind
from tools.codegen.rewrite.channels_last import is_depthwise, turnable, with_channels_last
from tools.codegen.rewrite.images.joined_in_place import joinable_in_place
from tools.codegen.rewrite.images.separate_statistics import biases_again, separable_statistics
from tools.codegen.rewrite.images.shared_statistics import shared_pieces
from tools.codegen.rewrite.separate_bias import separable_biases
from tools.codegen.schedule.cudnn_fusion import joined_epilogues
from tools.codegen.schedule.placed import regions_of_places, writes_place
from tools.codegen.schedule.rounding import may_round_convolution
from tools.cost.alternatives import LAST, Alternatives
from tools.cost.choice import Choice
from tools.cost.fusion_plans import structures
from tools.cost.rewrites import rewriting_words
from tools.cost.schedule_model import ScheduleModel

APART = "biases apart"
"""Word of choices whose biases are additions after the library's convolutions."""
STATISTICS = "_native_batch_norm_legit_functional"


@dataclass(frozen=True)
class _Plan:
    """One way to have the library do all dense convolutions."""

    rewriting: Schedule
    """Without regions."""
    graph: OperatorGraph
    """Rewritten so, and laid out."""
    start: Schedule
    """The regions that generating begins with."""
    turned: frozenset[str]
    """Convolutions whose channels lie last."""
    fuses: bool
    """Whether some do a relu in the same call."""


def library_convolution_choices(graph: OperatorGraph, rewriting: Schedule, model: ScheduleModel, most: int) -> list[Choice]:
    """List them for a graph that is rewritten as a schedule without regions says; `model` tells of the device and the policy."""
    pool: list[Choice] = []
    for plan in _plans(graph, rewriting):
        here = model.of(plan.graph)
        of_each = [
            here.choices(one, most)
            for one in structures(plan.graph, model.sheet, here.glance, here.prefers_own, plan.start, _left(plan, here))
        ]
        found = [choice for choices in of_each for choice in choices]
        found += Alternatives(here).of([choices[0] for choices in of_each])
        pool += [_said(choice, plan) for choice in found if _places_itself(plan.graph, choice.schedule)]
    return pool


def _plans(graph: OperatorGraph, rewriting: Schedule) -> Iterator[_Plan]:
    """Yield the reference's layout, then channels last, then the same with cuDNN's fused calls where there are any."""
    changed = bind(graph, rewriting).rewritten
    if not any(node.op in CONVOLUTIONS for node in changed.nodes):
        return
    biases = separable_biases(changed)
    apart = rewriting.model_copy(update={"separate_biases": biases})
    seen = bind(graph, apart).rewritten
    yield _Plan(apart, seen, initial_schedule(seen), frozenset(), fuses=False)
    if pieces := joinable_in_place(seen):
        placed = apart.model_copy(update={"joined_in_place": pieces})
        seen_placed = bind(graph, placed).rewritten
        yield _Plan(placed, seen_placed, regions_of_places(seen_placed), frozenset(), fuses=False)
    turned = _worth_turning(seen)
    if not turned:
        return
    # rows that lie across memory are walked twice at a loss: what normalises by their statistics is a kernel of its own
    apart = _with_statistics_apart(graph, apart, seen)
    laid_out = with_channels_last(bind(graph, apart).rewritten, turned)
    yield _Plan(apart, laid_out, initial_schedule(laid_out), turned, fuses=False)
    joined = [region for region in joined_epilogues(changed, initial_schedule(changed)).regions if EPILOGUE in region.parameters]
    if not joined:
        return
    fused = frozenset(region.nodes[0] for region in joined)
    some = rewriting.model_copy(update={"separate_biases": tuple(name for name in biases if name not in fused)})
    some = _with_statistics_apart(graph, some, bind(graph, some).rewritten)
    seen = bind(graph, some).rewritten
    start = joined_epilogues(seen, initial_schedule(seen))
    yield _Plan(some, with_channels_last(seen, _worth_turning(seen)), start, _worth_turning(seen), fuses=True)


def _with_statistics_apart(graph: OperatorGraph, rewriting: Schedule, rewritten: OperatorGraph) -> Schedule:
    """Take the statistics of norms apart; biases before them are added in both kernels."""
    apart = rewriting.model_copy(update={"separate_statistics": separable_statistics(rewritten)})
    again = biases_again(bind(graph, apart).rewritten, rewriting.separate_biases)
    return apart.model_copy(update={"recomputed": (*rewriting.recomputed, *again)})


def _places_itself(graph: OperatorGraph, schedule: Schedule) -> bool:
    """Whether kernels of ours write all pieces that have a place."""
    return all(region.is_generated for region in schedule.regions if writes_place(graph, region))


def _left(plan: _Plan, model: ScheduleModel) -> frozenset[str]:
    """Name what is the library's: its fused calls, and dense convolutions unless ours is expected to be faster, whatever the doubt."""
    depthwise = _depthwise(plan.graph)
    left: set[str] = set()
    for region in plan.start.regions:
        dense = any(plan.graph.by_name[name].op in CONVOLUTIONS for name in region.nodes) and not depthwise & set(region.nodes)
        if writes_place(plan.graph, region):
            continue
        if EPILOGUE in region.parameters or (dense and not model.would_gain(region)):
            left |= set(region.nodes)
    return frozenset(left)


def _worth_turning(graph: OperatorGraph) -> frozenset[str]:
    """Name the convolutions to lie with their channels last; none in a forward where something else would lose by it.

    Our depthwise convolutions read planes. Norms by the batch's statistics of concatenations took twice as long (DenseNets on an H200),
    unless these are made piece by piece. Floats of few channels, for which cuDNN takes no TF32 as they are, were rounded with channels
    last: WRONG on an H100. They stay.
    """
    if _depthwise(graph) or _looks_along_joined(graph):
        return frozenset()
    return frozenset(name for name in turnable(graph) if _rounds_either_way(graph, graph.by_name[name]))


def _rounds_either_way(graph: OperatorGraph, node: Node) -> bool:
    return node.outputs[0].dtype != "float32" or may_round_convolution(graph, node)


def _looks_along_joined(graph: OperatorGraph) -> bool:
    """Whether a norm takes the statistics of a whole concatenation, and not those of pieces that other norms share."""
    names = separable_statistics(graph)
    pieces = shared_pieces(graph, [graph.by_name[name] for name in names])
    norms = (node for node in graph.nodes if node.op == STATISTICS and node.name not in pieces)
    return any(name in graph.by_name and graph.by_name[name].op == "cat" for norm in norms for name in (norm.args[0].name,))


def _depthwise(graph: OperatorGraph) -> frozenset[str]:
    return frozenset(node.name for node in graph.nodes if node.op in EITHER_LAYOUT and is_depthwise(graph, node))


def _said(choice: Choice, plan: _Plan) -> Choice:
    """Say in a choice's schedule what its regions are of, and how convolutions lie."""
    schedule = plan.rewriting.model_copy(update={name: getattr(choice.schedule, name) for name in ("regions", "together", "captured")})
    for region in schedule.regions:
        if plan.turned & set(region.nodes):
            schedule = schedule.replaced(region.model_copy(update={"parameters": {**region.parameters, FORMAT: CHANNELS_LAST}}))
    words = ((LAST, bool(plan.turned)), ("fused epilogues", plan.fuses), (APART, bool(schedule.separate_biases)))
    said = (*(word for word, true in words if true), *rewriting_words(plan.rewriting))
    return replace(choice, schedule=schedule, words=(*choice.words, *said))
