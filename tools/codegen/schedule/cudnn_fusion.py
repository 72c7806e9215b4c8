"""cuDNN's fused epilogue: a convolution, its bias, an addition and a relu as one library call.

Two regions of a schedule become one that stays with the library: the convolution's, and that of the relu which alone reads it, with an
addition of a tensor of the same shape before it or not. In the reference's own layout that saves a pass over the result. With channels
last it gains nothing in plain float32 (docs/results/generated-kernels.md), but with TF32 bias and relu cost nothing. cuBLAS's epilogues
gain nothing in float32 and are not used.
"""

from __future__ import annotations

from collections.abc import Iterator

from tools.codegen.ir.graph import Node, OperatorGraph, Ref
from tools.codegen.ir.schedule import EPILOGUE, FORMAT, LIBRARY, Region, Schedule
from tools.codegen.schedule.partition import ordered

FUSED = "fused"
SCOPE = "library"
"""The word of the action `fusion`: neither a kernel for each region nor one for all, but the library's."""
DTYPES = ("float32", "float16")


def epilogues(graph: OperatorGraph, schedule: Schedule) -> Iterator[tuple[Region, Region]]:
    """Yield the pairs of regions that the library does in one call."""
    home = {name: region for region in schedule.regions for name in region.nodes}
    for region in schedule.regions:
        node = graph.by_name[region.nodes[0]]
        if region.is_generated or len(region.nodes) > 1 or node.op != "conv2d" or FORMAT in region.parameters:
            continue
        after = _after(graph, node)
        if after and set(home[after[0].name].nodes) == {each.name for each in after}:
            yield region, home[after[0].name]


def joined_epilogues(graph: OperatorGraph, schedule: Schedule) -> Schedule:
    """Have the library do every such pair in one call whose result may lie with its channels last: it is not what forward returns.

    The kernel is square: with one of 5 by 9 the call took twice as long as without relu (an H200, TF32).
    """
    while pair := next((pair for pair in epilogues(graph, schedule) if _suits_channels_last(graph, pair)), None):
        joined = with_epilogue(graph, schedule, list(pair))
        assert joined is not None
        schedule = joined
    return schedule


def _suits_channels_last(graph: OperatorGraph, pair: tuple[Region, Region]) -> bool:
    sizes = graph.meta(graph.by_name[pair[0].nodes[0]].args[1]).shape[2:]
    return len(set(sizes)) == 1 and not any(Ref(name) in graph.returned for name in pair[1].nodes)


def _after(graph: OperatorGraph, node: Node) -> tuple[Node, ...]:
    """List the operators that cuDNN does with a convolution: an addition and a relu, or a relu; empty where it does neither."""
    (made,) = node.outputs
    # without a batch PyTorch's convolution takes an image, cuDNN's call does not
    if node.target != "aten.conv2d.default" or made.dtype not in DTYPES or len(made.shape) != 4 or node.kwargs:
        return ()
    found: list[Node] = []
    last = node
    while len(users := graph.users.get(last.name, ())) == 1 and Ref(last.name) not in graph.returned:
        user = users[0]
        if user.op == "relu":
            return (*found, user)
        if found or user.op != "add" or not _adds(graph, user, last):
            return ()
        found.append(user)
        last = user
    return ()


def _adds(graph: OperatorGraph, node: Node, made: Node) -> bool:
    """Whether an addition is of another tensor of the same shape and dtype, which lies in one piece."""
    others = [arg for arg in node.args if arg != Ref(made.name)]
    if node.kwargs or len(node.args) != 2 or len(others) != 1 or not isinstance(others[0], Ref):
        return False
    meta = graph.meta(others[0])
    return (meta.shape, meta.dtype, meta.contiguous) == (made.outputs[0].shape, made.outputs[0].dtype, True)


def with_epilogue(graph: OperatorGraph, schedule: Schedule, regions: list[Region]) -> Schedule | None:
    """Return the schedule with two regions done in one call of the library; none where they cannot be."""
    pair = next((found for found in epilogues(graph, schedule) if {one.id for one in found} == {one.id for one in regions}), None)
    if pair is None:
        return None
    before = {region.nodes: region for region in schedule.regions if region not in pair}
    joined = (*pair[0].nodes, *sorted(pair[1].nodes, key=lambda name: graph.order[name]))
    made = Region(id="", nodes=joined, template=LIBRARY, parameters={EPILOGUE: FUSED})
    settled = tuple(before.get(region.nodes, made).model_copy(update={"id": region.id}) for region in ordered(graph, [*before, joined]))
    return schedule.model_copy(update={"regions": settled})
