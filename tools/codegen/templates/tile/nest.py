"""One kernel of a tile region: where its programs begin, what they read, reduce and store."""

from __future__ import annotations

from dataclasses import replace
from enum import StrEnum

from tools.codegen.ir.kernel import Output, Write
from tools.codegen.templates.shared.access import Access
from tools.codegen.templates.shared.frame import Frame, block, summary
from tools.codegen.templates.shared.iteration_space import Axis, Space
from tools.codegen.templates.shared.knob import Settings
from tools.codegen.templates.shared.naming import Names, Scope
from tools.codegen.templates.tile.alike import merging, say_merged
from tools.codegen.templates.tile.axes import TileAxes, head, letter, tile_axes, walk
from tools.codegen.templates.tile.body import TileBody
from tools.codegen.templates.tile.folds import Folds
from tools.codegen.templates.tile.knobs import apart
from tools.codegen.templates.tile.layout import TileLayout
from tools.codegen.templates.tile.pairs import pairs
from tools.codegen.templates.tile.repeats import made_before
from tools.codegen.templates.tile.twins import PAIR, Each

OWN = (
    "above", "begin", "chunk", "chunks", "has_run", "k", "k0", "k1", "k2", "n_copies", "parts", "pid", "pid_m", "pid_n", "split", "start",
    "step", "stop", "tile", "totals",
)  # fmt: skip
"""Names that the kernels use themselves."""


class Stage(StrEnum):
    """What a kernel does of a region."""

    WHOLE = "whole"
    PARTIAL = "partial"
    COMBINE = "combine"
    WRITE = "write"


WORDS = {
    Stage.WHOLE: "",
    Stage.PARTIAL: "Partial results of one chunk: ",
    Stage.COMBINE: "Combines the partial results: ",
    Stage.WRITE: "One chunk, by all partial results: ",
}


class Nest:
    """Writes one kernel."""

    def __init__(self, plan: TileLayout, name: str, parameters: Settings, stage: Stage, level: int, buffers: dict[int, str]) -> None:
        """Take the region's layout, its host function's name, the parameters, and what the kernel does of it.

        `level` counts the reductions that stand in `buffers` already, which all kernels of the region share.
        """
        self.plan, self.stage, self.level, self.kernel = plan, stage, level, plan.kernel
        count = len(self.kernel.builder.loads)
        self.reads, outputs = plan.accesses[:count], plan.accesses[count:]
        known = {access.ref: access for access in outputs}
        self.targets = tuple(known[output.scatter.onto or output.ref if output.scatter else output.ref] for output in self.kernel.outputs)
        """What each output is written to."""
        self.writes = tuple(access for access in outputs if access in self.targets)
        self.axes: TileAxes = tile_axes(plan, parameters)
        if stage is Stage.COMBINE and plan.parted is not None:
            self.axes = replace(self.axes, parted=self.axes.walked[plan.parted])
        self.space = Space(self.kernel, self.axes.every, plan.accesses)
        self.function = f"{name}_partial{f'_{level + 1}' if level else ''}_kernel" if stage is Stage.PARTIAL else f"{name}_kernel"
        self.space.few = {} if plan.twin is None else {plan.twin: len(plan.both[0])}
        self.body = TileBody(self.space, Names(OWN), self._load, self._along, self.axes, plan.stored)
        self.body.pairs = {expr: pair for expr, pair in pairs(plan.b, plan.needed).items() if self.axes.takes_pairs(pair[2])}
        if int(parameters.get("COPIES", 1)) > 1:
            self.body.copied = frozenset(access.name for access in self.writes if access.ref in {output.ref for output in plan.added})
        self.frame = Frame(self.space, self.function, self.body.names, self.reads, self.writes, self.body, self.axes.masks)
        self.wide = ".to(tl.int64)" if self.space.is_wide() else ""
        self.folds = Folds(plan, self.axes, self.body, self.wide, buffers, apart(plan, parameters))

    def write(self) -> str:
        """Write the function."""
        lines: list[str] = []
        scope = Scope(lines, "    ")
        if self.stage is Stage.PARTIAL:
            self.folds.partial(scope, self.level, self._early if not self.level else None)
        elif self.stage is Stage.COMBINE:
            self.folds.combine(scope, self.level)
            self._stores(scope, along=False)
        elif self.stage is Stage.WRITE:
            self.folds.combine(scope, self.level)
            self._write_chunk(scope)
        else:
            self._whole(scope)
        top = head(self.axes, self.space, self.is_shared, self.wide)
        text = self.frame.finish([*("    " + line for line in top), *lines])
        touched = self.frame.tensors()
        arrow = summary(self.kernel, [a for a in touched if not a.is_output], [a for a in touched if a.is_output])
        head_line = block(f"def {self.function}", self._signature(), ":")
        return "\n".join(["@triton.jit", *head_line, f'    """{WORDS[self.stage]}{arrow.strip()}."""', *text])

    @property
    def is_shared(self) -> bool:
        """Whether several programs share the axis that is stepped along."""
        return self.stage in (Stage.PARTIAL, Stage.WRITE)

    def constants(self) -> list[str]:
        """Name the constants that the kernel uses."""
        names = [*(name(axis) for name in (self.axes.block, self.axes.log) for axis in self.axes.shaped), "SPLITS", "STEPS"]
        return [name for name in names if name in self.frame.used]

    def arguments(self) -> list[str]:
        """List what the host gives, constants aside."""
        own, count = self.frame.call_arguments({}), len(self.frame.tensors())
        return [*own[:count], *self._extra(), *own[count:]]

    def _signature(self) -> list[str]:
        own, count = self.frame.signature([]), len(self.frame.tensors())
        extra = [f"{name}_ptr" if f"{name}_ptr" in self.frame.used else name for name in self._extra()]
        return [*own[:count], *extra, *own[count:], *(f"{name}: tl.constexpr" for name in self.constants())]

    def _extra(self) -> list[str]:
        """Name the memory for partial results and for orders, and the numbers of a split, that the kernel takes."""
        own = [*self.folds.buffers.values(), *(name for name, _, _ in self.body.laid.values())]
        buffers = [name for name in own if f"{name}_ptr" in self.frame.used]
        return [*buffers, *(name for name in ("n_splits", "chunk", "totals", "n_copies") if name in self.frame.used)]

    def _whole(self, scope: Scope) -> None:
        loop = self.axes.loop
        if self.axes.repeated:
            self._walk(scope, self.axes.repeated)
            return
        if loop is None:
            self.folds.load_first(scope)
            self._stores(scope)
            return
        ends = self.folds.ends(scope)
        for number, level in enumerate(self.folds.levels):
            self.folds.walk(scope, level, *ends, then=self._early if not number else None)
        self._stores(scope, along=False)
        if self.plan.written_along:
            inner = self.folds.loop(scope)
            self._stores(inner, along=True)
            self.folds.close(scope, inner)

    def _walk(self, scope: Scope, axis: Axis) -> None:
        """Make what is the same along a dimension, then walk that."""
        for expr in made_before(self.plan, frozenset(axis.atoms)):
            self.body.assign(scope, expr)
        if not all(set(axis.atoms) & self.plan.atoms_of(output) for output in self.kernel.outputs):
            # one of the programs that share the dimension stores what is the same along it
            scope.say("if pid % chunks == 0:")
            self._stores(scope.nested(), along=False)
        inner = scope.nested([])
        self.folds.load_first(inner)
        self._stores(inner, along=True)
        begin, top = walk(self.axes, self.space, axis)
        scope.lines += [*(scope.indent + line for line in begin), *(inner.indent + line for line in top), *inner.lines]

    def _write_chunk(self, scope: Scope) -> None:
        """Store what one chunk has of the outputs; those that lack the axis are one program's."""
        self.folds.begin(scope)
        inner = self.folds.loop(scope)
        self._stores(inner, along=True)
        self.folds.close(scope, inner, "begin", "stop")
        atoms = set(self.axes.stepped.atoms) if self.axes.stepped else set()
        if not all(atoms & self.plan.atoms_of(output) for output in self.kernel.outputs):
            scope.say("if split == 0:")
            self._stores(scope.nested(), along=False)

    def _stores(self, scope: Scope, along: bool | None = None) -> None:
        """Store the outputs: all, or those that have the axis which is stepped along, but for early ones, or those that have not."""
        axis = self.axes.stepped or self.axes.repeated
        atoms = set(axis.atoms) if axis else set()
        for place, both in enumerate(self.plan.both):
            self._store_both(scope, self.writes[place], both)
        for output, access in zip(self.kernel.outputs, self.targets, strict=True) if not self.plan.both else ():
            late = along is None or self.axes.stepped is None or output not in self.plan.early
            if late and (along is None or bool(atoms & self.plan.atoms_of(output)) == along):
                self._store(scope, output, access)

    def _early(self, scope: Scope) -> None:
        """Store in a walk what waits for none of its reductions."""
        for output, access in zip(self.kernel.outputs, self.targets, strict=True):
            if output in self.plan.early:
                self._store(scope, output, access)

    def _store(self, scope: Scope, output: Output, access: Access) -> None:
        atoms, value = self.plan.atoms_of(output), self.body.assign(scope, output.expr)
        missing = [axis for axis in self.axes.tiled if not set(axis.atoms) & atoms]
        first = [one for axis in self.axes.tiled if axis not in missing for one in self._first_of(axis, atoms)]
        target = self.body.address(scope, access, output.scatter.positions) if output.scatter else self.frame.offset(access)
        target += self.body.copy(access) + self.axes.lifted(atoms)
        mask = self.body.mask(scope, atoms, () if output.scatter is None or output.scatter.guard is None else (output.scatter.guard,))
        mask = " & ".join([*([mask] if mask else []), *first])
        if missing:
            # one program of those that made it stores it
            scope.say("if " + " and ".join(f"pid_{letter(axis)} == 0" for axis in missing) + ":")
            scope = scope.nested()
        shared = missing or first or self.axes.walked or not self.axes.has_rows
        if not shared and merging(self.body.b, output, self.axes.tiled[0].atoms):
            scope = say_merged(scope, self.body, self.axes, output, target, value, mask)
        if output.scatter and output.scatter.write in (Write.MAX, Write.MIN):
            mask = self._changing(scope, output, target, value, mask)
        scope.say(_write_text(output, target, value, f", mask={mask}" if mask else ""))

    def _first_of(self, axis: Axis, atoms: frozenset[int]) -> list[str]:
        """Ask for the first position of each dimension along which all positions have the same to store."""
        places = [place for place, group in enumerate(axis.groups) if not set(group) & atoms]
        if places:
            self.space.parts_used.add(axis.name)
        return [f"({axis.part(place)} == 0)" for place in places]

    def _changing(self, scope: Scope, output: Output, target: str, value: str, mask: str) -> str:
        """Write which elements are beyond what is there already: whoever reads what is not the latest writes once more than needed."""
        assert output.scatter is not None
        there = self.body.names.fresh("there")
        scope.say(f"{there} = tl.load({target}{f', mask={mask}, other=0' if mask else ''})")
        beyond = f"({value} {'>' if output.scatter.write is Write.MAX else '<'} {there})"
        return f"{mask} & {beyond}" if mask else beyond

    def _store_both(self, scope: Scope, access: Access, both: Each) -> None:
        """Store two neighbours of each column side by side, or more of them one after the other."""
        if len(both) > PAIR:
            self._store_each(scope, access, both)
            return
        *rows, cols = self.axes.tiled
        shape = ", ".join(self.axes.block(axis) for axis in rows)
        block = self.axes.block(cols)
        tile = f"[{', '.join(filter(None, [shape, block]))}]"
        values = ", ".join(f"tl.broadcast_to({self.body.assign(scope, expr)}, {tile})" for expr in both)
        wide, mask = self.body.twice(scope, rows)
        others = [axis for axis in self.space.axes if axis is not cols and axis.groups]
        target = " + ".join([f"{access.name}_ptr", *filter(None, (self.space.along(access, axis) for axis in others)), wide])
        joined = f"tl.reshape(tl.join({values}), [{', '.join(filter(None, [shape, f'2 * {block}']))}])"
        scope.say(f"tl.store({target}, {joined}, mask={mask})")

    def _store_each(self, scope: Scope, access: Access, both: Each) -> None:
        mask = self.frame.mask(access)
        for place, expr in enumerate(both):
            value = self.body.assign(scope, expr)
            target = f"{self.frame.offset(access)}{f' + {place}' if place else ''}"
            scope.say(f"tl.store({target}, {value}{f', mask={mask}' if mask else ''})")

    def _load(self, scope: Scope, expr: int) -> str:
        access = self.reads[self.body.b.exprs[expr].extra]
        return self.body.bind(scope, expr, self.frame.load_text(access))

    def _along(self, scope: Scope, expr: int) -> str:
        record = self.body.b.exprs[expr]
        if record.op == "read":
            return self.body.bind(scope, expr, self.body.read(scope, expr, self.reads[record.extra[0]]))
        return self.folds.held(scope, expr)


def _write_text(output: Output, target: str, value: str, mask: str) -> str:
    if output.scatter is None or output.scatter.write is Write.STORE:
        return f"tl.store({target}, {value}{mask})"
    return f'tl.atomic_{output.scatter.write}({target}, {value}{mask}, sem="relaxed")'
