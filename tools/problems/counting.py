"""Counting what a reference does while it runs once: operators, families, operations, bytes."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from typing import Any

import torch
from torch._subclasses import FakeTensor
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from torch.utils.flop_counter import flop_registry

from tools.problems.families import family_of
from tools.problems.misfits import misfit
from tools.records import ITEM_BYTES, OperatorFamily, Work

_MOVES_NOTHING = {"_unsafe_view", "unsafe_split", "unsafe_split_with_sizes", "unsafe_chunk", "set_", "resize_", "resize"}
"""Operators that only rename memory although their schemas do not say so; `empty` and its kin are left out by prefix."""

_MACHINE_BALANCE = 16.0
"""Operations a byte at which both count alike when families are ranked; float32 on an H200: 67e12 / 4.3e12."""

_PRODUCTS = {OperatorFamily.MATMUL, OperatorFamily.CONVOLUTION, OperatorFamily.ATTENTION, OperatorFamily.RECURRENT}


ARGUMENTS = 9
"""Data, state, weights, biases or not, layers, dropout, training, both directions, batch first."""
RECURRENT = ("lstm", "gru", "rnn_tanh", "rnn_relu")
"""Functions of torch for recurrent layers, each of which counts as one operator: a GPU's library runs it so, a CPU's step by step."""


class Counter(TorchDispatchMode):  # type: ignore[no-untyped-call]  # torch's class is untyped
    """Counts every operator dispatched inside it; views, allocations and metadata queries are left out."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]  # the same
        self.operators: list[str] = []
        self.shapes: list[tuple[tuple[int, ...], ...]] = []
        """Of what each of them reads and makes."""
        self.random: list[str] = []
        self._matmul: dict[str, int] = defaultdict(int)
        self._pointwise = 0
        self._bytes = 0
        self._steps = 0
        self._whole = ExitStack()
        self._is_inside = False
        self._weights: dict[OperatorFamily, float] = defaultdict(float)

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Run the operator, then count it; a call whose tensors do not fit together raises RuntimeError."""
        kwargs = kwargs or {}
        if wrong := misfit(func._schema.name.removeprefix("aten::"), args):
            raise RuntimeError(wrong)
        out = func(*args, **kwargs)
        if _works(func):
            self._look(func, args, kwargs, out)
        return out

    def __enter__(self) -> Counter:
        """Count from now on."""
        self._whole.enter_context(_Whole(self))
        super().__enter__()  # type: ignore[no-untyped-call]
        return self

    def __exit__(self, *raised: Any) -> None:
        """Count no more."""
        super().__exit__(*raised)  # type: ignore[no-untyped-call]
        self._whole.close()

    def recurrent(
        self, name: str, call: Callable[[torch.Tensor], Any], data: torch.Tensor, weights: Sequence[torch.Tensor], given: Sequence[Any]
    ) -> Any:
        """Count recurrent layers as one operator; `given` are the arguments behind the weights, and `call` takes the data."""
        time, layers = 1 if given[5] else 0, int(given[1]) * (2 if given[4] else 1)
        self._is_inside = True
        try:
            out = _of_all_steps(call, data, time)
        finally:
            self._is_inside = False
        steps = int(data.shape[time])
        flops = 2 * int(data.shape[0] * data.shape[1]) * sum(int(one.numel()) for one in weights if one.dim() == 2)
        moved = _bytes(data) + sum(map(_bytes, weights)) + sum(map(_bytes, _tensors(out)))
        self.operators.append(f"aten.{name}.input")
        self.shapes.append(_shapes((data, weights, out)))
        self._matmul[_widest([data, *weights])] += flops
        self._bytes += moved
        self._steps += steps * layers
        self._weights[OperatorFamily.RECURRENT] += max(moved, flops / _MACHINE_BALANCE)
        return out

    def work(self) -> Work:
        """What was counted so far."""
        ranked = sorted(self._weights, key=lambda family: -self._weights[family])
        return Work(
            operators=tuple(self.operators),
            families=tuple(ranked),
            matmul_flops=sum(self._matmul.values()),
            matmul_flops_by_dtype=dict(self._matmul),
            pointwise_flops=self._pointwise,
            eager_bytes=self._bytes,
            recurrent_steps=self._steps,
        )

    def _look(self, func: Any, args: Any, kwargs: Any, out: Any) -> None:
        if (
            torch.Tag.nondeterministic_seeded in func.tags
            and family_of(func._schema.name.removeprefix("aten::")) is not OperatorFamily.ATTENTION
        ):
            self.random.append(str(func))
        if not self._is_inside:
            self._count(func, args, kwargs, out)

    def _count(self, func: Any, args: Any, kwargs: Any, out: Any) -> None:
        name = func._schema.name.removeprefix("aten::")
        family = family_of(name)
        tensors = list(_tensors((args, kwargs)))
        results = list(_tensors(out))
        moved = sum(map(_bytes, tensors)) + sum(map(_bytes, results))
        flops = _product_flops(func, family, args, kwargs, out)
        touched = 0 if flops else max((t.numel() for t in (*tensors, *results)), default=0)
        self.operators.append(str(func))
        self.shapes.append(_shapes((tensors, results)))
        if flops:
            self._matmul[_widest(tensors)] += flops
        self._pointwise += touched
        self._bytes += moved
        self._weights[family] += max(moved, (flops + touched) / _MACHINE_BALANCE)


class _Whole(TorchFunctionMode):
    """Hears of recurrent layers before they fall into their parts; those of packed sequences do."""

    def __init__(self, counter: Counter) -> None:
        super().__init__()
        self._counter = counter

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs, name = kwargs or {}, getattr(func, "__name__", "")
        if name not in RECURRENT or len(args) != ARGUMENTS or not isinstance(args[0], torch.Tensor):
            return func(*args, **kwargs)
        return self._counter.recurrent(name, lambda data: func(data, *args[1:], **kwargs), args[0], args[2], args[3:])


def _of_all_steps(call: Callable[[torch.Tensor], Any], data: torch.Tensor, time: int) -> Any:
    """Run recurrent layers; one step tells what all give where nothing has contents and no derivative is taken of them."""
    steps = int(data.shape[time])
    if steps < 2 or not isinstance(data, FakeTensor) or torch.is_grad_enabled():
        return call(data)
    first, *states = call(data.narrow(time, 0, 1))
    # steps lie behind one another, whichever dimension they are
    every = first.new_empty((steps, first.shape[1 - time], first.shape[2])).transpose(0, time)
    return (every, *states)


def _works(func: Any) -> bool:
    """Whether an operator computes or moves anything."""
    if func.namespace == "prim" or func.is_view:
        return False
    name = func._schema.name.rpartition("::")[2]
    return name not in _MOVES_NOTHING and not name.startswith(("empty", "new_empty", "sym_", "_local_scalar"))


def _tensors(tree: Any) -> Iterator[torch.Tensor]:
    return (leaf for leaf in tree_leaves(tree) if isinstance(leaf, torch.Tensor))


def _widest(tensors: Sequence[torch.Tensor]) -> str:
    """The widest floating dtype of a product's two largest tensors, a complex one's parts; of whole numbers float32.

    What is smaller may be a bias or a scale. Formats that records have no name for have a byte or less, and count as float8.
    """
    operands = sorted(tensors, key=lambda tensor: tensor.numel())[-2:]
    found = {(tensor.dtype.to_real() if tensor.is_complex() else tensor.dtype) for tensor in operands}
    floating = [dtype for dtype in found if dtype.is_floating_point] or [torch.float32]
    name = str(max(floating, key=lambda dtype: dtype.itemsize)).removeprefix("torch.")
    return name if name in ITEM_BYTES else "float8_e4m3fn"


def _shapes(tree: Any) -> tuple[tuple[int, ...], ...]:
    return tuple(tuple(map(int, tensor.shape)) for tensor in _tensors(tree))


def _bytes(tensor: torch.Tensor) -> int:
    """Bytes of the distinct elements: a dimension that is only expanded is one element deep."""
    strided = tensor.layout is torch.strided
    sizes = [size for size, step in zip(tensor.shape, tensor.stride(), strict=True) if step] if strided else list(tensor.shape)
    return math.prod(sizes) * tensor.element_size() if tensor.numel() else 0


def _product_flops(func: Any, family: OperatorFamily, args: Any, kwargs: Any, out: Any) -> int:
    """Operations of a product by torch's own formulas, and by these where torch has none; 0 for other operators."""
    if family not in _PRODUCTS:
        return 0
    name = func._schema.name.removeprefix("aten::")
    if name.startswith("_scaled_dot_product") and "backward" not in name:
        return _attention(args, out)
    formula = flop_registry.get(func._overloadpacket)
    if formula is not None:
        return int(formula(*args, **kwargs, out_val=out))
    own = _FORMULAS.get(name)
    return own(args, out) if own else 0


def _vector_product(args: Any, out: Any) -> int:
    """For mv (m x k by k), dot (k by k): the larger operand is read once; addmv carries its bias first."""
    return 2 * max(int(a.numel()) for a in _tensors(args))


def _outer_product(args: Any, out: Any) -> int:
    return 2 * int(out.numel())


def _attention(args: Any, out: Any) -> int:
    """Both products of queries, keys and values [batch, heads, length, width]; heads may share keys, which torch's formula refuses."""
    query, key, value = (tuple(map(int, each.shape)) for each in args[:3])
    return 2 * math.prod(query[:-1]) * key[-2] * (query[-1] + value[-1])


def _recurrent_layer(args: Any, out: Any) -> int:
    """For mkldnn_rnn_layer(input, w_ih, w_hh, …): both matrices once a step and batch row."""
    steps = int(args[0].shape[0] * args[0].shape[1])
    return 2 * steps * (int(args[1].numel()) + int(args[2].numel()))


_FORMULAS: dict[str, Callable[[Any, Any], int]] = {
    "mv": _vector_product,
    "addmv": _vector_product,
    "dot": _vector_product,
    "vdot": _vector_product,
    "addr": _outer_product,
    "ger": _outer_product,
    "mkldnn_rnn_layer": _recurrent_layer,
}
