"""Records what a candidate would launch, without a GPU: Triton kernels are compiled for the target, library operators noted."""

from __future__ import annotations

import contextlib
import importlib
import inspect
import itertools
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from tools.evaluation.untrusted.plan.recorder import Planner
from tools.records import HardwareSheet, Launch, TensorArgument

if TYPE_CHECKING:
    import torch

_FREE = frozenset(
    {
        "empty",
        "empty_strided",
        "empty_like",
        "new_empty",
        "new_empty_strided",
        "detach",
        "device",
        "lift_fresh",
        "_unsafe_view",
        "alias",
        "set_",
    }
)
"""Operators that allocate or rename and move nothing; views are recognised by their signature."""


def is_free(func: Any) -> bool:
    """Whether an operator only allocates, renames or looks at a tensor's shape."""
    name = str(func)
    short = name.split(".")[1]
    return bool(getattr(func, "is_view", False)) or short in _FREE or short.startswith(("sym_", "prim_")) or name.startswith("prim.")


class Binary(NamedTuple):
    """One compiled kernel."""

    name: str
    code: bytes
    shared_bytes: int
    short_floats: tuple[str, ...]
    """What its intermediate code names of bfloat16 and float8, as torch does."""


class _Pointer:
    """A tensor as Triton's specialiser sees it: a dtype and an address of which only the alignment counts."""

    def __init__(self, tensor: torch.Tensor) -> None:
        self.dtype = tensor.dtype
        self.shape = tensor.shape
        self._offset = int(tensor.storage_offset()) * tensor.element_size()
        self._reach = tensor.untyped_storage().nbytes()

    def data_ptr(self) -> int:
        return self._offset

    def ptr_range(self) -> int:
        return self._reach


class ReachedLaunch(BaseException):
    """A call came as far as a launch; no `except Exception` of a candidate hears of it."""


class Recorder:
    """Launches in order, and the kernels behind them."""

    def __init__(self, sheet: HardwareSheet, *, launchers: bool = False) -> None:
        """Compile for `sheet`; with `launchers` also the host code by which Triton launches each kernel."""
        self._launchers = launchers
        self.launches: list[Launch] = []
        self.binaries: dict[int, Binary] = {}
        self.failure: BaseException | None = None
        """What the compiler last raised."""
        self.planner = Planner()
        """What it takes to launch the same without the candidate's host code."""
        self._sheet = sheet
        self._stops = False
        self._before_capture = 0
        self._graphs: dict[int, list[Launch]] = {}

    def install(self) -> None:
        """Make every Triton launch of this process a record."""
        from triton.runtime import jit

        # Triton ships no types
        functions: Any = jit.JITFunction
        original: Callable[..., Any] = functions.run
        recorder = self

        def run(function: Any, *args: Any, grid: Any, warmup: bool, **kwargs: Any) -> Any:
            return recorder._launch(original, function, args, grid, kwargs)

        functions.run = run

    @contextlib.contextmanager
    def stopping(self) -> Iterator[None]:
        """End each call at its first launch that has programs."""
        self._stops = True
        try:
            yield
        finally:
            self._stops = False

    def library_mode(self) -> Any:
        """Make a mode that records every operator that torch would run on the device."""
        from torch.utils._python_dispatch import TorchDispatchMode

        recorder = self

        class _Library(TorchDispatchMode):  # type: ignore[no-untyped-call]
            def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
                result = func(*args, **(kwargs or {}))
                recorder.planner.operator(func, args, kwargs or {}, result, free=is_free(func))
                recorder.operator(func, (args, kwargs), result)
                return result

        return _Library()  # type: ignore[no-untyped-call]

    def choose(self, name: str, ways: Sequence[Callable[[], Any]]) -> Any:
        """Record one launch that a device would choose the configuration of; what is estimated and described is the first that builds."""
        if not self._launchers or not self.planner.recording:
            self.planner.refuse(f"what it launches is decided on the device ({name} is autotuned)")
            return None
        known, failure = len(self.launches), self.failure
        result = self.planner.choose(ways)
        del self.launches[known + 1 :]
        self.failure = failure
        return result

    def composed(self, func: Any, args: Sequence[Any], kwargs: dict[str, Any], make: Callable[[], Any]) -> Any:
        """Record one library operator as a whole, and nothing of its parts."""
        known = len(self.launches)
        result = self.planner.composed(func, args, kwargs, make)
        del self.launches[known:]
        self.operator(func, (args, kwargs), result)
        return result

    def begin_capture(self) -> None:
        """Hear that a graph captures what follows."""
        self._before_capture = len(self.launches)
        self.planner.begin_capture()

    def end_capture(self, graph: object) -> None:
        """Hear that `graph` holds what was launched since, which has not happened."""
        held = self.launches[self._before_capture :]
        self._graphs[id(graph)] = [one.model_copy(update={"replayed": sum(1 for _ in alike)}) for one, alike in itertools.groupby(held)]
        del self.launches[self._before_capture :]
        self.planner.end_capture(graph)

    def replay(self, graph: object) -> None:
        """Record what `graph` holds."""
        self.launches += self._graphs.get(id(graph), [])
        self.planner.replay(graph)

    def operator(self, func: Any, given: Any, result: Any) -> None:
        """Record one library operator, unless it only allocates or renames."""
        name = str(func)
        if is_free(func):
            return
        self.launches.append(_launch_record("library", name, _tensors((given, result))))

    def native(self, name: str, given: Any) -> None:
        """Record one call of an extension's function: what it launches inside is not seen, what it is given is."""
        if self._stops:
            raise ReachedLaunch
        self.planner.refuse(f"its host code calls {name} of its own extension")
        self.launches.append(_launch_record("cuda", name, _tensors(given)))

    def _launch(self, original: Callable[..., Any], function: Any, args: tuple[Any, ...], grid: Any, kwargs: dict[str, Any]) -> Any:
        import torch

        if self._stops:
            if all(_grid(function, args, kwargs, grid)):
                raise ReachedLaunch
            return None
        pointers = [_Pointer(a) if isinstance(a, torch.Tensor) else a for a in args]
        named = {k: _Pointer(v) if isinstance(v, torch.Tensor) else v for k, v in kwargs.items()}
        try:
            kernel = original(function, *pointers, grid=grid, warmup=True, **named)
            kernel = kernel.result() if hasattr(kernel, "result") and not hasattr(kernel, "asm") else kernel
            self._compile_launcher(kernel)
            self._keep(kernel)
        except BaseException as error:
            self.failure = error
            raise
        values, size = _bound(function, args, kwargs), _grid(function, args, kwargs, grid)
        self.planner.launch(kernel, values, size)
        constexprs = {p.name for p in function.params if p.is_constexpr}
        launch = _launch_record("triton", function.fn.__name__, _tensors(values.values()))
        self.launches.append(
            launch.model_copy(
                update={
                    "grid": size,
                    "num_warps": int(kernel.metadata.num_warps),
                    "num_stages": int(kernel.metadata.num_stages),
                    "constants": {name: _plain(value) for name, value in values.items() if name in constexprs},
                }
            )
        )
        return kernel

    def _compile_launcher(self, kernel: Any) -> None:
        """Have Triton compile what it launches the kernel by, into its cache; where that is not how it works, there is nothing to do."""
        if id(kernel) in self.binaries or not self._launchers:
            return
        with contextlib.suppress(Exception):
            importlib.import_module("triton.backends.nvidia.driver").CudaLauncher(kernel.src, kernel.metadata)

    def _keep(self, kernel: Any) -> None:
        from triton.runtime import errors

        limit = int(self._sheet.shared_kib_per_block * 1024)
        if kernel.metadata.shared > limit:
            failure: Any = errors.OutOfResources
            raise failure(kernel.metadata.shared, limit, "shared memory")
        code = kernel.asm.get("cubin") or kernel.asm.get("hsaco")
        if code is not None:
            text = str(kernel.asm.get("ttir", ""))
            shared = int(kernel.metadata.shared)
            self.binaries.setdefault(id(kernel), Binary(str(kernel.metadata.name), bytes(code), shared, short_floats(text)))


def short_floats(text: str) -> tuple[str, ...]:
    """List the dtypes of bfloat16 and float8 in Triton's intermediate code, by torch's names."""
    found = {name.lower() for name in re.findall(r"bf16|f8E\d+M\d+[A-Z]*", text)}
    return tuple(sorted(name.replace("bf16", "bfloat16").replace("f8e", "float8_e") for name in found))


def _bound(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
    names = {p.name for p in function.params}
    bound = inspect.signature(function.fn).bind(*args, **{k: v for k, v in kwargs.items() if k in names})
    bound.apply_defaults()
    return dict(bound.arguments)


def _grid(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any], grid: Any) -> tuple[int, ...]:
    """Work out how many programs a launch starts along each axis."""
    return tuple(int(n) for n in (grid(_bound(function, args, kwargs)) if callable(grid) else grid))


def _plain(value: Any) -> bool | int | float | str | None:
    return value if isinstance(value, bool | int | float | str | None) else str(value)


def _tensors(values: Any) -> list[torch.Tensor]:
    """List the tensors in nested arguments."""
    import torch
    from torch.utils import _pytree

    found = []
    for leaf in _pytree.tree_leaves(list(values) if isinstance(values, Iterable) else values):
        base = getattr(leaf, "base", leaf)
        if isinstance(leaf, torch.Tensor):
            found.append(leaf)
        elif isinstance(base, torch.Tensor):
            # a tensor descriptor
            found.append(base)
    return found


def _launch_record(kind: Any, name: str, tensors: list[torch.Tensor]) -> Launch:
    arguments = tuple(
        TensorArgument(shape=tuple(map(int, t.shape)), strides=tuple(map(int, t.stride())), dtype=str(t.dtype).removeprefix("torch."))
        for t in tensors
    )
    # the same storage may be named twice: as itself, or in parts
    used: dict[Any, int] = {}
    seen = set()
    for tensor in tensors:
        storage = tensor.untyped_storage()
        place = (storage._cdata, tensor.storage_offset(), tuple(tensor.shape), tuple(tensor.stride()))
        if place not in seen:
            seen.add(place)
            used[storage._cdata] = min(int(storage.nbytes()), used.get(storage._cdata, 0) + tensor.numel() * tensor.element_size())
    return Launch(kind=kind, name=name, tensors=arguments, nbytes=sum(used.values()))
