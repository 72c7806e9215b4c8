"""Null kernels: outputs of kernels that do not do the work, made by trusted code from the inputs and the oracle's own answer.

None of them may pass on a problem that is to prove anything.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

from tools.complex_pairs import NAMES, in_parts
from tools.evaluation.wire.channel import fill_pattern
from tools.records import ABI, TensorSpec

if TYPE_CHECKING:
    import torch

TILE = 128
"""Elements of the last tile, at most: the least that a block of a kernel handles."""

MAX_DROPS = 16
"""Operators dropped one at a time; of more, as many are chosen evenly."""

_IDENTITIES = frozenset(
    {
        "clone", "_to_copy", "copy_", "contiguous", "detach", "alias", "lift_fresh", "fill_", "zero_", "dropout", "bernoulli_",
        "empty_like", "zeros_like", "ones_like", "full_like", "new_empty", "new_zeros", "new_full",
    }
)  # fmt: skip
"""Operators that compute nothing of their own: without them nothing is missing."""

Nulls = dict[tuple[str, int], Callable[[], "torch.Tensor"]]
"""What makes each, by name and place of the output."""


def plain_nulls(abi: ABI, arguments: list[Any], oracle: list[torch.Tensor], previous: list[torch.Tensor] | None) -> Nulls:
    """Name those that need no run of the reference, for every output, with what makes them."""
    found: Nulls = {}
    for place, (spec, truth) in enumerate(zip(abi.outputs, oracle, strict=True)):
        for name, make in _of_one(spec, truth, None if previous is None else previous[place]):
            found[name, place] = make
        for argument, value in zip(abi.arguments, arguments, strict=True):
            if isinstance(argument, TensorSpec) and argument.numel == spec.numel and argument.dtype == spec.dtype:
                found[f"input {argument.name}", place] = partial(_shaped, value, spec)
    return found


def _of_one(spec: TensorSpec, truth: torch.Tensor, previous: torch.Tensor | None) -> Iterator[tuple[str, Callable[[], torch.Tensor]]]:
    import torch

    # complex ones come in parts
    parts = 2 if spec.dtype in NAMES else 1
    dtype = torch.float32 if parts == 2 else getattr(torch, spec.dtype)
    right = truth.to(dtype)
    yield "zeros", lambda: torch.zeros_like(right)
    if right.is_floating_point() and spec.numel > 1:
        yield "its mean everywhere", lambda: truth.double().reshape(-1, parts).mean(0).to(dtype).repeat(spec.numel).reshape_as(right)
    if previous is not None:
        yield "its previous value", partial(previous.to, dtype)
    for poison_b in (False, True):
        yield f"unwritten memory ({'B' if poison_b else 'A'})", partial(_unwritten, spec, right, poison_b=poison_b)
    if right.numel() > 1:
        yield "all but the last tile", partial(_cleared, right, min(TILE, max(1, right.numel() // 2)))
    width = right.shape[-1] if right.dim() else 1
    if right.numel() > width:
        yield "all but the last row", partial(_cleared, right, width)


def _shaped(value: torch.Tensor, spec: TensorSpec) -> torch.Tensor:
    return in_parts(value.reshape(spec.shape))


def _unwritten(spec: TensorSpec, right: torch.Tensor, *, poison_b: bool) -> torch.Tensor:
    import torch

    if not spec.nbytes:
        return right
    raw = torch.full((spec.nbytes,), fill_pattern(poison_b), dtype=torch.uint8, device=right.device)
    return raw.view(right.dtype).reshape(right.shape)


def _cleared(right: torch.Tensor, last: int) -> torch.Tensor:
    """Set the last elements to zero."""
    import torch

    made = right.clone(memory_format=torch.contiguous_format)
    made.view(-1)[-last:] = 0
    return made


@contextmanager
def dropping(index: int) -> Iterator[list[str]]:
    """Make the operator that is number `index` of those that keep a shape give its first argument; list their names.

    With -1 none is dropped.
    """
    import torch
    from torch.utils._python_dispatch import TorchDispatchMode

    seen: list[str] = []

    class _Dropping(TorchDispatchMode):  # type: ignore[no-untyped-call]
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            first = next((a for a in args if isinstance(a, torch.Tensor)), None)
            kept = first.clone() if first is not None else None
            out = func(*args, **(kwargs or {}))
            result = out[0] if isinstance(out, tuple) and out else out
            if kept is None or not isinstance(result, torch.Tensor) or not _keeps(func, kept, result):
                return out
            seen.append(str(func))
            if len(seen) - 1 != index:
                return out
            if result is first:
                return result.copy_(kept)
            return (kept, *out[1:]) if isinstance(out, tuple) else kept

    with _Dropping():  # type: ignore[no-untyped-call]
        yield seen


def _keeps(func: Any, first: torch.Tensor, result: torch.Tensor) -> bool:
    """Whether leaving an operator out would give something of the same kind, and it is more than a copy or a view."""
    name = str(func).split(".")[1]
    if getattr(func, "is_view", False) or name in _IDENTITIES:
        return False
    return result.shape == first.shape and result.dtype == first.dtype


def chosen(count: int) -> list[int]:
    """Choose which of `count` operators are dropped."""
    if count <= MAX_DROPS:
        return list(range(count))
    return sorted({round(step * (count - 1) / (MAX_DROPS - 1)) for step in range(MAX_DROPS)})
