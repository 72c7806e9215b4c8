"""Which evaluator of a crew each question is given."""

from __future__ import annotations

from tools.cluster.member import Member
from tools.cluster.turns import Turns


def _three() -> list[Member]:
    return [Member(None, begun=True) for _ in range(3)]


async def test_who_waits_longest_gets_the_evaluator_with_least_to_do() -> None:
    """Three questions go to three evaluators, though each could do two at once."""
    crew = _three()
    turns = Turns(lambda: crew, 2)
    places = [turns.enter() for _ in range(3)]
    assert [place.result() for place in places] == crew
    turns.leave(places[1])
    assert turns.enter().result() is crew[1]


async def test_while_many_wait_each_evaluator_has_its_next_question() -> None:
    """Of eight, three are done and one more is with each evaluator; the last two wait for whoever is free first."""
    crew = _three()
    turns = Turns(lambda: crew, 1)
    places = [turns.enter() for _ in range(9)]
    assert [place.done() for place in places] == [True] * 6 + [False] * 3
    turns.leave(places[0])
    assert not places[6].done()
    turns.leave(places[3])
    assert places[6].result() is crew[0]


async def test_a_question_that_is_withdrawn_leaves_its_place() -> None:
    """Whether it waits still, or is with an evaluator."""
    crew = _three()[:1]
    turns = Turns(lambda: crew, 1)
    places = [turns.enter() for _ in range(4)]
    assert [place.done() for place in places] == [True, True, False, False]
    for place in places[2::-1]:
        turns.leave(place)
    assert places[3].result() is crew[0]
    assert crew[0].busy == 1
