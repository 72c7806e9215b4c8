"""Tracing without the checks of distributions."""

from __future__ import annotations

import pytest
import torch
from torch.distributions import Distribution, Normal

from tests.tools.codegen.harness import traced_text
from tests.tools.codegen.samples import XY, function
from tools.codegen.trace.exporter.checked_arguments import without_checked_arguments

POLICY = function(
    "(lambda p: p.log_prob(torch.relu(y).long()[:, 0]) + p.entropy())(torch.distributions.Categorical(logits=x{}))", XY, "x, y"
)


def test_log_probabilities_and_entropies_of_policies_are_traced() -> None:
    """A loss by a distribution, which checks its parameters by default, is traced as the operators that it is of."""
    graph = traced_text(POLICY.replace("{}", ""), "policy")[1]
    assert graph.blocked == ()
    assert {"logsumexp", "gather"} <= {node.op for node in graph.nodes}


def test_checks_that_are_asked_for_are_made() -> None:
    """A distribution with `validate_args=True` goes on by what its parameters hold, and the reason says so."""
    graph = traced_text(POLICY.replace("{}", ", validate_args=True"), "checked")[1]
    assert "goes on by a number that it reads from a tensor" in graph.blocked[0]


def _fails() -> None:
    with without_checked_arguments():
        assert Normal(torch.zeros(1), -torch.ones(1)).scale == -1
        raise ZeroDivisionError


def test_distributions_check_again_afterwards() -> None:
    """Whatever tracing raises, distributions that are made later check their parameters as before."""
    before = Distribution._validate_args
    with pytest.raises(ZeroDivisionError):
        _fails()
    assert Distribution._validate_args == before
