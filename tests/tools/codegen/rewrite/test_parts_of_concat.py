"""Parts of what is joined along another dimension are joined where they are read: the whole is never in memory."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.tools.codegen.compute_samples import module
from tests.tools.codegen.harness import run_worker, traced_text, write_job
from tools.codegen import OperatorGraph, emit, initial_schedule

LEVELS = ", ".join(f"torch.randn(2, 9, {side}, {side})" for side in (8, 4, 2))
HEADS = """x = torch.cat([each.flatten(2) for each in (p, q, r)], 2)
        PARTS
        return box.softmax(1), scores.sigmoid().amax(1)"""


def detector(parts: str) -> str:
    """A module whose levels are joined, and whose channels are boxes and classes."""
    return module("pass", HEADS.replace("PARTS", parts), LEVELS).replace("forward(self, x)", "forward(self, p, q, r)")


def joined(graph: OperatorGraph) -> list[tuple[int, ...]]:
    """Shapes of what concatenations make, at the sizes as written."""
    return [node.outputs[0].written for node in graph.nodes if node.op == "cat"]


@pytest.mark.parametrize(
    "parts",
    [
        "box, scores = x.split((4, 5), 1)",
        "box, scores = x[:, :4], x[:, 4:]",
        "box, scores = x.narrow(1, 0, 4), x.narrow(1, 4, 5)",
        "box, scores, _ = x.chunk(3, 1)",
        "box, scores = x.select(1, 2)[:, None], x[:, 1:]",
    ],
)
def test_parts_of_all_pieces_are_joined(parts: str, tmp_path: Path) -> None:
    """Boxes and classes are read from each level; what is joined of them is right."""
    problem, graph = traced_text(detector(parts), "detector")
    assert len(joined(graph)) == 2
    assert all(shape[1] != 9 for shape in joined(graph) if len(shape) == 3)
    (result,) = run_worker(
        "interpreter_worker.py",
        [write_job(tmp_path, "parts", problem, emit(problem, graph, initial_schedule(graph)).source)],
        interpret=True,
    )
    assert "crash" not in result, result["crash"]
    assert result["error"] <= 1.0


@pytest.mark.parametrize(
    "parts",
    [
        "box, scores = x.split((4, 5), 1)\n        box = box + x.mean()",
        "box, scores = x[:, :, :20], x[:, :, 20:]",
    ],
)
def test_what_is_read_as_a_whole_or_along_its_own_dimension_stays(parts: str) -> None:
    """Who reads all of it has it in memory; and parts along the dimension that was joined are no parts of every piece."""
    _, graph = traced_text(detector(parts), "detector")
    assert joined(graph) == [(2, 9, 84)]
