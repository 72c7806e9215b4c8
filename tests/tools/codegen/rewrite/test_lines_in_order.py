"""What comes turned to a depthwise convolution along lines is put in order by what makes it."""

from __future__ import annotations

from pathlib import Path

from tests.tools.codegen.compute_samples import module
from tests.tools.codegen.harness import generated, run_worker, traced_text, write_job
from tools.codegen import emit

LINES = "self.conv = torch.nn.Conv1d(64, 64, 9, padding=4, groups=64)"
TURNED = "return self.conv((x * torch.sigmoid(x)).transpose(1, 2).contiguous())"


def written(forward: str, inputs: str = "torch.randn(4, 512, 64)") -> tuple[list[tuple[str, ...]], str]:
    """Name the operators of each natural region, and give the text with all of them generated."""
    problem, graph = traced_text(module(LINES, forward, inputs), "turned")
    schedule = generated(graph, {"pointwise": {}, "depthwise": {}})
    return [tuple(graph.by_name[name].op for name in region.nodes) for region in schedule.regions], emit(problem, graph, schedule).source


def test_what_is_made_is_written_as_the_convolution_reads_it() -> None:
    """A gate before a transpose writes lines; no copy stands between its kernel and the convolution's."""
    regions, source = written(TURNED)
    assert regions == [("sigmoid", "mul", "contiguous"), ("conv1d",)]
    assert ".transpose(" not in source


def test_lines_that_were_turned_are_right(tmp_path: Path) -> None:
    """The kernel before the convolution writes the lines of every channel, here of a causal convolution, in their order."""
    causal = module("self.conv = torch.nn.Conv1d(8, 8, 4, padding=3, groups=8)", TURNED, "torch.randn(2, 48, 8)")
    problem, graph = traced_text(causal, "causal")
    source = emit(problem, graph, generated(graph, {"pointwise": {}, "depthwise": {}})).source
    (result,) = run_worker("interpreter_worker.py", [write_job(tmp_path, "causal", problem, source)], interpret=True)
    assert "crash" not in result, result["crash"]
    assert result["error"] <= 1.0


def test_a_turned_input_stays_the_hosts_to_copy() -> None:
    """Where nothing is made before, there is no kernel that could write lines on the way."""
    assert written("return self.conv(x.transpose(1, 2))")[0] == [("conv1d",)]


def test_lines_that_lie_in_order_are_read_as_they_are() -> None:
    """Nothing is put before a convolution of lines that lie in memory one after the other."""
    assert written("return self.conv(x * torch.sigmoid(x))", "torch.randn(4, 64, 512)")[0] == [("sigmoid", "mul"), ("conv1d",)]
