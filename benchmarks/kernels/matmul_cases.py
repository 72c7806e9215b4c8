"""What `benchmarks.kernels.matmul_ways` measures: sizes of a matrix product, the ways that are tried at each, and the kernels they are."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from tools.codegen import OperatorGraph, Region, Schedule, emit, trace
from tools.codegen.ir.views import is_view
from tools.codegen.schedule.plan import plan_region
from tools.problems import load_problem
from tools.records import Problem

Value = bool | int | float | str

_SOURCE = """import torch
import torch.nn.functional as F

ROWS = {rows}
INNER = {inner}
COLS = {cols}


def product({names}):
    return {result}


def example_inputs():
    return {inputs}
"""
_FORMS = {
    "matmul": ("x, y", "x @ y", "torch.randn(ROWS, INNER), torch.randn(INNER, COLS)"),
    "half": ("x, y", "x @ y", "torch.randn(ROWS, INNER, dtype=torch.float16), torch.randn(INNER, COLS, dtype=torch.float16)"),
    "linear": (
        "x, w, b",
        "F.gelu(F.linear(x, w, b))",
        "torch.randn(ROWS, INNER), torch.randn(COLS, INNER) * INNER**-0.5, torch.randn(COLS)",
    ),
}
_PLAIN: dict[str, Value] = {"SPLIT_K": 1, "GROUP_M": 8, "right": "as_is", "programs": "data_parallel", "loads": "pointers"}


@dataclass(frozen=True)
class Case:
    """One product at one size."""

    name: str
    form: str
    rows: int
    inner: int
    cols: int
    ways: tuple[str, ...]
    """Names of the ways that are tried."""

    @property
    def operations(self) -> float:
        """Two for each product of two elements."""
        return 2.0 * self.rows * self.inner * self.cols

    def source(self) -> str:
        """Write the reference."""
        names, result, inputs = _FORMS[self.form]
        return _SOURCE.format(rows=self.rows, inner=self.inner, cols=self.cols, names=names, result=result, inputs=inputs)


def _way(precision: str, tile: tuple[int, int, int], warps: int, stages: int, **more: Value) -> dict[str, Value]:
    m, n, k = tile
    chunked = "direct" if precision in ("ieee", "tf32") else "chunked"
    own = {"BLOCK_M": m, "BLOCK_N": n, "BLOCK_K": k, "num_warps": warps, "num_stages": stages}
    return {**_PLAIN, **own, "precision": precision, "accumulate": chunked, **more}


def _ways() -> dict[str, dict[str, Value]]:
    described: dict[str, Value] = {"loads": "descriptors"}
    walk: dict[str, Value] = {"programs": "persistent"}
    stream: dict[str, Value] = {"programs": "stream_k"}
    turned: dict[str, Value] = {"right": "k_major"}
    square, flat, wide = (128, 128, 64), (128, 128, 32), (128, 256, 64)
    return {
        "fp16x3": _way("fp16x3", square, 8, 3),
        "fp16x3 descriptors": _way("fp16x3", square, 8, 3, **described),
        "fp16x3 persistent": _way("fp16x3", square, 8, 3, **walk),
        "fp16x3 persistent descriptors": _way("fp16x3", square, 8, 3, **described, **walk),
        "fp16x3 stream_k": _way("fp16x3", square, 8, 3, **stream),
        "fp16x3 stream_k descriptors": _way("fp16x3", square, 8, 3, **described, **stream),
        "fp16x3 descriptors 64x256": _way("fp16x3", (64, 256, 64), 8, 2, **described),
        "bf16x6": _way("bf16x6", flat, 8, 3),
        "bf16x6 descriptors": _way("bf16x6", square, 8, 2, **described),
        "bf16x6 persistent": _way("bf16x6", flat, 8, 3, **walk),
        "bf16x6 stream_k descriptors": _way("bf16x6", square, 8, 2, **described, **stream),
        "bf16x3 descriptors (rounds)": _way("bf16x3", square, 8, 3, **described),
        "fp16x3 stationary": _way("fp16x3", (64, 128, 64), 4, 3, programs="operand_stationary"),
        "fp16x3 64x64": _way("fp16x3", (64, 64, 64), 4, 3),
        "bf16x6 64x64": _way("bf16x6", (64, 64, 64), 4, 3),
        "tf32x3 k_major": _way("tf32x3", flat, 8, 3, **turned),
        "tf32x3 k_major descriptors": _way("tf32x3", flat, 8, 3, **turned, **described),
        "tf32x3 k_major persistent": _way("tf32x3", flat, 8, 3, **turned, **walk),
        "tf32 k_major (rounds)": _way("tf32", flat, 8, 3, **turned),
        "tf32 k_major descriptors (rounds)": _way("tf32", flat, 8, 4, **turned, **described),
        "half": _way("ieee", square, 8, 3),
        "half descriptors": _way("ieee", wide, 8, 3, **described),
        "half persistent": _way("ieee", wide, 8, 3, **walk),
        "half stream_k descriptors": _way("ieee", wide, 8, 3, **described, **stream),
    }


WAYS = _ways()
"""Parameters of the product template by name; "rounds" where the exact policy does not allow the precision."""
_HALF = tuple(name for name in WAYS if name.startswith("half"))
_SINGLE = tuple(name for name in WAYS if name not in _HALF and "64x64" not in name and "stationary" not in name)
_EXACT = tuple(name for name in _SINGLE if name.startswith(("fp16x3", "bf16x6")))
_FEW = ("fp16x3", "fp16x3 descriptors", "fp16x3 persistent", "fp16x3 stream_k", "fp16x3 stream_k descriptors", "bf16x6 descriptors")
_SHORT = ("fp16x3", "fp16x3 descriptors", "fp16x3 persistent", "fp16x3 stationary")
CASES = (
    Case("4096³", "matmul", 4096, 4096, 4096, _SINGLE),
    Case("1536 x 4096 x 1536, 144 tiles", "matmul", 1536, 4096, 1536, _FEW),
    Case("linear and gelu, 1024 x 8192 x 8192", "linear", 1024, 8192, 8192, _FEW),
    Case("4096³ of float16", "half", 4096, 4096, 4096, _HALF),
    Case("2048 x 8192 x 8192", "matmul", 2048, 8192, 8192, _EXACT),
    Case(
        "16384 x 64 x 16384, a short sum",
        "matmul",
        16384,
        64,
        16384,
        ("fp16x3", "fp16x3 descriptors", "fp16x3 persistent", "fp16x3 stationary"),
    ),
    Case("32768 x 128 x 64, few columns", "matmul", 32768, 128, 64, ("fp16x3 64x64", "bf16x6 64x64")),
    Case(
        "1000 x 3000 x 1001, unaligned",
        "matmul",
        1000,
        3000,
        1001,
        ("fp16x3", "fp16x3 descriptors", "fp16x3 stream_k", "bf16x6 persistent"),
    ),
)
"""Rows, summed elements, columns. What matters most comes first."""


def find_case(name: str) -> Case:
    """Find a case by name."""
    return next(case for case in CASES if case.name == name)


def open_case(case: Case, folder: Path) -> tuple[Problem, OperatorGraph]:
    """Load and trace a case's reference, which is written into `folder`."""
    path = folder / "product.py"
    path.write_text(case.source())
    problem = load_problem(path)
    return problem, trace(problem)


def kernel_source(problem: Problem, graph: OperatorGraph, way: str) -> str:
    """Write all of a reference as one product made this way; nothing asks whether the coder would offer it."""
    nodes = tuple(node.name for node in graph.nodes if not is_view(node))
    region = Region(id="r0", nodes=nodes, template=plan_region(graph, nodes).template.name, parameters=WAYS[way])
    return emit(problem, graph, Schedule(regions=(region,))).source
