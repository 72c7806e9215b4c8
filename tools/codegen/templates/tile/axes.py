"""The axes of one tile kernel as Triton text: index variables, masks, and a program's place in the grid."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tools.codegen.templates.shared.iteration_space import Axis, Space
from tools.codegen.templates.shared.knob import Settings
from tools.codegen.templates.tile.layout import Groups, TileLayout
from tools.codegen.templates.tile.repeats import stepped

BLOCKS = {"rows": "BLOCK_M", "cols": "BLOCK_N"}
MASKS = {"rows": "mask_m", "cols": "mask_n"}


@dataclass(frozen=True)
class TileAxes:
    """Which axis is which dimension of a tile, and which one is stepped along."""

    outer: Axis | None
    tiled: tuple[Axis, ...]
    """Rows and columns, as far as there are any."""
    walked: tuple[Axis, ...]
    loop: int | None
    """Which walked axis the program steps along."""
    repeated: Axis | None = None
    """The dimension of the grid that a program walks, a position at a time."""
    places: tuple[int, ...] = ()
    """For each walked axis, which dimension of a tile it is behind rows and columns."""
    parted: Axis | None = None
    """The walked axis of which several programs have a part each."""
    rows_first: bool = False
    """Whether neighbouring programs have other rows, and not other columns."""

    @property
    def every(self) -> tuple[Axis, ...]:
        """All axes, in the order of their dimensions."""
        return (*(axis for axis in (self.outer, self.repeated) if axis), *self.tiled, *self.walked)

    @property
    def shaped(self) -> tuple[Axis, ...]:
        """Axes that are dimensions of a tile."""
        return (*self.tiled, *self.walked)

    @property
    def has_rows(self) -> bool:
        """Whether a tile has rows beside its columns."""
        return len(self.tiled) > 1

    def takes_pairs(self, atoms: tuple[int, ...]) -> bool:
        """Whether its columns are what counts pairs, and nothing else."""
        return bool(self.tiled) and not self.walked and self.tiled[-1].name == "cols" and self.tiled[-1].groups == (atoms,)

    @property
    def rank(self) -> int:
        """Dimensions of a tile."""
        return len(self.tiled) + max(self.places, default=-1) + 1

    @property
    def stepped(self) -> Axis | None:
        """The axis that a program steps along."""
        return None if self.loop is None else self.walked[self.loop]

    def lifted(self, atoms: frozenset[int]) -> str:
        """Write what gives an address a tile's dimensions where it varies along none of them."""
        if self.rank < 2 or any(set(axis.atoms) & atoms for axis in self.every):
            return ""
        return f" + tl.zeros([{', '.join('1' * self.rank)}], tl.int32)"

    def block(self, axis: Axis) -> str:
        """Name the constant that holds an axis's extent in a tile."""
        if axis.name in BLOCKS:
            return BLOCKS[axis.name]
        return "BLOCK_K" if len(self.walked) == 1 else f"BLOCK_{axis.name.upper()}"

    def log(self, axis: Axis) -> str:
        """Name the constant that holds its logarithm."""
        return f"LOG_{self.block(axis).removeprefix('BLOCK_')}"

    def mask(self, axis: Axis) -> str:
        """Name an axis's mask."""
        return MASKS.get(axis.name, f"within_{axis.name}")

    @property
    def masks(self) -> dict[str, str]:
        """Masks by axis."""
        return {axis.name: self.mask(axis) for axis in self.shaped}

    def place(self, axis: Axis) -> int:
        """Which dimension of a tile an axis is."""
        if axis in self.tiled:
            return self.tiled.index(axis)
        return len(self.tiled) + self.places[self.walked.index(axis)]

    def shape(self, full: Sequence[Axis], order: Sequence[int] = ()) -> str:
        """Write the shape of a tile that extends along some axes, its dimensions as they are or in another order."""
        extents = {self.place(axis): self.block(axis) for axis in full}
        return f"[{', '.join(extents.get(place, '1') for place in order or range(self.rank))}]"

    def spread(self, axis: Axis) -> str:
        """Write the subscript that makes a row of positions a dimension of a tile."""
        if self.rank == 1:
            return ""
        return f"[{', '.join(':' if place == self.place(axis) else 'None' for place in range(self.rank))}]"


def tile_axes(plan: TileLayout, parameters: Settings) -> TileAxes:
    """Name the axes of a kernel."""
    step, reduction = stepped(plan, parameters), parameters["reduction"]
    outer, rows, cols = plan.placed(parameters["algorithm"] == "flat", step)
    walked = tuple(_axis(f"k{place}" if len(plan.walked) > 1 else "k", groups) for place, groups in enumerate(plan.walked))
    tiled = tuple(_axis(name, groups) for name, groups in (("rows", rows), ("cols", cols)) if groups)
    loop = None if reduction == "registers" else plan.looped
    repeated = None if step is None else _axis("step", (plan.grid[step],))
    outer_axis = _axis("outer", outer) if outer else None
    return TileAxes(outer_axis, tiled, walked, loop, repeated, _places_of(plan), rows_first=plan.rows_first)


def _places_of(plan: TileLayout) -> tuple[int, ...]:
    """Give walked axes dimensions of a tile: one for several of which no value has two, so that all values are laid out alike."""
    if plan.ordered:
        return tuple(range(len(plan.walked)))
    together = {plan.along(expr) for expr in plan.needed}
    found: list[int] = []
    for axis in range(len(plan.walked)):
        taken = {found[other] for other in range(axis) if any(axis in each and other in each for each in together)}
        found.append(next(place for place in range(axis + 1) if place not in taken))
    return tuple(found)


def _axis(name: str, groups: Groups) -> Axis:
    return Axis(name, name, tuple(atom for group in groups for atom in group), groups)


def head(axes: TileAxes, space: Space, split: bool, wide: str) -> list[str]:
    """Write where a program begins: its number taken apart into tiles, and the positions of the axes that it does not step along."""
    lines = ["pid = tl.program_id(0)"]
    if split:
        lines += ["split = pid % n_splits", "tile = pid // n_splits"]
    if axes.repeated:
        lines += [f"chunks = tl.cdiv({space.monomial(axes.repeated.atoms)}, STEPS)", "tile = pid // chunks"]
    if axes.parted:
        lines += [f"parts = tl.cdiv({space.monomial(axes.parted.atoms)}, {axes.block(axes.parted)})", "tile = pid // parts"]
    lines += _places(axes, space, "tile" if split or axes.repeated or axes.parted else "pid")
    for axis in axes.tiled:
        lines += positions(axes, space, axis, f"pid_{letter(axis)}{wide} * {axes.block(axis)} + ", "")
    for number, axis in enumerate(axes.walked):
        if number != axes.loop:
            start = f"pid % parts * {axes.block(axis)} + " if axis is axes.parted else ""
            lines += positions(axes, space, axis, start, wide)
    return lines


def letter(axis: Axis) -> str:
    """Name rows and columns in the numbers of tiles, by one letter as blocks do."""
    return "n" if axis.name == "cols" else "m"


def _places(axes: TileAxes, space: Space, rest: str) -> list[str]:
    """Write which tile along the columns, along the rows and of the grid alone a program has."""
    lines: list[str] = []
    order = axes.tiled if axes.rows_first else axes.tiled[::-1]
    for axis in order:
        name = letter(axis)
        if axes.outer is None and axis is order[-1]:
            return [*lines, f"pid_{name} = {rest}"]
        if " " in rest:
            lines.append(f"above = {rest}")
            rest = "above"
        lines += [f"tiles_{name} = tl.cdiv({space.monomial(axis.atoms)}, {axes.block(axis)})", f"pid_{name} = {rest} % tiles_{name}"]
        rest = f"{rest} // tiles_{name}"
    if axes.outer:
        lines += [_alone(axes, axes.outer, rest, space), *space.parts(axes.outer)]
    return lines


def _alone(axes: TileAxes, axis: Axis, text: str, space: Space) -> str:
    """Write one position as a tile of one element: as a number the interpreter would not convert it."""
    return f"{axis.index} = tl.full([{', '.join('1' * axes.rank)}], {text}, tl.{'int64' if space.is_wide() else 'int32'})"


def walk(axes: TileAxes, space: Space, axis: Axis) -> tuple[list[str], list[str]]:
    """Write the loop over a program's part of the dimension that it walks, up to its body, and where the body begins."""
    size = space.monomial(axis.atoms)
    begin = ["begin = pid % chunks * STEPS", f"stop = tl.minimum(begin + STEPS, {size})", "for at in range(begin, stop):"]
    return begin, [_alone(axes, axis, "at", space), *space.parts(axis)]


def positions(axes: TileAxes, space: Space, axis: Axis, start: str, wide: str, stop: str = "") -> list[str]:
    """Write the positions of one tile along an axis, from `start` on, up to its end or to where a run stops."""
    text = f"{start}tl.arange(0, {axes.block(axis)}){axes.spread(axis)}"
    text = f"({text}){wide}" if wide else text
    mask = f"{axis.index} < {stop or space.monomial(axis.atoms)}"
    if axis.name == "cols" and start and (alike := space.masked_alike(axis)):
        extents = ["1"] * axes.rank
        extents[axes.place(axis)] = alike
        mask = f"tl.max_constancy({mask}, [{', '.join(extents)}])"
    return [f"{axis.index} = {text}", f"{axes.mask(axis)} = {mask}", *space.parts(axis)]
