"""Which NVIDIA GPUs a pool may use, by NVML's numbers and without torch."""

from __future__ import annotations

import os
from typing import Any

from tools.errors import UserError

ALL, INTERPRETER = "all", "interpreter"
"""Words that stand for devices: every GPU that is visible, and none."""


def visible_devices() -> dict[int, str]:
    """Titles by NVML index of the GPUs this process may use; `CUDA_VISIBLE_DEVICES` is respected, empty where there is no driver.

    Plain numbers in `CUDA_VISIBLE_DEVICES` are read in PCI order, as the evaluator's processes count.
    """
    try:
        import pynvml
    except ImportError:
        return {}
    # the binding is untyped
    nvml: Any = pynvml
    try:
        nvml.nvmlInit()
    except nvml.NVMLError:
        return {}
    try:
        return _visible(nvml)
    finally:
        nvml.nvmlShutdown()


def first_device() -> int | None:
    """NVML index of the first GPU this process may use, or None."""
    return next(iter(visible_devices()), None)


def _visible(nvml: Any) -> dict[int, str]:
    wanted = os.environ.get("CUDA_VISIBLE_DEVICES")
    found = {}
    words = map(str, range(nvml.nvmlDeviceGetCount())) if wanted is None else map(str.strip, wanted.split(","))
    for word in words:
        try:
            handle = nvml.nvmlDeviceGetHandleByIndex(int(word)) if word.isdecimal() else nvml.nvmlDeviceGetHandleByUUID(word)
            title = nvml.nvmlDeviceGetName(handle)
            found[int(nvml.nvmlDeviceGetIndex(handle))] = title.decode() if isinstance(title, bytes) else str(title)
        except nvml.NVMLError:
            # as CUDA does: what comes after a word that names no device is not seen
            break
    return found


def choose_devices(wanted: str, title: str = "") -> tuple[int, ...]:
    """Choose GPUs by `all`, `interpreter` or a list such as `0,1`; one kind of GPU only, since one figure speaks of one device.

    `all` takes the visible ones called `title`, or where none is, those like the first; a list that cannot be had raises UserError.
    """
    if wanted == INTERPRETER:
        return ()
    there = visible_devices()
    if wanted == ALL:
        kind = title if title in there.values() else next(iter(there.values()), "")
        return tuple(index for index, name in there.items() if name == kind)
    words = [word.strip() for word in wanted.split(",")]
    if not all(word.isdecimal() for word in words):
        raise UserError(f"{wanted!r} names no devices.", f"Give `{ALL}`, `{INTERPRETER}`, or numbers such as 0,1.")
    chosen = tuple(dict.fromkeys(map(int, words)))
    if missing := [index for index in chosen if index not in there]:
        known = ", ".join(f"{index} ({name})" for index, name in there.items())
        mend = f"Choose among: {known}." if known else f"This machine shows none: give `{INTERPRETER}`, or leave --devices out."
        raise UserError(f"There is no GPU {missing[0]} to use.", mend)
    if len({there[index] for index in chosen}) > 1:
        named = ", ".join(f"{index} is {there[index]}" for index in chosen)
        raise UserError(f"The GPUs are not alike: {named}.", "Start one worker, or one run, for each kind.")
    return chosen
