"""What a norm bounds: a value that a convolution could read as halves whose power of two is known before a call."""

from __future__ import annotations

from collections.abc import Iterator

from tools.codegen.ir.graph import LaidOut, Node, Normalised, OperatorGraph, Ref
from tools.codegen.ir.operators.families import CONVOLUTIONS
from tools.codegen.ir.views import is_view

NORMS = {"instance_norm": (1, 2), "group_norm": (2, 3), "_native_batch_norm_legit_functional": (1, 2)}
"""Where those that divide rows by their own deviation have weight and bias."""
OWN_STATISTICS = 5
"""Where the others say whether they do: else they divide by statistics of before."""
SHRINKING = frozenset({"relu", "leaky_relu", "silu", "gelu", "mish", "elu", "tanh", "hardswish"})
"""Activations after which no element is further from zero than before; a slope is no more than one."""
MULTIPLE = 16
"""Channels that a convolution of halves reads without filling up."""
SCALE = "scale"
"""Keyword under which a convolution gets the power of two."""


def bounded_source(graph: OperatorGraph, node: Node) -> Node | None:
    """Find what a dense convolution reads, if a norm bounds that and nothing but such convolutions reads it; its channels lie last."""
    if node.op not in CONVOLUTIONS or not isinstance(node, LaidOut) or node.copied:
        return None
    made = behind_views(graph, node.args[0])
    if made is None or graph.meta(Ref(made.name)).dtype != "float32" or norm_of(graph, made) is None:
        return None
    alone = all(_reads_images(graph, user) for user in readers(graph, Ref(made.name)))
    return made if alone and not _is_returned(graph, made.name) else None


def norm_of(graph: OperatorGraph, node: Node) -> tuple[Ref | None, Ref | None] | None:
    """Find weight and bias of the norm that a value is one of, or an activation of one; both stay, or there is none."""
    while node.op in SHRINKING and _shrinks(node) and isinstance(node.args[0], Ref):
        behind = behind_views(graph, node.args[0])
        if behind is None:
            return None
        node = behind
    if isinstance(node, Normalised):
        found = node.affine
    elif node.op not in NORMS or (node.op != "group_norm" and not node.args[OWN_STATISTICS]):
        return None
    else:
        found = tuple(node.argument(place, name) for place, name in zip(NORMS[node.op], ("weight", "bias"), strict=True))
    given = [ref for ref in found if isinstance(ref, Ref)]
    return found if given and all(ref.name in graph.fixed for ref in given) else None


def behind_views(graph: OperatorGraph, ref: Ref) -> Node | None:
    """Find what makes a value, whatever views it is seen through."""
    node = graph.by_name.get(ref.name)
    while node is not None and is_view(node) and isinstance(node.args[0], Ref):
        node = graph.by_name.get(node.args[0].name)
    return node


def readers(graph: OperatorGraph, ref: Ref) -> Iterator[Node]:
    """Go through what reads a value, by itself or through views."""
    for user in graph.users.get(ref.name, ()):
        if ref not in user.refs:
            continue
        if is_view(user):
            yield from readers(graph, Ref(user.name))
        else:
            yield user


def _is_returned(graph: OperatorGraph, name: str) -> bool:
    made = (behind_views(graph, ref) for ref in graph.returned)
    return any(node is not None and node.name == name for node in made)


def _reads_images(graph: OperatorGraph, node: Node) -> bool:
    """Whether an operator is a convolution that reads its images where they lie, channels last, and could read halves."""
    if node.op not in CONVOLUTIONS or CONVOLUTIONS[node.op][1] or not isinstance(node, LaidOut) or node.copied:
        return False
    groups, images = node.argument(6, "groups", 1), node.args[0]
    filled = isinstance(groups, int) and graph.meta(images).shape[1][0] // groups % MULTIPLE == 0
    return filled and images not in node.refs[1:]


def _shrinks(node: Node) -> bool:
    """Whether the numbers of an activation leave it so."""
    return all(isinstance(number, int | float | str) and (isinstance(number, str) or abs(number) <= 1) for number in node.args[1:])
