"""What cannot be generated is said, and left to the reference."""

from __future__ import annotations

from tests.tools.codegen.compute_samples import CONVOLUTIONS, module
from tests.tools.codegen.harness import problem_of, trace_problem
from tests.tools.codegen.samples import function
from tools.codegen import emit, initial_schedule, limits, options
from tools.hardware import load_sheet

UNEVEN = CONVOLUTIONS["mixed"].replace("c, c, 3, padding=1, groups=2", "c, c, 4, padding='same', groups=2")
"""A convolution with more padding at the end of a dimension than at its beginning."""


def test_convolution_is_a_limit_with_a_reason() -> None:
    """A convolution that is padded unevenly is named with the reason, and the emitted source says that the library runs it."""
    problem = problem_of(UNEVEN)
    graph = trace_problem(problem)
    found = {limit.operator: limit.reason for limit in limits(graph)}
    assert "more padding at an end than at the other" in found["aten.conv2d.padding"]
    emission = emit(problem, graph, initial_schedule(graph))
    assert any("aten.conv2d.padding is left to the library" in note for note in emission.notes)
    assert "Left to the library: aten.conv2d.padding" in emission.source


def test_untraceable_reference_keeps_its_forward() -> None:
    """A reference whose control flow depends on data is kept as it is, with the reason, and offers no action."""
    problem = problem_of(function("x * 2 if float(x.sum()) > 0 else x"))
    graph = trace_problem(problem)
    emission = emit(problem, graph, initial_schedule(graph))
    assert graph.blocked
    assert options(graph, initial_schedule(graph), load_sheet("h200")) == ()
    assert "class ModelNew" in emission.source
    assert emission.notes


def test_what_batch_norm_writes_to_its_module_is_left_to_the_library() -> None:
    """Batch norm in training mode can be generated; the updates of its buffers are limits, and are emitted as library calls."""
    source = (
        "import torch\nfrom torch import nn\n\nN = 4\n\n\nclass Model(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
        "        self.bn = nn.BatchNorm2d(3)\n\n    def forward(self, x):\n        return torch.relu(self.bn(x))\n\n\n"
        "def get_inputs():\n    return [torch.randn(N, 3, 8, 8)]\n\n\ndef get_init_inputs():\n    return []\n"
    )
    problem = problem_of(source)
    training = problem.model_copy(update={"abi": problem.abi.model_copy(update={"training": True})})
    graph = trace_problem(training)
    reasons = {limit.operator: limit.reason for limit in limits(graph)}
    assert "or of a buffer" in reasons["aten.copy_.default"]
    source = emit(training, graph, initial_schedule(graph)).source
    assert "torch._foreach_copy_([self.bn.running_mean, self.bn.running_var], [" in source
    assert "self.bn.num_batches_tracked.add_(1)" in source


def test_every_limit_names_its_operator() -> None:
    """A limit says which operator and why, in words."""
    graph = trace_problem(problem_of(UNEVEN))
    assert limits(graph)
    assert all(limit.operator and limit.reason for limit in limits(graph))


def test_a_constructor_that_reads_numbers_out_of_tensors_can_be_traced() -> None:
    """Where the constructor needs contents, which a trace has not, it runs for real."""
    numbers = "self.rates = [x.item() for x in torch.linspace(0, 0.5, 3)]; self.l = torch.nn.Linear(c, c)"
    graph = trace_problem(problem_of(module(numbers, "return self.l(x) * (1 - self.rates[1])", "torch.randn(5, 8)")))
    assert not graph.blocked
    assert [node.op for node in graph.nodes] == ["linear", "mul"]
