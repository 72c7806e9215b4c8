"""What every generated region is made of: a kernel's signature, its loads and stores, and the host function's statements."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from tools.codegen.ir.builder import Builder
from tools.codegen.ir.dtypes import TRITON, is_floating
from tools.codegen.ir.expr import Fold
from tools.codegen.ir.graph import Ref, TensorMeta
from tools.codegen.ir.kernel import Kernel
from tools.codegen.ir.sizes import Varying, express
from tools.codegen.templates.shared.access import Access
from tools.codegen.templates.shared.body import Body
from tools.codegen.templates.shared.host_sizes import given_size, host_size, shape_values
from tools.codegen.templates.shared.iteration_space import Axis, Space, piece_mask
from tools.codegen.templates.shared.lines import block
from tools.codegen.templates.shared.naming import Names, Scope
from tools.codegen.templates.shared.prepack import Pack
from tools.codegen.templates.shared.prune import prune, words


@dataclass(frozen=True)
class RegionText:
    """The source of one generated region."""

    function: str
    """Name of the host function."""
    inputs: tuple[Ref, ...]
    """Values it takes, in order."""
    outputs: tuple[Ref, ...]
    """Values it returns, in order."""
    source: str
    """Kernels, then the host function."""
    helpers: tuple[str, ...]
    """Device functions it calls, by map."""
    numbers: tuple[Varying, ...] = ()
    """Numbers its host function takes after the tensors: those that come from sizes which none of the tensors has."""
    pack: Pack | None = None
    """The function that writes what its host function takes last, where its weights are packed in a step of their own."""
    in_place: Mapping[Ref, Ref] = field(default_factory=dict)
    """Outputs that it writes to the memory of one of its inputs, which they replace, where that is in order; and that input of each."""


@dataclass
class Frame:
    """One kernel being written."""

    space: Space
    name: str
    names: Names
    reads: tuple[Access, ...]
    writes: tuple[Access, ...]
    body: Body
    masks: dict[str, str]
    """Axis name to its mask variable, for axes that need one."""
    sizes: tuple[str, ...] = ()
    """Sizes among the kernel's parameters, once it is finished; the host may need more."""
    used: frozenset[str] = frozenset()
    """Every name in the finished kernel."""
    eviction: str = ""
    """How soon what is read and written of large tensors may leave the cache; as Triton calls it."""
    given: dict[str, Varying] = field(default_factory=dict)
    """Numbers that the host function must be given, by name; known once a call's arguments are listed."""

    def __post_init__(self) -> None:
        """Mask what belongs to one piece of a concatenation; take the sizes that the host function is given."""
        self.given |= {given_size(place): Varying(sizes) for place, sizes in enumerate(self.space.kernel.builder.given)}
        self.piece_masks = {axis.name: piece_mask(place) for place, axis in self.space.pieces()}

    def offset(self, access: Access) -> str:
        """Write where an access points, along all axes."""
        terms = [term for axis in self.space.axes if axis.groups and (term := self.space.along(access, axis))]
        return " + ".join([f"{access.name}_ptr", *terms])

    def mask(self, access: Access) -> str:
        """Write the mask of an access: the axes along which it varies."""
        found = [
            self.masks[axis.name] for axis in self.space.axes if axis.name in self.masks and any(a in access.strides for a in axis.atoms)
        ]
        if "mask_k" in found and "mask_n" in found:
            # a row in pieces: the mask of its columns holds that of its pieces
            found.remove("mask_k")
        text = " & ".join(found)
        for axis in self.space.axes:
            if axis.name in self.piece_masks and axis.atoms[0] in access.strides:
                # not `&`: where one of the two is a single truth value, Triton's interpreter makes a number of both
                text = f"tl.where({self.piece_masks[axis.name]}, {text}, False)" if text else self.piece_masks[axis.name]
        return text

    def load_text(self, access: Access, fill: str = "") -> str:
        """Write a load, converted to its compute dtype; what is masked off reads as `fill`, or as zero."""
        mask = self.mask(access)
        if mask and fill and access.meta.dtype in TRITON:
            # float8 has no number for many a fill: a device takes its largest for an infinity
            return f"tl.where({mask}, {self.load_text(access)}, {fill})"
        return self.raw_load_text(access, fill) + conversion(access.meta.dtype)

    def raw_load_text(self, access: Access, fill: str = "") -> str:
        """Write a load as it lies in memory."""
        mask = self.mask(access)
        extra = f", mask={mask}, other={fill or _zero(access.meta.dtype)}" if mask else ""
        return f"tl.load({self.offset(access)}{extra}{self._policy(access)})"

    def _policy(self, access: Access) -> str:
        """Write when an access of a large tensor may leave the cache: of one that varies along every axis."""
        large = self.eviction and all(set(axis.atoms) & set(access.strides) for axis in self.space.axes)
        return f', eviction_policy="{self.eviction}"' if large else ""

    def pick_text(self, scope: Scope, expr: int) -> str:
        """Write the load of one element of each row, at a position; none is read where the position is outside the row."""
        source, place = self.body.b.exprs[expr].args
        access, position = self.reads[self.body.b.exprs[source].extra], self.body.assign(scope, place)
        cols = self.space.axis("cols")
        size = self.space.monomial(cols.atoms)
        axes = [replace(axis, index=position) if axis is cols else axis for axis in self.space.axes]
        terms = [term for axis in axes if axis.groups and (term := self.space.along(access, axis))]
        rows = ["mask_m"] if any(axis.name == "rows" and axis.name in self.masks for axis in axes) else []
        mask = " & ".join([*rows, f"({position} >= 0)", f"({position} < {size})"])
        text = f"tl.load({' + '.join([f'{access.name}_ptr', *terms])}, mask={mask}, other={_zero(access.meta.dtype)})"
        return text + conversion(access.meta.dtype)

    def store(self, scope: Scope, access: Access, value: str) -> None:
        """Add a store."""
        mask = self.mask(access)
        scope.say(f"tl.store({self.offset(access)}, {value}{f', mask={mask}' if mask else ''}{self._policy(access)})")

    def finish(self, lines: Sequence[str]) -> list[str]:
        """Drop dead statements, and note which parameters are left with a use."""
        kept = prune(lines)
        used = words(kept)
        self.used = used
        self.sizes = tuple(name for name in self.space.used if name in used)
        return kept

    def signature(self, constants: Sequence[str]) -> list[str]:
        """List the kernel's parameters: pointers, sizes, strides, numbers, constants."""
        pointers = [f"{access.name}_ptr" for access in self.tensors()]
        numbers = [name for name in self.body.arguments.values() if name in self.used]
        strides = [name for name in self.space.strides if name in self.used]
        sizes = [f"{name}: tl.constexpr" if name in self.space.compiled_in else name for name in (*self.sizes, *strides)]
        return [*pointers, *sizes, *numbers, *(f"{name}: tl.constexpr" for name in constants if name in self.used)]

    def tensors(self) -> list[Access]:
        """List the tensors the kernel touches."""
        return [access for access in (*self.reads, *self.writes) if f"{access.name}_ptr" in self.used]

    def scalar_values(self) -> list[str]:
        """Write the numbers that come from sizes, as the host computes them."""
        values = []
        for place, name in self.body.arguments.items():
            varying = self.space.kernel.builder.arguments[place]
            text = express(varying.values, shape_values(self.reads, self.space.kernel))
            if name not in self.used:
                continue
            if text is None:
                self.given[name] = varying
            values.append(text or name)
        return values

    def host_parameters(self, lines: Sequence[str]) -> list[str]:
        """List what the host function takes; not the sizes that none of its `lines` has a use for."""
        unused = {given_size(place) for place in range(len(self.space.kernel.builder.given))} - words(lines)
        self.given = {name: number for name, number in self.given.items() if name not in unused}
        kinds = {name: "int" if all(isinstance(v, int) for v in number.values) else "float" for name, number in self.given.items()}
        return [*(f"{access.name}: torch.Tensor" for access in self.reads), *(f"{name}: {kind}" for name, kind in kinds.items())]

    def size_lines(self, known: dict[str, tuple[int, ...]]) -> list[str]:
        """Write the host's statements that read the kernel's sizes off its tensors."""
        lines = []
        for name, atoms in self.space.used.items():
            if name not in known:
                lines.append(f"{name} = {host_size(self.space, atoms, known)}")
                known[name] = atoms
        return lines

    def call_arguments(self, constants: Mapping[str, object]) -> list[str]:
        """List what the host passes: tensors, sizes, strides, numbers, and the constants the kernel uses."""
        strides = [text for name, text in self.space.strides.items() if name in self.used]
        given = [f"{name}={value}" for name, value in constants.items() if name in self.used]
        return [*(access.name for access in self.tensors()), *self.sizes, *strides, *self.scalar_values(), *given]


def _zero(dtype: str) -> str:
    return "0.0" if is_floating(dtype) else "0"


def conversion(dtype: str) -> str:
    """Write the conversion of a loaded value to its compute dtype."""
    if dtype == "bool":
        return " != 0"
    if dtype in ("float16", "bfloat16", *TRITON):
        return ".to(tl.float32)"
    return ".to(tl.int32)" if dtype in ("int8", "uint8", "int16") else ""


def neutral(kind: Fold, dtype: str) -> str:
    """Write the value that changes nothing in a reduction."""
    if kind is Fold.PROD:
        return "1.0" if is_floating(dtype) else "1"
    if kind is Fold.SUM:
        return "0.0" if is_floating(dtype) else "0"
    if is_floating(dtype):
        return 'float("inf")' if kind is Fold.MIN else '-float("inf")'
    limit = 2**31 if dtype == "int32" else 2**63
    return str(-limit if kind is Fold.MAX else limit - 1)


def vanishes(builder: Builder, expr: int, cols: frozenset[int]) -> bool:
    """Whether an expression is zero wherever the loads it is made of are masked off along the columns."""
    record = builder.exprs[expr]
    if record.op == "load":
        return bool(set(builder.atoms.leaves(tuple(record.atoms))) & cols)
    if record.op in ("mul", "add", "sub", "abs", "neg", "cast"):
        return all(vanishes(builder, arg, cols) for arg in record.args)
    return False


def shape_text(space: Space, access: Access, known: dict[str, tuple[int, ...]]) -> str:
    """Write the shape of an output from the shapes of the inputs."""
    for other in space.accesses:
        if not other.is_output and other.dims == access.dims and other.meta.shape == access.meta.shape:
            return f"{other.name}.shape"
    for other in space.accesses:
        if other.is_output or not other.dims:
            continue
        rank = len(access.dims)
        if rank < len(other.dims) and other.dims[:rank] == access.dims and rank:
            return f"{other.name}.shape[:{rank}]" if rank != len(other.dims) - 1 else f"{other.name}.shape[:-1]"
    parts = ["1" if not dim else host_size(space, dim, known) for dim in access.dims]
    return f"({', '.join(parts)}{',' if len(parts) == 1 else ''})"


def allocation(space: Space, access: Access, known: dict[str, tuple[int, ...]], device: str) -> str:
    """Write the allocation of an output."""
    for other in space.accesses:
        same = other.dims == access.dims and other.meta.shape == access.meta.shape and other.meta.dtype == access.meta.dtype
        if not other.is_output and same and other.meta.contiguous:
            return f"{access.name} = torch.empty_like({other.name})"
    return f"{access.name} = torch.empty({shape_text(space, access, known)}, dtype=torch.{access.meta.dtype}, device={device}.device)"


def fitting(sizes: Sequence[str]) -> list[str]:
    """Write the check that windows fit into what they look at, which a size as small as this would not tell; nothing without such sizes."""
    if not sizes:
        return []
    least = f"min({', '.join(sizes)})" if len(sizes) > 1 else sizes[0]
    return [f'assert {least} > 0, "a window is larger than its input"']


def never_empty(space: Space, axes: Iterable[Axis]) -> list[str]:
    """Write the check that axes which blocks are made of are not empty; nothing where the shapes of inputs have their sizes.

    A guard refuses inputs with nothing in them. One row less than there are, or half of one column, is nothing all the same, and a block
    of nothing has no meaning to Triton.
    """
    b = space.kernel.builder
    shapes = [zip(load.dims, load.meta.shape, strict=True) for load in b.loads]
    nothing = {atom for shape in shapes for dim, size in shape if size in b.vanishing for atom in b.atoms.leaves(dim)}
    found = [axis.size_name for axis in axes if any(atom in nothing or b.atoms.size(atom) in b.vanishing for atom in axis.atoms)]
    return [f'assert {name} > 0, "no kernel is made for a size of 0"' for name in dict.fromkeys(found)]


def guard(space: Space, accesses: Sequence[Access]) -> list[str]:
    """Write the check that a kernel with 32-bit offsets needs at run time; nothing where its offsets are 64-bit."""
    if space.is_wide():
        return []
    counts = ", ".join(f"{access.name}.numel()" for access in accesses)
    largest = f"max({counts})" if len(accesses) > 1 else counts
    return [f'assert {largest} < 2**31, "offsets are 32-bit"']


def shape_words(meta: TensorMeta) -> str:
    """Write a shape for people: `[4096, 1024]`."""
    return "[" + ", ".join(str(size) for size in meta.written) + "]"


def summary(kernel: Kernel, reads: Sequence[Access], writes: Sequence[Access]) -> str:
    """Say what a kernel reads and writes, with shapes as written."""
    del kernel
    left = ", ".join(f"{access.name} {shape_words(access.meta)}" for access in reads)
    right = ", ".join(f"{access.name} {shape_words(access.meta)}" for access in writes)
    return f"{left} -> {right}"


__all__ = [
    "Access", "Axis", "Body", "Frame", "Names", "RegionText", "Scope", "Space", "allocation", "block", "conversion", "guard",
    "neutral", "shape_text", "shape_words", "summary", "vanishes",
]  # fmt: skip
