"""The operators of a reference that PyTorch gives to cuDNN on a GPU, and what TF32 makes of them where there is no GPU.

cuDNN's tensor cores read both operands of a product with TF32's ten bits of mantissa and add in float32. So a convolution's input and
weight are rounded, to nearest as the hardware's conversion does, and of a recurrent network both operands of every matrix product, hidden
states too. Biases and what lies between the products are not. Depthwise convolutions in float32 are left as they are: PyTorch has kernels
of its own for them, which round nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

from tools.evaluation.trusted.rounding import to_tf32

_CONVOLUTIONS = ("convolution", "_convolution")
"""ATen's, to which all convolutions lead, transposed ones too."""
_RECURRENT = ("lstm", "gru", "rnn_tanh", "rnn_relu")
_PRODUCTS = {"mm": (0, 1), "bmm": (0, 1), "addmm": (1, 2), "baddbmm": (1, 2)}
"""Places of the operands of ATen's matrix products."""


@dataclass
class Met:
    """What was met of cuDNN's operators, in float32."""

    any: bool = False


@contextmanager
def cudnn_operators(*, rounds: bool) -> Iterator[Met]:
    """Watch a reference for cuDNN's operators; it `rounds` their operands to TF32, or leaves them as they are."""
    from torch.overrides import TorchFunctionMode
    from torch.utils._python_dispatch import TorchDispatchMode

    met = Met()

    class _Convolutions(TorchDispatchMode):  # type: ignore[no-untyped-call]
        # `torch.cond` and its like run as they are, without a look inside
        supports_higher_order_operators = True

        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            if _name(func) in _CONVOLUTIONS and _is_float32(args[0]) and not _is_depthwise(args):
                met.any = True
                args = _rounded(args, (0, 1)) if rounds else args
            return func(*args, **(kwargs or {}))

    class _Recurrent(TorchFunctionMode):
        def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            if _name(func) not in _RECURRENT or not _is_float32(args[0]):
                return func(*args, **(kwargs or {}))
            met.any = True
            with _products_rounded() if rounds else ExitStack():
                return func(*args, **(kwargs or {}))

    with _Recurrent(), _Convolutions():  # type: ignore[no-untyped-call]
        yield met


@contextmanager
def _products_rounded() -> Iterator[None]:
    """Make a context in which a recurrent network is written out in matrix products of operands that are rounded."""
    import torch
    from torch.utils._python_dispatch import TorchDispatchMode

    class _Products(TorchDispatchMode):  # type: ignore[no-untyped-call]
        supports_higher_order_operators = True

        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            return func(*_rounded(args, _PRODUCTS.get(_name(func), ())), **(kwargs or {}))

    libraries: tuple[Any, ...] = (torch.backends.mkldnn, torch.backends.cudnn)
    with ExitStack() as stack:
        for library in libraries:
            stack.callback(setattr, library, "enabled", library.enabled)
            library.enabled = False
        stack.enter_context(_Products())  # type: ignore[no-untyped-call]
        yield


def _name(func: Any) -> str:
    """Name a function of torch, or an operator of ATen without its overload."""
    return str(getattr(func, "__name__", "")).partition(".")[0]


def _is_float32(value: Any) -> bool:
    import torch

    return isinstance(value, torch.Tensor) and value.dtype == torch.float32


def _is_depthwise(args: tuple[Any, ...]) -> bool:
    """Whether a convolution has as many groups as channels, of which PyTorch makes kernels of its own."""
    import torch

    image, weight, transposed, groups = args[0], args[1], args[6], args[8]
    turned = any(
        value.dim() == rank and value.is_contiguous(memory_format=layout) and not value.is_contiguous()
        for value in (image, weight)
        for rank, layout in ((4, torch.channels_last), (5, torch.channels_last_3d))
    )
    return not transposed and groups > 1 and groups == image.shape[1] and weight.shape[0] % groups == 0 and not turned


def _rounded(args: tuple[Any, ...], places: tuple[int, ...]) -> tuple[Any, ...]:
    return tuple(to_tf32(value) if place in places else value for place, value in enumerate(args))
