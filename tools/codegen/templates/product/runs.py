"""What a step of a product reads once: values that groups of the sum share, and neighbours that stand in two tiles."""

from __future__ import annotations

from collections.abc import Iterable

from tools.codegen.ir.builder import Builder
from tools.codegen.ir.dtypes import is_floating
from tools.codegen.templates.product.layout import ProductLayout
from tools.codegen.templates.product.operands import Product
from tools.codegen.templates.shared.access import Access
from tools.codegen.templates.shared.iteration_space import Axis


def lies_within(b: Builder, inner: Axis, step: int) -> bool:
    """Whether each step lies within one run of a sum's last dimension, whose length is the same at every size that was traced."""
    sizes = set(b.count(inner.groups[-1]))
    return len(inner.groups) > 1 and len(sizes) == 1 and sizes.pop() % step == 0


def loads_by_run(b: Builder, exprs: Iterable[int], inner: Axis) -> list[int]:
    """List the loads that expressions are made of and that are the same all along a run."""
    stack, seen = list(exprs), set[int]()
    while stack:
        expr = stack.pop()
        if expr not in seen:
            seen.add(expr)
            stack += b.exprs[expr].args
    last = set(inner.groups[-1])
    along = {expr: b.leaves_of(b.exprs[expr]) & set(inner.atoms) for expr in seen if b.exprs[expr].op == "load"}
    return sorted(expr for expr, atoms in along.items() if atoms and not atoms & last)


def neighbours_of(plan: ProductLayout, b: Builder, product: Product, inner: Axis) -> Access | None:
    """Find the tensor whose neighbours along a sum are the left operands, one after the other; none where there is none."""
    if product.stacked is None or len(set(product.left)) > 1:
        return None
    record = b.exprs[product.left[0]]
    if record.op != "load":
        return None
    access = plan.accesses[record.extra]
    steps = [access.strides.get(group[-1]) for group in inner.groups]
    sizes = [tuple(inner.groups[place + 1 :]) for place in range(len(inner.groups))]
    wanted = [sorted((product.stacked, *(atom for group in rest for atom in group))) for rest in sizes]
    lies = access.strides.get(product.stacked) == () and all(
        step is not None and sorted(map(str, step)) == sorted(map(str, want)) for step, want in zip(steps, wanted, strict=True)
    )
    return access if lies and is_floating(access.meta.dtype) else None
