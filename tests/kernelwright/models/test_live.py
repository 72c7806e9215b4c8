"""What `kernelwright model` prints while it works, and the sentence that it ends with."""

from __future__ import annotations

import pytest

from kernelwright.models.live import ModelProgress
from kernelwright.models.report import chosen_table, chosen_words, left_alone, summary
from tests.kernelwright.models.test_page import row
from tests.kernelwright.models.test_proving import proof, settled
from tools.models.records import Group


def test_what_is_awaited_is_said_before_anything_is_known_of_the_model(capsys: pytest.CaptureFixture[str]) -> None:
    """A large model is captured for minutes."""
    ModelProgress(quiet=False)({"event": "capturing", "title": "net.py:large", "device": "cpu"})
    assert "running net.py:large on the CPU" in capsys.readouterr().err


def test_first_choices_of_the_cost_model_have_no_budget() -> None:
    """With `--budget 0` no evaluation is made, and none is shown."""
    judged, modelled = row("norm", 4), row("norm", 1).model_copy(update={"judged": False})
    assert [chosen_table([one])[0][-1] for one in (judged, modelled)] == ["budget", "gain"]
    assert [chosen_words([one], "h200").rpartition(". ")[2] for one in (judged, modelled)] == [
        "Budget: evaluations.",
        "No evaluation is made.",
    ]


def test_an_estimate_says_what_it_is_over() -> None:
    """Evaluations estimate eager alone; first choices were compared with torch.compile, too."""
    outcome, _, _ = settled(proof, timed=False)
    modelled = row("norm", 1).model_copy(update={"judged": False, "compiled_us": 50.0})
    assert "x against eager on" in summary(outcome)
    assert "x against the better of eager and torch.compile on" in summary(outcome.model_copy(update={"chosen": (modelled,)}))


def test_what_is_left_alone_for_one_reason_has_one_line() -> None:
    """A decoder's layers at several shapes are one kind, with the time of all; another reason has its own."""
    outcome, _, _ = settled(proof, timed=False)
    cached = [
        Group(name=f"layer_{at}", title="Layer", paths=paths, config="", calls={}, us=1.0, share=0.2, operators=9, reason="it keeps state")
        for at, paths in enumerate((("layers.0", "layers.2"), ("layers.0", "layers.2"), ("layers.1",)))
    ]
    tied = cached[0].model_copy(update={"reason": "its weights are tied", "share": 0.1})
    assert left_alone(outcome.capture.model_copy(update={"groups": (*cached, tied)})) == [
        ("Layer (layers.0 and 2 more)", "60.0%", "it keeps state"),
        ("Layer (layers.0 and 1 more)", "10.0%", "its weights are tied"),
    ]
