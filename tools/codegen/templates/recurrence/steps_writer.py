"""The kernel of a loop, step by step: a program walks all steps of its rows, and what it carries stays in registers."""

from __future__ import annotations

from tools.codegen.ir.dtypes import is_floating
from tools.codegen.ir.expr import Fold, LoweringError
from tools.codegen.ir.kernel import Kernel
from tools.codegen.ir.sizes import Varying, product
from tools.codegen.ir.values.reach import made_of
from tools.codegen.templates.device.matrices import MATRICES
from tools.codegen.templates.recurrence.layout import OWN_NAMES, RecurrenceLayout, roots_of
from tools.codegen.templates.shared.body import Body
from tools.codegen.templates.shared.frame import Frame, RegionText, allocation, block, guard, neutral, summary
from tools.codegen.templates.shared.host_sizes import host_size
from tools.codegen.templates.shared.iteration_space import Axis
from tools.codegen.templates.shared.knob import Settings
from tools.codegen.templates.shared.naming import Names, Scope
from tools.codegen.templates.shared.reductions import reduction_text
from tools.codegen.templates.shared.scans import scan_text

FREE = ("const", "size", "argument", "index")
"""What needs no variable before the loop."""


class StepsWriter:
    """Writes one loop, step by step."""

    def __init__(self, kernel: Kernel, name: str, parameters: Settings, plan: RecurrenceLayout) -> None:
        assert kernel.recurrence is not None
        self.name, self.parameters, self.plan, self.loop = name, parameters, plan, kernel.recurrence
        self.tile = self.tile_of(plan)
        self.space = plan.space(kernel)
        self.reads = tuple(access for access in plan.accesses if not access.is_output)
        self.writes = tuple(access for access in plan.accesses if access.is_output)
        self.body = Body(self.space, Names(OWN_NAMES), self._load, self._along)
        masks = {axis.name: self._mask(axis) for axis in self.tile}
        self.frame = Frame(self.space, f"{name}_kernel", Names(), self.reads, self.writes, self.body, masks)
        self.changing = self._changing()
        self._vanishing: dict[tuple[int, str], bool] = {}
        self.after_loop = {state.last for state in self.loop.states}

    def tile_of(self, plan: RecurrenceLayout) -> tuple[Axis, ...]:
        """List the axes of a tile, in order."""
        return plan.tile

    def place_of(self, axis: Axis) -> int:
        """Tell which dimension of a tile an axis is."""
        return self.tile.index(axis)

    @property
    def rows(self) -> int:
        """Rows of a tile."""
        return int(self.parameters["ROWS"])

    @property
    def rank(self) -> int:
        """Dimensions of a tile."""
        return len(self.tile)

    def write(self) -> RegionText:
        """Write kernel and host function."""
        lines: list[str] = []
        scope = Scope(lines, "    ")
        self._before(scope)
        self._steps(scope)
        self._after(scope)
        # where a tile is as wide as what it holds its masks are gone then: each is an instruction an element and step
        self.space.compiled_in.update(axis.size_name for axis in self.plan.held)
        text = self.frame.finish([*self._head(), *lines])
        constants = ["BLOCK_M", *(self._block(axis) for axis in self.plan.held), "CHUNK", "STAGES"]
        kernel = [
            "@triton.jit",
            *block(f"def {self.name}_kernel", self.frame.signature(constants), ":"),
            f'    """All steps of a tile of sequences: {summary(self.space.kernel, self.reads, self.writes)}."""',
            *text,
        ]
        return RegionText(
            self.name,
            tuple(access.ref for access in self.reads),
            tuple(access.ref for access in self.writes),
            "\n".join([*kernel, "", "", *self._host()]),
            tuple(self.body.helpers),
            tuple(self.frame.given.values()),
        )

    def _changing(self) -> frozenset[int]:
        """List the expressions that differ from step to step."""
        exprs, leaves, found = self.body.b.exprs, self.body.b.atoms.leaves, set[int]()
        for place in sorted(made_of(self.body.b, *roots_of(self.space.kernel, self.loop))):
            own = exprs[place].op == "state" or self.plan.step in leaves(tuple(exprs[place].atoms))
            if own or found & set(exprs[place].args):
                found.add(place)
        return frozenset(found)

    def _ends(self, expr: int) -> bool:
        """Whether an expression is made of what is left when the loop has ended."""
        return bool(self.after_loop & set(made_of(self.body.b, expr)))

    def _head(self) -> list[str]:
        size = {axis.name: self.space.monomial(axis.atoms) for axis in self.space.axes}
        lines = ["pid = tl.program_id(0)"]
        wide = ".to(tl.int64)" if self.space.is_wide() else ""
        names = [axis.name for axis in self.space.axes]
        if "rows" in names:
            lines.append(f"tiles_m = tl.cdiv({size['rows']}, BLOCK_M)")
        if "outer" in names:
            lines += [f"batch = (pid // tiles_m){wide}", *self.space.parts(self.space.axis("outer"))]
        for axis in self.plan.tile:
            start = f"pid % tiles_m{wide} * BLOCK_M + " if axis.name == "rows" else ""
            lines.append(f"{axis.index} = {start}tl.arange(0, {self._block(axis)}){self._suffix(axis)}")
            lines.append(f"{self._mask(axis)} = {axis.index} < {size[axis.name]}")
            lines += self.space.parts(self.space.axis(axis.name))
        return ["    " + line for line in lines]

    def _before(self, scope: Scope) -> None:
        """Write what is the same at every step, and the first states."""
        for root in roots_of(self.space.kernel, self.loop):
            self._assign_fixed(scope, root)
        for state in self.loop.states:
            dtype = self.body.b.exprs[state.leaf].dtype
            text, _ = self.body.text(scope, state.initial)
            shape, name = self._shape(state.leaf), self.body.name_of(state.leaf)
            if self.body.b.exprs[state.initial].op == "const":
                scope.say(f"{name} = tl.full({shape}, {text}, tl.{dtype})")
            elif self._shape(state.initial) == shape and self.body.b.exprs[state.initial].op != "argument":
                scope.say(f"{name} = {text}")
            else:
                scope.say(f"{name} = tl.zeros({shape}, tl.{dtype}) + {text}")
            scope.names[state.leaf] = name

    def _assign_fixed(self, scope: Scope, expr: int) -> None:
        record = self.body.b.exprs[expr]
        if self._ends(expr) or record.op in FREE:
            return
        if expr not in self.changing:
            self.body.assign(scope, expr)
            return
        for arg in record.args:
            self._assign_fixed(scope, arg)

    def _steps(self, scope: Scope) -> None:
        n_steps = self.space.monomial(self.space.axis("steps").atoms)
        scope.say(f"for i in tl.range(0, {n_steps}, num_stages=STAGES):")
        loop = scope.nested()
        loop.say(f"step = {n_steps} - 1 - i" if self.loop.backwards else "step = i")
        for output, access in zip(self.space.kernel.outputs, self.writes, strict=True):
            if not self._ends(output.expr):
                self.frame.store(loop, access, self.body.assign(loop, output.expr))
        self._hand_on(loop)

    def _hand_on(self, loop: Scope) -> None:
        """Make the next step's states of this one's."""
        given = [self._given(loop, state.after, self._shape(state.leaf)) for state in self.loop.states]
        names = [self.body.name_of(state.leaf) for state in self.loop.states]
        for place, text in enumerate(given):
            if text in names[:place]:
                # it is overwritten before it is read
                given[place] = self.body.names.fresh(f"{text}_given")
                loop.say(f"{given[place]} = {text}")
        for name, text in zip(names, given, strict=True):
            if name != text:
                loop.say(f"{name} = {text}")

    def _given(self, loop: Scope, expr: int, shape: str) -> str:
        text = self.body.assign(loop, expr)
        if self._shape(expr) == shape and self.body.b.exprs[expr].op not in FREE:
            return text
        return f"tl.zeros({shape}, tl.{self.body.b.exprs[expr].dtype}) + {text}"

    def _after(self, scope: Scope) -> None:
        for state in self.loop.states:
            scope.names[state.last] = self.body.name_of(state.leaf)
        for output, access in zip(self.space.kernel.outputs, self.writes, strict=True):
            if self._ends(output.expr):
                if output.expr in self.changing:
                    raise LoweringError("what is made of the last state varies along the steps")
                self.frame.store(scope, access, self.body.assign(scope, output.expr))

    def block_size(self, axis: Axis) -> str:
        """Write how much of a held axis a tile has: all of it."""
        return f"triton.next_power_of_2({axis.size_name})"

    def _shape(self, expr: int) -> str:
        """Write the shape of an expression's tile."""
        atoms = set(self.body.b.atoms.leaves(tuple(self.body.b.exprs[expr].atoms)))
        blocks = ["1"] * self.rank
        for axis in self.tile:
            if set(axis.atoms) & atoms:
                blocks[self.place_of(axis)] = self._block(axis)
        return f"[{', '.join(blocks)}]"

    def _block(self, axis: Axis) -> str:
        named = {"rows": "BLOCK_M", "steps": "CHUNK"}
        return named.get(axis.name) or f"BLOCK_H{axis.name.removeprefix('held_')}"

    def _mask(self, axis: Axis) -> str:
        named = {"rows": "mask_m", "steps": "mask_t"}
        return named.get(axis.name) or f"mask_h{axis.name.removeprefix('held_')}"

    def _suffix(self, axis: Axis) -> str:
        if self.rank == 1:
            return ""
        return "[" + ", ".join(":" if place == self.place_of(axis) else "None" for place in range(self.rank)) + "]"

    def _load(self, scope: Scope, expr: int) -> str:
        access = self.reads[self.body.b.exprs[expr].extra]
        return self.body.bind(scope, expr, self.frame.load_text(access))

    def _along(self, scope: Scope, expr: int) -> str:
        record = self.body.b.exprs[expr]
        if record.op == "turn":
            return self._turn(scope, expr)
        if record.op in MATRICES:
            return self._matrix(scope, expr)
        if record.op not in ("reduce", "scan"):
            raise LoweringError(f"a {record.op} inside of a loop is not generated")
        return self._scan(scope, expr) if record.is_scan else self._reduce(scope, expr)

    def _turn(self, scope: Scope, expr: int) -> str:
        record = self.body.b.exprs[expr]
        text = self.body.assign(scope, record.args[0])
        there, here = (self.body.b.atoms.leaves((atom,))[0] for atom in record.extra)
        if there == here:
            return text
        order = list(range(len(self.plan.tile)))
        one, two = (next(place for place, axis in enumerate(self.plan.tile) if atom in axis.atoms) for atom in (there, here))
        order[one], order[two] = order[two], order[one]
        return self.body.bind(scope, expr, f"tl.permute({text}, ({', '.join(map(str, order))}))")

    def _matrix(self, scope: Scope, expr: int) -> str:
        """Write a factor of a matrix, or a system solved with one."""
        record = self.body.b.exprs[expr]
        args = [self.body.assign(scope, arg) for arg in record.args]
        sides = [next(axis for axis in self.tile if atom in axis.atoms) for atom in self.body.b.atoms.leaves(record.extra)]
        self.body.helpers[record.op] = None
        given = [*args, *(axis.index for axis in sides), self.space.monomial(sides[0].atoms), *(str(self.place_of(axis)) for axis in sides)]
        return self.body.bind(scope, expr, f"{record.op}({', '.join(given)})")

    def _reduce(self, scope: Scope, expr: int) -> str:
        """Write a sum, a maximum or a minimum over what is held."""
        record = self.body.b.exprs[expr]
        if record.kind is Fold.PROD:
            raise LoweringError("a product over a dimension inside of a loop is not generated")
        text, _ = self.body.text(scope, record.args[0])
        wanted = set(self.body.b.atoms.leaves(record.extra))
        axes = [(self.place_of(axis), axis) for axis in self.tile if set(axis.atoms) & wanted]
        masks = [self._mask(axis) for _, axis in axes if not (record.kind is Fold.SUM and self._vanishes(record.args[0], axis))]
        if masks:
            text = f"tl.where({' & '.join(masks)}, {text}, {neutral(record.kind, record.dtype)})"
        for place, _ in axes:
            text = reduction_text(self.body, record, text, place, keep=True)
        return self.body.bind(scope, expr, text)

    def _scan(self, scope: Scope, expr: int) -> str:
        """Write a scan along one dimension that is held."""
        record = self.body.b.exprs[expr]
        text, _ = self.body.text(scope, record.args[0])
        axes = [axis for axis in self.tile if set(axis.atoms) & set(self.body.b.atoms.leaves(record.along))]
        if len(axes) != 1 or set(axes[0].atoms) != set(self.body.b.atoms.leaves(record.along)):
            raise LoweringError("a scan along several dimensions inside of a loop is not generated")
        shape, place, dtype = self._shape(expr), self.place_of(axes[0]), record.dtype
        text = f"tl.where({self._mask(axes[0])}, {text}, tl.full({shape}, {neutral(record.kind, dtype)}, tl.{dtype}))"
        sizes = shape.strip("[]").split(", ")
        # Triton 3.6 takes dimensions of one for as wide as the tiles that they meet, and ends in an assertion
        wide = [at for at, size in enumerate(sizes) if size != "1" or at == place]
        if len(wide) == len(sizes):
            return self.body.bind(scope, expr, scan_text(self.body, record, text, place))
        flat = f"tl.reshape({text}, [{', '.join(sizes[at] for at in wide)}])"
        return self.body.bind(scope, expr, f"tl.reshape({scan_text(self.body, record, flat, wide.index(place))}, {shape})")

    def _vanishes(self, expr: int, axis: Axis) -> bool:
        """Whether an expression is zero wherever loads are masked off along an axis, if the states are."""
        record = self.body.b.exprs[expr]
        varies = bool(set(self.body.b.atoms.leaves(tuple(record.atoms))) & set(axis.atoms))
        if record.op == "load":
            return varies
        if record.op in ("state", "last"):
            return varies and self._state_vanishes(expr, axis)
        if record.op == "const":
            return float(record.extra[1]) == 0.0 if record.extra[0] != "bool" else False
        if record.op == "mul":
            return any(self._vanishes(arg, axis) for arg in record.args)
        if record.op in ("add", "sub", "neg", "cast", "abs"):
            return is_floating(record.dtype) and all(self._vanishes(arg, axis) for arg in record.args)
        return False

    def _state_vanishes(self, expr: int, axis: Axis) -> bool:
        """Whether a state is zero where its axis is masked off, at the first step and after every other."""
        state = next(state for state in self.loop.states if expr in (state.leaf, state.last))
        known = self._vanishing.get((state.leaf, axis.name))
        if known is None:
            # by induction: it is, if the next one is wherever this one is
            self._vanishing[state.leaf, axis.name] = True
            known = self._vanishes(state.initial, axis) and self._vanishes(state.after, axis)
            self._vanishing[state.leaf, axis.name] = known
        return known

    def _take_steps(self, known: dict[str, tuple[int, ...]]) -> None:
        """Have the host function take the number of steps where no tensor's shape tells it."""
        steps = self.space.axis("steps")
        try:
            host_size(self.space, steps.atoms, known)
        except LoweringError:
            builder = self.space.kernel.builder
            self.frame.given[steps.size_name] = Varying(product(map(builder.atoms.size, steps.atoms), builder.atoms.traces))
            known[steps.size_name] = steps.atoms

    def _host(self) -> list[str]:
        known: dict[str, tuple[int, ...]] = {}
        lines = [f"{access.name} = {access.name}.contiguous()" for access in self.reads if access.may_need_copy]
        for axis in self.space.axes:
            self.space.used.setdefault(axis.size_name, axis.atoms)
        self._take_steps(known)
        lines += self.frame.size_lines(known)
        lines += [allocation(self.space, access, known, self.reads[0].name) for access in self.writes]
        lines += guard(self.space, self.plan.accesses)
        p = self.parameters
        constants: dict[str, object] = {"BLOCK_M": self.rows}
        constants |= {self._block(axis): f"{self.block_size(axis)}" for axis in self.plan.held}
        constants |= {"CHUNK": p["CHUNK"], "STAGES": p["num_stages"]}
        names = [axis.name for axis in self.space.axes]
        factors = ["n_outer"] if "outer" in names else []
        factors += [f"triton.cdiv(n_rows, {self.rows})"] if "rows" in names else []
        lines.append(f"grid = ({' * '.join(factors) or '1'},)")
        lines += block(f"{self.name}_kernel[grid]", [*self.frame.call_arguments(constants), f"num_warps={p['num_warps']}"], "")
        lines.append("return " + ", ".join(access.name for access in self.writes))
        result = "torch.Tensor" if len(self.writes) == 1 else f"tuple[{', '.join(['torch.Tensor'] * len(self.writes))}]"
        return [*block(f"def {self.name}", self.frame.host_parameters(lines), f" -> {result}:"), *("    " + line for line in lines)]
