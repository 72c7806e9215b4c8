"""What kernels have in common that do the same with tensors of other names, as the blocks of a network do."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import fields, is_dataclass
from functools import cache
from typing import Any

from tools.codegen.ir.atoms import Atoms
from tools.codegen.ir.builder import Builder, Value
from tools.codegen.ir.graph import Ref
from tools.codegen.ir.kernel import Kernel


def likeness(kernel: Kernel) -> Hashable:
    """Describe all of a kernel but the names of its tensors, of which it says which are the same.

    Kernels of equal descriptions take the same time with the same parameters.
    """
    refs: dict[Ref, int] = {}
    described = _described(kernel, refs)
    # which of two equally large operands an attention walks is told by their names
    names = sorted(refs, key=lambda ref: (ref.name, ref.index)) if kernel.attention else ()
    return described, tuple(refs[ref] for ref in names)


def _described(part: Any, refs: dict[Ref, int]) -> Hashable:
    described: Hashable = part
    if isinstance(part, Ref):
        described = refs.setdefault(part, len(refs))
    elif isinstance(part, Value):
        described = part.id
    elif isinstance(part, tuple | list):
        described = tuple(_described(each, refs) for each in part)
    elif isinstance(part, dict):
        described = tuple((key, _described(value, refs)) for key, value in part.items())
    elif isinstance(part, Builder):
        # labels are for the text of a kernel
        described = _described({name: held for name, held in vars(part).items() if name[0] != "_" and name != "labels"}, refs)
    elif isinstance(part, Atoms):
        described = _described(part.relations, refs)
    elif names := _field_names(part.__class__):
        described = type(part), *[_described(getattr(part, name), refs) for name in names]
    return described


@cache
def _field_names(kind: type) -> tuple[str, ...]:
    """Name the fields of a kind of dataclass; nothing of anything else."""
    return tuple(field.name for field in fields(kind)) if is_dataclass(kind) else ()
