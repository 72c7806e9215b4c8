"""The contract of every search method: a method joins by its name in METHODS, and by its fixture where it needs settings."""

from __future__ import annotations

import json
from collections import Counter

import pytest

from benchmarks.search.simulator import Simulation
from graphs.search import METHODS, open_search
from graphs.search.protocol import SearchSettings, Told
from tests.graphs.search.synthetic import easy_landscape, small_landscape, wide_landscape
from tools.errors import UserError
from tools.records import ROOT, Verdict

EASY, SMALL, WIDE = easy_landscape(), small_landscape(), wide_landscape()
KIB = 1024


@pytest.fixture(params=sorted(METHODS))
def method(request: pytest.FixtureRequest) -> str:
    """Every method by name."""
    name: str = request.param
    return name


def _settings(seed: int = 1, batch: int = 2, **options: str) -> SearchSettings:
    return SearchSettings(seed=seed, batch=batch, patience=0, options=options)


def _simulation(name: str, seed: int = 1, batch: int = 2) -> Simulation:
    return Simulation(EASY, name, _settings(seed, batch))


def test_the_same_seed_asks_the_same(method: str) -> None:
    """Two searches with the same seed ask for the same things, to the last."""
    one, other = _simulation(method), _simulation(method)
    assert one.run(24) == other.run(24)
    assert one.asked == other.asked


def test_a_resumed_search_asks_the_same(method: str) -> None:
    """A search that is dumped and opened again after every tell asks what an undisturbed one asks."""
    undisturbed, killed = _simulation(method), _simulation(method)
    undisturbed.run(24)
    while len(killed.evaluated) < 24 and killed.round(24) is not None:
        killed.reopen()
    assert killed.asked == undisturbed.asked


def test_a_search_killed_between_scouting_and_asking_asks_the_same(method: str) -> None:
    """Scouting again after a kill, from the state of the last tell, leads to the same asks."""
    simulation = _simulation(method)
    simulation.run(9)
    state = simulation.method.dump()
    simulation.scout()
    expected = simulation.method.ask()
    simulation.method = open_search(method, simulation.settings, state, simulation)
    simulation.scout()
    assert simulation.method.ask() == expected


def test_asking_changes_nothing(method: str) -> None:
    """Asked twice, a search gives the same asks and has the same state."""
    simulation = _simulation(method)
    simulation.run(8)
    simulation.scout()
    before = simulation.method.dump()
    assert simulation.method.ask() == simulation.method.ask()
    assert simulation.method.dump() == before


def test_no_action_is_given_twice_on_one_parent(method: str) -> None:
    """A fully given action is asked for once on each parent, in one batch and over the whole search."""
    simulation = _simulation(method, batch=4)
    simulation.run(60)
    given = Counter((ask.parent, ask.action.id) for ask in simulation.asked if ask.action)
    assert all(count == 1 for count in given.values())


def test_a_batch_is_in_flight_at_once(method: str) -> None:
    """With steps enough, a round asks for as many plans as the batch has, never for more."""
    simulation = _simulation(method, batch=4)
    sizes = []
    for _ in range(6):
        before = len(simulation.asked)
        simulation.round(100)
        sizes.append(sum(ask.plans for ask in simulation.asked[before:]))
    assert max(sizes) == 4
    assert sum(sizes) >= 14


def test_only_right_versions_are_parents(method: str) -> None:
    """Failures are tolerated: nothing that did not pass is ever a parent, and the search goes on after them."""
    simulation = _simulation(method, seed=3)
    simulation.run(50)
    failed = {name for name, verdict in simulation.evaluated.items() if verdict is not Verdict.PASS}
    assert failed.isdisjoint(ask.parent for ask in simulation.asked)
    assert len(simulation.evaluated) == 50


def test_a_search_of_failures_only_ends(method: str) -> None:
    """Where every step fails, the search tries each once and then ends with a reason."""
    places = tuple(p.model_copy(update={"verdict": Verdict.BUILD_FAILED, "time_us": 0.0}) for p in SMALL.places)
    simulation = Simulation(SMALL.model_copy(update={"places": places}), method, _settings())
    assert all(point.best == 1.0 for point in simulation.run(50))
    assert simulation.method.ask() == ()
    assert simulation.method.reason()


def test_everything_that_can_be_tried_is_tried(method: str) -> None:
    """On a landscape of three places the search finds them all, ends by itself and says why."""
    simulation = Simulation(SMALL, method, _settings())
    simulation.run(50)
    assert set(simulation.evaluated) == {"a", "b", "c"}
    assert simulation.method.ask() == ()
    assert simulation.method.reason()


def test_the_budget_is_kept(method: str) -> None:
    """A search with a budget evaluates exactly so many candidates where there are enough."""
    simulation = _simulation(method, batch=4)
    assert len(simulation.run(17)) == 17


def test_a_gain_is_found(method: str) -> None:
    """On the easy landscape 40 evaluations bring at least 1.5 times the better baseline, in the median of three seeds."""
    finals = sorted(_simulation(method, seed=seed).run(40)[-1].best for seed in (1, 2, 3))
    assert finals[1] > 1.5


def test_the_state_is_small_json(method: str) -> None:
    """After 200 candidates the state is below 100 KiB, and it is JSON that opens to the same JSON."""
    simulation = Simulation(WIDE, method, _settings(batch=4))
    simulation.run(200)
    assert len(simulation.evaluated) == 200
    state = simulation.method.dump()
    assert len(state.encode()) < 100 * KIB
    assert json.loads(open_search(method, simulation.settings, state, simulation).dump()) == json.loads(state)


def test_a_result_told_again_changes_nothing(method: str) -> None:
    """Telling the last round's plans once more leaves the state as it is."""
    simulation = _simulation(method)
    results: tuple[Told, ...] = ()
    for _ in range(4):
        results = simulation.round(100) or ()
    before = simulation.method.dump()
    simulation.method.tell([told for told in results if told.plan])
    assert simulation.method.dump() == before


def test_a_machine_that_fails_says_nothing_about_a_parent(method: str) -> None:
    """A result of a failing machine leaves the reference a parent."""
    simulation = _simulation(method)
    simulation.scout()
    ask = simulation.method.ask()[0]
    simulation.method.tell([Told(parent=ROOT, plan="p", candidate="x", verdict=Verdict.INFRASTRUCTURE, tag=ask.tag)])
    simulation.scout()
    assert {ask.parent for ask in simulation.method.ask()} == {ROOT}


def test_an_unknown_setting_is_refused(method: str) -> None:
    """A setting that the method does not have is a user's error that names it."""
    with pytest.raises(UserError, match="wibble"):
        open_search(method, _settings(wibble="3"))


def test_an_unknown_method_is_refused() -> None:
    """A name that no method has is a user's error that lists those there are."""
    with pytest.raises(UserError, match="portfolio"):
        open_search("annealing", SearchSettings())
