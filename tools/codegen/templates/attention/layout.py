"""The iteration space of attention: heads, rows (queries), columns (keys), the elements of a head and those of a value."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from tools.codegen.ir.builder import Value
from tools.codegen.ir.expr import LoweringError
from tools.codegen.ir.kernel import Attention, Contraction, Kernel
from tools.codegen.ir.sizes import product
from tools.codegen.templates.shared.access import Access, accesses_of, coalesce
from tools.codegen.templates.shared.axis_order import kept_apart
from tools.codegen.templates.shared.iteration_space import Axis, Space
from tools.codegen.templates.shared.layout_cache import kept
from tools.codegen.templates.shared.naming import Names, access_names


@dataclass(frozen=True)
class AttentionLayout:
    """How an attention region lies in memory."""

    accesses: tuple[Access, ...]
    query: Access
    """What queries are read from; the largest of several tensors that they are computed of. So with keys and values."""
    key: Access
    value: Access
    computed: frozenset[str]
    """Which of `query`, `key` and `value` are computed and not only read."""
    axes: tuple[Axis, ...]
    """`outer` (the heads, if any), `rows`, `cols`, `inner`, `wide`."""
    dtype: str
    n_outer: int
    """At the sizes as written, like those below."""
    n_rows: int
    n_cols: int
    n_inner: int
    n_wide: int
    paged: Mapping[str, int]
    """Tensors that are read at positions which are data, with the elements that are read of each."""

    def read_along(self) -> tuple[tuple[int, ...], ...]:
        """List the dimensions whose positions the reads of pages ask for."""
        return tuple(each for axis in self.axes for each in (axis.atoms, *axis.groups)) if self.paged else ()

    def space(self, kernel: Kernel) -> Space:
        """Make the space of one emission."""
        return Space(kernel, tuple(replace(axis) for axis in self.axes), self.accesses)


def attention_layout(kernel: Kernel) -> AttentionLayout:
    """Lay out an attention region."""
    contraction, attention = kernel.contraction, kernel.attention
    if contraction is None or attention is None:
        raise LoweringError("there is no attention")
    _check_reach(kernel, contraction, attention)
    atoms, exprs = kernel.builder.atoms, kernel.builder.exprs
    refs = [load.ref for load in kernel.builder.loads] + [output.ref for output in kernel.outputs]
    accesses = accesses_of(kernel, access_names(refs, Names(OWN_NAMES)))
    sides = (contraction.left, contraction.right, attention.value)
    query, key, value = (_largest(kernel, side.value.id, accesses) for side in sides)
    read = {(name, access.meta.dtype) for name, access in zip(OPERANDS, (query, key, value), strict=True)}
    computed = frozenset(
        name for name, side in zip(OPERANDS, sides, strict=True) if exprs[side.value.id].op != "load" or (name, attention.dtype) not in read
    )
    named = (
        ("outer", "batch", contraction.batch), ("rows", "off_m", contraction.rows), ("cols", "off_n", contraction.cols),
        ("inner", "off_d", contraction.inner), ("wide", "off_v", attention.wide),
    )  # fmt: skip
    axes, paged = [], _paged(kernel, accesses)
    # the positions that reads of pages ask for are taken along one dimension each
    apart = kept_apart(kernel, query) if paged else ()
    for name, index, group in named:
        leaves = atoms.leaves(group)
        if leaves or name == "rows":
            axes.append(Axis(name, index, leaves, coalesce(leaves, (*accesses, *apart))))
    stepped = [access for name, access in (("key", key), ("value", value)) if name not in computed]
    _check([access for access in accesses if access.name not in paged], axes, stepped)
    if {"query", "key"} & computed and _elements(kernel, contraction.inner) > WIDEST_COMPUTED:
        raise LoweringError("queries or keys that are computed, of more than 256 elements, are not generated")
    sizes = {axis.name: product((atoms.size(atom) for atom in axis.atoms), atoms.traces)[0] for axis in axes}
    return AttentionLayout(
        accesses, query, key, value, computed, tuple(axes), attention.dtype,
        sizes.get("outer", 1), sizes["rows"], sizes["cols"], sizes["inner"], sizes["wide"], paged,
    )  # fmt: skip


WIDEST_COMPUTED = 256
"""Elements of a head that one kernel holds whole."""
READS = ("load", "read")
"""Expressions that are elements of a tensor."""
OPERANDS = ("query", "key", "value")
OWN_NAMES = (
    "anchor", "batch", "begin", "block_d", "block_v", "end", "key_n", "key_there", "key_tile", "keys", "logit", "logits", "mask_d",
    "mask_v", "n_inner", "off_d", "off_v", "part_peak", "part_total", "peak", "pid_v", "queries", "query_tile", "rescale", "row_of_all",
    "scores", "stats", "tiles_v", "total", "value_tile", "values", "weights",
)  # fmt: skip
"""Variables of the template, which no tensor may be called."""


def _check_reach(kernel: Kernel, contraction: Contraction, attention: Attention) -> None:
    """Make sure that nothing leaves the kernel but what follows the second product."""
    exprs, stack = kernel.builder.exprs, [output.expr for output in kernel.outputs]
    seen: set[int] = set()
    while stack:
        expr = stack.pop()
        if expr == contraction.expr:
            raise LoweringError("the scores of the attention are read outside")
        if expr != attention.expr and expr not in seen:
            seen.add(expr)
            stack += exprs[expr].args


def _largest(kernel: Kernel, expr: int, accesses: tuple[Access, ...]) -> Access:
    """Find the largest tensor that an operand is made of."""
    exprs = kernel.builder.exprs
    made_of = kernel.builder.made_of(Value(kernel.builder, expr))
    places = [exprs[each].extra if exprs[each].op == "load" else exprs[each].extra[0] for each in made_of if exprs[each].op in READS]
    found: list[Access] = [accesses[int(place)] for place in places]
    if not found:
        raise LoweringError("an operand of the attention is made of no tensor")
    return max(found, key=lambda access: (access.meta.numel, access.name))


def _paged(kernel: Kernel, accesses: tuple[Access, ...]) -> dict[str, int]:
    """Count the elements that are read of each tensor whose positions are data."""
    b = kernel.builder
    reads = [record for record in b.exprs if record.op == "read"]
    read = [(accesses[record.extra[0]], product((b.atoms.size(a) for a in b.leaves_of(record)), b.atoms.traces)[0]) for record in reads]
    return {access.name: min(count, access.meta.numel) for access, count in read}


def _elements(kernel: Kernel, group: tuple[int, ...]) -> int:
    atoms = kernel.builder.atoms
    return product((atoms.size(atom) for atom in atoms.leaves(group)), atoms.traces)[0]


def _check(accesses: list[Access], axes: list[Axis], stepped: list[Access]) -> None:
    """Make sure that the region can be walked; those operands that are `stepped` along the keys are one dimension there."""
    every = {atom for axis in axes for atom in axis.atoms}
    kept = {atom for axis in axes if axis.name in ("outer", "rows", "wide") for atom in axis.atoms}
    if sum(len(axis.atoms) for axis in axes) != len(every):
        raise LoweringError("two dimensions of the attention are the same dimension of one tensor")
    for axis in axes:
        groups = axis.groups if axis.name != "cols" else max((coalesce(axis.atoms, [each]) for each in stepped), key=len, default=((),))
        if axis.name not in ("outer", "rows") and len(groups) != 1:
            raise LoweringError("the keys or the elements of a head are not one dimension in memory")
    for access in accesses:
        if not set(access.strides) <= every:
            raise LoweringError("a tensor of the attention's region has a dimension that the attention lacks")
        if access.is_output and set(access.strides) != kept:
            raise LoweringError("an output of the attention's region differs in shape from the attention")


attention_layout_of = kept(attention_layout)
"""The layout of a kernel, made once."""
