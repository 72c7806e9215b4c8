"""What threads must mind in torch's native code where references are run without contents.

torch is not safe in two threads at once when it traces, nor at a first call of an operator without contents: whatever reads a reference in
this process holds `TURN`. Runs read and trace in processes of their own (`tools.references`), where nobody waits for anybody.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

if TYPE_CHECKING:
    from torch._subclasses.fake_tensor import FakeTensorMode

_P = ParamSpec("_P")
_T = TypeVar("_T")

TURN = threading.RLock()
"""Held while a reference is read or run in this process."""


def in_turn(function: Callable[_P, _T]) -> Callable[_P, _T]:
    """Have a function hold `TURN` while it is called."""

    @functools.wraps(function)
    def called(*args: _P.args, **kwargs: _P.kwargs) -> _T:
        with TURN:
            return function(*args, **kwargs)

    return called


def fake_tensors() -> FakeTensorMode:
    """Make the mode in which tensors have shapes and no contents; whatever of ours traces begins it here, in any thread."""
    import torch
    from torch._subclasses.fake_tensor import FakeTensorMode

    if torch.version.cuda and not torch.cuda.is_available():
        lasting_guard()
    mode = FakeTensorMode(allow_non_fake_inputs=True)
    # it notes weakly what it makes of new tensors, which nobody asks for again; a module whose weights are noted cannot change their dtype
    mode.fake_tensor_converter.set_tensor_memo = _unnoted  # type: ignore[method-assign,assignment] # has no switch for it
    # a copied layer's weights are copied with the mode that they know, and belong to this one none the less
    mode.__deepcopy__ = lambda _: mode  # type: ignore[attr-defined] # looked for on the object
    _key_of_torch()
    mode._cache_key = functools.partial(_shared_key, mode)  # type: ignore[method-assign] # the same
    return mode


@contextmanager
def results_shared() -> Iterator[None]:
    """Have modes that torch makes itself, as an export does, take what an operator gives from those of `fake_tensors`, and the reverse."""
    from torch._subclasses.fake_tensor import FakeTensorMode

    before: Any = FakeTensorMode._cache_key
    _key_of_torch()
    FakeTensorMode._cache_key = _shared_key  # type: ignore[assignment,method-assign] # has no switch for it
    try:
        yield
    finally:
        FakeTensorMode._cache_key = before  # type: ignore[method-assign] # the same


def _shared_key(mode: FakeTensorMode, state: Any, func: Any, args: Any, kwargs: Any) -> Any:
    """Key what an operator gives as torch does, but for whether it is traced and which sizes may be unknown, where all are known.

    A reference is run without contents before it is traced at the same sizes, and what its operators give then is the same.
    """
    from torch import Tag
    from torch._ops import OpOverload
    from torch.fx.experimental.proxy_tensor import get_proxy_mode

    key: Any = _key_of_torch()(mode, state, func, args, kwargs)
    unknown = state.known_symbols or {Tag.dynamic_output_shape, Tag.data_dependent_output} & set(getattr(func, "tags", ()))
    of_mode = (mode.shape_env.settings if mode.shape_env else None, get_proxy_mode() is not None)
    if unknown or not isinstance(func, OpOverload) or key.key[4:6] != of_mode:
        return key
    return type(key)((*key.key[:4], "shared", *key.key[6:]))


@functools.cache
def _key_of_torch() -> Callable[..., Any]:
    """Give torch's own function, asked for before another stands in its place."""
    from torch._subclasses.fake_tensor import FakeTensorMode

    return FakeTensorMode._cache_key


def _unnoted(*_: object) -> None:
    """Note nothing."""


@functools.cache
def lasting_guard() -> threading.Thread:
    """Have torch's stand-in for a missing CUDA device belong to a thread that never ends.

    A CUDA build that sees no device makes a stand-in when a mode first begins, keeps it for the whole process, and frees it when the thread
    that began the mode ends (`ensureCUDADeviceGuardSet` in c10/core/impl/DeviceGuardImplInterface.cpp, torch 2.11): the next
    thread to begin one calls what was freed. Three benches ended so, each in the first trace after an event loop and its threads had;
    twenty threads that begin a mode one after the other are enough to crash torch 2.11.0+cu130 on a machine without a GPU.
    """
    import torch

    made = threading.Event()

    def hold() -> None:
        torch._C._ensureCUDADeviceGuardSet()
        made.set()
        threading.Event().wait()

    thread = threading.Thread(target=hold, name="kernelwright-device-guard", daemon=True)
    thread.start()
    made.wait()
    return thread
