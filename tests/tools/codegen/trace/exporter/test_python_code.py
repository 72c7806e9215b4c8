"""Tracing without Python code."""

from __future__ import annotations

import pytest
import torch
from torch import fx

from tools.codegen.trace.exporter.python_code import without_python_code


class _Twice(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * 2


def _exported() -> fx.Graph:
    return torch.export.export(_Twice(), (torch.ones(2),), strict=False).graph


def test_the_same_is_traced_and_less_code_is_written(monkeypatch: pytest.MonkeyPatch) -> None:
    """Inside, torch traces the same operators and writes code for fewer modules; for whoever exports afterwards it does as before."""
    written: list[fx.Graph] = []
    write = fx.Graph.python_code

    def watched(graph: fx.Graph, *given: object, **options: object) -> object:
        written.append(graph)
        return write(graph, *given, **options)

    monkeypatch.setattr(fx.Graph, "python_code", watched)

    def counted() -> tuple[str, int]:
        written.clear()
        return str(_exported()), len(written)

    before = counted()
    with without_python_code():
        inside = counted()
    assert inside[0] == before[0]
    assert inside[1] < before[1] / 2
    assert counted() == before
