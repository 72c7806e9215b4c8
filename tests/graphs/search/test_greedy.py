"""Greedy search with a beam."""

from __future__ import annotations

from graphs.search import open_search
from graphs.search.protocol import SearchMethod, SearchSettings, Told
from tools.records import ROOT, Verdict


def _passed(name: str, speedup: float, accepted: bool = True, parent: str = ROOT) -> Told:
    return Told(parent=parent, plan=f"plan-{name}", candidate=name, verdict=Verdict.PASS, speedup=speedup, accepted=accepted)


def _open(**settings: int) -> SearchMethod:
    return open_search("greedy", SearchSettings(**settings))


def test_the_first_ask_is_for_the_reference() -> None:
    """A fresh search works on the reference with its whole batch."""
    assert [(a.parent, a.plans) for a in _open(batch=3).ask()] == [(ROOT, 3)]


def test_the_fastest_candidates_become_parents() -> None:
    """After a round, the `width` fastest passing candidates come first, the best with the remainder of the batch."""
    search = _open(width=2, batch=3)
    search.tell([_passed("slow", 1.1), _passed("fast", 2.0), _passed("middle", 1.5)])
    assert [(a.parent, a.plans) for a in search.ask()] == [("fast", 1), ("middle", 1), (ROOT, 1)]


def test_a_failed_candidate_is_no_parent() -> None:
    """What did not pass is never asked for."""
    search = _open()
    search.tell([Told(parent=ROOT, plan="p", candidate="bad", verdict=Verdict.WRONG)])
    assert [a.parent for a in search.ask()] == [ROOT]


def test_a_barren_parent_is_not_asked_for_again() -> None:
    """A parent with no plan left gives its place to the next."""
    search = _open(width=1, batch=1)
    search.tell([_passed("a", 2.0), _passed("b", 1.5)])
    search.tell([Told(parent="a")])
    assert [a.parent for a in search.ask()] == ["b"]


def test_patience_ends_the_search() -> None:
    """After `patience` rounds with no faster candidate, nothing more is asked for."""
    search = _open(patience=2)
    for round_ in range(3):
        assert search.ask()
        search.tell([_passed(f"c{round_}", 0.9, accepted=False)])
    assert search.ask() == ()
    assert search.reason() == "no faster candidate in 2 rounds"


def test_progress_below_the_reference_is_progress() -> None:
    """While every candidate is slower than the reference, a faster one than before still resets the patience."""
    search = _open(patience=2)
    for round_ in range(6):
        search.tell([_passed(f"c{round_}", 0.5 + round_ / 20, accepted=False)])
        assert search.ask()


def test_a_dumped_search_goes_on_the_same() -> None:
    """A search continued from its dump asks what the original would ask."""
    search = _open()
    search.tell([_passed("a", 2.0), _passed("b", 1.5)])
    again = open_search("greedy", SearchSettings(), search.dump())
    assert again.ask() == search.ask()


def test_telling_twice_changes_nothing() -> None:
    """A result told again leaves the asks as they were, and costs no patience."""
    search = _open()
    search.tell([_passed("a", 2.0)])
    before = search.ask()
    search.tell([_passed("a", 2.0)])
    assert search.ask() == before


def test_what_is_far_behind_is_left() -> None:
    """Beside a child 1,700 times as fast the reference is no parent, and a child is none that is more than four times slower."""
    search = _open(width=3, batch=4)
    search.tell([_passed("best", 1700.0), _passed("near", 600.0), _passed("far", 300.0)])
    assert [ask.parent for ask in search.ask()] == ["best", "near"]
