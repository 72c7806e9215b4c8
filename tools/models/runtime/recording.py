"""Records what a kernel's host code does in one call: the tensors that it makes, PyTorch's operators, and launches.

Of a host code that decides by shapes alone all later calls of the same shapes do the same (`plans.py` plays them).
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import ModuleType
from typing import Any

import torch
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

from tools.models.runtime.launching import Launch, UnplannedError, launch_of
from tools.models.runtime.visible import launches_by

FACTS = ("shape", "dtype", "device", "ndim", "is_cuda", "layout", "requires_grad", "itemsize")
SIZES = ("__len__", "dim", "element_size", "is_contiguous", "is_floating_point", "numel", "size", "storage_offset", "stride")
"""What host code may ask of a tensor: it is the same in each call of the same shapes."""
MAKERS = ("empty", "empty_like", "empty_strided", "new_empty", "new_empty_strided")
VIEWS = (
    "contiguous", "detach", "expand", "flatten", "narrow", "permute", "reshape", "select", "slice", "squeeze", "t", "transpose", "unbind",
    "unflatten", "unsqueeze", "view",
)  # fmt: skip
"""Operators that do nothing but look at memory in another way, where their result lies in what they are given."""
DATA = (torch.Tag.data_dependent_output, torch.Tag.dynamic_output_shape)


@dataclass(frozen=True)
class Slot:
    """A tensor of a plan, by number: those that are given come first."""

    number: int


@dataclass(frozen=True)
class Made:
    """An empty tensor."""

    slot: int
    size: tuple[int, ...]
    stride: tuple[int, ...]
    dtype: torch.dtype
    device: torch.device


@dataclass(frozen=True)
class Called:
    """A call of PyTorch; `result` has slots where that has tensors."""

    function: Any
    args: Any
    named: Any
    result: Any
    is_view: bool


@dataclass
class Recording:
    """What was done, in order."""

    given: int
    steps: list[Made | Called | Launch] = field(default_factory=list)
    roots: dict[int, tuple[int, int]] = field(default_factory=dict)
    """Of each slot in whose memory it lies, and how many bytes behind that one's beginning."""
    tensors: list[torch.Tensor] = field(default_factory=list)
    """By slot; they are kept, so that none takes the name of another."""
    wrong: str = ""
    """Why it cannot be played again."""
    _numbers: dict[int, int] = field(default_factory=dict)

    def take(self, tensor: torch.Tensor, *, root: tuple[int, int] | None = None) -> int:
        """Give a tensor a slot."""
        number = len(self.tensors)
        self.tensors.append(tensor)
        self._numbers[id(tensor)] = number
        self.roots[number] = root or (number, 0)
        return number

    def slot(self, tensor: torch.Tensor) -> int:
        """Number a tensor that is known."""
        if id(tensor) not in self._numbers:
            raise UnplannedError("host code has a tensor of its own")
        return self._numbers[id(tensor)]

    def knows(self, tensor: torch.Tensor) -> bool:
        """Whether a tensor has a slot."""
        return id(tensor) in self._numbers


def recorded(forward: Any, kernels: ModuleType, names: Sequence[str], given: Sequence[Any], held: Sequence[Any]) -> tuple[Any, Recording]:
    """Run a forward, and give its result and what it did; `names` are the kernels of its file, `held` the parameters that it reads."""
    found = Recording(len(given) + len(held))
    for tensor in (*given, *held):
        found.take(tensor)
    if len(found._numbers) < found.given:
        found.wrong = "a tensor was given twice"
    recorder = _Recorder(found)
    with launches_by(kernels, names, lambda kernel: _Watched(kernel, recorder)), recorder, _ContentsMatter(found):
        result = forward(*given)
    return result, found


class _Recorder(TorchFunctionMode):
    """Hears of every function of PyTorch that host code calls."""

    def __init__(self, found: Recording) -> None:
        super().__init__()
        self.found, self._thread, self._deep = found, threading.get_ident(), 0

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        named = kwargs or {}
        result = func(*args, **named)
        if not self._deep and not self.found.wrong:
            with self.told():
                self._note(func, args, named, result)
        return result

    @contextlib.contextmanager
    def told(self) -> Iterator[None]:
        """Keep the reason where something cannot be played again, and do not listen to oneself."""
        self._deep += 1
        try:
            yield
        except UnplannedError as error:
            self.found.wrong = str(error)
        finally:
            self._deep -= 1

    def launch(self, kernel: Any, grid: Any, args: Sequence[Any], named: Mapping[str, Any]) -> Any:
        """Launch as ever, and note it."""
        self._deep += 1
        try:
            compiled = kernel[grid](*args, **named)
        finally:
            self._deep -= 1
        if threading.get_ident() == self._thread and not self._deep and not self.found.wrong:
            with self.told():
                self.found.steps.append(self._numbered(launch_of(kernel, compiled, grid, args, dict(named))))
        return compiled

    def _numbered(self, launch: Launch) -> Launch:
        return replace(launch, arguments=slotted(launch.arguments, self.found.slot))

    def _note(self, func: Any, args: Any, named: Any, result: Any) -> None:
        name = getattr(func, "__name__", "").partition(".")[0]
        every = list(tensors_in(result))
        if not every:
            if not (name in SIZES or (name == "__get__" and getattr(func.__self__, "__name__", "") in FACTS)):
                raise UnplannedError(f"host code asks for {name or func}")
        elif name in MAKERS and (name.endswith("like") or name.startswith("new") or "dtype" in named) and not named.get("requires_grad"):
            made = self.found.take(result), tuple(result.shape), result.stride(), result.dtype, result.device
            self.found.steps.append(Made(*made))
        else:
            before = slotted([args, named], self.found.slot)
            sources = [(self.found.slot(one), one) for one in tensors_in([args, named])]
            is_view = name in VIEWS
            for one in every:
                if not self.found.knows(one):
                    root = self._root(one, sources)
                    is_view = is_view and root is not None
                    self.found.take(one, root=root)
            self.found.steps.append(Called(func, before[0], before[1], slotted(result, self.found.slot), is_view))

    def _root(self, tensor: torch.Tensor, sources: Sequence[tuple[int, torch.Tensor]]) -> tuple[int, int] | None:
        """Say in whose memory a result lies; None where that is its own."""
        memory = tensor.untyped_storage().data_ptr()
        there = [(slot, one) for slot, one in sources if memory and one.untyped_storage().data_ptr() == memory]
        if not there:
            return None
        if len({self.found.roots[slot][0] for slot, _ in there}) > 1:
            raise UnplannedError("what is given lies in the same memory")
        slot, one = there[0]
        root, offset = self.found.roots[slot]
        return root, offset + tensor.data_ptr() - one.data_ptr()


class _ContentsMatter(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Hears of operators whose result's shape, or a number for Python, is in the contents of a tensor."""

    def __init__(self, found: Recording) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._found = found

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if any(tag in func.tags for tag in DATA):
            self._found.wrong = f"{func} depends on what is in a tensor"
        return func(*args, **(kwargs or {}))


class _Watched:
    """Stands in a kernel's file for a Triton kernel."""

    def __init__(self, kernel: Any, recorder: _Recorder) -> None:
        self._kernel, self._recorder = kernel, recorder

    def __getitem__(self, grid: Any) -> Any:
        return lambda *args, **named: self._recorder.launch(self._kernel, grid, args, named)


def tensors_in(tree: Any) -> Iterator[torch.Tensor]:
    """List the tensors of arguments or results."""
    if isinstance(tree, torch.Tensor):
        yield tree
    elif isinstance(tree, (tuple, list)):
        for item in tree:
            yield from tensors_in(item)
    elif isinstance(tree, dict):
        for item in tree.values():
            yield from tensors_in(item)


def slotted(tree: Any, slot: Any) -> Any:
    """Put slots in the place of tensors, lists in that of tuples that hold some."""
    if isinstance(tree, torch.Tensor):
        return Slot(slot(tree))
    if isinstance(tree, (tuple, list)) and not isinstance(tree, torch.Size):
        items = [slotted(item, slot) for item in tree]
        return tuple(items) if isinstance(tree, tuple) else items
    if isinstance(tree, dict):
        return {key: slotted(item, slot) for key, item in tree.items()}
    return tree
