"""One thread of a process at a time is in the native code under memory, and one in a reference that is read there."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from agents.samples.sources import REFERENCE
from knowledge.records import Situation
from knowledge.vectors.embedding import HashingEmbedder
from tests.knowledge.conftest import MakeBase, MakeOutcome
from tools.native import TURN
from tools.problems import load_problem


class Meeting(HashingEmbedder):
    """Embeds as ever, and notes whether another thread came in while it did."""

    def __init__(self) -> None:
        super().__init__()
        self._barrier = threading.Barrier(2)
        self.met = False

    def embed(self, texts: Sequence[str]) -> list[list[float]]:
        """Wait a moment for a second thread."""
        try:
            self._barrier.wait(0.3)
            self.met = True
        except threading.BrokenBarrierError:
            # nobody came: the next one waits anew
            self._barrier.reset()
        return super().embed(texts)


def test_stores_take_turns(make_base: MakeBase, make_outcome: MakeOutcome, situation: Situation) -> None:
    """Two stores that are asked in two threads are never both in their index."""
    embedder = Meeting()
    bases = [make_base(name, embedder=embedder) for name in ("one", "two")]
    for base in bases:
        base.learn_now(make_outcome())
    with ThreadPoolExecutor(2) as threads:
        found = list(threads.map(lambda base: base.recall_now(situation), bases))
    assert [len(recalled) for recalled in found] == [1, 1]
    assert not embedder.met


def test_reading_a_problem_waits_for_its_turn(tmp_path: Path) -> None:
    """A reference is not called without contents while another thread is."""
    path = tmp_path / "softmax.py"
    path.write_text(REFERENCE)
    with ThreadPoolExecutor(1) as threads:
        with TURN:
            waiting = threads.submit(load_problem, path)
            with pytest.raises(TimeoutError):
                waiting.result(1.0)
        assert waiting.result(60).name == "softmax"
