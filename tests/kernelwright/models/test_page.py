"""The report of a model as one page: its plots, Amdahl's table, and that it needs nothing else."""

from __future__ import annotations

import re

from kernelwright.models.page import amdahl_rows, page_text
from kernelwright.models.pictures import pictures_of
from tests.kernelwright.models.test_proving import faster_in_graphs, proof, settled, timed
from tools.models.choosing.chosen import Chosen


def test_a_page_of_a_timed_model_has_three_plots_and_needs_no_other_file() -> None:
    """Time by way, shares, and what each operator brings; nothing is loaded from anywhere."""
    outcome, _, _ = settled(lambda job: proof(job, timed(job)))
    assert len(pictures_of(outcome)) == 3
    page = page_text(outcome)
    assert page.count("<svg") == 3
    assert "torch.compile, ours" in page
    assert not re.search(r"(src|href)=|@import|url\(", page)


def test_without_times_the_shares_alone_are_drawn() -> None:
    """And the page says that the gain is an estimate."""
    outcome, _, _ = settled(proof, timed=False)
    assert len(pictures_of(outcome)) == 1
    assert "Not timed. By shares" in page_text(outcome)


def test_what_the_law_promised_stands_beside_what_came() -> None:
    """Each operator that was worked on has a line, also one that took another's place."""
    outcome, _, _ = settled(lambda job: proof(job, timed(job)))
    worked = [row(name, budget) for name, budget in (("norm", 4), ("gate", 0), ("else", 0))]
    rows = amdahl_rows(outcome.model_copy(update={"chosen": tuple(worked)}))
    assert [line[0] for line in rows] == ["norm", "gate"]
    assert rows[0][5:] == ("2.00x (sealed)", rows[0][6], "yes")
    assert rows[0][6].startswith("1.50")


def test_what_an_operator_brings_is_what_decided() -> None:
    """In the way of running the model that is fastest, which eager mode is not here."""
    outcome, _, _ = settled(faster_in_graphs)
    [line, _] = amdahl_rows(outcome.model_copy(update={"chosen": (row("norm", 4), row("gate", 4))}))
    assert line[6].startswith("1.125x")


def row(name: str, budget: int) -> Chosen:
    """A line of the table."""
    figures = {"share": 0.4, "us": 100.0, "eager_us": 0.0, "floor_us": 10.0, "reach_us": 15.0, "gain": 1.5}
    return Chosen(group=name, title=name, modules=1, calls=1, budget=budget, why_not="", **figures)


def test_text_of_a_model_is_no_markup() -> None:
    """A class can be called anything."""
    outcome, _, _ = settled(lambda job: proof(job, timed(job)))
    capture = outcome.capture.model_copy(update={"title": "<b>M</b>"})
    assert "<b>M</b>" not in page_text(outcome.model_copy(update={"capture": capture}))
