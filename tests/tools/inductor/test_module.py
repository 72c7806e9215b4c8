"""The file made of recorded text of Inductor's: a product, a norm and a scan at three sizes."""

from __future__ import annotations

import ast
import json
from pathlib import Path

import pytest

from tools.evaluation.supervisor.static_rules import inspect_source
from tools.evaluation.wire.configurations import kernel_signature
from tools.inductor import RefusedError, Written, candidate_text
from tools.records import Problem
from tools.tuning.written import written_numbers

RECORDED = json.loads((Path(__file__).parent / "recorded" / "linear_norm.json").read_text())
PROBLEM = Problem.model_validate(RECORDED["problem"])
WRITTEN = Written.model_validate(RECORDED["written"])


@pytest.fixture(scope="module")
def source() -> str:
    """The candidate."""
    return candidate_text(PROBLEM, WRITTEN)


def test_the_file_stands_alone(source: str) -> None:
    """It imports torch and Triton alone, says where it comes from, and no static rule has anything to say."""
    tree = ast.parse(source)
    imported = {ast.unparse(node) for node in tree.body if isinstance(node, ast.Import | ast.ImportFrom)}
    own = {"import torch", "import triton", "import triton.language as tl", "from torch import nn"}
    assert imported == {*own, "from triton.language.extra import libdevice"}
    assert (ast.get_docstring(tree) or "").startswith("linear_norm: derived from torch.compile, the kernels that Inductor of torch 2.13.0")
    assert inspect_source(source) == ()


def test_the_module_keeps_its_constructor_and_its_parameters(source: str) -> None:
    """A state dict of the reference loads, and the forward gives parameters in the order of the wrapper."""
    assert "self.linear = nn.Linear(width, hidden)" in source
    assert "outputs = compiled(self.linear.weight, self.linear.bias, self.norm.weight, self.norm.bias, x)" in source
    assert "return tuple(outputs)" in source


def test_the_result_is_made_as_the_references() -> None:
    """Outputs, among which each None has its place, lie in the result as the ABI says."""
    abi = PROBLEM.abi.model_copy(update={"returns": "{'loss': None, 'state': State(h=tensor, c=[tensor, tensor])}"})
    source = candidate_text(PROBLEM.model_copy(update={"abi": abi}), WRITTEN)
    assert "import collections\n" in source
    assert "\nState = collections.namedtuple(\"State\", ['h', 'c'])\n" in source
    assert "        return {'loss': None, 'state': State(h=outputs[1], c=[outputs[2], outputs[3]])}" in source


def test_each_size_finds_its_program_and_others_are_refused(source: str) -> None:
    """The table has the shapes of all tensors; sizes that differ in numbers alone share kernels."""
    assert "((80, 48), (80,), (80,), (80,), (64, 48)): (program_0, ())," in source
    assert source.count("): (program_") == 3
    assert source.count("@triton.jit\ndef cumsum_kernel") == 2 * 2
    assert "raise ValueError" in source


def test_only_the_problems_own_size_is_autotuned(source: str) -> None:
    """Where Inductor would choose among configurations, the device does; what is written in place is restored between tries."""
    assert source.count("triton.autotune(") == 2
    assert "key=[], restore_value=['in_out_ptr0']," in source
    assert "gelu_native_layer_norm_kernel[cdiv(5, 1),](buf0, norm_weight, norm_bias, 5, 257" in source


def test_a_sweep_of_numbers_leaves_sizes_alone() -> None:
    """A tuner finds blocks, warps and stages of a fixed configuration, and nothing that stands for a size."""
    fixed = [
        program.model_copy(update={"kernels": {n: k.model_copy(update={"launchers": k.launchers[:1]}) for n, k in program.kernels.items()}})
        for program in WRITTEN.programs[:1]
    ]
    source = candidate_text(PROBLEM, WRITTEN.model_copy(update={"programs": tuple(fixed)}))
    names = {number.name.rpartition(".")[2] for number in written_numbers(source, (64, 48, 80))}
    assert names == {"XBLOCK", "num_warps", "num_stages"}


def test_a_configuration_that_was_chosen_by_timing_is_taken() -> None:
    """What torch.compile's own process chose is fixed at the problem's own size, whatever the kernel is called there."""
    first = WRITTEN.programs[0]
    name = next(name for name in first.kernels if "cumsum" in name)
    there = first.kernels[name].source.replace(name, "triton_per_fused_cumsum_77")
    chosen = {kernel_signature(there, "triton_per_fused_cumsum_77"): {"XBLOCK": 8, "num_warps": 2, "num_stages": 1}}
    source = candidate_text(PROBLEM, WRITTEN, chosen)
    assert source.count("triton.autotune(") == 1
    assert "cumsum_kernel[cdiv(64, 8),](x, buf6, 64, 48, n0=64, n1=48, XBLOCK=8, num_warps=2, num_stages=1)" in source


def test_a_refusal_is_kept() -> None:
    """What Inductor could not write is said, and no file made."""
    with pytest.raises(RefusedError, match="because"):
        candidate_text(PROBLEM, Written(torch="", refused="because"))


def test_a_form_that_is_not_known_is_refused() -> None:
    """Text of another version of Inductor's, which the reader stumbles over, is one line and no crash."""
    first = WRITTEN.programs[0]
    other = first.model_copy(update={"code": first.code.replace(", 64, 80, stream", ", ks0, 80, stream")})
    with pytest.raises(RefusedError, match=r"Inductor of torch 2.13.0\+cpu wrote a form that is not known \(KeyError"):
        candidate_text(PROBLEM, WRITTEN.model_copy(update={"programs": (other,)}))


def test_two_programs_for_the_same_shapes_are_refused() -> None:
    """Where no tensor's shape tells two sizes apart, nothing is guessed."""
    first, second, _ = WRITTEN.programs
    same = second.model_copy(update={"operands": first.operands})
    with pytest.raises(RefusedError, match="tensors of the same shapes"):
        candidate_text(PROBLEM, WRITTEN.model_copy(update={"programs": (first, same)}))
