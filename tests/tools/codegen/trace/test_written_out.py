"""Calls of operators that PyTorch itself writes as simpler ones."""

from __future__ import annotations

import pytest
import torch
from torch.fx.experimental.proxy_tensor import make_fx

from tools.codegen.trace.written_out import WrittenOut
from tools.codegen.without_rules import KNOWN


def test_a_thousand_ways_are_named_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each further call of an operator is written out without a look at how all others are."""
    graph = make_fx(torch.linalg.cross)(torch.randn(5, 3), torch.randn(5, 3)).graph
    (call,) = (node for node in graph.nodes if str(node.target) == "aten.linalg_cross.default")
    call.args[0].meta["val"], call.args[1].meta["val"] = torch.randn(5, 3), torch.randn(5, 3)
    written_out = WrittenOut(frozenset({"aten.linalg_cross.default"}), KNOWN)
    first = written_out.pieces(call)
    named, name = [], torch._ops.OpOverload.__str__
    monkeypatch.setattr(torch._ops.OpOverload, "__str__", lambda operator: (named.append(operator), name(operator))[1])
    again = written_out.pieces(call)
    assert first is not None
    assert again is not None
    assert [str(node.target) for node in again.nodes] == [str(node.target) for node in first.nodes]
    assert len(set(named)) < 50
