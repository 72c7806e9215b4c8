"""The oracle computes in float64 what a reference casts to float32, and rounds where the reference rounds."""

from __future__ import annotations

import asyncio
import weakref
from pathlib import Path

import pytest
import torch

from tools.evaluation import EvaluationRequest, LocalPool
from tools.evaluation.trusted.reference import Oracle
from tools.hardware import load_sheet
from tools.problems import load_problem


def written(folder: Path, body: str) -> Path:
    """Write a reference that does what `body` says, for x [2, 4] in bfloat16 and a parameter [4] in bfloat16."""
    file = folder / "op.py"
    file.write_text(f"""
import torch


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(4, dtype=torch.bfloat16))

    def forward(self, x):
        {body}


def get_inputs():
    return [torch.randn(2, 4).to(torch.bfloat16)]


def get_init_inputs():
    return []
""")
    return file


def truth(folder: Path, body: str, x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    """Compute it in the oracle."""
    return Oracle(load_problem(written(folder, body)), {"weight": weight}, "cpu").outputs([x])[0]


X = torch.tensor([[1.0, -2.5, 0.375, 3.0], [0.5, 2.0, -1.25, 4.0]], dtype=torch.bfloat16)
WEIGHT = torch.tensor([0.75, 1.5, -2.0, 0.3125], dtype=torch.bfloat16)


def test_what_is_not_widened_may_mix_float32_by_name_and_by_default(tmp_path: Path) -> None:
    """A quantiser takes float32 alone, and a sum in float32 by name goes into what `torch.zeros` makes."""
    count = "torch.zeros(4).scatter_add_(0, torch.arange(4), torch.ones(4, dtype=torch.float32))"
    found = truth(tmp_path, f"return torch.quantize_per_tensor(x.float(), 0.125, 0, torch.qint8).dequantize() + {count}", X, WEIGHT)
    assert torch.equal(found.double(), X.double() + 1)


def test_arguments_are_made_in_their_own_dtypes(tmp_path: Path) -> None:
    """What writes changed elements into float32 inputs, call by call, makes them outside of what is widened."""
    oracle = Oracle(load_problem(written(tmp_path, "return x.float() + torch.zeros(4)")), {"weight": WEIGHT}, "cpu")
    base = torch.ones(2, 4, dtype=torch.float32)

    def arguments() -> list[torch.Tensor]:
        return [base.clone().index_copy_(0, torch.tensor([1]), torch.zeros(1, 4, dtype=torch.float32))]

    assert oracle.truth(arguments)[0].tolist() == [[1.0] * 4, [0.0] * 4]
    assert oracle.widens


def test_the_first_of_several_failures_is_told_and_holds_no_arguments(tmp_path: Path) -> None:
    """What fails at each precision says why it failed widened, and where; each try's arguments are gone before the next are made."""
    body = """if self.weight.dtype == torch.float64:
            raise RuntimeError(str(torch.ones(1, dtype=torch.float32).dtype))
        return x"""
    oracle = Oracle(load_problem(written(tmp_path, body)), {"weight": WEIGHT}, "cpu")
    made: list[weakref.ref[torch.Tensor]] = []

    def arguments() -> list[torch.Tensor]:
        assert all(one() is None for one in made)
        x = torch.ones(2, 4, dtype=torch.float64)
        made.append(weakref.ref(x))
        return [x]

    with pytest.raises(RuntimeError, match="float64") as told:
        oracle._run(arguments)
    assert told.traceback[-1].path.suffix == ".py"
    assert "raise RuntimeError" in str(told.traceback[-1].statement)
    assert len(made) == 3


@pytest.mark.parametrize(
    "body",
    ["return x.float().exp()", "return x.to(torch.float32).exp()", "return torch.exp(x.to(dtype=torch.float32))"],
)
def test_casts_to_float32_are_to_float64(tmp_path: Path, body: str) -> None:
    """However a reference says it, what it computes in float32 is exact to float64's digits."""
    found = truth(tmp_path, body, X, WEIGHT)
    assert found.dtype == torch.float64
    assert torch.equal(found, X.double().exp())


def test_a_sum_in_float32_is_one_in_float64(tmp_path: Path) -> None:
    """An operator's own argument for its precision counts like a cast, and so do tensors that are made in float32."""
    found = truth(tmp_path, "return x.sum(-1, dtype=torch.float32) + torch.full((2,), 0.1, dtype=torch.float32)", X, WEIGHT)
    assert torch.equal(found, X.double().sum(-1) + 0.1)


def test_what_is_beyond_float32_stays_finite(tmp_path: Path) -> None:
    """A square that overflows in float32 does not in the oracle: there the reference has no digits, and is seen to have none."""
    large = X * 2.0**70
    assert torch.equal(truth(tmp_path, "return x.float().pow(2)", large, WEIGHT), large.double() ** 2)


def test_casts_to_half_precision_round_and_meet_parameters(tmp_path: Path) -> None:
    """A rounding that the reference asks for takes place, and its result can be multiplied with a parameter in float64."""
    found = truth(tmp_path, "return torch.nn.functional.linear((x.float() / 3).to(torch.bfloat16), self.weight[None])", X, WEIGHT)
    rounded = (X.double() / 3).to(torch.bfloat16).double()
    assert torch.allclose(found, rounded @ WEIGHT.double()[:, None], rtol=1e-14)


@pytest.mark.parametrize("of", ["tensor", "channel"])
def test_a_grid_of_numbers_has_its_scale_in_float64(tmp_path: Path, of: str) -> None:
    """The operator refuses such a scale: what it makes is written out, each element beside the nearest step of the grid."""
    scale = "self.weight[1].float() / 3" if of == "tensor" else "self.weight.float().abs() / 3"
    zero, axis = ("1", "") if of == "tensor" else ("4", "1, ")
    call = f"torch.fake_quantize_per_{of}_affine(x.float(), {scale}, torch.ones({zero}, dtype=torch.int32), {axis}-8, 7)"
    found = truth(tmp_path, f"return {call}", X, WEIGHT)
    step = WEIGHT.double()[1] / 3 if of == "tensor" else WEIGHT.double().abs() / 3
    assert found.dtype == torch.float64
    assert torch.allclose(found, ((X.double() / step).round() + 1).clamp(-8, 7).sub(1) * step, rtol=1e-12)


@pytest.mark.parametrize(("zero", "steps"), [(1, -9), (-2, 9)])
@pytest.mark.parametrize("of", ["tensor", "channel"])
def test_what_is_no_number_is_the_least_of_a_grid(tmp_path: Path, of: str, zero: int, steps: int) -> None:
    """As the operator makes it, which casts to whole numbers; a channel's zero point below none wraps that around to the largest."""
    scale, axis, count = ("self.weight.abs().float()", "1, ", 4) if of == "channel" else ("self.weight[1].abs().float()", "", 1)
    zeros = f"torch.full(({count},), {zero}, dtype=torch.int32)"
    call = f"torch.fake_quantize_per_{of}_affine(x.float() * float('nan'), {scale}, {zeros}, {axis}-8, 7)"
    steps = -8 - zero if of == "tensor" else steps
    wanted = steps * (WEIGHT.double().abs() if of == "channel" else WEIGHT.double()[1].abs())
    found = truth(tmp_path, f"return {call}", X, WEIGHT)
    assert torch.allclose(found, wanted.expand(found.shape))


def test_a_grid_that_is_switched_off_rounds_nothing(tmp_path: Path) -> None:
    """As modules of quantisation-aware training do until their ranges are known."""
    given = "x.float(), self.weight[1].float(), torch.ones(1, dtype=torch.int32), torch.zeros(1, dtype=torch.int64), -8, 7"
    found = truth(tmp_path, f"return torch._fake_quantize_per_tensor_affine_cachemask_tensor_qparams({given})[0]", X, WEIGHT)
    assert torch.equal(found, X.double())


BITS = "return (x.float().view(torch.int32) & 0x7FFFFFFF).view(torch.float32).reshape(2, 4) * 1.0"
"""It cannot be run in float64, whose elements are twice as wide."""


def test_views_of_bits_are_taken_as_they_are(tmp_path: Path) -> None:
    """Where bits are looked at in float32, that part is computed in float32, as the reference says."""
    assert torch.equal(truth(tmp_path, BITS, X, WEIGHT), X.double().abs().to(torch.float32))


def test_an_oracle_that_cannot_widen_says_so(pool: LocalPool, tmp_path: Path) -> None:
    """An evaluation notes that its truth was partly computed in float32; one whose casts are widened has no such note."""
    for body, noted in ((BITS, True), ("return x.float().abs()", False)):
        file = written(tmp_path, body)
        problem = load_problem(file)
        source = file.read_text() + "\n\nclass ModelNew(Model):\n    pass\n"
        request = EvaluationRequest(problem=problem, variants=(), candidate="c", source=source, target=load_sheet("h200"), timeout_s=60)
        found = asyncio.run(pool.evaluate(request))
        assert found.verdict == "PASS", found.notes
        assert any("casts to float32 widened" in note for note in found.notes) is noted, found.notes
