"""Fresh knowledge bases with the hashing embedder, and makers of situations and outcomes."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from knowledge.records import Outcome, Situation
from knowledge.store import KnowledgeBase
from knowledge.vectors.embedding import HashingEmbedder
from tools.records import Action, ActionKind, Bottleneck, OperatorFamily, Verdict

MakeBase = Callable[..., KnowledgeBase]
MakeOutcome = Callable[..., Outcome]


@pytest.fixture
def make_base(tmp_path: Path) -> Iterator[MakeBase]:
    """Open stores in this test's folder; all are closed at its end."""
    opened: list[KnowledgeBase] = []

    def make(name: str = "store", **settings: Any) -> KnowledgeBase:
        base = KnowledgeBase(tmp_path / name, **({"embedder": HashingEmbedder(), "seeds": None, "tokens": 0} | settings))
        opened.append(base)
        return base

    yield make
    for base in opened:
        base.close()


@pytest.fixture
def base(make_base: MakeBase) -> KnowledgeBase:
    """An empty store."""
    return make_base()


@pytest.fixture
def situation() -> Situation:
    """A softmax on Hopper that moves too much."""
    return Situation(
        families=(OperatorFamily.SOFTMAX,),
        operators=("aten.softmax.int",),
        bottleneck=Bottleneck.EXCESS_TRAFFIC,
        generation="hopper",
        dtypes=("float32",),
        summary="A row softmax over 4096 columns that reads its input three times.",
    )


@pytest.fixture
def make_outcome(situation: Situation) -> MakeOutcome:
    """Make the outcome of one plan: measured, passed, accepted, 1.5 times faster, unless told otherwise."""

    def make(**changes: Any) -> Outcome:
        fields: dict[str, Any] = {
            "run": "run1",
            "plan": "plan1",
            "situation": situation,
            "action": Action(kind=ActionKind.ALGORITHM, region="r0", parameters={"online": True}),
            "candidate": "cand1",
            "verdict": Verdict.PASS,
            "gain": 1.5,
            "predicted_gain": None,
            "tier": "bracketed",
            "device": "NVIDIA H200",
            "accepted": True,
            "lesson": "One pass over the row wins.",
            "cited": (),
            "recalled": (),
        }
        return Outcome(**(fields | changes))

    return make


@pytest.fixture
def failed() -> dict[str, Any]:
    """What changes in an outcome whose candidate was wrong."""
    return {"verdict": Verdict.WRONG, "gain": None, "accepted": False, "lesson": "The rescaling loses the first block."}
