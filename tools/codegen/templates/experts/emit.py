"""The template of experts: pairs sorted by expert, a launch for each stage's products, and the sum over a row's places in order.

The host never waits for the device: tiles are counted for the worst case, and each program finds the expert of its tile by how many pairs
every expert has. A program without a tile ends at once. Rows are gathered as they are read; what a stage leaves lies sorted. Weights that
are tensors of their own are found by a table of their addresses, which is made in each call: nothing has to be known of them before.
"""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

from tools.codegen.ir.expr import LoweringError
from tools.codegen.ir.graph import Ref
from tools.codegen.ir.grouped import Grouped, Weight
from tools.codegen.ir.kernel import Kernel
from tools.codegen.ir.sizes import Fact, Sizes, express, power_of_two
from tools.codegen.templates.device.experts import CHECK, SORT
from tools.codegen.templates.experts.knobs import SORT_BLOCK, grouped_of
from tools.codegen.templates.experts.stage import StageWriter
from tools.codegen.templates.shared.frame import RegionText, block, shape_words
from tools.codegen.templates.shared.knob import Settings
from tools.codegen.templates.shared.naming import Names, value_name

SUM_BLOCK = 1024
OWN_NAMES = ("order", "begins", "table", "expert", "pair", "token", "position", "n_pairs", "n_tokens", "weights", "parts", "result")


def emit(kernel: Kernel, name: str, parameters: Settings) -> RegionText:
    """Write the kernels and their host function."""
    return _Writer(kernel, name, parameters).write()


class _Writer:
    """Writes one region."""

    def __init__(self, kernel: Kernel, name: str, parameters: Settings) -> None:
        self.kernel, self.name, self.parameters = kernel, name, parameters
        self.grouped: Grouped = grouped_of(kernel)
        self.names = Names(OWN_NAMES)
        self.tables = list(self.grouped.tables.values())
        self.given: dict[Ref, str] = {}
        self._name_inputs()
        self.stages = [StageWriter(self, place, stage) for place, stage in enumerate(self.grouped.stages)]
        self.helpers: dict[str, None] = {SORT: None}

    def _name_inputs(self) -> None:
        """Name what the host function is given: all but the weights that lie in a tensor for each expert."""
        self.addressed = [ref for weight in self.tables for ref in weight.refs]
        """In the order of the table."""
        by_address = set(self.addressed)
        for ref in dict.fromkeys(load.ref for load in self.kernel.builder.loads):
            if ref not in by_address:
                self.given[ref] = self.names.fresh(value_name(ref))

    def write(self) -> RegionText:
        """Write kernels and host function."""
        texts = [stage.kernel() for stage in self.stages]
        for stage in self.stages:
            self.helpers |= stage.helpers
        tables = [self._table_kernel()] if self.tables else []
        if self.tables:
            self.helpers[CHECK] = None
        source = "\n".join(line for text in (*tables, *texts, self._sum_kernel(), self._host()) for line in [*text, "", ""])
        inputs = (*self.given, *self.addressed)
        return RegionText(self.name, inputs, tuple(o.ref for o in self.kernel.outputs), source.rstrip("\n"), tuple(self.helpers))

    def _table_kernel(self) -> list[str]:
        """Write the kernel that tells where weights lie: what they are called tells nothing, so they are numbered."""
        names = [f"weight_{place}" for place in range(len(self.addressed))]
        return [
            "@triton.jit",
            *packed(f"def {self.name}_table_kernel(", [*names, "table_ptr"], "):"),
            f'    """The addresses of {len(names)} tensors, those of {self.grouped.experts} experts in a row."""',
            *(f"    tl.store(table_ptr + {place}, {name}.to(tl.int64))" for place, name in enumerate(names)),
        ]

    def weight_text(self, weight: Weight) -> str:
        """Write how the host names a weight whose shape is that of each expert's, or of all."""
        if weight in self.tables:
            return f"weights[{self.tables.index(weight) * self.grouped.experts}]"
        return self.given[weight.refs[0]]

    def facts(self) -> list[Fact]:
        """List the sizes that the host can read, those of weights first."""
        found = []
        weights = [product.right for stage in self.grouped.stages for product in stage.products]
        for weight in weights:
            for place, sizes in enumerate(weight.meta.shape):
                found.append(Fact(f"{self.weight_text(weight)}.shape[{place + weight.is_stacked}]", sizes))
        for load in self.kernel.builder.loads:
            if load.ref in self.given:
                found += [Fact(f"{self.given[load.ref]}.shape[{place}]", sizes) for place, sizes in enumerate(load.meta.shape)]
        return found

    def size(self, sizes: Sizes) -> str:
        """Write a size as the host reads it; raises LoweringError where none of its tensors tells it."""
        facts = self.facts()
        text = next((fact.text for fact in facts if fact.values == sizes), None) or express(sizes, facts)
        if text is None:
            raise LoweringError("a size of the experts cannot be told from the shapes of their inputs")
        return text

    @property
    def places(self) -> str:
        """Write how many experts a row goes to."""
        return f"{self.given[self.grouped.chosen]}.shape[1]" if len(self.grouped.chosen_meta.shape) > 1 else "1"

    def _sum_kernel(self) -> list[str]:
        grouped = self.grouped
        base = ["base_ptr"] if grouped.base else []
        start = "tl.load(base_ptr + token * n_cols + off_n, mask=mask_n, other=0.0).to(tl.float32)"
        step = "total += part" if grouped.adds else "total = tl.where(sent, part, total)"
        pointers = ["parts_ptr", "chosen_ptr", *base, "result_ptr", "n_cols"]
        constants = ["PLACES: tl.constexpr", "FIRST: tl.constexpr", "EXPERTS: tl.constexpr", "BLOCK: tl.constexpr"]
        what = "Adds up in float32, place by place, what the experts of a row give" if grouped.adds else "Writes what the experts give"
        return [
            "@triton.jit",
            *block(f"def {self.name}_sum_kernel", [*pointers, *constants], ":"),
            f'    """{what}: {shape_words(grouped.value.meta)} -> {shape_words(grouped.result)}."""',
            "    token = tl.program_id(0).to(tl.int64)",
            "    off_n = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)",
            "    mask_n = off_n < n_cols",
            f"    total = {start if grouped.base else 'tl.zeros([BLOCK], tl.float32)'}",
            "    for place in tl.static_range(PLACES):",
            "        pair = token * PLACES + place",
            "        own = tl.load(chosen_ptr + pair) - FIRST",
            "        sent = (own >= 0) & (own < EXPERTS)",
            "        part = tl.load(parts_ptr + pair * n_cols + off_n, mask=tl.where(mask_n, sent, False), other=0.0).to(tl.float32)",
            f"        {step}",
            "    tl.store(result_ptr + token * n_cols + off_n, total, mask=mask_n)",
        ]

    def _host(self) -> list[str]:
        grouped, chosen = self.grouped, self.given[self.grouped.chosen]
        parameters = [f"{name}: torch.Tensor" for name in self.given.values()]
        parameters += ["*weights: torch.Tensor"] if self.tables else []
        experts = grouped.experts
        lines = [f"{name} = {name}.contiguous()" for name in self.given.values()]
        if self.tables:
            lines += [
                f"{CHECK}(weights)",
                f"table = torch.empty((len(weights),), dtype=torch.int64, device={chosen}.device)",
                f"{self.name}_table_kernel[(1,)](*weights, table, num_warps=1)",
            ]
        lines += [
            f"n_tokens, n_pairs = {chosen}.shape[0], {chosen}.numel()",
            f"order = torch.empty((n_pairs,), dtype=torch.int32, device={chosen}.device)",
            f"begins = torch.empty(({experts + 1},), dtype=torch.int32, device={chosen}.device)",
            f"block = min({SORT_BLOCK}, triton.next_power_of_2(n_pairs))",
            *block(
                f"{SORT}[({experts},)]",
                [chosen, "order", "begins", "n_pairs", f"FIRST={grouped.first}", f"EXPERTS={experts}", "BLOCK=block", "num_warps=8"],
                "",
            ),
            # no expert without rows has a tile, and each of the others one more than its rows fill at most
            f"tiles = min(n_pairs, triton.cdiv(n_pairs, {self.parameters['BLOCK_M']}) + {experts})",
        ]
        for stage in self.stages:
            lines += stage.host()
        lines += self._sum(chosen)
        return [
            *block(f"def {self.name}", parameters, " -> torch.Tensor:"),
            f'    """Send each row to {grouped.chosen_meta.numel // grouped.result.written[0]} of {experts} experts."""',
            *("    " + line for line in lines),
        ]

    def _sum(self, chosen: str) -> list[str]:
        grouped = self.grouped
        parts = next(stage.temporary(grouped.value) for stage in self.stages if grouped.value in stage.stage.results)
        base = [self.given[grouped.base]] if grouped.base else []
        constants = [f"PLACES={self.places}", f"FIRST={grouped.first}", f"EXPERTS={grouped.experts}", f"BLOCK={SUM_BLOCK}"]
        columns = f"{parts}.shape[1]"
        return [
            f"result = torch.empty((n_tokens, {columns}), dtype=torch.{grouped.result.dtype}, device={chosen}.device)",
            f"grid = (n_tokens, triton.cdiv({columns}, {SUM_BLOCK}))",
            *block(f"{self.name}_sum_kernel[grid]", [parts, chosen, *base, "result", columns, *constants, "num_warps=4"], ""),
            "return result",
        ]

    @property
    def lanes(self) -> int:
        """Lanes that hold a number for each expert."""
        return power_of_two(self.grouped.experts)


def packed(header: str, items: Sequence[str], footer: str) -> list[str]:
    """Write a long list of parameters, as many to a line as there is room for."""
    return [header, *textwrap.wrap(f"{', '.join(items)},", 110, initial_indent="    ", subsequent_indent="    "), footer]


__all__ = ["emit"]
