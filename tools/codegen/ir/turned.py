"""Whether views of a tensor have moved the dimension that lies side by side in memory."""

from __future__ import annotations

from collections.abc import Mapping

from tools.codegen.ir.atoms import Atoms, ShapeMismatchError
from tools.codegen.ir.graph import Node, Ref, TensorMeta
from tools.codegen.ir.views import VIEWS, see_through


def is_turned(ref: Ref, nodes: Mapping[str, Node], metas: Mapping[str, TensorMeta], traces: int) -> bool:
    """Whether the last dimension of a view is not the last one of what it is a view of, and has all of its elements."""
    views, meta = [], metas.get(ref.name)
    while ref.name in nodes and nodes[ref.name].op in VIEWS:
        views.append(nodes[ref.name])
        ref = views[-1].args[0]
    base = metas.get(ref.name)
    if not views or meta is None or base is None or ref.index or not base.contiguous or meta.numel != base.numel:
        return False
    atoms = Atoms(traces)
    dims = first = atoms.dims(base.shape)
    try:
        for view in reversed(views):
            dims = see_through(atoms, view, dims)
    except ShapeMismatchError:
        return False
    memory, last = atoms.leaves(atom for dim in first for atom in dim), atoms.leaves(dims[-1] if dims else ())
    return bool(memory and last) and last[-1] in memory and last[-1] != memory[-1]
