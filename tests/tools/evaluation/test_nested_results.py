"""What forward returns is made as what the reference returns, or refused: judged in the sandbox, without a GPU."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from tools.evaluation import EvaluationRequest, LocalPool
from tools.problems import load_problem
from tools.records import Evaluation, Problem, Verdict

PROBLEM = """
from typing import NamedTuple

import torch

rows = 4
columns = 96
SMALL_SIZES = [{"rows": 3, "columns": 65}]


class State(NamedTuple):
    h: torch.Tensor
    c: torch.Tensor


class Model(torch.nn.Module):
    def forward(self, x, y):
        return {"logits": x + y, "loss": None, "state": State(x * 2, y * 2), "both": (x - y, [y - x])}


def get_inputs():
    return [torch.randn(rows, columns), torch.randn(rows, columns)]
"""
KERNEL = """
from typing import NamedTuple

import torch
import triton
import triton.language as tl


@triton.jit
def mix_kernel(x_ptr, y_ptr, out_ptr, a, b, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x, y = tl.load(x_ptr + offsets, mask=mask), tl.load(y_ptr + offsets, mask=mask)
    tl.store(out_ptr + offsets, a * x + b * y, mask=mask)


def mix(x, y, a, b):
    out = torch.empty_like(x)
    mix_kernel[(triton.cdiv(x.numel(), 1024),)](x, y, out, float(a), float(b), x.numel(), BLOCK=1024)
    return out


class State(NamedTuple):
    h: torch.Tensor
    c: torch.Tensor


class Lazy(dict):
    pass


class ModelNew(torch.nn.Module):
    def forward(self, x, y):
        h, c, both = mix(x, y, 2, 0), mix(x, y, 0, 2), (mix(x, y, 1, -1), [mix(x, y, -1, 1)])
        return RESULT
"""
RIGHT = '{"logits": mix(x, y, 1, 1), "loss": None, "state": State(h, c), "both": both}'
OTHERS = {
    "keys in another order": (f'{{"both": both, **{RIGHT}}}', "{'both': (tensor, [tensor]), 'logits': tensor"),
    "another key": (RIGHT.replace('"loss"', '"Loss"'), "'Loss': None"),
    "a missing key": (RIGHT.replace('"loss": None, ', ""), "{'logits': tensor, 'state'"),
    "a tuple for a NamedTuple": (RIGHT.replace("State(h, c)", "(h, c)"), "'state': (tensor, tensor)"),
    "a list for a tuple": (RIGHT.replace('"both": both', '"both": list(both)'), "'both': [tensor, [tensor]]"),
    "a tuple for a list": (RIGHT.replace('"both": both', '"both": (both[0], tuple(both[1]))'), "'both': (tensor, (tensor,))"),
    "all flat": ("(mix(x, y, 1, 1), h, c, both[0], both[1][0])", "(tensor, tensor, tensor, tensor, tensor)"),
    "a tensor for None": (RIGHT.replace('"loss": None', '"loss": h'), "6 tensors, the ABI says 5"),
    "a missing tensor": (RIGHT.replace("State(h, c)", "State(h, None)"), "4 tensors, the ABI says 5"),
    "a class of its own": (f"Lazy({RIGHT})", "0 tensors, the ABI says 5: <Lazy>"),
    "a number beside": (RIGHT.replace('"loss": None', '"loss": 0.5'), "'loss': <float>"),
}
"""What forward returns, and what the notes say of it."""


@pytest.fixture(scope="module")
def nested(tmp_path_factory: pytest.TempPathFactory) -> Problem:
    """A reference that returns a dictionary of tensors, None, a NamedTuple, a tuple and a list."""
    file = tmp_path_factory.mktemp("nested") / "nested.py"
    file.write_text(PROBLEM)
    return load_problem(file)


@pytest.fixture(scope="module")
def asked(nested: Problem, request_for: Callable[..., EvaluationRequest]) -> Callable[[str], EvaluationRequest]:
    """Ask for a candidate that returns so."""
    return lambda result: request_for(KERNEL.replace("RESULT", result), of=nested)


def test_the_same_structure_passes(pool: LocalPool, asked: Callable[[str], EvaluationRequest]) -> None:
    """A candidate that returns what the reference returns, made so, is right."""
    found = asyncio.run(pool.evaluate(asked(RIGHT)))

    assert found.verdict is Verdict.PASS, (found.notes, found.log)


@pytest.mark.parametrize("other", OTHERS)
def test_another_structure_is_refused(pool: LocalPool, asked: Callable[[str], EvaluationRequest], other: str) -> None:
    """Right tensors in another structure are wrong, and the notes show both structures."""
    result, words = OTHERS[other]
    found = asyncio.run(pool.evaluate(asked(result)))

    assert found.verdict is Verdict.WRONG, (found.notes, found.log)
    assert words in " ".join(found.notes)
    assert "State(h=tensor, c=tensor)" in " ".join(found.notes)


def test_right_keys_with_each_others_tensors_are_wrong(pool: LocalPool, asked: Callable[[str], EvaluationRequest]) -> None:
    """The structure alone proves nothing: each tensor is judged in its place."""
    found = asyncio.run(pool.evaluate(asked(RIGHT.replace("State(h, c)", "State(c, h)"))))

    assert found.verdict is Verdict.WRONG


@pytest.mark.parametrize("result", ["(out,)", "[out]", "{'out': out}", "(out, None)"])
def test_one_tensor_stands_alone(judge: Callable[..., Evaluation], kernel: str, result: str) -> None:
    """Where the reference returns a tensor, so does a candidate, and none within a container."""
    found = judge(kernel.replace("return out", f"return {result}"))

    assert found.verdict is Verdict.WRONG, (found.notes, found.log)
    assert "another structure" in " ".join(found.notes)
