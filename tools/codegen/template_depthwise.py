"""The template of depthwise convolution: a tile of one channel's plane a program, gathered step by step, and what follows pointwise.

Each element is multiplied and added in float32 on the ordinary cores: a depthwise convolution is bound by memory, and
neighbouring lanes find each other's elements in the cache.
"""

from __future__ import annotations

from tools.codegen.body import Body
from tools.codegen.expressions import LoweringError
from tools.codegen.frame import Frame, Parameters, RegionText, allocation, block, conversion, guard, summary
from tools.codegen.kernel import Kernel
from tools.codegen.naming import Names, Scope, access_names
from tools.codegen.sliding import Depthwise
from tools.codegen.spaces import Access, Axis, Space, accesses_of

NAME = "depthwise"
UNROLLED = 49
"""Elements of a kernel up to which its loops are unrolled."""
OWN_NAMES = (
    "above",
    "at_h",
    "at_w",
    "base",
    "here",
    "in_h",
    "in_w",
    "inside",
    "off_h",
    "out_h",
    "out_w",
    "plane",
    "step_h",
    "step_w",
    "tap",
)


def depthwise_layout(kernel: Kernel) -> tuple[tuple[Access, ...], tuple[Axis, ...]]:
    """Check the region and make its axes: planes (batch and channel), rows, columns."""
    depthwise = kernel.depthwise
    if depthwise is None:
        raise LoweringError("there is no depthwise convolution")
    refs = [load.ref for load in kernel.builder.loads] + [output.ref for output in kernel.outputs]
    accesses = accesses_of(kernel, access_names(refs, Names(OWN_NAMES)))
    batch, channel, rows, cols = (kernel.builder.atoms.leaves(dim) for dim in depthwise.dims)
    order = (*batch, *channel, *rows, *cols)
    own = (depthwise.source, depthwise.weight)
    others = [access for place, access in enumerate(accesses) if place not in own]
    if any(access.is_output and set(access.strides) != set(order) for access in others) or any(
        not set(access.strides) <= set(order) for access in others
    ):
        raise LoweringError("a tensor of the convolution's region differs in shape from its result")
    if len(rows) != 1 or len(cols) != 1 or len(channel) != 1 or len(batch) > 1:
        raise LoweringError("the result of the convolution is cut into parts")
    groups = (batch, channel) if batch else (channel,)
    return accesses, (
        Axis("outer", "plane", (*batch, *channel), groups), Axis("rows", "off_h", rows, (rows,)), Axis("cols", "off_n", cols, (cols,)),
    )  # fmt: skip


def emit(kernel: Kernel, name: str, parameters: Parameters) -> RegionText:
    """Write the kernel and its host function."""
    assert kernel.depthwise is not None
    return _Writer(kernel, kernel.depthwise, name, parameters).write()


class _Writer:
    """Writes one depthwise region."""

    def __init__(self, kernel: Kernel, depthwise: Depthwise, name: str, parameters: Parameters) -> None:
        self.name, self.parameters, self.depthwise = name, parameters, depthwise
        accesses, axes = depthwise_layout(kernel)
        self.source, self.weight = accesses[depthwise.source], accesses[depthwise.weight]
        self.reads = tuple(access for access in accesses if not access.is_output)
        self.writes = tuple(access for access in accesses if access.is_output)
        self.space = Space(kernel, axes, accesses)
        self.body = Body(self.space, Names(OWN_NAMES), self._load, self._reduce)
        masks = {"rows": "mask_m", "cols": "mask_n"}
        self.frame = Frame(self.space, f"{name}_kernel", Names(), self.reads, self.writes, self.body, masks)

    def write(self) -> RegionText:
        """Write kernel and host function."""
        lines: list[str] = []
        scope = Scope(lines, "    ")
        self._gather(scope)
        scope.names[self.depthwise.expr] = "acc"
        for output, access in zip(self.space.kernel.outputs, self.writes, strict=True):
            self.frame.store(scope, access, self.body.assign(scope, output.expr))
        text = self.frame.finish([*self._head(), *lines])
        own, count = self.frame.signature(["BLOCK_M", "BLOCK_N"]), len(self.frame.tensors())
        kernel = [
            "@triton.jit",
            *block(f"def {self.name}_kernel", [*own[:count], "in_h", "in_w", *own[count:]], ":"),
            f'    """A tile of one channel a program: {summary(self.space.kernel, self.reads, self.writes)}."""',
            *text,
        ]
        inputs, outputs = tuple(access.ref for access in self.reads), tuple(access.ref for access in self.writes)
        return RegionText(self.name, inputs, outputs, "\n".join([*kernel, "", "", *self._host()]), tuple(self.body.helpers))

    def _head(self) -> list[str]:
        self.space.parts_used.add("outer")
        wide = ".to(tl.int64)" if self.space.is_wide() else ""
        lines = [
            "pid = tl.program_id(0)",
            "tiles_m = tl.cdiv(n_rows, BLOCK_M)",
            "tiles_n = tl.cdiv(n_cols, BLOCK_N)",
            f"plane = (pid // (tiles_m * tiles_n)){wide}",
            *self.space.parts(self.space.axis("outer")),
            "tile = pid % (tiles_m * tiles_n)",
            "off_h = tile // tiles_n * BLOCK_M + tl.arange(0, BLOCK_M)[:, None]",
            "mask_m = off_h < n_rows",
            "off_n = tile % tiles_n * BLOCK_N + tl.arange(0, BLOCK_N)[None, :]",
            "mask_n = off_n < n_cols",
        ]
        for name in ("rows", "cols"):
            self.space.monomial(self.space.axis(name).atoms)
        return ["    " + line for line in lines]

    def _gather(self, scope: Scope) -> None:
        """Write the loops over the kernel's elements."""
        d = self.depthwise
        height, width = d.size
        channel = self.space.axis("outer").part(len(self.space.axis("outer").groups) - 1)
        walk = "tl.static_range" if height * width <= UNROLLED else "range"
        scope.say(f"base = {self.source.name}_ptr + plane * (in_h * in_w)")
        scope.say(f"above = {self.weight.name}_ptr + {channel} * {height * width}")
        scope.say("acc = tl.zeros([BLOCK_M, BLOCK_N], tl.float32)")
        scope.say(f"for step_h in {walk}({height}):")
        outer = scope.nested()
        outer.say(f"at_h = {_position('off_h', 'step_h', d.stride[0], d.dilation[0], d.padding[0])}")
        outer.say(f"for step_w in {walk}({width}):")
        inner = outer.nested()
        inner.say(f"at_w = {_position('off_n', 'step_w', d.stride[1], d.dilation[1], d.padding[1])}")
        tests = ["mask_m", "mask_n"]
        for axis in range(2):
            letter = "hw"[axis]
            tests += [f"(at_{letter} >= 0)", f"(at_{letter} < in_{letter})"] if d.padding[axis] else []
        inner.say(f"inside = {' & '.join(tests)}")
        to_float = conversion(self.source.meta.dtype)
        inner.say(f"here = tl.load(base + at_h * in_w + at_w, mask=inside, other=0.0){to_float}")
        inner.say(f"tap = tl.load(above + step_h * {width} + step_w){conversion(self.weight.meta.dtype)}")
        inner.say("acc = tl.fma(here, tap, acc)")

    def _host(self) -> list[str]:
        d, source = self.depthwise, self.source.name
        lines = [f"{access.name} = {access.name}.contiguous()" for access in self.reads if access.may_need_copy]
        lines += [f"in_h, in_w = {source}.shape[-2:]"]
        for place, (letter, axis) in enumerate((("h", "rows"), ("w", "cols"))):
            span = 2 * d.padding[place] - d.dilation[place] * (d.size[place] - 1) - 1
            lines.append(f"out_{letter} = (in_{letter} {'+' if span >= 0 else '-'} {abs(span)}) // {d.stride[place]} + 1")
            self.space.given[self.space.axis(axis).atoms] = f"out_{letter}"
        for axis_ in self.space.axes:
            self.space.used.setdefault(axis_.size_name, axis_.atoms)
        known: dict[str, tuple[int, ...]] = {}
        lines += self.frame.size_lines(known)
        lines += [allocation(self.space, access, known, source) for access in self.writes]
        lines += guard(self.space, (self.source, *self.writes))
        p = self.parameters
        lines.append(f"grid = (n_outer * triton.cdiv(n_rows, {p['BLOCK_M']}) * triton.cdiv(n_cols, {p['BLOCK_N']}),)")
        own = self.frame.call_arguments({"BLOCK_M": p["BLOCK_M"], "BLOCK_N": p["BLOCK_N"]})
        count = len(self.frame.tensors())
        lines += block(f"{self.name}_kernel[grid]", [*own[:count], "in_h", "in_w", *own[count:], f"num_warps={p['num_warps']}"], "")
        lines.append("return " + ", ".join(access.name for access in self.writes))
        result = "torch.Tensor" if len(self.writes) == 1 else f"tuple[{', '.join(['torch.Tensor'] * len(self.writes))}]"
        arguments = [f"{access.name}: torch.Tensor" for access in self.reads]
        return [*block(f"def {self.name}", arguments, f" -> {result}:"), *("    " + line for line in lines)]

    def _load(self, scope: Scope, expr: int) -> str:
        access = self.reads[self.body.b.exprs[expr].extra]
        return self.body.bind(scope, expr, self.frame.load_text(access))

    def _reduce(self, scope: Scope, expr: int) -> str:
        raise LoweringError("a convolution's region has no reductions")


def _position(offset: str, step: str, stride: int, dilation: int, padding: int) -> str:
    """Write where one step of the kernel lies in the input."""
    text = offset + (f" * {stride}" if stride != 1 else "") + f" + {step}" + (f" * {dilation}" if dilation != 1 else "")
    return text + (f" - {padding}" if padding else "")
