"""Tracing through rows that are picked by a condition: how many there are is a size of its own, of which only its being no few is known.

`torch.where(mask)`, `nonzero` and `x[mask]` are taken as `kernelwright::rows_of`, which torch.export keeps in its graph. A loop over the
experts that got any row is taken over all: the others have no rows, and `dispatch.py` accepts only what does nothing without rows.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import cache
from typing import Any

import torch
from torch.export import ExportedProgram
from torch.overrides import TorchFunctionMode

from tools.codegen.trace.dispatch.row_counts import Answers, RowCountError

OPERATOR = "kernelwright.rows_of.default"
"""What picks rows, as a graph names it: it gives the positions that `torch.nonzero` gives."""
INDEXING = ("__getitem__", "__setitem__")
SIZES = ("__get__", "size", "numel", "nelement")
TAKEN = frozenset({"where", "nonzero", "argwhere", "__len__", "unbind", "__bool__", "item"})
"""Functions that are taken otherwise where they depend on data."""


def _pick(mask: torch.Tensor) -> torch.Tensor:
    """Pick the positions where a mask holds."""
    found: torch.Tensor = _rows_of()[1](mask)
    return found


@cache
def _rows_of() -> Any:
    """Register the operator once."""
    make: Any = torch.library.Library
    library = make("kernelwright", "FRAGMENT")
    library.define("rows_of(Tensor mask) -> Tensor")
    library.impl("rows_of", torch.nonzero, "CompositeExplicitAutograd")
    torch.library.register_fake("kernelwright::rows_of", _some_rows, lib=library)
    return library, torch.ops.kernelwright.rows_of


_SIZE: list[tuple[Any, Any]] = []
"""The number of rows of all picks of a trace, and whose it is: a size for each would take three times as long."""


def _some_rows(mask: torch.Tensor) -> torch.Tensor:
    context: Any = torch.library.get_ctx()
    if not _SIZE or _SIZE[0][0] is not context._shape_env:
        # at least two: PyTorch asks whether there is one alone
        _SIZE[:] = [(context._shape_env, context.new_dynamic_size(min=2))]
    return mask.new_empty((_SIZE[0][1], mask.dim()), dtype=torch.int64)


class RowSubsets(TorchFunctionMode):
    """Has what picks rows by a condition traced as one operator; torch.export runs inside of it."""

    def __init__(self) -> None:
        """Begin a trace."""
        super().__init__()
        self.used = False
        """Whether anything was taken otherwise than it is written."""
        self._picked: dict[tuple[int, int], tuple[torch.Tensor, tuple[torch.Tensor, ...]]] = {}
        """Positions where masks hold, by the mask and how often it was written to."""
        self._hit: dict[int, tuple[torch.Tensor, int]] = {}
        """Which experts got rows, as `nonzero` tells: the tensor, and the number of all experts."""
        self._asked: dict[int, tuple[torch.Tensor, list[int] | bool]] = {}
        """What says whether there are rows at all, and how it is taken."""
        self._kept: list[torch.Tensor] = []
        self._answers = Answers()

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Take the place of what depends on data, and leave all else alone."""
        kwargs = kwargs or {}
        name = getattr(func, "__name__", "")
        self._answers.heard(sys._getframe(1))
        if name in TAKEN and (found := self._taken(name, args, kwargs)) is not None:
            return found
        if name in INDEXING and _has_mask(args[1]):
            return func(args[0], self._positions(args[1]), *args[2:])
        found = func(*args, **kwargs)
        if name == "any" and len(args) == 1 and not kwargs:
            self._asked[id(found)] = found, True
        elif name == "bincount" and "minlength" in kwargs:
            self._asked[id(found)] = found, [self._answers.count((id(found), place), place) for place in range(int(kwargs["minlength"]))]
        return self._answers.sizes(found) if name in SIZES else found

    def _taken(self, name: str, args: Any, kwargs: Any) -> Any:
        """Give what a function of `TAKEN` is taken as; None where it is what it is."""
        first: Any = args[0] if args else None
        found: Any = None
        if name == "where" and len(args) == 1 and not kwargs:
            found = self._places(first)
        elif name in ("nonzero", "argwhere") and len(args) == 1:
            found = self._nonzero(first, **kwargs)
        elif name == "__len__" and isinstance(first.shape[0], torch.SymInt):
            found = self._answers.length(first)
        elif name == "unbind" and id(first) in self._hit and args[1:] in ((), (0,)) and not kwargs.get("dim"):
            found = [torch.tensor([place]) for place in range(self._hit[id(first)][1])]
        elif name in ("unbind", "__bool__", "item") and id(first) in self._asked:
            self.used, said = True, self._asked[id(first)][1]
            found = [torch.tensor(count) for count in said] if isinstance(said, list) else said
        return found

    def _nonzero(self, mask: torch.Tensor, *, as_tuple: bool = False) -> Any:
        if as_tuple:
            return self._places(mask)
        self.used, found = True, _pick(mask)
        self._answers.picked(found)
        self._kept.append(found)
        if mask.dim() == 1 and isinstance(mask.shape[0], int):
            self._hit[id(found)] = found, mask.shape[0]
        return found

    def _positions(self, index: Any) -> Any:
        """Write masks of an index as the positions where they hold."""
        if isinstance(index, tuple):
            return tuple(part for one in index for part in (self._places(one) if _is_mask(one) else (one,)))
        return self._places(index)

    def _places(self, mask: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """Give the positions where a mask holds, the same ones each time that it is asked for them."""
        self.used, key = True, (id(mask), mask._version)
        if key not in self._picked:
            self._picked[key] = mask, tuple(_pick(mask).unbind(1))
            self._answers.picked(*self._picked[key][1])
        return self._picked[key][1]


def _is_mask(index: Any) -> bool:
    return isinstance(index, torch.Tensor) and index.dtype == torch.bool and index.dim() > 0


def _has_mask(index: Any) -> bool:
    return any(map(_is_mask, index)) if isinstance(index, tuple) else _is_mask(index)


def exported(export: Callable[[], ExportedProgram]) -> ExportedProgram:
    """Export with rows that are picked by a condition as what they are; where that fails, without."""
    rows, asked = RowSubsets(), ""
    try:
        with rows:
            found = export()
        if not any("set_grad_enabled" in str(node.target) for node in found.graph.nodes):
            return found
        # what is under no_grad is an operator of its own where gradients are kept
        with torch.no_grad(), RowSubsets():
            return export()
    except RowCountError as error:
        asked = str(error)
    except Exception:
        if not rows.used:
            raise
    try:
        # what is said without is what is known to users
        return export()
    except Exception as error:
        if asked:
            raise RowCountError(asked) from error
        raise


def has_picked_rows(program: ExportedProgram) -> bool:
    """Whether a program picks rows by a condition."""
    return any(str(node.target) == OPERATOR for node in program.graph.nodes)
