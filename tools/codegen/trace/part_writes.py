"""Writes in place to tensors that a reference made itself, through whatever views of them, as values that later readers read.

A tensor is named by the operator that made it, or that looks at it, and stays what it is while its contents change. What is written
through a view is put back into the tensor that it looks at, and so on up to the one that has the memory. Other views of that memory look
again when they are read.
"""

from __future__ import annotations

import operator
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from tools.codegen.ir.graph import Node, Ref, TensorMeta
from tools.codegen.trace.program_inputs import meta_of
from tools.codegen.trace.put_back import is_expressible, put_back

if TYPE_CHECKING:
    from torch import fx

VIEW_LIKE = {
    "view", "reshape", "permute", "transpose", "t", "unsqueeze", "squeeze", "expand", "expand_as", "flatten", "unflatten",
    "slice", "select", "chunk", "split", "split_with_sizes", "narrow", "unbind", "view_as", "numpy_T", "mT", "detach", "alias",
}  # fmt: skip
"""Operators whose result may share memory with their input."""

CUTS = {"aten.chunk.default", "aten.split.Tensor", "aten.split_with_sizes.default", "aten.unbind.int"}
"""What cuts a tensor into pieces along a dimension."""

TURNED_IN_PLACE = {"unsqueeze_", "squeeze_", "t_", "transpose_", "swapaxes_", "swapdims_", "detach_", "as_strided_"}
"""Operators that write nothing, but have a tensor looked at in another way from then on."""


def writes(target: str) -> bool:
    """Whether an operator writes to its first argument in place."""
    op = target.split(".")[1] if target.startswith("aten.") else ""
    return (op.endswith("_") and not op.endswith("__")) or op in ("__iand__", "__ior__", "__ixor__")


class Names:
    """The names of a trace's values."""

    def __init__(self, inputs: Collection[str], nodes: Sequence[Node]) -> None:
        """Take the names of what comes from outside, and nodes, to which others are only added while names are sought."""
        self._inputs, self._nodes = inputs, nodes
        self._taken: set[str] = set()
        self._seen = 0

    def free(self, name: str) -> str:
        """Keep the exporter's name unless an input or another node has it: `add_` and `add` are two."""
        self._taken.update(node.name for node in self._nodes[self._seen :])
        self._seen = len(self._nodes)
        name = name.strip("_")
        while name in self._inputs or name in self._taken:
            name = f"{name}_value"
        return name


@dataclass(frozen=True)
class View:
    """How a tensor looks at another one."""

    source: Ref
    node: Node
    """What looks; its first argument is what the source holds."""
    cut: str = ""
    """The cut that it is a piece of: what is written to one piece leaves the others as they are."""


def piece_of(node: fx.Node, index: int, source: Ref, name: str) -> View | None:
    """Describe a piece of the cut `name` of a tensor as the part of it that it is; None of other values."""
    cut = node.all_input_nodes[0]
    if node.target is not operator.getitem or str(cut.target) not in CUTS:
        return None
    pieces = cut.meta["val"]
    meta = (meta_of(pieces[index]),)
    unbound = str(cut.target) == "aten.unbind.int"
    place = 1 if unbound else 2
    dim = cut.args[place] if len(cut.args) > place else cut.kwargs.get("dim", 0)
    assert isinstance(dim, int)
    dim %= pieces[0].dim() + unbound
    if unbound:
        return View(source, Node("", "aten.select.int", (source, dim, index), {}, meta), name)
    begin = sum(piece.shape[dim] for piece in pieces[:index])
    return View(source, Node("", "aten.slice.Tensor", (source, dim, begin, begin + pieces[index].shape[dim]), {}, meta), name)


class PartWrites:
    """The tensors of a trace that are written in place."""

    def __init__(self, nodes: list[Node], inputs: Mapping[str, TensorMeta], bases: dict[str, str]) -> None:
        """Take the nodes read so far, what comes from outside by name, and in whose memory each value lies."""
        self.nodes, self.inputs, self.bases, self.names = nodes, inputs, bases, Names(inputs, nodes)
        self.views: dict[Ref, View] = {}
        self._current: dict[Ref, Ref] = {}
        """What a tensor holds since it was written."""
        self._stale: set[Ref] = set()
        """Views of memory that was written otherwise: they look again when they are read."""
        self._lost: set[Ref] = set()
        """Tensors that were written in a way that cannot be said."""
        self._passed: set[str] = set()
        """Names in whose memory something was written."""
        self._made: set[str] = set()
        """Nodes that are here for later readers alone."""

    def node(self, name: str) -> Node | None:
        """Find a node."""
        return next((each for each in reversed(self.nodes) if each.name == name), None)

    def look(self, tensor: Ref, view: View) -> None:
        """Hear of a view, by the name of what it gives."""
        self.views[tensor] = view
        if view.cut in self._passed:
            self._stale.add(tensor)

    def is_lost(self, tensor: Ref) -> bool:
        """Whether it is not known what a tensor holds."""
        if tensor in self._lost:
            return True
        if tensor in self.views:
            return tensor in self._stale and self.is_lost(self.views[tensor].source)
        return tensor.name in self._passed and tensor not in self._current

    def read(self, tensor: Ref) -> Ref:
        """Give what a tensor holds now."""
        if tensor in self._stale and not self.is_lost(tensor):
            view = self.views[tensor]
            source = self.read(view.source)
            name = self.names.free(f"{tensor.name}_again")
            meta = replace(self._meta(tensor), contiguous=False, unit_last=False)
            self._add([replace(view.node, name=name, args=(source, *view.node.args[1:]), outputs=(meta,))])
            self._current[tensor] = Ref(name)
            self._stale.discard(tensor)
        return self._current.get(tensor, tensor)

    def write(self, tensor: Ref, value: Ref) -> None:
        """Write a value to a tensor: whoever reads it, or any other view of its memory, reads what this gives."""
        base = self.bases.get(tensor.name, tensor.name)
        self._current[tensor] = value
        self._stale.discard(tensor)
        chain = [tensor]
        while (view := self.views.get(chain[-1])) is not None and self._is_put_back(view):
            value = self._put_back(view, value)
            self._current[view.source] = value
            self._stale.discard(view.source)
            chain.append(view.source)
        is_whole = chain[-1] not in self.views and chain[-1].name == base
        others = [each for each in (Ref(base), *self.views) if self.bases.get(each.name, each.name) == base and each not in chain]
        cuts = {self.views[each].cut for each in chain if each in self.views}
        for other in others:
            if is_whole:
                beside = other in self.views and self.views[other].cut and self.views[other].cut in cuts
                self._stale |= set() if beside else {other}
            else:
                self._lost.add(other)
        self._passed |= {name for name, origin in self.bases.items() if origin == base}

    def unread(self, returned: Sequence[Ref]) -> None:
        """Take out what was put back, or looked at again, and is read by nobody."""
        read = {ref.name for ref in returned}
        for node in reversed(list(self.nodes)):
            if node.name in self._made and node.name not in read:
                self.nodes.remove(node)
            else:
                read |= {ref.name for ref in node.refs}

    def _is_put_back(self, view: View) -> bool:
        return is_expressible(view.node, self._meta(view.source)) and not self.is_lost(view.source)

    def _put_back(self, view: View, value: Ref) -> Ref:
        """Put what was written through a view back into what the tensor that it looks at held before."""
        before = self.read(view.source)
        name = self.names.free(f"{view.source.name}_written")
        meta: TensorMeta = replace(self._meta(view.source), contiguous=True, unit_last=True)
        made = put_back(view.node, before, value, name, meta)
        self._add(made)
        return Ref(made[-1].name)

    def _meta(self, tensor: Ref) -> TensorMeta:
        node = self.node(tensor.name)
        return self.inputs[tensor.name] if node is None else node.outputs[tensor.index]

    def _add(self, made: Sequence[Node]) -> None:
        self.nodes += made
        self._made |= {node.name for node in made}
