"""Opening a problem again: inputs, weights, sizes, and nothing left over from another one."""

import inspect
import subprocess
import sys
from collections.abc import Callable

import torch

from tools.problems import open_problem, small_variants
from tools.records import Problem

Load = Callable[..., Problem]

MODEL = """
class Model(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(features))
        self.norm = nn.LayerNorm(features)

    def forward(self, x):
        # keep me
        return self.norm(x) * self.weight

batch_size = 24
features = 40

def get_inputs():
    return [torch.randn(batch_size, features).t().contiguous().t()]

def get_init_inputs():
    return [features]
"""


def test_inputs_depend_on_the_seed_alone(softmax: Problem) -> None:
    """Equal seeds give equal inputs, other seeds others, whatever the caller's generator has drawn."""
    reference = open_problem(softmax)
    first = reference.inputs(seed=5)[0]
    torch.rand(7)
    assert torch.equal(first, open_problem(softmax).inputs(seed=5)[0])
    assert not torch.equal(first, reference.inputs(seed=6)[0])


def test_the_callers_generator_is_left_alone(softmax: Problem) -> None:
    """Making a reference and its inputs draws nothing from the caller's random numbers."""
    torch.manual_seed(1)
    expected = torch.rand(3)
    torch.manual_seed(1)
    open_problem(softmax).inputs(seed=9)
    assert torch.equal(torch.rand(3), expected)


def test_a_nested_result_is_flat_in_the_abi_and_described_beside(load: Load) -> None:
    """Outputs are listed in the order of tuples, fields and keys, without what is None; the ABI says how they lie, as do its variants'."""
    body = "return {'b': (x, [x.sum(1), None]), 'a': torch.max(x, 1)}"
    problem = load(f"ROWS = 8\n\ndef f(x):\n    {body}\n\ndef example_inputs():\n    return (torch.randn(ROWS, 3),)\n")
    reference = open_problem(problem)
    outputs = reference.outputs(reference.inputs(seed=0))
    assert [tuple(output.shape) for output in outputs] == [spec.shape for spec in problem.abi.outputs] == [(8, 3), (8,), (8,), (8,)]
    structure = "{'b': (tensor, [tensor, None]), 'a': torch.return_types.max((tensor, tensor))}"
    assert {each.abi.returns for each in (problem, *small_variants(problem))} == {structure}


def test_reference_agrees_with_its_abi(load: Load) -> None:
    """Inputs are contiguous and of the ABI's shapes; parameters come in its order with the same values every time."""
    problem = load(MODEL)
    reference, again = open_problem(problem), open_problem(problem)
    inputs = reference.inputs(seed=0)
    assert inputs[0].is_contiguous()
    assert list(reference.parameters()) == [spec.name for spec in problem.abi.parameters]
    assert all(torch.equal(value, again.parameters()[name]) for name, value in reference.parameters().items())
    assert [tuple(o.shape) for o in reference.outputs(inputs)] == [spec.shape for spec in problem.abi.outputs]
    assert reference.module.training


def test_function_is_wrapped_as_a_module(softmax: Problem) -> None:
    """A plain function becomes a module that torch.export can trace."""
    reference = open_problem(softmax)
    inputs = reference.inputs(seed=0)
    program = torch.export.export(reference.module, tuple(inputs))
    assert torch.allclose(program.module()(*inputs), torch.softmax(inputs[0], -1))


def test_variant_opens_at_its_own_sizes(load: Load) -> None:
    """Overridden constants reach inputs and constructor alike."""
    for variant in small_variants(load(MODEL)):
        reference = open_problem(variant)
        assert tuple(reference.inputs(seed=0)[0].shape) == (variant.sizes["batch_size"], variant.sizes["features"])
        assert reference.parameters()["weight"].shape == (variant.sizes["features"],)


def test_source_of_the_reference_can_be_inspected(load: Load) -> None:
    """The source runs from a real file, comments and all."""
    assert "# keep me" in inspect.getsource(type(open_problem(load(MODEL)).module))


def test_references_share_nothing(collect: Callable[[], int], load: Load) -> None:
    """A global that one opening changes is not seen by another, and modules are forgotten with their references."""
    source = (
        "CALLS = []\n\ndef f(x):\n    return x + 1\n\n"
        "def example_inputs():\n    CALLS.append(1)\n    assert len(CALLS) == 1\n    return (torch.randn(4, 5),)\n"
    )
    problem = load(source)
    before = {name for name in sys.modules if name.startswith("kernelwright_problem_")}
    references = [open_problem(problem) for _ in range(3)]
    for reference in references:
        reference.inputs(seed=0)
    del references, reference
    collect()
    assert {name for name in sys.modules if name.startswith("kernelwright_problem_")} <= before


def test_numpy_and_python_randomness_follow_the_seed(load: Load) -> None:
    """Inputs drawn by numpy or random are as reproducible as torch's."""
    problem = load(
        "import random\nimport numpy as np\n\ndef f(x, y):\n    return x * y\n\n"
        "def example_inputs():\n    return torch.from_numpy(np.random.rand(20, 30)).float(), torch.tensor([random.random()])\n"
    )
    reference = open_problem(problem)
    left, right = reference.inputs(seed=3), reference.inputs(seed=3)
    assert all(torch.equal(a, b) for a, b in zip(left, right, strict=True))


def test_inputs_can_be_made_for_another_device(softmax: Problem) -> None:
    """The device asked for is the device of every tensor; meta stands in for a GPU here."""
    assert open_problem(softmax).inputs(seed=0, device="meta")[0].device.type == "meta"


def test_importing_problems_does_not_import_torch() -> None:
    """The command line's help does not pay for torch."""
    code = "import sys, tools.problems, tools.hardware; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
