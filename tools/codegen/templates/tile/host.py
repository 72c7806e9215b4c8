"""The host function of a tile region: sizes, results, the grid, one launch or two."""

from __future__ import annotations

from collections.abc import Sequence

from tools.codegen.ir.kernel import Output
from tools.codegen.ir.sizes import Sizes, Varying, express, literal
from tools.codegen.templates.shared.access import Access
from tools.codegen.templates.shared.frame import allocation, block, guard, never_empty
from tools.codegen.templates.shared.host_sizes import host_size, shape_values
from tools.codegen.templates.shared.iteration_space import Axis, Space
from tools.codegen.templates.shared.knob import Settings
from tools.codegen.templates.shared.prune import prune
from tools.codegen.templates.tile.axes import tile_axes
from tools.codegen.templates.tile.knobs import COMBINED, MOST_COPIED
from tools.codegen.templates.tile.layout import TileLayout
from tools.codegen.templates.tile.nest import Nest


class HostText:
    """Writes one host function."""

    def __init__(self, plan: TileLayout, parameters: Settings, name: str, nests: Sequence[Nest]) -> None:
        """Take the layout, the parameters, the function's name and the kernels it launches."""
        self.plan, self.parameters, self.name, self.nests = plan, parameters, name, nests
        self.first, self.axes = nests[0], nests[0].axes
        self.reads, self.writes = self.first.reads, self.first.writes
        self.outputs = tuple(output for output in plan.kernel.outputs if output.scatter is None or output.scatter.onto is None)
        self.known: dict[str, tuple[int, ...]] = {}

    def lines(self) -> list[str]:
        """Write it."""
        device = self.reads[0].name
        lines = [f"{access.name} = {access.name}.contiguous()" for access in self.reads if access.may_need_copy]
        for axis in self.axes.every:
            self.first.space.used.setdefault(axis.size_name, axis.atoms)
        for nest in self.nests:
            lines += nest.frame.size_lines(self.known)
        lines += never_empty(self.first.space, self.axes.shaped)
        lines += self._copies()
        lines += [self._result(output, access, device) for output, access in zip(self.outputs, self.writes, strict=True)]
        lines += guard(self.first.space, [*self.reads[:1], *self.writes])
        lines += [f"{self.axes.block(axis).lower()} = {self._block(axis)}" for axis in self.axes.shaped]
        lines += self._splits(device)
        tiles = self._tiles()
        lines += self._laid(tiles, device)
        for nest in self.nests:
            grid = f"{tiles} * n_splits" if nest.is_shared else tiles
            if (parted := nest.axes.parted) is not None:
                grid = f"{tiles} * triton.cdiv({parted.size_name}, part)"
            lines += block(f"{nest.function}[({grid.removeprefix('1 * ')},)]", [*nest.arguments(), *self._constants(nest)], "")
        lines += [
            self._summed(output, access)
            for output, access in zip(self.outputs, self.writes, strict=True)
            if access.name in self.first.body.copied
        ]
        lines.append("return " + ", ".join(access.name for access in self.writes))
        kinds = "torch.Tensor" if len(self.writes) == 1 else f"tuple[{', '.join(['torch.Tensor'] * len(self.writes))}]"
        lines = prune(lines)
        parameters = list(dict.fromkeys(each for nest in self.nests for each in nest.frame.host_parameters(lines)))
        return [*block(f"def {self.name}", parameters, f" -> {kinds}:"), *("    " + line for line in lines)]

    def _laid(self, tiles: str, device: str) -> list[str]:
        """Write the memory in which programs lay what orders have found."""
        lines = []
        for expr, (name, rows, found) in self.first.body.laid.items():
            sizes = [tiles.removeprefix("1 * "), *(self.axes.block(axis).lower() for axis in (*rows, found))]
            lines.append(f"{name} = torch.empty({' * '.join(sizes)}, dtype=torch.{self.plan.b.exprs[expr].dtype}, device={device}.device)")
        return lines

    def _result(self, output: Output, access: Access, device: str) -> str:
        if output.scatter is None:
            return allocation(self.first.space, access, self.known, device)
        base = self._base(output)
        copied = access.name in self.first.body.copied
        if base and output.scatter.in_place:
            return f"{access.name} = {base}"
        if base and not copied:
            return f"{access.name} = {base}.clone(memory_format=torch.contiguous_format)"
        sizes = ["n_copies"] * copied + self._sizes(output)
        shape = f"({', '.join(sizes)}{',' if len(sizes) == 1 else ''})"
        kind = f"dtype=torch.{output.meta.dtype}, device={device}.device"
        if copied:
            return f"{access.name} = torch.zeros({shape}, {kind})"
        return f"{access.name} = torch.full({shape}, {_number(output)}, {kind})"

    def _base(self, output: Output) -> str:
        """Name the tensor to a copy of which an output's values go; none where that is filled."""
        assert output.scatter is not None
        return next((read.name for read in self.reads if read.ref == output.scatter.base), "")

    def _sizes(self, output: Output) -> list[str]:
        """Write the shape of what is scattered to."""
        if base := self._base(output):
            return [f"*{base}.shape"]
        return [express(size, shape_values(self.reads, self.plan.kernel)) or self._given(size) for size in output.meta.shape]

    def _given(self, size: Sizes) -> str:
        """Name a size that forward knows alone."""
        given = self.first.frame.given
        name = next((name for name, number in given.items() if number.values == size), f"given_{len(given)}")
        given[name] = Varying(size)
        return name

    def _copies(self) -> list[str]:
        """Write how many copies there are of what is added to: no more than the L2 holds, at other sizes, too."""
        outputs = [output for output in self.plan.added if self.first.body.copied and output in self.outputs]
        if not outputs:
            return []
        counts = [
            f"{base}.numel()" if (base := self._base(one)) else " * ".join(f"({size})" for size in self._sizes(one)) for one in outputs
        ]
        largest = counts[0] if len(counts) == 1 else f"max({', '.join(counts)})"
        return [f"n_copies = max(1, min({self.parameters['COPIES']}, {MOST_COPIED} // max(1, {largest})))"]

    def _summed(self, output: Output, access: Access) -> str:
        """Write the sum of the copies and of what was there before."""
        assert output.scatter is not None
        total = f"{access.name}.sum(0, dtype={access.name}.dtype)"
        before = self._base(output) or (_number(output) if output.scatter.fill else "")
        return f"{access.name} = {before} + {total}" if before else f"{access.name} = {total}"

    def _block(self, axis: Axis) -> str:
        whole = f"triton.next_power_of_2({axis.size_name})"
        if axis in self.axes.walked and axis is not self.axes.stepped:
            places = self.plan.wider(self.axes.walked.index(axis))
            wider = [f"triton.next_power_of_2({self.axes.walked[place].size_name})" for place in places]
            return f"max({', '.join([whole, *wider])})" if wider else whole
        most = self.parameters[{"rows": "BLOCK_M", "cols": "BLOCK_N"}.get(axis.name, "BLOCK_K")]
        return f"min({whole}, {most})"

    def _tiles(self) -> str:
        tiles = [f"triton.cdiv({axis.size_name}, {self.axes.block(axis).lower()})" for axis in self.axes.tiled]
        walks = [f"triton.cdiv({self.axes.repeated.size_name}, {self.parameters['STEPS']})"] if self.axes.repeated else []
        return " * ".join([*(["n_outer"] if self.axes.outer else []), *tiles, *walks]) or "1"

    def _splits(self, device: str) -> list[str]:
        axis = self.axes.stepped
        if len(self.nests) == 1 or axis is None:
            return []
        size, each = axis.size_name, self.axes.block(axis).lower()
        lines = [
            f"chunk = triton.cdiv(triton.cdiv({size}, {self.parameters['SPLITS']}), {each}) * {each}",
            f"n_splits = triton.cdiv({size}, chunk)",
        ]
        if (parted := self.nests[-1].axes.parted) is not None:
            whole = self.axes.block(parted).lower()
            lines.append(f"part = min({whole}, max(1, {COMBINED} // triton.next_power_of_2(n_splits)))")
        for expr, name in self.first.folds.buffers.items():
            sizes = [each.size_name for each in self.first.folds.varying(expr)]
            dtype = self.plan.b.exprs[expr].dtype
            shape = f"({', '.join(['n_splits', *sizes])}{',' if not sizes else ''})"
            lines.append(f"{name} = torch.empty({shape}, dtype=torch.{dtype}, device={device}.device)")
        return lines

    def _constants(self, nest: Nest) -> list[str]:
        values = {self.axes.block(axis): self.axes.block(axis).lower() for axis in self.axes.shaped}
        values |= {self.axes.log(axis): f"{self.axes.block(axis).lower()}.bit_length() - 1" for axis in self.axes.shaped}
        if nest.axes.parted:
            values[self.axes.block(nest.axes.parted)] = "part"
        values |= {"SPLITS": "triton.next_power_of_2(n_splits)", "STEPS": str(self.parameters.get("STEPS", 1))}
        return [*(f"{name}={values[name]}" for name in nest.constants()), f"num_warps={self.parameters['num_warps']}"]


def _number(output: Output) -> str:
    """Write the number that a tensor holds before values are scattered to it."""
    assert output.scatter is not None
    fill = output.scatter.fill
    return f"{fill:.0f}" if fill.is_integer() else literal(fill)


def check_sizes(plan: TileLayout) -> None:
    """Make sure that the host can tell every size that a kernel may take; raises LoweringError with the reason."""
    space = Space(plan.kernel, tile_axes(plan, {"algorithm": "flat", "reduction": "registers"}).every, plan.accesses)
    for group in (*plan.grid, *(group for axis in plan.walked for group in axis)):
        host_size(space, group, {})
