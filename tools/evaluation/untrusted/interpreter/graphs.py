"""CUDA graphs where kernels are interpreted: a capture notes what is called and undoes it, a replay calls it again on the same memory."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch

WAITING = frozenset({
    "_local_scalar_dense", "nonzero", "equal", "is_nonzero", "masked_select", "bincount", "multinomial", "_ctc_loss",
    "_unique2", "unique_dim", "unique_consecutive", "_linalg_check_errors",
})  # fmt: skip
"""Operators for which the host waits, which no device does while it captures."""
EMPTY = ("empty", "empty_like", "empty_strided", "new_empty", "new_empty_strided")
_under_way: list[Tape] = []


class Tape:
    """What one graph holds."""

    def __init__(self) -> None:
        """Begin with nothing."""
        self.calls: list[Callable[[], object]] = []
        self._made: dict[int, torch.Tensor] = {}
        self._before: dict[int, tuple[Any, Any]] = {}

    def write(self, tensors: list[torch.Tensor]) -> None:
        """Keep what is in memory that was there before the capture, as it is about to be written."""
        storages: list[Any] = [tensor.untyped_storage() for tensor in tensors]
        for storage in storages:
            place = storage.data_ptr()
            if place not in self._made and place not in self._before:
                self._before[place] = (storage, storage.clone())

    def make(self, tensor: torch.Tensor) -> None:
        """Hold a new tensor: the graph's memory is its own as long as it lives."""
        self._made[tensor.untyped_storage().data_ptr()] = tensor

    def end(self) -> None:
        """Have it as if nothing had been done: nothing happens before a replay."""
        for storage, before in self._before.values():
            storage.copy_(before)
        for tensor in self._made.values():
            if tensor.is_floating_point() or tensor.is_complex():
                tensor.fill_(float("nan"))
        self._before.clear()

    def replay(self) -> None:
        """Do it."""
        for call in self.calls:
            call()


def tensors_in(value: Any) -> list[torch.Tensor]:
    """List the tensors of arguments or results; a descriptor of tensors stands for the one it describes."""
    import torch

    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, dict):
        return tensors_in(list(value.values()))
    if isinstance(value, list | tuple):
        return [tensor for item in value for tensor in tensors_in(item)]
    return tensors_in(value.base) if hasattr(value, "base") and hasattr(value, "block_shape") else []


def _again(func: Any, args: Any, kwargs: Any, made: list[torch.Tensor]) -> None:
    for mine, result in zip(made, tensors_in(func(*args, **kwargs)), strict=True):
        if mine.data_ptr() != result.data_ptr():
            mine.copy_(result)


def _noted(tape: Tape, func: Any, args: Any, kwargs: Any) -> Any:
    if func.overloadpacket.__name__ in WAITING:
        raise RuntimeError(f"CUDA error: operation not permitted when stream is capturing ({func} waits for the device)")
    schema = func._schema
    given = dict(zip((one.name for one in schema.arguments), args, strict=False)) | kwargs
    written = [given[one.name] for one in schema.arguments if one.name in given and one.alias_info is not None and one.alias_info.is_write]
    tape.write(tensors_in(written))
    result = func(*args, **kwargs)
    shared = all(one.alias_info is not None for one in schema.returns)
    if not shared:
        for tensor in tensors_in(result):
            tape.make(tensor)
    # a view stays one; what is empty is filled by what comes after it
    if written or not (shared or func.overloadpacket.__name__ in EMPTY):
        tape.calls.append(partial(_again, func, args, kwargs, tensors_in(result)))
    return result


def _noting() -> Any:
    """Make a mode in which operators are noted."""
    from torch.utils import _python_dispatch

    mode: Any = _python_dispatch.TorchDispatchMode

    class _Noting(mode):  # type: ignore[misc]  # torch's class has no types
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            return _noted(_under_way[-1], func, args, kwargs or {})

    return _Noting()


class Graph:
    """Operators and launches in order."""

    def __init__(self, *_: object, **__: object) -> None:
        """Take whatever a graph is made with."""
        self._tape: Tape | None = None
        self._mode = contextlib.ExitStack()

    def capture_begin(self, *_: object, **__: object) -> None:
        """Note what is called from now on."""
        _under_way.append(Tape())
        self._mode.enter_context(_noting())

    def capture_end(self) -> None:
        """Hold it."""
        self._mode.close()
        self._tape = _under_way.pop()
        self._tape.end()

    def replay(self) -> None:
        """Do what was captured."""
        if self._tape is None:
            raise RuntimeError("Called CUDAGraph::replay without a preceding successful capture.")
        self._tape.replay()

    def instantiate(self) -> None:
        """Be ready, as it is."""

    def reset(self) -> None:
        """Forget what was captured."""
        self._tape = None

    def pool(self) -> tuple[int, int]:
        """Name the memory that it uses."""
        return (0, 1)


@contextlib.contextmanager
def graph(cuda_graph: Graph, *_: object, **__: object) -> Iterator[None]:
    """Capture what is called inside."""
    cuda_graph.capture_begin()
    try:
        yield
    finally:
        cuda_graph.capture_end()


def _launched(launch: Callable[..., Any], executor: Any, *args: Any, **kwargs: Any) -> None:
    """Run a kernel; under a capture note it, and not what the interpreter does for it."""
    from torch.utils._python_dispatch import _disable_current_modes

    if not _under_way:
        launch(executor, *args, **kwargs)
        return
    with _disable_current_modes():
        _under_way[-1].write(tensors_in((args, kwargs)))
        launch(executor, *args, **kwargs)
    _under_way[-1].calls.append(partial(launch, executor, *args, **kwargs))


def install() -> None:
    """Have torch's graphs of this process hold operators and interpreted kernels."""
    import torch
    from triton.runtime import interpreter

    executor: Any = interpreter.GridExecutor
    launch = executor.__call__
    executor.__call__ = lambda self, *args, **kwargs: _launched(launch, self, *args, **kwargs)
    device: Any = torch.cuda
    device.CUDAGraph, device.graph = Graph, graph
    device.graph_pool_handle = lambda: (0, 1)
    device.is_current_stream_capturing = lambda: bool(_under_way)
