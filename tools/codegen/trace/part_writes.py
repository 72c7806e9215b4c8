"""Writes to a part of a tensor that a reference made itself (`out[:, t] = y`), as values that later readers of the tensor read."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from typing import TYPE_CHECKING

from tools.codegen.ir.graph import Node, Ref, TensorMeta

if TYPE_CHECKING:
    from torch import fx

VIEW_LIKE = {
    "view", "reshape", "permute", "transpose", "t", "unsqueeze", "squeeze", "expand", "expand_as", "flatten", "unflatten",
    "slice", "select", "chunk", "split", "split_with_sizes", "narrow", "unbind", "view_as", "numpy_T", "mT", "detach", "alias",
}  # fmt: skip
"""Operators whose result may share memory with their input."""

PARTS = {"select": "select_scatter", "slice": "slice_scatter"}
"""Views that take a part of a tensor, and what writes a part of one."""


CUTS = {"aten.chunk.default", "aten.split.Tensor", "aten.split_with_sizes.default"}
"""What cuts a tensor into pieces along a dimension, its third argument."""


def written_piece(node: fx.Node, index: int) -> tuple[int, int, int] | None:
    """Give the dimension, begin and end of a piece of a tensor, where something is written to such a one in place; None of other values."""
    cut = node.all_input_nodes[0]
    users = ((piece, user) for piece in cut.users for user in piece.users)
    if str(cut.target) not in CUTS or not any(writes(str(user.target)) and user.args[0] is piece for piece, user in users):
        return None
    dim = cut.args[2] if len(cut.args) > 2 else cut.kwargs.get("dim", 0)
    assert isinstance(dim, int)
    dim %= cut.meta["val"][0].dim()
    begin = sum(piece.shape[dim] for piece in cut.meta["val"][:index])
    return dim, begin, begin + cut.meta["val"][index].shape[dim]


def writes(target: str) -> bool:
    """Whether an operator writes to its first argument in place."""
    op = target.split(".")[1] if target.startswith("aten.") else ""
    return op.endswith("_") and not op.endswith("__")


class PartWrites:
    """The tensors of a trace that are written part by part."""

    def __init__(self, nodes: list[Node], inputs: Collection[str], bases: dict[str, str]) -> None:
        """Take the nodes read so far, the names of what comes from outside, and in whose memory each value lies."""
        self.nodes, self.inputs, self.bases = nodes, inputs, bases
        self.current: dict[Ref, Ref] = {}
        """What a tensor holds after a part of it was written."""
        self.origins: dict[str, str] = {}
        """Of which tensor a value is a later state."""
        self.cuts: dict[str, str] = {}
        """Of which cut a value is a piece: what is written to one leaves the others as they are."""

    def node(self, name: str) -> Node | None:
        """Find a node."""
        return next((each for each in reversed(self.nodes) if each.name == name), None)

    def beside(self, name: str, other: str) -> bool:
        """Whether two values are pieces of one cut."""
        return name in self.cuts and self.cuts.get(other) == self.cuts[name]

    def holder(self, name: str, base: str) -> str | None:
        """Find the tensor made here that a value is a part of, or a part of such a part; None where it is none."""
        node = self.node(name)
        if node is None or node.op not in PARTS or base in self.inputs:
            return None
        while node is not None and node.op in PARTS and isinstance(node.args[0], Ref):
            node = self.node(self.origins.get(node.args[0].name, node.args[0].name))
        return None if node is None or node.op in PARTS else node.name

    def write(self, view: Node, value: Ref) -> None:
        """Write a value where a view looks: whoever reads the tensor from now on reads what this gives."""
        source = view.args[0]
        holder = self.origins.get(source.name, source.name)
        now, origin = self.current.get(Ref(holder), Ref(holder)), self.node(holder)
        assert origin is not None
        name = node_name(f"{holder}_written", {*self.inputs, *(each.name for each in self.nodes)})
        meta: TensorMeta = replace(origin.outputs[0], contiguous=True, unit_last=True)
        self.nodes.append(Node(name, f"aten.{PARTS[view.op]}.default", (now, value, *view.args[1:]), {}, (meta,)))
        self.origins[name] = holder
        self.bases[name] = self.bases.get(holder, holder)
        self.current |= {Ref(holder): Ref(name), Ref(view.name): value}
        if origin.op in PARTS:
            self.write(origin, Ref(name))


def node_name(name: str, taken: Collection[str]) -> str:
    """Keep the exporter's name unless an input or another node has it: `add_` and `add` are two."""
    name = name.strip("_")
    while name in taken:
        name = f"{name}_value"
    return name
