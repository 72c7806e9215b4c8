"""The template of products: one tile of the result a program, and the pointwise operators after it in the same kernel.

Partial sums are kept in float32. `accumulate=chunked` sums each step's block in a fresh accumulator and adds it to the
running one in float32, which keeps the error of long sums near that of pairwise summation. Programs walk the tiles in groups
of `GROUP_M` rows of tiles, so that those running together share operands in the L2 cache.
"""

from __future__ import annotations

from tools.codegen.body import Body
from tools.codegen.expressions import LoweringError
from tools.codegen.frame import Frame, Parameters, RegionText, allocation, block, guard, summary
from tools.codegen.lowering import Kernel
from tools.codegen.naming import Names, Scope
from tools.codegen.product_space import ProductLayout, product_layout
from tools.codegen.spaces import Access, Axis

NAME = "matmul"


def emit(kernel: Kernel, name: str, parameters: Parameters) -> RegionText:
    """Write the kernel and its host function."""
    k_major = parameters.get("right", "as_is") == "k_major"
    return _Writer(kernel, name, parameters, product_layout(kernel, k_major), k_major).write()


class _Writer:
    """Writes one product region."""

    def __init__(self, kernel: Kernel, name: str, parameters: Parameters, plan: ProductLayout, k_major: bool) -> None:
        self.name, self.parameters, self.plan, self.k_major = name, parameters, plan, k_major
        self.space = plan.space(kernel)
        self.reads = tuple(access for access in plan.accesses if not access.is_output)
        self.writes = tuple(access for access in plan.accesses if access.is_output)
        self.body = Body(self.space, Names(), self._load, self._reduce)
        masks = {"rows": "mask_m", "cols": "mask_n"}
        self.frame = Frame(self.space, f"{name}_kernel", Names(), self.reads, self.writes, self.body, masks)
        self.batched = plan.axes[0].name == "outer"

    def write(self) -> RegionText:
        """Write kernel and host function."""
        lines: list[str] = []
        scope = Scope(lines, "    ")
        contraction = self.space.kernel.contraction
        assert contraction is not None
        epilogue: list[str] = []
        tail = Scope(epilogue, "    ")
        tail.names[contraction.expr] = "acc"
        for output, access in zip(self.space.kernel.outputs, self.writes, strict=True):
            self.frame.store(tail, access, self.body.assign(tail, output.expr))
        self._product(scope)
        text = self.frame.finish([*self._head(), *lines, *epilogue])
        constants = ["BLOCK_M", "BLOCK_N", "BLOCK_K", "GROUP_M", "EVEN_K"]
        kernel = [
            "@triton.jit",
            *block(f"def {self.name}_kernel", self.frame.signature(constants), ":"),
            f'    """One tile of the product a program: {summary(self.space.kernel, self.reads, self.writes)}."""',
            *text,
        ]
        return RegionText(
            self.name,
            tuple(access.ref for access in self.reads),
            tuple(access.ref for access in self.writes),
            "\n".join([*kernel, "", "", *self._host()]),
            tuple(self.body.helpers),
        )

    def _head(self) -> list[str]:
        size = {axis.name: self.space.monomial(axis.atoms) for axis in self.space.axes}
        wide = ".to(tl.int64)" if self.space.is_wide() else ""
        lines = [
            "pid = tl.program_id(0)",
            f"tiles_m = tl.cdiv({size['rows']}, BLOCK_M)",
            f"tiles_n = tl.cdiv({size['cols']}, BLOCK_N)",
        ]
        if self.batched:
            lines += ["batch = (pid // (tiles_m * tiles_n)).to(tl.int64)", *self.space.parts(self.space.axis("outer"))]
            lines += ["pid = pid % (tiles_m * tiles_n)"]
        lines += [
            "group = pid // (GROUP_M * tiles_n)",
            "group_rows = tl.minimum(tiles_m - group * GROUP_M, GROUP_M)",
            "pid_m = group * GROUP_M + pid % (GROUP_M * tiles_n) % group_rows",
            "pid_n = pid % (GROUP_M * tiles_n) // group_rows",
            f"off_m = pid_m{wide} * BLOCK_M + tl.arange(0, BLOCK_M)[:, None]",
            f"mask_m = off_m < {size['rows']}",
            *self.space.parts(self.space.axis("rows")),
            f"off_n = pid_n{wide} * BLOCK_N + tl.arange(0, BLOCK_N)[None, :]",
            f"mask_n = off_n < {size['cols']}",
            *self.space.parts(self.space.axis("cols")),
        ]
        return ["    " + line for line in lines]

    def _product(self, scope: Scope) -> None:
        inner = self.space.axis("inner")
        n_inner = self.space.monomial(inner.atoms)
        half = self.plan.dtype != "float32"
        precision = "" if half else f', input_precision="{self.parameters["precision"]}"'
        left, right = self._base(self.plan.left), self._base(self.plan.right)
        step_left, step_right = (self._step(access, inner) for access in (self.plan.left, self.plan.right))
        scope.say(f"left_tile = {left} + {step_left.format('tl.arange(0, BLOCK_K)[None, :]')}")
        scope.say(f"right_tile = {right} + {step_right.format('tl.arange(0, BLOCK_K)[:, None]')}")
        scope.say("acc = tl.zeros([BLOCK_M, BLOCK_N], dtype=tl.float32)")
        scope.say(f"for k in range(0, {n_inner}, BLOCK_K):")
        loop = scope.nested()
        loop.say("if EVEN_K:")
        even, odd = loop.nested(), loop.nested()
        even.say("left = tl.load(left_tile, mask=mask_m, other=0.0)")
        even.say("right = tl.load(right_tile, mask=mask_n, other=0.0)")
        loop.say("else:")
        odd.say(f"left = tl.load(left_tile, mask=mask_m & (tl.arange(0, BLOCK_K)[None, :] < {n_inner} - k), other=0.0)")
        odd.say(f"right = tl.load(right_tile, mask=mask_n & (tl.arange(0, BLOCK_K)[:, None] < {n_inner} - k), other=0.0)")
        if self.parameters["accumulate"] == "chunked":
            # an addition would be folded into the product's accumulator; a multiply-add by one is not
            loop.say(f"acc = tl.fma(tl.dot(left, right{precision}), 1.0, acc)")
        else:
            loop.say(f"acc = tl.dot(left, right, acc{precision})")
        loop.say(f"left_tile += {step_left.format('BLOCK_K')}")
        loop.say(f"right_tile += {step_right.format('BLOCK_K')}")

    def _base(self, access: Access) -> str:
        terms = [term for axis in self.space.axes if axis.name != "inner" and (term := self.space.along(access, axis))]
        return " + ".join([f"{access.name}_ptr", *terms])

    def _step(self, access: Access, inner: Axis) -> str:
        text = self.space.monomial(access.strides[inner.atoms[-1]])
        if not text:
            return "{}"
        return f"{{}} * {text}" if " " not in text else f"{{}} * ({text})"

    def _host(self) -> list[str]:
        known: dict[str, tuple[int, ...]] = {}
        device = self.reads[0].name
        lines = []
        for access in self.reads:
            if self.k_major and access.name == self.plan.right.name:
                lines.append(f"{access.name} = {access.name}.transpose(-2, -1).contiguous()")
            elif access.may_need_copy:
                lines.append(f"{access.name} = {access.name}.contiguous()")
        for axis in self.space.axes:
            self.space.used.setdefault(axis.size_name, axis.atoms)
        lines += self.frame.size_lines(known)
        lines += [allocation(self.space, access, known, device) for access in self.writes]
        lines += guard(self.space, (self.plan.left, self.plan.right, *self.writes))
        p = self.parameters
        batch = "n_outer * " if self.batched else ""
        lines.append(f"grid = ({batch}triton.cdiv(n_rows, {p['BLOCK_M']}) * triton.cdiv(n_cols, {p['BLOCK_N']}),)")
        constants: dict[str, object] = {name: p[name] for name in ("BLOCK_M", "BLOCK_N", "BLOCK_K", "GROUP_M")}
        constants["EVEN_K"] = f"n_inner % {p['BLOCK_K']} == 0"
        launch = [f"num_warps={p['num_warps']}", f"num_stages={p['num_stages']}"]
        lines += block(f"{self.name}_kernel[grid]", [*self.frame.call_arguments(constants), *launch], "")
        lines.append("return " + ", ".join(access.name for access in self.writes))
        result = "torch.Tensor" if len(self.writes) == 1 else f"tuple[{', '.join(['torch.Tensor'] * len(self.writes))}]"
        parameters = [f"{access.name}: torch.Tensor" for access in self.reads]
        return [*block(f"def {self.name}", parameters, f" -> {result}:"), *("    " + line for line in lines)]

    def _load(self, scope: Scope, expr: int) -> str:
        access = self.reads[self.body.b.exprs[expr].extra]
        return self.body.bind(scope, expr, self.frame.load_text(access))

    def _reduce(self, scope: Scope, expr: int) -> str:
        raise LoweringError("a product's region has no reductions")


__all__ = ["NAME", "emit", "product_layout"]
