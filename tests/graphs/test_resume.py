"""A run killed with SIGKILL at both edges of every node, resumed each time."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from agents.reviewer.protocol import Review
from tools.records import Candidate, Evaluation, Plan, Record
from tools.tracing import RunStore

NODES = ("measure", "recall", "plan", "write", "evaluate", "repair", "profile", "roll_back", "review", "learn", "confirm")
KINDS: tuple[tuple[str, type[Record]], ...] = (("plan", Plan), ("candidate", Candidate), ("evaluation", Evaluation), ("review", Review))
KILLED = -9


def _run(folder: Path, node: str = "-", edge: str = "enter") -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "tests.support.killed_run", str(folder), node, edge]
    return subprocess.run(command, cwd=Path(__file__).parents[2], capture_output=True, text=True, timeout=120, check=False)


def _records(folder: Path) -> dict[str, dict[str, Record]]:
    store = RunStore(folder)
    return {kind: store.all(kind, type_) for kind, type_ in KINDS}


@pytest.mark.slow
def test_a_run_killed_in_every_node_ends_like_an_undisturbed_one(tmp_path: Path) -> None:
    """Killed on entering and on leaving each node in turn, then resumed: the same plans, candidates, evaluations, reviews and delivery,
    and no evaluation done twice.
    """
    undisturbed, killed = tmp_path / "a" / "run", tmp_path / "b" / "run"
    expected = _run(undisturbed)
    assert expected.returncode == 0, expected.stderr
    for node in NODES:
        for edge in ("enter", "leave"):
            done = _run(killed, node, edge)
            assert done.returncode == KILLED, f"{node} was not reached: {done.stderr}"
    last = _run(killed)
    assert last.stdout == expected.stdout, last.stderr
    assert _records(killed) == _records(undisturbed)
    asked = (killed / "evaluations.log").read_text().splitlines()
    assert len(asked) == len(set(asked))
