"""Blocks of mixtures of experts are written as problems with sizes that vary, and stand in a capture as one operator."""

# ruff: noqa: D102 - what a forward does, its class says

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn
from torch.nn import functional

from data.models.mixture import SMALL, Expert, Mixture, make, workloads
from tools.models.capturing.capture import capture
from tools.models.capturing.problem_text import ProblemText
from tools.models.forward.text import UntraceableError
from tools.models.loading import Workload
from tools.models.suitability import expert_by_expert


class Sparse(nn.Module):
    """As transformers' Mixtral, OLMoE and Qwen-MoE blocks do it: over the experts that were hit, by a mask of ones."""

    def __init__(self) -> None:
        super().__init__()
        self.gate = nn.Linear(SMALL.hidden, SMALL.experts, bias=False)
        self.experts = nn.ModuleList(Expert(SMALL) for _ in range(SMALL.experts))

    def forward(self, hidden_states: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        batch, length, width = hidden_states.shape
        rows = hidden_states.view(-1, width)
        logits = self.gate(rows)
        weights, chosen = torch.topk(functional.softmax(logits, dim=1, dtype=torch.float), SMALL.chosen, dim=-1)
        weights = (weights / weights.sum(dim=-1, keepdim=True)).to(rows.dtype)
        final = torch.zeros((batch * length, width), dtype=rows.dtype, device=rows.device)
        mask = functional.one_hot(chosen, num_classes=SMALL.experts).permute(2, 1, 0)
        for index in torch.greater(mask.sum(dim=(-1, -2)), 0).nonzero():
            place, row = torch.where(mask[index].squeeze(0))
            current = self.experts[index](rows[None, row].reshape(-1, width)) * weights[row, place, None]
            final.index_add_(0, row, current.to(rows.dtype))
        return final.reshape(batch, length, width), logits


class Mixing(Sparse):
    """One whose experts see how many rows they got."""

    def forward(self, hidden_states: torch.Tensor) -> Any:
        rows = hidden_states.view(-1, SMALL.hidden)
        chosen, found = self.gate(rows).argmax(dim=-1), torch.zeros_like(rows)
        for index, expert in enumerate(self.experts):
            row = torch.where(chosen == index)[0]
            if len(row):
                made = expert(rows[row])
                found[row] = made - made.mean(dim=0)
        return found


@pytest.mark.parametrize("kind", [Sparse, lambda: Mixture(SMALL)])
def test_the_file_of_a_mixture_computes_what_the_module_does(kind: Any) -> None:
    """Its loop over the experts is written without asking for numbers of rows, at a free number of tokens."""
    torch.manual_seed(1)
    module = kind().eval()
    with torch.no_grad():
        text = ProblemText(module, (torch.randn(1, 12, SMALL.hidden),), {}, "mixture")
    assert text.picks_rows
    space: dict[str, Any] = {}
    exec(text.source, space)
    model, state = space["Model"](), dict(module.named_parameters())
    for tokens in (12, 7, 1):
        given = torch.randn(1, tokens, SMALL.hidden)
        with torch.no_grad():
            for name, own in text.parameters.items():
                getattr(model, name).copy_(state[own])
            wanted, found = module(given), model(given)
        for mine, theirs in zip(*((one,) if isinstance(one, torch.Tensor) else one for one in (found, wanted)), strict=True):
            assert torch.allclose(mine, theirs, atol=1e-6)
    assert text.sizes_of([torch.randn(1, 12, SMALL.hidden)]) == {"size0": 12}


def test_an_expert_that_mixes_its_rows_is_left_alone() -> None:
    """Control flow that depends on data in another way is named, with what is in the way."""
    with torch.no_grad(), pytest.raises(UntraceableError, match=r"depends on data: an expert's aten\.mean"):
        ProblemText(Mixing().eval(), (torch.randn(1, 12, SMALL.hidden),), {}, "mixing")


class Cut(nn.Module):
    """Writes to what a mask picks."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        found = x * 2.0
        found[x < 0] = 0.5
        return found


def test_what_a_mask_writes_to_is_traced_as_it_is() -> None:
    """A mask that picks no rows of experts is left in the trace."""
    with torch.no_grad():
        text = ProblemText(Cut().eval(), (torch.randn(4, 6),), {}, "cut")
    assert not text.picks_rows
    assert "index_put" in text.source


def test_a_mixture_is_one_operator_of_its_model() -> None:
    """The block and the layer around it are traced, each with its experts counted once."""
    torch.manual_seed(0)
    model = make()
    args = workloads(model)["prefill"]
    found = capture(model, [Workload(name="prefill", args=args, kwargs={}, weight=1.0)])
    groups = {group.name: group for group in found.groups}
    assert groups["mixture"].trace is not None
    assert groups["layer"].trace is not None
    assert groups["mixture"].operators < 40


def test_what_is_done_for_each_expert_counts_once() -> None:
    """Operators between two looks for rows count as often as they differ."""
    step = ["aten.nonzero.default", "aten.mm.default", "aten.eq.Scalar"]
    assert expert_by_expert(["aten.mm.default", *step, *step, *step, "aten.add.Tensor"]) == [
        "aten.mm.default", *step, *step, "aten.add.Tensor",
    ]  # fmt: skip
