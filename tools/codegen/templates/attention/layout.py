"""The iteration space of attention: heads, rows (queries), columns (keys), the elements of a head and those of a value."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from tools.codegen.ir.builder import Value
from tools.codegen.ir.expr import LoweringError
from tools.codegen.ir.kernel import Attention, Kernel
from tools.codegen.ir.sizes import product
from tools.codegen.templates.shared.access import Access, accesses_of, coalesce
from tools.codegen.templates.shared.axis_order import kept_apart
from tools.codegen.templates.shared.iteration_space import Axis, Space
from tools.codegen.templates.shared.layout_cache import kept
from tools.codegen.templates.shared.naming import Names, access_names


@dataclass(frozen=True)
class Operand:
    """What a product of an attention multiplies."""

    name: str
    """`query`, `key`, `value`; those of further products have a number."""
    expr: int
    access: Access
    """What it is read from; the largest of several tensors that it is computed of."""
    axis: str
    """Axis of its elements: `inner`, `inner_2`, ... or `wide`."""
    is_computed: bool
    """Whether it is computed and not only read."""


@dataclass(frozen=True)
class ScoreProduct:
    """One of the products that scores are the sum of."""

    query: Operand
    key: Operand
    """An operand or an axis that two products share is called after the first of them."""
    expr: int
    """Its sum, as an expression of the scores."""
    n_inner: int
    """Elements of a head, at the sizes as written."""


@dataclass(frozen=True)
class AttentionLayout:
    """How an attention region lies in memory."""

    accesses: tuple[Access, ...]
    products: tuple[ScoreProduct, ...]
    value: Operand
    keys_are_values: str
    """Name of keys that are the values themselves; empty where there are none."""
    axes: tuple[Axis, ...]
    """`outer` (the heads, if any), `rows`, `cols`, `inner` and those of further products, `wide`."""
    dtype: str
    n_outer: int
    """At the sizes as written, like those below."""
    n_rows: int
    n_cols: int
    n_wide: int
    paged: Mapping[str, int]
    """Tensors that are read at positions which are data, with the elements that are read of each."""

    @property
    def queries(self) -> tuple[Operand, ...]:
        """Every tile of queries, each once."""
        return tuple({each.query.name: each.query for each in self.products}.values())

    @property
    def keys(self) -> tuple[Operand, ...]:
        """Every tile of keys, each once."""
        return tuple({each.key.name: each.key for each in self.products}.values())

    @property
    def heads(self) -> Mapping[str, int]:
        """Elements along each axis that scores are summed over."""
        return {each.key.axis: each.n_inner for each in self.products}

    @property
    def computed(self) -> frozenset[str]:
        """Names of what is computed."""
        return frozenset(each.name for each in (*self.queries, *self.keys, self.value) if each.is_computed)

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
    _check_reach(kernel, attention)
    atoms = kernel.builder.atoms
    refs = [load.ref for load in kernel.builder.loads] + [output.ref for output in kernel.outputs]
    accesses = accesses_of(kernel, access_names(refs, Names(OWN_NAMES)))
    products = _products(kernel, accesses)
    value = _operand(kernel, ("value", "wide"), attention.value.value.id, accesses)
    inner = {each.key.axis: contraction.inner for each, contraction in zip(products, kernel.contractions, strict=True)}
    named = (
        ("outer", "batch", contraction.batch), ("rows", "off_m", contraction.rows), ("cols", "off_n", contraction.cols),
        *((name, f"off_d{suffix(name)}", group) for name, group in inner.items()), ("wide", "off_v", attention.wide),
    )  # fmt: skip
    axes, paged = [], _paged(kernel, accesses)
    # the positions that reads of pages ask for are taken along one dimension each
    apart = kept_apart(kernel, products[0].query.access) if paged else ()
    for name, index, group in named:
        leaves = atoms.leaves(group)
        if leaves or name == "rows":
            axes.append(Axis(name, index, leaves, coalesce(leaves, (*accesses, *apart))))
    sizes = {axis.name: product((atoms.size(atom) for atom in axis.atoms), atoms.traces)[0] for axis in axes}
    layout = AttentionLayout(
        accesses, products, value, _keys_that_are_values(kernel, products, value), tuple(axes), attention.dtype,
        sizes.get("outer", 1), sizes["rows"], sizes["cols"], sizes["wide"], paged,
    )  # fmt: skip
    _check(layout)
    _check_operands(kernel, layout)
    return layout


WIDEST_COMPUTED = 256
"""Elements of a head that one kernel holds whole."""
MOST_PRODUCTS = 4
"""Products that scores are the sum of, at most: names are kept free for so many."""
READS = ("load", "read")
"""Expressions that are elements of a tensor."""
NUMBERED = ("block_d", "key_tile", "keys", "mask_d", "n_inner", "off_d", "queries", "query_tile", "scores")
"""Variables that each product has."""
OWN_NAMES = (
    "anchor", "batch", "begin", "block_v", "end", "key_n", "key_there", "log_sum", "logit", "logits", "mask_v", "off_v", "part_peak",
    "part_total", "peak", "pid_v", "rescale", "row_of_all", "stats", "tiles_v", "total", "value_tile", "values", "weights",
    *NUMBERED, *(f"{name}_{place}" for name in NUMBERED for place in range(2, MOST_PRODUCTS + 1)),
)  # fmt: skip
"""Variables of the template, which no tensor may be called."""


def suffix(name: str) -> str:
    """Give the number that an operand or an axis of a further product has behind its name; nothing of the first's."""
    return name[name.index("_") :] if "_" in name else ""


def _products(kernel: Kernel, accesses: tuple[Access, ...]) -> tuple[ScoreProduct, ...]:
    """Name the operands of each product: those that were met before have their names."""
    if len(kernel.contractions) > MOST_PRODUCTS:
        raise LoweringError(f"scores that are the sum of more than {MOST_PRODUCTS} products are not generated")
    found: list[ScoreProduct] = []
    axes: dict[tuple[int, ...], str] = {}
    operands: dict[tuple[str, int], Operand] = {}
    for place, each in enumerate(kernel.contractions, 1):
        number = f"_{place}" if place > 1 else ""
        axis = axes.setdefault(kernel.builder.atoms.leaves(each.inner), f"inner{number}")
        sides = []
        for word, side in (("query", each.left), ("key", each.right)):
            expr = side.value.id
            if (word, expr) not in operands:
                operands[word, expr] = _operand(kernel, (f"{word}{number}", axis), expr, accesses)
            sides.append(operands[word, expr])
        found.append(ScoreProduct(sides[0], sides[1], each.expr, kernel.builder.count(each.inner)[0]))
    return tuple(found)


def _operand(kernel: Kernel, names: tuple[str, str], expr: int, accesses: tuple[Access, ...]) -> Operand:
    access, attention = _largest(kernel, expr, accesses), kernel.attention
    assert attention is not None
    computed = kernel.builder.exprs[expr].op != "load" or access.meta.dtype != attention.dtype
    return Operand(names[0], expr, access, names[1], computed)


def _keys_that_are_values(kernel: Kernel, products: tuple[ScoreProduct, ...], value: Operand) -> str:
    """Find keys that are the tensor of the values, with a head's elements in the place of a value's."""
    leaves, attention = kernel.builder.atoms.leaves, kernel.attention
    assert attention is not None
    for each, contraction in zip(products, kernel.contractions, strict=True):
        one, two = each.key.access, value.access
        if each.key.is_computed or value.is_computed or one.ref != two.ref or len(one.dims) != len(two.dims):
            continue
        apart = [pair for pair in zip(one.dims, two.dims, strict=True) if pair[0] != pair[1]]
        if apart == [(leaves(contraction.inner), leaves(attention.wide))]:
            return each.key.name
    return ""


def _check_reach(kernel: Kernel, attention: Attention) -> None:
    """Make sure that nothing leaves the kernel but what follows the second product."""
    reached = kernel.builder.behind([output.expr for output in kernel.outputs], {attention.expr})
    if reached & {each.expr for each in kernel.contractions}:
        raise LoweringError("the scores of the attention are read outside")


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


def _check(layout: AttentionLayout) -> None:
    """Make sure that the region can be walked: what is read along the keys is one dimension there."""
    axes, accesses = layout.axes, [access for access in layout.accesses if access.name not in layout.paged]
    every = {atom for axis in axes for atom in axis.atoms}
    kept = {atom for axis in axes if axis.name in ("outer", "rows", "wide") for atom in axis.atoms}
    if sum(len(axis.atoms) for axis in axes) != len(every):
        raise LoweringError("two dimensions of the attention are the same dimension of one tensor")
    stepped = [each.access for each in (*layout.keys, layout.value) if not each.is_computed]
    for axis in axes:
        groups = axis.groups if axis.name != "cols" else max((coalesce(axis.atoms, [each]) for each in stepped), key=len, default=((),))
        if axis.name not in ("outer", "rows") and len(groups) != 1:
            raise LoweringError("the keys or the elements of a head are not one dimension in memory")
    for access in accesses:
        if not set(access.strides) <= every:
            raise LoweringError("a tensor of the attention's region has a dimension that the attention lacks")
        narrow = {axis.name: {*axis.atoms} for axis in axes}
        if access.is_output and narrow["rows"] and set(access.strides) == kept - narrow["wide"]:
            # of each row one number, such as its log-sum-exp
            continue
        if access.is_output and set(access.strides) != kept:
            raise LoweringError("an output of the attention's region differs in shape from the attention")


def _check_operands(kernel: Kernel, layout: AttentionLayout) -> None:
    """Make sure that tiles are read along what is summed and along keys, and hold what is computed."""
    atoms = {axis.name: {*axis.atoms} for axis in layout.axes}
    for each in (*layout.queries, *layout.keys, layout.value):
        along = atoms[each.axis] | (set() if each in layout.queries else atoms["cols"])
        if not along <= kernel.builder.leaves_of(kernel.builder.exprs[each.expr]):
            raise LoweringError("keys, or the elements of a head, that are all the same are not generated")
    if any(each.n_inner > WIDEST_COMPUTED for each in layout.products if each.query.is_computed or each.key.is_computed):
        raise LoweringError("queries or keys that are computed, of more than 256 elements, are not generated")


attention_layout_of = kept(attention_layout)
"""The layout of a kernel, made once."""
