"""Regions that compute the same share their kernels and host functions, and whatever differs by more than names does not."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.tools.codegen.compute_samples import module
from tests.tools.codegen.harness import generated, problem_of, run_worker, trace_problem, write_job
from tools.codegen import emit
from tools.codegen.module.dedup import Functions
from tools.codegen.templates.shared.frame import RegionText

LAYERS = "; ".join(f"self.l{i} = torch.nn.Linear(c, c); self.n{i} = torch.nn.LayerNorm(c)" for i in range(3))
REPEATED = module(LAYERS, "return self.n2(self.l2(self.n1(self.l1(self.n0(self.l0(x)))))).tanh()", "torch.randn(5, 8)")
ORDERS = module(
    "self.l = torch.nn.Linear(c, c)", "y = self.l(x); z = self.l(y - x); return self.l(y - z), self.l(z - y)", "torch.randn(5, 8)"
)
HOST = '''@triton.jit
def {name}_kernel({a}_ptr, {b}_ptr, N: tl.constexpr):
    """{a} [4] -> {b} [4]."""
    {a} = tl.load({a}_ptr)
    tl.store({b}_ptr, {a} {sign} {number})


def {name}({a}: torch.Tensor):
    {b} = torch.empty_like({a})
    {name}_kernel[(1,)]({a}, {b}, N={block})
    return {b}
'''


def region(name: str, a: str = "x", b: str = "y", sign: str = "+", number: int = 1, block: int = 16) -> RegionText:
    """Write a region by hand."""
    return RegionText(name, (), (), HOST.format(name=name, a=a, b=b, sign=sign, number=number, block=block), ())


def test_layers_that_repeat_are_written_once() -> None:
    """Three layers of one kind are one product and one norm, called three times; the last norm, with tanh, is another."""
    problem = problem_of(REPEATED)
    graph = trace_problem(problem)
    source = emit(problem, graph, generated(graph, {})).source
    # three kernels, tanh, and the mean that both norms share
    assert source.count("@triton.jit") == 5
    assert re.findall(r"= (\w+)\(", source.split("def forward")[1]) == ["linear_op", "layer_norm_op"] * 2 + ["linear_op", "layer_norm_tanh"]
    assert re.findall(r"Written for . regions", source) == ["Written for 3 regions", "Written for 2 regions"]


def test_only_names_may_differ() -> None:
    """Other variable names and docstrings make no other function; another sign or number does, and a setting leaves the kernel shared."""
    functions = Functions()
    assert functions.shared(region("one")).function == "one"
    again = functions.shared(region("two", "linear_1", "relu_1"))
    assert (again.function, again.source) == ("one", "")
    for other in (region("minus", sign="-"), region("more", number=2)):
        assert functions.shared(other).source.count("def ") == 2
    setting = functions.shared(region("wide", block=32))
    assert setting.function == "wide"
    assert "one_kernel[(1,)](x, y, N=32)" in setting.source
    assert "def wide_kernel" not in setting.source


def test_the_order_of_operands_is_part_of_what_a_function_does() -> None:
    """What takes its two inputs the other way round is another function, whatever its variables are called."""
    functions = Functions()
    ahead, back = (
        RegionText(name, (), (), f"def {name}(x, y):\n    return {body}\n", ()) for name, body in (("f", "x - y"), ("g", "y - x"))
    )
    assert functions.shared(ahead).function == "f"
    assert functions.shared(back).function == "g"


@pytest.mark.slow
def test_shared_functions_give_each_layer_its_own_results(tmp_path: Path) -> None:
    """Layers with different weights that share their functions give the reference's results in the interpreter."""
    jobs = []
    for name, text in (("repeated", REPEATED), ("orders", ORDERS)):
        problem = problem_of(text)
        graph = trace_problem(problem)
        jobs.append(write_job(tmp_path, name, problem, emit(problem, graph, generated(graph, {})).source))
    for result in run_worker("interpreter_worker.py", jobs, interpret=True):
        assert "crash" not in result, result["crash"]
        assert result["error"] <= 1.0
