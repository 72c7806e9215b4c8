"""Layouts of a kernel, each made once: they are asked for thousands of times while parameters are chosen, and do not change then."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from tools.codegen.ir.kernel import Kernel

Found = TypeVar("Found")


def kept(make: Callable[[Kernel], Found]) -> Callable[[Kernel], Found]:
    """Return `make` as a function that keeps what it makes with its kernel, which is frozen; what it raises is not kept."""

    def layout_of(kernel: Kernel) -> Found:
        layouts: dict[Callable[[Kernel], Found], Found] | None = kernel.__dict__.get("_layouts")
        if layouts is None:
            layouts = kernel.__dict__["_layouts"] = {}
        if make not in layouts:
            layouts[make] = make(kernel)
        return layouts[make]

    return layout_of
