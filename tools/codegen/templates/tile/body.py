"""The formulas of a tile kernel: positions along any dimensions, and tensors read and written at positions that are formulas."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from tools.codegen.ir.dtypes import is_floating
from tools.codegen.ir.expr import Expr
from tools.codegen.ir.graph import TensorMeta
from tools.codegen.ir.sizes import Sizes
from tools.codegen.templates.shared.access import Access
from tools.codegen.templates.shared.body import ATOM, INFIX, Body
from tools.codegen.templates.shared.flow import dim_strides
from tools.codegen.templates.shared.frame import conversion
from tools.codegen.templates.shared.iteration_space import Axis, Space, hides_alignment
from tools.codegen.templates.shared.naming import Names, Scope
from tools.codegen.templates.tile.axes import TileAxes, letter
from tools.codegen.templates.tile.pairs import Pair

PRODUCT = INFIX["mul"][1]


class TileBody(Body):
    """Writes the expressions of a tile kernel."""

    def __init__(
        self,
        space: Space,
        names: Names,
        load: Callable[[Scope, int], str],
        reduce: Callable[[Scope, int], str],
        axes: TileAxes,
        stored: Sequence[int] = (),
    ) -> None:
        """Take what every template gives, the axes of the tile, and what is stored."""
        super().__init__(space, names, load, reduce, stored)
        self.axes = axes
        self.copied: frozenset[str] = frozenset()
        """Tensors of which there are several copies, one behind the other."""
        self.laid: dict[int, tuple[str, list[Axis], Axis]] = {}
        """Memory in which programs lay what an order has found: by order, its name, the axes of its rows, and that of what is found."""
        self.pairs: Mapping[int, Pair] = {}
        """Reads of neighbours that are one read."""

    def _leaf(self, scope: Scope, expr: int, record: Expr) -> tuple[str, int] | None:
        if record.op == "size" and len({*self.b.count(record.extra)}) == 1:
            return str(self.b.count(record.extra)[0]), ATOM
        if record.op == "index":
            text = self._index(record)
            return text, ATOM if text.isidentifier() else INFIX["add"][1]
        return super()._leaf(scope, expr, record)

    def _index(self, record: Expr) -> str:
        wanted = self.b.atoms.leaves(record.extra)
        total = ""
        for name, size, atoms in self._runs(wanted):
            total = f"{f'({total})' if '+' in total else total} * {size} + {name}" if total else name
            del atoms
        return total

    def _runs(self, wanted: tuple[int, ...]) -> Iterable[tuple[str, str, tuple[int, ...]]]:
        """Take the atoms of a position apart into whole axes and groups: variable, size, atoms."""
        rest = wanted
        while rest:
            name, atoms, size = self._first_run(rest)
            yield name, size, atoms
            rest = rest[len(atoms) :]

    def _first_run(self, rest: tuple[int, ...]) -> tuple[str, tuple[int, ...], str]:
        for axis in self.axes.every:
            if rest[: len(axis.atoms)] == axis.atoms:
                return axis.index, axis.atoms, self._size(axis.atoms)
        for axis in self.axes.every:
            for place, group in enumerate(axis.groups):
                if rest[: len(group)] == group:
                    self.space.parts_used.add(axis.name)
                    return axis.part(place), group, self._size(group)
        raise AssertionError("a position runs along a part of a group")

    def _size(self, atoms: tuple[int, ...]) -> str:
        sizes = self.b.count(atoms)
        return str(sizes[0]) if len(set(sizes)) == 1 else self.space.aligned(atoms)

    def address(self, scope: Scope, access: Access, positions: Iterable[int]) -> str:
        """Write where positions along a tensor's dimensions point."""
        terms = []
        for place, position in self._together(access, positions):
            text, rank = self.text(scope, position)
            if text == "0":
                continue
            stride = self._stride(access, place)
            terms.append(text if stride == "1" else f"{text if rank >= PRODUCT else f'({text})'} * {stride}")
        return " + ".join([f"{access.name}_ptr", *terms])

    def _together(self, access: Access, positions: Iterable[int]) -> list[tuple[int, int]]:
        """Number positions by their dimensions; what takes a number apart by the sizes of neighbouring dimensions is that number."""
        meta: TensorMeta = access.meta
        found: list[tuple[int, int]] = []
        for place, position in enumerate(positions):
            record = self.b.exprs[position]
            above = self.b.exprs[found[-1][1]] if found else record
            halves = (above.op, record.op) == ("floordiv", "mod") and above.args == record.args
            if halves and (meta.contiguous or access.is_output) and self._numbers(record.args[1]) == meta.shape[place]:
                found[-1] = (place, record.args[0])
            else:
                found.append((place, position))
        return found

    def _numbers(self, expr: int) -> Sizes | None:
        """Read a number at all sizes; none where it is made of others."""
        record = self.b.exprs[expr]
        if record.op == "argument":
            values = self.b.arguments[record.extra].values
            return tuple(int(value) for value in values)
        return tuple(int(record.extra[1]) for _ in self.b.count(())) if record.op == "const" and record.extra[0] == "int" else None

    def _stride(self, access: Access, place: int) -> str:
        meta: TensorMeta = access.meta
        after = meta.shape[place + 1 :]
        if place == len(meta.shape) - 1 and (meta.contiguous or meta.unit_last or access.is_output):
            return "1"
        if (meta.contiguous or access.is_output) and all(len(set(sizes)) == 1 for sizes in after):
            return str(dim_strides(meta)[place])
        name = f"stride_{access.name}_{place}"
        if (meta.contiguous or access.is_output) and hides_alignment(dim_strides(meta)[place]):
            self.space.compiled_in.add(name)
        self.space.strides[name] = f"{access.name}.stride({place + (access.name in self.copied)})"
        return name

    def copy(self, access: Access) -> str:
        """Write how far into its tensor the copy lies that a program adds to."""
        if access.name not in self.copied:
            return ""
        name = f"stride_{access.name}_copy"
        self.space.strides[name] = f"{access.name}.stride(0)"
        return f" + pid % n_copies * {name}"

    def read(self, scope: Scope, expr: int, access: Access) -> str:
        """Write the read of a tensor at positions."""
        record = self.b.exprs[expr]
        if expr in self.pairs:
            return self._read_both(scope, expr, access)
        positions, guards = (record.args[:-1], record.args[-1:]) if record.extra[1] else (record.args, ())
        address = self.address(scope, access, positions)
        mask = self.mask(scope, self.b.leaves_of(record), guards)
        if mask and not self._is_tile(positions) and self._is_tile(guards):
            # a mask that is a tile takes no address of one element
            address += f" + tl.zeros([{', '.join('1' * self.axes.rank)}], tl.int32)"
        zero = "0.0" if is_floating(access.meta.dtype) else "0"
        return f"tl.load({address}{f', mask={mask}, other={zero}' if mask else ''})" + conversion(access.meta.dtype)

    def _is_tile(self, exprs: Iterable[int]) -> bool:
        """Whether some of what is computed has a tile's dimensions."""
        atoms = frozenset[int]().union(*(self.b.leaves_of(self.b.exprs[expr]) for expr in exprs))
        return any(set(axis.atoms) & atoms for axis in self.axes.shaped)

    def _read_both(self, scope: Scope, expr: int, access: Access) -> str:
        """Write the one read of two neighbours, and name both."""
        record, block = self.b.exprs[expr], self.axes.block(self.axes.tiled[-1])
        others = [axis for axis in self.axes.tiled[:-1] if set(axis.atoms) & self.b.leaves_of(record)]
        wide, mask = self.twice(scope, others)
        address = f"{self.address(scope, access, record.args[:-1])} + {wide}"
        load = f"tl.load({address}, mask={mask}, other={'0.0' if is_floating(access.meta.dtype) else '0'})"
        shape = ", ".join([*(self.axes.block(axis) if axis in others else "1" for axis in self.axes.tiled[:-1]), block, "2"])
        even, odd = (self.name_of(each) for each in self.pairs[expr][:2])
        scope.say(f"{even}, {odd} = tl.split(tl.reshape({load}{conversion(access.meta.dtype)}, [{shape}]))")
        scope.names |= {self.pairs[expr][0]: even, self.pairs[expr][1]: odd}
        return scope.names[expr]

    def twice(self, scope: Scope, others: Iterable[Axis]) -> tuple[str, str]:
        """Write the positions of both neighbours of each column, and their mask with that of other axes."""
        cols = self.axes.tiled[-1]
        block = self.axes.block(cols)
        wide, long = self.names.fresh(f"{cols.index}_twice"), ".to(tl.int64)" if self.space.is_wide() else ""
        scope.say(f"{wide} = pid_{letter(cols)}{long} * (2 * {block}) + tl.arange(0, 2 * {block}){self.axes.spread(cols)}")
        masks = [*(self.axes.mask(axis) for axis in others), f"({wide} < 2 * {self.space.monomial(cols.atoms)})"]
        return wide, " & ".join(masks)

    def mask(self, scope: Scope, atoms: frozenset[int], guards: Iterable[int] = ()) -> str:
        """Write the mask of what varies over some atoms, and is wanted where guards hold."""
        found = [self.axes.mask(axis) for axis in self.axes.shaped if set(axis.atoms) & atoms]
        found += [text if rank == ATOM else f"({text})" for text, rank in (self.text(scope, guard) for guard in guards)]
        return " & ".join(found)
