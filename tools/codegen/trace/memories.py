"""In whose memory each value of an exported program lies, by the storages that its trace had."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from tools.codegen.ir.graph import Ref
from tools.codegen.trace.part_writes import VIEW_LIKE
from tools.codegen.trace.program_inputs import is_tensor

if TYPE_CHECKING:
    from torch import fx


class Memories:
    """Storages, and the values that they were made for."""

    def __init__(self, given: Mapping[fx.Node, str]) -> None:
        """Take the values that come from outside, by their nodes."""
        self.bases = {name: name for name in given.values()}
        """By value, the one whose memory it lies in."""
        self._owners = {storage_of(node): name for node, name in given.items()}

    def add(self, node: fx.Node, name: str, source: Ref | None) -> None:
        """Note where a result lies: `reshape` copies where it has to, and `contiguous` or `to` where there is something to do.

        `source` is the tensor that is the operator's first argument.
        """
        storage = storage_of(node)
        base = name
        if storage in self._owners:
            base = self._owners[storage]
        elif storage is not None:
            # of the pieces that an operator is made of only those have known storages whose sources do
            known = not node.all_input_nodes or storage_of(node.all_input_nodes[0]) in self._owners
            shares = not known and source is not None and str(node.target).split(".")[1] in VIEW_LIKE
            base = self.bases.get(source.name, source.name) if shares and source is not None else name
        self.bases[name] = base
        if storage is not None:
            self._owners[storage] = base

    def is_shared(self, name: str, other: str) -> bool:
        """Whether two values lie in the same memory."""
        return self.bases.get(name, name) == self.bases.get(other, other)


def storage_of(node: fx.Node) -> int | None:
    """Give the storage of a value, or of the first of several; None where it has none."""
    val = node.meta.get("val")
    found: Any = next(filter(is_tensor, val), None) if isinstance(val, tuple | list) else val
    # a sparse tensor has several
    return found.untyped_storage()._cdata if is_tensor(found) and str(found.layout) == "torch.strided" else None
