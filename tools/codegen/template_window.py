"""The template of pooling: one element of the result a lane, its window gathered step by step, then the pointwise operators after it."""

from __future__ import annotations

from tools.codegen.body import Body
from tools.codegen.expressions import LoweringError
from tools.codegen.frame import Frame, Parameters, RegionText, allocation, block, conversion, guard, summary
from tools.codegen.lowering import Kernel, Window
from tools.codegen.naming import Names, Scope, access_names
from tools.codegen.sizes import power_of_two
from tools.codegen.spaces import Access, Axis, Space, Stride, accesses_of, coalesce

NAME = "window"
UNROLLED = 16
"""Window elements up to which the loops are unrolled: more would bloat the code without more loads in flight."""
LETTERS = "dhw"


def window_layout(kernel: Kernel) -> tuple[tuple[Access, ...], Axis]:
    """Check the region and make its one axis: outer dimensions, then each spatial dimension by itself."""
    window = kernel.window
    if window is None:
        raise LoweringError("there is no window")
    refs = [load.ref for load in kernel.builder.loads] + [output.ref for output in kernel.outputs]
    accesses = accesses_of(kernel, access_names(refs, Names()))
    outputs = [access for access in accesses if access.is_output]
    order = tuple(atom for dim in outputs[0].dims for atom in dim)
    others = tuple(access for place, access in enumerate(accesses) if place != window.place)
    if any(set(access.strides) != set(order) for access in outputs) or any(not set(a.strides) <= set(order) for a in others):
        raise LoweringError("a tensor of the window's region differs in shape from its result")
    spatial = kernel.builder.atoms.leaves(window.spatial)
    if order[-len(spatial) :] != spatial:
        raise LoweringError("the result of the window is permuted")
    apart: dict[int, Stride] = {atom: (f"apart{place}:0",) for place, atom in enumerate(spatial)}
    marker = Access(outputs[0].ref, "", outputs[0].meta, outputs[0].dims, apart)
    return accesses, Axis("elements", "offs", order, coalesce(order, (*others, marker)))


def fits_tile(kernel: Kernel) -> bool:
    """Whether lanes laid along the result's last dimension are mostly used: a block is a power of two wide."""
    assert kernel.window is not None
    width = kernel.builder.atoms.size(kernel.window.spatial[-1])[0]
    return 4 * width >= 3 * power_of_two(width)


def emit(kernel: Kernel, name: str, parameters: Parameters) -> RegionText:
    """Write the kernel and its host function."""
    return _Writer(kernel, name, parameters).write()


class _Writer:
    """Writes one pooling region."""

    def __init__(self, kernel: Kernel, name: str, parameters: Parameters) -> None:
        self.name, self.parameters = name, parameters
        assert kernel.window is not None
        self.window: Window = kernel.window
        accesses, axis = window_layout(kernel)
        self.source = accesses[self.window.place]
        self.reads = tuple(access for access in accesses if not access.is_output)
        self.writes = tuple(access for access in accesses if access.is_output)
        self.letters = LETTERS[-len(self.window.size) :]
        self.space = Space(kernel, (axis,), accesses)
        own = [f"{kind}_{letter}" for letter in self.letters for kind in ("in", "out", "step", "at", "off")]
        self.body = Body(self.space, Names([*own, "inside", "base"]), self._load, self._reduce)
        self.frame = Frame(self.space, f"{name}_kernel", Names(), self.reads, self.writes, self.body, {"elements": "mask"})

    def write(self) -> RegionText:
        """Write kernel and host function."""
        tail = Scope([], "    ")
        tail.names[self.window.expr] = "acc"
        for output, access in zip(self.space.kernel.outputs, self.writes, strict=True):
            self.frame.store(tail, access, self.body.assign(tail, output.expr))
        axis = self.space.axes[0]
        size = self.space.monomial(axis.atoms)
        wide = ".to(tl.int64)" if self.space.is_wide() else ""
        head = [f"offs = tl.program_id(0){wide} * BLOCK + tl.arange(0, BLOCK)", f"mask = offs < {size}"]
        self.space.parts_used.add(axis.name)
        head += self.space.parts(axis)
        text = self.frame.finish([*("    " + line for line in [*head, *self._gather(axis)]), *tail.lines])
        extents = [f"in_{letter}" for letter in self.letters if f"in_{letter}" in self.frame.used]
        own = self.frame.signature(["BLOCK"])
        count = len(self.frame.tensors())
        kernel = [
            "@triton.jit",
            *block(f"def {self.name}_kernel", [*own[:count], *extents, *own[count:]], ":"),
            f'    """One element a lane: {summary(self.space.kernel, self.reads, self.writes)}."""',
            *text,
        ]
        inputs, outputs = tuple(access.ref for access in self.reads), tuple(access.ref for access in self.writes)
        source = "\n".join([*kernel, "", "", *self._host(extents)])
        return RegionText(self.name, inputs, outputs, source, tuple(self.body.helpers))

    def _gather(self, axis: Axis) -> list[str]:
        """Write the loops over the window."""
        rank, window = len(self.letters), self.window
        outer = len(axis.groups) - rank
        lead = ""
        for place in range(outer):
            above = f"({lead})" if " " in lead else lead
            lead = axis.part(place) if place == 0 else f"{above} * {axis.group_name(place)} + {axis.part(place)}"
        extent = " * ".join(f"in_{letter}" for letter in self.letters)
        start = '-float("inf")' if window.kind == "max" else "0.0"
        first = f" + ({lead}) * ({extent})" if lead else ""
        lines = [f"base = {self.source.name}_ptr{first}", f"acc = tl.full([BLOCK], {start}, tl.float32)"]
        counted = window.kind == "mean" and any(window.padding) and not window.count_padding
        lines += ["count = tl.zeros([BLOCK], tl.float32)"] if counted else []
        total, indent, tests = 1, "", ["mask"]
        for size in window.size:
            total *= size
        walk = "tl.static_range" if total <= UNROLLED else "range"
        for place, letter in enumerate(self.letters):
            size, stride = window.size[place], window.stride[place]
            padding, dilation = window.padding[place], window.dilation[place]
            lines.append(f"{indent}for step_{letter} in {walk}({size}):")
            indent += "    "
            terms = axis.part(outer + place) + (f" * {stride}" if stride != 1 else "")
            terms += f" + step_{letter}" + (f" * {dilation}" if dilation != 1 else "") + (f" - {padding}" if padding else "")
            lines.append(f"{indent}at_{letter} = {terms}")
            if padding:
                tests += [f"(at_{letter} >= 0)", f"(at_{letter} < in_{letter})"]
        return [*lines, *(indent + line for line in self._step(tests, start, counted)), *self._divide(total, counted)]

    def _step(self, tests: list[str], start: str, counted: bool) -> list[str]:
        where = f"at_{self.letters[0]}"
        for letter in self.letters[1:]:
            where = f"({where}) * in_{letter} + at_{letter}" if " " in where else f"{where} * in_{letter} + at_{letter}"
        lines = [f"inside = {' & '.join(tests)}"] if len(tests) > 1 else []
        mask = "inside" if lines else "mask"
        lines.append(f"here = tl.load(base + {where}, mask={mask}, other={start}){conversion(self.source.meta.dtype)}")
        lines += ["count += tl.where(inside, 1.0, 0.0)"] if counted else []
        grow = "tl.maximum(acc, here, propagate_nan=tl.PropagateNan.ALL)" if self.window.kind == "max" else "acc + here"
        return [*lines, f"acc = {grow}"]

    def _divide(self, total: int, counted: bool) -> list[str]:
        if self.window.kind == "max":
            return []
        return ["acc = acc / count"] if counted else [f"acc = acc * {1 / total!r}"]

    def _host(self, extents: list[str]) -> list[str]:
        source, window, rank = self.source.name, self.window, len(self.letters)
        lines = [f"{access.name} = {access.name}.contiguous()" for access in self.reads if access.may_need_copy]
        lines += [f"in_{letter} = {source}.shape[{place - rank}]" for place, letter in enumerate(self.letters)]
        spatial = self.space.kernel.builder.atoms.leaves(window.spatial)
        known: dict[str, tuple[int, ...]] = {}
        for place, letter in enumerate(self.letters):
            span = 2 * window.padding[place] - window.dilation[place] * (window.size[place] - 1) - 1
            lines.append(f"out_{letter} = (in_{letter} {'+' if span >= 0 else '-'} {abs(span)}) // {window.stride[place]} + 1")
            self.space.given[(spatial[place],)] = f"out_{letter}"
        self.space.used.setdefault("n_elements", self.space.axes[0].atoms)
        lines += self.frame.size_lines(known)
        lines += [allocation(self.space, access, known, source) for access in self.writes]
        lines += guard(self.space, (self.source, *self.writes))
        warps = int(self.parameters["num_warps"])
        elements = int(self.parameters["ELEMENTS"]) * 32 * warps
        lines.append(f"grid = (triton.cdiv(n_elements, {elements}),)")
        call = self.frame.call_arguments({"BLOCK": elements})
        count = len(self.frame.tensors())
        lines += block(f"{self.name}_kernel[grid]", [*call[:count], *extents, *call[count:], f"num_warps={warps}"], "")
        lines.append("return " + ", ".join(access.name for access in self.writes))
        result = "torch.Tensor" if len(self.writes) == 1 else f"tuple[{', '.join(['torch.Tensor'] * len(self.writes))}]"
        parameters = [f"{access.name}: torch.Tensor" for access in self.reads]
        return [*block(f"def {self.name}", parameters, f" -> {result}:"), *("    " + line for line in lines)]

    def _load(self, scope: Scope, expr: int) -> str:
        access = self.reads[self.body.b.exprs[expr].extra]
        return self.body.bind(scope, expr, self.frame.load_text(access))

    def _reduce(self, scope: Scope, expr: int) -> str:
        raise LoweringError("a pooling region has no reductions")
