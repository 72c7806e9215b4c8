"""Tracing without stack traces."""

from __future__ import annotations

import pytest
import torch
from torch.fx import config

from tools.codegen.trace.exporter.stack_traces import SETTING, without_stack_traces


class _Twice(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * 2


def _traces() -> list[str]:
    program = torch.export.export(_Twice(), (torch.ones(2),), strict=False)
    return [node.stack_trace for node in program.graph.nodes if node.op == "call_function" and node.stack_trace]


@pytest.mark.skipif(not hasattr(config, SETTING), reason="this torch always writes stack traces")
def test_operators_have_none_inside_and_one_outside() -> None:
    """Inside, torch writes no stack trace; for whoever exports afterwards it does."""
    with without_stack_traces():
        assert _traces() == []
    assert len(_traces()) == 1


@pytest.mark.skipif(not hasattr(config, SETTING), reason="this torch has no such setting")
def test_the_setting_is_put_back_after_an_error() -> None:
    """Whatever tracing raises, torch's setting is what it was."""
    before = getattr(config, SETTING)
    with pytest.raises(ZeroDivisionError), without_stack_traces():
        raise ZeroDivisionError
    assert getattr(config, SETTING) == before
