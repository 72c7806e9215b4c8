"""How a Triton kernel that was compiled before is launched again, past the look at its arguments that Triton takes at every launch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

ALIGNED = 16
"""Bytes: whether an address is a multiple of them is all that a kernel for CUDA is specialised for, beside types and whole numbers."""
_RUNTIME: list[Any] = []
"""Triton's settings."""
_NEEDED = ("run", "function", "packed_metadata", "metadata")


@dataclass(frozen=True)
class Launch:
    """One launch, with all that does not change from call to call."""

    call: Any
    before: tuple[Any, ...]
    """Arguments between the stream and the kernel's own."""
    grid: tuple[int, int, int]
    arguments: tuple[Any, ...]
    """The kernel's own, in order; tensors among them stand for their addresses."""
    kernel: Any
    """What Triton compiled, which unloads its machine code where nobody holds it."""


class UnplannedError(Exception):
    """Says why a call cannot be played again."""


def launch_of(kernel: Any, compiled: Any, grid: Any, args: Sequence[Any], named: dict[str, Any]) -> Launch:
    """Describe the launch of a `JITFunction` that gave the kernel `compiled`; UnplannedError where Triton is not as it is known here."""
    try:
        bound = kernel.signature.bind(*args, **{name: value for name, value in named.items() if name in kernel.signature.parameters})
        bound.apply_defaults()
        missing = [name for name in _NEEDED if not hasattr(compiled, name)]
        backend = compiled.metadata.target.backend
    except (AttributeError, TypeError) as error:
        raise UnplannedError(f"Triton has another interface: {error}") from error
    if missing or backend != "cuda" or kernel.pre_run_hooks:
        raise UnplannedError(f"Triton's kernels for {backend} are launched by {', '.join(missing) or 'hooks'}")
    if callable(grid):
        grid = grid(dict(bound.arguments))
    sizes = (*map(int, grid), 1, 1)[:3]
    arguments = tuple(bound.arguments.values())
    odd = [value for value in arguments if not _is_plain(value)]
    if odd:
        raise UnplannedError(f"a kernel takes a {type(odd[0]).__name__}")
    call, before = _direct(compiled)
    return Launch(call, before, (sizes[0], sizes[1], sizes[2]), arguments, compiled)


def is_hooked() -> bool:
    """Whether somebody wants to hear of launches, as Proton does."""
    if not _RUNTIME:
        from triton import knobs

        _RUNTIME.append(knobs.runtime)
    enter, leave = _RUNTIME[0].launch_enter_hook, _RUNTIME[0].launch_exit_hook
    # a chain of hooks since triton 3.5, one hook before
    return bool(getattr(enter, "calls", enter)) or bool(getattr(leave, "calls", leave))


def _is_plain(value: Any) -> bool:
    return value is None or isinstance(value, (torch.Tensor, bool, int, float, str)) or type(value).__name__ == "dtype"


def _direct(compiled: Any) -> tuple[Any, tuple[Any, ...]]:
    """Give what is called with grid, stream, and these arguments before the kernel's own: no metadata for hooks, and no hooks."""
    import triton

    run = compiled.run
    own = (compiled.function, compiled.packed_metadata, None, None, None)
    scratch = [getattr(run, f"{name}_scratch_size", None) for name in ("global", "profile")]
    if not triton.__version__.startswith("3.6.") or scratch != [0, 0]:
        return run, own
    # the launcher's own function in C, which takes what the launcher would add in Python
    return run.launch, (own[0], run.launch_cooperative_grid, run.launch_pdl, None, None, *own[1:])
