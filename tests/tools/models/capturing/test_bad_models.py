"""Models with modules that no kernel can replace: the others are replaced all the same, and the whole is proven."""

# ruff: noqa: D102 - what a forward does, its class says

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from tests.tools.models.packaging.test_package import CONTRACT, KERNEL, opened
from tests.tools.models.samples import Mixed, Noisy, Norm
from tools.models.capturing.capture import capture
from tools.models.loading import Workload
from tools.models.packaging.delivered import Delivered
from tools.models.proof.prover import Prover
from tools.models.proof.random_numbers import Recorded, Replayed
from tools.models.suitability import static_reason


def rows(seed: int) -> list[Workload]:
    """One call by seed."""
    return [Workload("rows", (torch.randn(6, 16, generator=torch.Generator().manual_seed(seed)),), {}, 1.0)]


@pytest.fixture(scope="module")
def delivered() -> Delivered:
    """What a run would have delivered for two of the norms of the model that holds everything."""
    torch.manual_seed(0)
    found = capture(Mixed().eval(), rows(1))
    [norm] = [group for group in found.groups if group.paths == ("first", "second")]
    assert norm.trace is not None
    return Delivered(group=norm, trace=norm.trace, contract=CONTRACT, kernel=KERNEL, evidence=None)


def test_the_rest_of_a_model_is_replaced_and_proven(tmp_path: Path, delivered: Delivered) -> None:
    """Random numbers, state, writes in place, branches, eight bits, tied weights and a subclass of tensor stand beside two kernels."""
    package = opened(tmp_path / "beside_bad_ones", delivered)
    found = Prover(Mixed().eval().requires_grad_(False), package, rows, seed=1).correctness(graphs=False)
    assert found.holds
    assert found.replaced == ("first", "second")
    assert found.hits == {delivered.group.name: 4}
    assert found.oracle == "float64"
    assert "The model draws random numbers: every run is given the same." in found.notes


def test_a_wrong_kernel_beside_random_numbers_is_seen(tmp_path: Path, delivered: Delivered) -> None:
    """The same numbers in float32 and in float64 leave the limit as narrow as without any."""
    wrong = Delivered(group=delivered.group, trace=delivered.trace, contract=CONTRACT, kernel=KERNEL.replace("1e-5", "1e-3"), evidence=None)
    package = opened(tmp_path / "wrong_beside_bad_ones", wrong)
    assert not Prover(_Whole(Noisy()).eval().requires_grad_(False), package, rows, seed=1).correctness(graphs=False).holds


class Counting(nn.Module):
    """Keeps what it has seen in a buffer and in a list."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("total", torch.zeros(16))
        self.seen: list[int] = []

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.seen.append(len(self.seen))
        self.total += x.sum(0)
        return x + self.total * len(self.seen)


def test_a_proof_leaves_nothing_in_a_model_that_keeps_state(tmp_path: Path, delivered: Delivered) -> None:
    """What the runs of a proof add to buffers and lists is gone, and each begins from the same."""
    package = opened(tmp_path / "beside_state", delivered)
    counting = Counting()
    whole = _Whole(counting).eval().requires_grad_(False)
    found = Prover(whole, package, rows, seed=1).correctness(graphs=False)
    assert found.holds
    assert not counting.seen
    assert not counting.total.any()


class Unsteady(nn.Module):
    """Gives other last bits in every run, as what adds by atomics does on a GPU."""

    runs = 0

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        Unsteady.runs += 1
        return x * (1.0 + Unsteady.runs % 3 * torch.finfo(x.dtype).eps)


def test_a_model_that_varies_in_its_last_bits_can_be_proven(tmp_path: Path, delivered: Delivered) -> None:
    """What `remove` brings back is then compared within the model's precision, and that is said."""
    package = opened(tmp_path / "beside_atomics", delivered)
    found = Prover(_Whole(Unsteady()).eval().requires_grad_(False), package, rows, seed=1).correctness(graphs=False)
    assert found.holds
    assert any("other bits from run to run" in note for note in found.notes)


class Late(nn.Module):
    """Gives other last bits from its fifth run on, as a library that chooses another algorithm does."""

    runs = 0

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        Late.runs += 1
        return x * (1.0 + (Late.runs > 4) * torch.finfo(x.dtype).eps)


def test_other_last_bits_after_removal_are_no_fault(tmp_path: Path, delivered: Delivered) -> None:
    """A model whose first runs are alike and later ones are not is brought back all the same."""
    package = opened(tmp_path / "late_bits", delivered)
    assert Prover(_Whole(Late()).eval().requires_grad_(False), package, rows, seed=1).correctness(graphs=False).holds


def test_an_operator_that_stays_after_removal_is_a_fault(tmp_path: Path, delivered: Delivered, monkeypatch: pytest.MonkeyPatch) -> None:
    """However near its results are, a module of another class says that the original is not back."""
    package = opened(tmp_path / "left_behind", delivered)
    monkeypatch.setattr(package, "remove", lambda model: [])
    found = Prover(_Whole(Unsteady()).eval().requires_grad_(False), package, rows, seed=1).correctness(graphs=False)
    assert not found.restored


class Cache:
    """A cache that grows with each call, as those of transformers do."""

    def __init__(self) -> None:
        self.rows = torch.zeros(0, 16)

    def grown(self, x: torch.Tensor) -> torch.Tensor:
        """Keep rows, and give all."""
        self.rows = torch.cat((self.rows, x))
        return self.rows


class Remembering(nn.Module):
    """Reads all rows so far."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = Norm(), Norm()

    def forward(self, x: torch.Tensor, cache: Cache) -> torch.Tensor:
        return self.second(cache.grown(self.first(x))).sum(0)


def test_a_cache_that_grows_begins_anew_in_every_run(tmp_path: Path, delivered: Delivered) -> None:
    """It is copied for each run of a capture, of the proof and of the times: shapes and outputs are those of one call."""

    def cached(seed: int) -> list[Workload]:
        return [Workload("cached", (rows(seed)[0].args[0], Cache()), {}, 1.0)]

    model = Remembering().eval().requires_grad_(False)
    found = capture(model, cached(1))
    assert sum(count for group in found.groups if group.title == "Norm" for count in group.calls.values()) == 2
    prover = Prover(model, opened(tmp_path / "beside_a_cache", delivered), cached, seed=1)
    assert prover.correctness(graphs=False).holds
    [times] = prover.times([delivered.group.name], 3, compiled=False, max_autotune=False)
    assert all(len(each["cached"]) == 3 for each in times.values())


class _Whole(nn.Module):
    """Two norms with another module between them."""

    def __init__(self, middle: nn.Module) -> None:
        super().__init__()
        self.first, self.middle, self.second = Norm(), middle, Norm()

    def forward(self, x: torch.Tensor) -> Any:
        return self.second(self.middle(self.first(x)))


@pytest.mark.parametrize(
    "draw",
    [
        lambda x: x + torch.rand_like(x),
        lambda x: x + torch.empty_like(x).normal_(),
        lambda x: torch.dropout(x, 0.5, True),
        lambda x: x * torch.bernoulli(torch.full_like(x, 0.5)),
    ],
)
def test_random_numbers_are_the_same_in_another_dtype(draw: Any) -> None:
    """New tensors, tensors that are filled, dropout and its like."""
    x = torch.randn(4, 16)
    with Recorded() as recorded:
        first = draw(x)
    with Replayed(recorded.drawn):
        wide = draw(x.double())
    assert wide.dtype is torch.float64
    torch.testing.assert_close(wide.float(), first)


@pytest.mark.filterwarnings("ignore:torch.quantize_per_tensor")
def test_a_module_of_torchs_own_quantisation_is_named() -> None:
    """Its packed weights are no tensors that one could see."""
    module = torch.ao.nn.quantized.dynamic.Linear(16, 16).eval()
    assert static_reason(module, (torch.randn(2, 16),), set()) == "it is quantised (Linear)"


class GrownCache:
    """Keeps the rows of one call, and has no room for those of another."""

    rows: torch.Tensor | None = None


class Keeping(nn.Module):
    """Writes to the cache that it is called with."""

    def forward(self, x: torch.Tensor, cache: GrownCache) -> torch.Tensor:
        assert cache.rows is None, "size 12 does not fit 6"
        cache.rows = x
        return torch.tanh(x).cumsum(-1)


class Caching(nn.Module):
    """Makes a cache for each of its calls."""

    def __init__(self) -> None:
        super().__init__()
        self.keeping = Keeping()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.keeping(x, GrownCache())


def test_a_cache_that_has_grown_is_named_as_the_reason() -> None:
    """Called again by itself such a module fails of its full cache: what it says of that helps nobody."""
    [reason] = [group.reason for group in capture(Caching().eval(), rows(1)).groups if group.paths == ("keeping",)]
    assert "it is called with GrownCache, which is state (use_cache=False does without)" in reason
