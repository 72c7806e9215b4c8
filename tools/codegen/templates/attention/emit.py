"""The template of attention: a tile of queries a program walks the keys once, by online softmax, and writes no scores.

The running maximum rescales what was summed before it grew. Sums are kept in float32; with float32 operands each step's
products are added in a fresh accumulator. `BLOCK_D` below the size of a head walks the head in steps, and `BLOCK_V` below the
size of a value gives the rest of it to other programs, each of which makes the scores again. Where queries are few, `SPLIT_KEYS` gives the
keys of each tile to several programs; a second kernel brings their sums to one maximum and adds them in order.
"""

from __future__ import annotations

from tools.codegen.ir.kernel import Kernel
from tools.codegen.templates.attention.layout import MOST_PRODUCTS, attention_layout, suffix
from tools.codegen.templates.attention.walk import LOG2E, AttentionWalk
from tools.codegen.templates.shared.frame import Frame, RegionText, allocation, block, guard, summary
from tools.codegen.templates.shared.knob import Settings
from tools.codegen.templates.shared.naming import Scope

CONSTANTS = [
    "BLOCK_M", "BLOCK_N", "BLOCK_D", *(f"BLOCK_D_{place}" for place in range(2, MOST_PRODUCTS + 1)), "BLOCK_V", "SPLIT_KEYS",
]  # fmt: skip
MOST_ADDED = 8192
"""Sums of a tile whose parts are added: 64 registers of a thread in four warps; 64 rows of 512 spilled (counted, sm_90, Triton 3.6)."""


def emit(kernel: Kernel, name: str, parameters: Settings) -> RegionText:
    """Write the kernels and their host function."""
    return _Writer(kernel, name, parameters, attention_layout(kernel)).write()


class _Writer(AttentionWalk):
    """Writes one attention region."""

    def write(self) -> RegionText:
        """Write kernels and host function."""
        kernels = self._split() if self.splits > 1 else self._whole()
        return RegionText(
            self.name,
            tuple(access.ref for access in self.reads),
            tuple(access.ref for access in self.writes),
            "\n".join([*kernels, "", "", *self._host()]),
            tuple(self.body.helpers),
            tuple(self.last.given.values()),
        )

    def _whole(self) -> list[str]:
        """Write the one kernel that walks all keys and does what follows."""
        self.last = self.new_frame(f"{self.name}_kernel")
        lines: list[str] = []
        scope = Scope(lines, "    ")
        self.walk(scope)
        self._finish(scope)
        return self._kernel(self.last, lines, [], "One tile of queries a program, all keys")

    def _split(self) -> list[str]:
        """Write the kernel that walks a part of the keys, and the one that adds the parts."""
        self.partial = self.new_frame(f"{self.name}_partial_kernel")
        lines: list[str] = []
        scope = Scope(lines, "    ")
        self.walk(scope)
        scope.say("split = tl.program_id(1).to(tl.int64)")
        self._places(scope)
        scope.say(f"tl.store({self._stat(0)}, peak, mask=mask_m)")
        scope.say(f"tl.store({self._stat(1)}, total, mask=mask_m)")
        scope.say(f"tl.store({self._part()}, acc, mask=mask_m & mask_v)")
        first = self._kernel(self.partial, lines, ["parts_ptr", "stats_ptr"], "One tile of queries a program, a part of the keys")
        self.last = self.new_frame(f"{self.name}_kernel")
        lines = []
        scope = Scope(lines, "    ")
        scope.say('peak = tl.full([BLOCK_M, 1], -float("inf"), tl.float32)')
        scope.say("total = tl.zeros([BLOCK_M, 1], tl.float32)")
        scope.say("acc = tl.zeros([BLOCK_M, BLOCK_V], tl.float32)")
        scope.say("for split in range(SPLIT_KEYS):")
        self._add(scope.nested())
        self._finish(scope)
        return [
            *first,
            "",
            "",
            *self._kernel(self.last, lines, ["parts_ptr", "stats_ptr"], "Adds the parts of one tile of queries in order"),
        ]

    def _add(self, loop: Scope) -> None:
        """Write how one part is added: the larger of both maxima becomes that of the sum."""
        self._places(loop)
        loop.say(f'part_peak = tl.load({self._stat(0)}, mask=mask_m, other=-float("inf"))')
        loop.say(f"part_total = tl.load({self._stat(1)}, mask=mask_m, other=0.0)")
        loop.say("new_max = tl.maximum(peak, part_peak)")
        loop.say('anchor = tl.where(new_max == -float("inf"), 0.0, new_max)')
        loop.say(f"rescale = tl.exp2((peak - anchor) * {LOG2E})")
        loop.say(f"weights = tl.exp2((part_peak - anchor) * {LOG2E})")
        loop.say("total = total * rescale + part_total * weights")
        loop.say(f"acc = acc * rescale + tl.load({self._part()}, mask=mask_m & mask_v, other=0.0) * weights")
        loop.say("peak = new_max")

    def _places(self, scope: Scope) -> None:
        """Write which row of all the parts' a row of the tile is."""
        rows = f"{self.size('outer')} * {self.size('rows')}" if self.batched else self.size("rows")
        batch = f"batch * {self.size('rows')} + " if self.batched else ""
        scope.say(f"row_of_all = split * ({rows}) + {batch}off_m")

    def _stat(self, which: int) -> str:
        return f"stats_ptr + row_of_all * 2 + {which}"

    def _part(self) -> str:
        return f"parts_ptr + row_of_all * {self.size('wide')} + off_v"

    def _finish(self, scope: Scope) -> None:
        """Write the division by the sum of weights, what follows, and the stores."""
        if self.attention.sink is not None:
            self._share(scope, self.attention.sink)
        if self.attention.log_sum is not None:
            scope.say('log_sum = tl.where(tl.abs(peak) == float("inf"), peak, peak + tl.log(total))')
            scope.names[self.attention.log_sum] = "log_sum"
        if self.attention.softmax:
            scope.say("acc = tl.where(total == 0.0, 0.0, acc / total)" if self.attention.safe else "acc = acc / total")
        left = ["acc", *(["total"] if self.attention.summed else [])]
        for name in [] if self.has_rows else left:
            scope.say(f"{name} = tl.sum(tl.where(off_m == 0, {name}, 0.0), axis=0, keep_dims=True)")
        scope.names[self.attention.expr] = "acc"
        if self.attention.summed:
            scope.names[self.attention.summed[0]] = "total"
        for output, access in zip(self.space.kernel.outputs, self.writes, strict=True):
            self.frame.store(scope, access, self.body.assign(scope, output.expr))

    def _share(self, scope: Scope, sink: int) -> None:
        """Write the share of a logit that has no value: the weights of the keys become smaller."""
        scope.say(f"logit = {self.body.assign(scope, sink)} + tl.zeros([BLOCK_M, 1], tl.float32)")
        scope.say("new_max = tl.maximum(peak, logit)")
        scope.say('anchor = tl.where(new_max == -float("inf"), 0.0, new_max)')
        scope.say(f"rescale = tl.exp2((peak - anchor) * {LOG2E})")
        scope.say(f"total = total * rescale + tl.exp2((logit - anchor) * {LOG2E})")
        scope.say("acc = acc * rescale")

    def _kernel(self, frame: Frame, lines: list[str], extra: list[str], title: str) -> list[str]:
        text = frame.finish([*self.head(), *lines])
        own, count = frame.signature(CONSTANTS), len(frame.tensors())
        return [
            "@triton.jit",
            *block(f"def {frame.name}", [*own[:count], *extra, *own[count:]], ":"),
            f'    """{title}: {summary(self.space.kernel, self.reads, self.writes)}."""',
            *text,
        ]

    def _host(self) -> list[str]:
        known: dict[str, tuple[int, ...]] = {}
        device, p = self.reads[0].name, self.parameters
        lines = [f"{access.name} = {access.name}.contiguous()" for access in self.reads if access.may_need_copy]
        for axis in self.space.axes:
            if axis.atoms:
                self.space.used.setdefault(axis.size_name, axis.atoms)
        lines += self.last.size_lines(known)
        lines += [] if self.has_rows else ["n_rows = 1"]
        lines += [allocation(self.space, access, known, device) for access in self.writes]
        operands = {side.access.name: side.access for side in (*self.plan.queries, *self.plan.keys, self.plan.value)}
        operands |= {access.name: access for access in self.writes}
        lines += guard(self.space, tuple(operands.values()))
        constants: dict[str, object] = {name: p[name] for name in ("BLOCK_M", "BLOCK_N", "BLOCK_V")}
        for name in self.plan.heads:
            number = suffix(name)
            constants[f"BLOCK_D{number}"] = f"block_d{number}" if name in self.whole_heads else p["BLOCK_D"]
            if name in self.whole_heads:
                lines.append(f"block_d{number} = max(16, triton.next_power_of_2(n_{name}))")
        if self.whole_value:
            lines.append("block_v = max(16, triton.next_power_of_2(n_wide))")
            constants["BLOCK_V"] = "block_v"
        lines += self._launches(constants, device)
        lines.append("return " + ", ".join(access.name for access in self.writes))
        result = "torch.Tensor" if len(self.writes) == 1 else f"tuple[{', '.join(['torch.Tensor'] * len(self.writes))}]"
        if self.splits > 1:
            self.last.given |= self.partial.given
        return [*block(f"def {self.name}", self.last.host_parameters(lines), f" -> {result}:"), *("    " + line for line in lines)]

    def _launches(self, constants: dict[str, object], device: str) -> list[str]:
        p = self.parameters
        batch = "n_outer * " if self.batched else ""
        slices = "" if self.whole_value else f" * triton.cdiv(n_wide, {p['BLOCK_V']})"
        tiles, added = (f"{batch}triton.cdiv(n_rows, {rows}){slices}" for rows in (p["BLOCK_M"], self._added_rows()))
        launch = [f"num_warps={p['num_warps']}", f"num_stages={p['num_stages']}"]
        if self.splits == 1:
            return [f"grid = ({tiles},)", *self._call(self.last, [], constants, launch)]
        rows = f"{self.splits}, {batch}n_rows"
        given = ["parts", "stats"]
        return [
            f"parts = torch.empty(({rows}, n_wide), dtype=torch.float32, device={device}.device)",
            f"stats = torch.empty(({rows}, 2), dtype=torch.float32, device={device}.device)",
            f"grid = ({tiles}, {self.splits})",
            *self._call(self.partial, given, constants, launch),
            f"grid = ({added},)",
            *self._call(self.last, given, {**constants, "BLOCK_M": self._added_rows(), "SPLIT_KEYS": self.splits}, ["num_warps=4"]),
        ]

    def _added_rows(self) -> int:
        """Rows of a tile whose parts are added: as many as the registers of four warps hold of wide values."""
        return min(int(self.parameters["BLOCK_M"]), max(1, MOST_ADDED // int(self.parameters["BLOCK_V"])))

    def _call(self, frame: Frame, extra: list[str], constants: dict[str, object], launch: list[str]) -> list[str]:
        own, count = frame.call_arguments(constants), len(frame.tensors())
        return block(f"{frame.name}[grid]", [*own[:count], *extra, *own[count:], *launch], "")
