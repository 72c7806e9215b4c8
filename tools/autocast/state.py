"""The dtype that autocast rounds to: read, put on for a call, and put off for an oracle."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any
from unittest.mock import patch

import torch

from tools.errors import UserError

_NAMES = {"bf16": "bfloat16", "fp16": "float16"}
_DTYPES = ("bfloat16", "float16")


def dtype_named(asked: Any, where: str) -> str:
    """Name the dtype that a user wrote: torch's, or its name, also a short one; empty for none. `where` says where it was written."""
    text = str(asked or "").removeprefix("torch.")
    found = _NAMES.get(text, text)
    if found and found not in _DTYPES:
        raise UserError(f"{where} is {asked!r}.", "Give torch.bfloat16 or torch.float16, or leave it out.")
    return found


@contextlib.contextmanager
def rounding_to(dtype: str, device: str) -> Iterator[None]:
    """Have autocast round to the dtype of this name on devices of a type, and on no other; with an empty name it does not round."""
    kind = device.partition(":")[0]
    made: Any = torch.autocast
    with contextlib.ExitStack() as contexts:
        if dtype and kind == "cpu" and not torch.cuda.is_available():
            contexts.enter_context(_said_of_cuda(dtype))
        if dtype or torch.is_autocast_enabled(kind):
            contexts.enter_context(made(kind, dtype=getattr(torch, dtype) if dtype else None, enabled=bool(dtype)))
        yield


@contextlib.contextmanager
def _said_of_cuda(dtype: str) -> Iterator[None]:
    """Have `torch.is_autocast_enabled()` say so, too, which asks of CUDA: modules choose their way by it."""
    before = torch.is_autocast_enabled("cuda"), torch.get_autocast_dtype("cuda")
    torch.set_autocast_enabled("cuda", True)
    torch.set_autocast_dtype("cuda", getattr(torch, dtype))
    try:
        yield
    finally:
        torch.set_autocast_enabled("cuda", before[0])
        torch.set_autocast_dtype("cuda", before[1])


def rounded_to(device: str) -> str:
    """Name the dtype that autocast rounds to on a type of device now; empty where it does not."""
    return str(torch.get_autocast_dtype(device)).removeprefix("torch.") if torch.is_autocast_enabled(device) else ""


@contextlib.contextmanager
def never_rounding() -> Iterator[None]:
    """Have autocast do nothing, also where a model's own forward begins it: what is compared with must not round."""
    kind: Any = torch.autocast
    enter = kind.__enter__

    def off(self: Any) -> Any:
        self._enabled = False
        return enter(self)

    with patch.object(kind, "__enter__", off):
        yield


@contextlib.contextmanager
def asked_to_round() -> Iterator[list[str]]:
    """Note the types of devices on which a forward wants autocast on: where there is no CUDA, its is off for all that."""
    kind: Any = torch.autocast
    begin = kind.__init__
    asked: list[str] = []

    def noted(self: Any, device_type: str, dtype: Any = None, enabled: bool = True, cache_enabled: bool | None = None) -> None:
        asked.extend([device_type] if enabled else [])
        begin(self, device_type, dtype, enabled, cache_enabled)

    with patch.object(kind, "__init__", noted):
        yield asked
