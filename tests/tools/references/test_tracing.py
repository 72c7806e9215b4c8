"""References are traced in processes of their own, side by side, each with a limit."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from agents.samples.sources import REFERENCE
from knowledge.opened import _TURN
from tests.tools.codegen.harness import traced_text
from tests.tools.codegen.samples import function
from tools.codegen import limits, trace
from tools.codegen.ir.graph import Called, DataSized
from tools.cost.rank_schedules import modelled_choices
from tools.hardware import load_sheet
from tools.problems import load_problem
from tools.problems.variants import VARIANTS
from tools.records import Problem
from tools.references.graph_text import as_text, from_text
from tools.references.tracing import trace_apart

SLEEPING = "import os\nimport pathlib\nimport time\n\npathlib.Path(PLACE).write_text(str(os.getpid()))\ntime.sleep(60)\n"


@pytest.fixture(scope="module")
def softmax(tmp_path_factory: pytest.TempPathFactory) -> Problem:
    """The softmax of 2 x."""
    path = tmp_path_factory.mktemp("problem") / "softmax.py"
    path.write_text(REFERENCE)
    return load_problem(path)


@pytest.fixture
def slow(softmax: Problem, tmp_path: Path) -> Problem:
    """The same problem, whose file writes down its process when it is run, and sleeps."""
    source = SLEEPING.replace("PLACE", repr(str(tmp_path / "process"))) + REFERENCE
    found = softmax.model_copy(update={"source": source})
    VARIANTS.keep(found, ())
    return found


def test_a_trace_apart_is_the_trace_made_here(softmax: Problem) -> None:
    """Graph and choices come back from the process as they are made in this one, to the last number."""
    sheet = load_sheet("h200")
    graph = trace(softmax)
    assert trace_apart(softmax, sheet) == (graph, modelled_choices(graph, sheet, softmax.policy))


def test_what_is_made_of_positions_comes_back_too() -> None:
    """A graph with an identity matrix and with numbers from a list is the same after its way through a process."""
    _, graph = traced_text(function("x[:, :4] * torch.tensor([8, 5, 5, 1]) + torch.eye(ROWS)[:, :4]"))
    assert from_text(as_text(graph, ())) == (graph, ())


@pytest.mark.parametrize(
    "line", ["x[x > 0].mean() + x", "x + torch.cov(x).sum()", "torch.repeat_interleave(x, x[:, 0].abs().int(), 0).sum(0) + x"]
)
def test_what_data_decide_comes_back_too(line: str) -> None:
    """A graph with operators of which data decide the sizes, or that cannot be traced, is the same after its way through a process."""
    _, graph = traced_text(function(line))
    assert any(isinstance(node, Called | DataSized) for node in graph.nodes)
    assert from_text(as_text(graph, ())) == (graph, ())


def test_a_trace_over_its_limit_ends_with_a_sentence_and_leaves_no_process(slow: Problem, tmp_path: Path) -> None:
    """It ends in time, names the limit and the option, and nothing of it runs on."""
    found = trace_apart(slow, limit_s=1.0)
    assert found.choices == ()
    [limit] = limits(found.graph)
    assert limit.reason == "tracing the reference took longer than 1 s, the limit of --trace-timeout"
    assert not Path("/proc", (tmp_path / "process").read_text()).exists()


def test_a_slow_trace_keeps_no_other_waiting(softmax: Problem, slow: Problem) -> None:
    """While one problem's file sleeps, and a memory is at work, another one is traced."""
    with ThreadPoolExecutor(1) as threads, _TURN:
        slower = threads.submit(trace_apart, slow, limit_s=3.0)
        assert trace_apart(softmax).graph.nodes
        assert not slower.done()
        assert slower.result().graph.blocked


def test_a_reference_that_ends_its_process_is_blocked(softmax: Problem) -> None:
    """What kills the process that traces it is told, and kills nothing else."""
    source = f"import os\n\nos.abort()\n{REFERENCE}"
    killer = softmax.model_copy(update={"source": source})
    assert "died of SIGABRT" in trace_apart(killer).graph.blocked[0]
