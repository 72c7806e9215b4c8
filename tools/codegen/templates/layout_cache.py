"""Layouts of a kernel, each made once: they are asked for thousands of times while parameters are chosen, and do not change then."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from tools.codegen.ir.kernel import Kernel
from tools.codegen.templates.attention.layout import AttentionLayout, attention_layout
from tools.codegen.templates.convolution.layout import ConvolutionLayout, convolution_layout
from tools.codegen.templates.matmul.layout import ProductLayout, product_layout
from tools.codegen.templates.pointwise import emit as template_pointwise
from tools.codegen.templates.rows.layout import RowLayout, row_layout

Found = TypeVar("Found")


def row_layout_of(kernel: Kernel) -> RowLayout:
    """Lay out a row region."""
    return _kept(kernel, "rows", row_layout)


def product_layout_of(kernel: Kernel) -> ProductLayout:
    """Lay out a product."""
    return _kept(kernel, "product", product_layout)


def convolution_layout_of(kernel: Kernel) -> ConvolutionLayout:
    """Lay out a dense convolution."""
    return _kept(kernel, "convolution", convolution_layout)


def attention_layout_of(kernel: Kernel) -> AttentionLayout:
    """Lay out an attention."""
    return _kept(kernel, "attention", attention_layout)


def pointwise_layout_of(kernel: Kernel) -> template_pointwise.Layout:
    """Lay out a pointwise region."""
    return _kept(kernel, "pointwise", template_pointwise.layout)


def _kept(kernel: Kernel, name: str, make: Callable[[Kernel], Found]) -> Found:
    """Keep a layout with its kernel, which is frozen; what `make` raises is not kept."""
    kept: dict[str, Found] = kernel.__dict__.setdefault("_layouts", {})
    if name not in kept:
        kept[name] = make(kernel)
    return kept[name]
