"""What is each method's own: rewards, cells, clusters, masks, throttles and shares."""

from __future__ import annotations

import pytest

from benchmarks.search.simulator import Simulation
from graphs.search import open_search
from graphs.search.archive import Offer, Portrait
from graphs.search.bandit import KINDS
from graphs.search.clusters import cluster
from graphs.search.islands import Islands
from graphs.search.macro_policy import STOP, MacroChoice, Observation, PlannerPolicy, reward
from graphs.search.memory import rollout_reward
from graphs.search.protocol import SearchSettings, Told
from graphs.search.wishes import Answer, Wish, unanswered
from tests.graphs.search.synthetic import easy_landscape
from tools.errors import UserError
from tools.records import ROOT, Action, ActionKind, Verdict


class Gallery:
    """An archive with portraits only."""

    designs = False

    def __init__(self, **saturation: float) -> None:
        """Every candidate uses its resources so far."""
        self._saturation = saturation

    def offers(self, parent: str, *, fresh: bool = False, rated: bool = False) -> tuple[Offer, ...] | None:
        """Nothing to offer."""
        return ()

    def answer(self, wish: Wish) -> Answer | None:
        """Nobody is there to ask."""
        return unanswered(wish)

    def portrait(self, candidate: str) -> Portrait:
        """All alike."""
        return Portrait(candidate=candidate, time_us=10.0, saturation=self._saturation)


def _passed(name: str, speedup: float, parent: str = ROOT, **fields: str) -> Told:
    told = {"parent": parent, "plan": f"p-{name}", "candidate": name, "verdict": Verdict.PASS, "speedup": speedup}
    return Told.model_validate({**told, **fields})


@pytest.mark.parametrize(
    ("verdict", "gain", "step", "expected"),
    [(Verdict.BUILD_FAILED, 0, 0, -1.0), (Verdict.CRASHED, 0, 0, -0.4), (Verdict.PASS, 0.9, 0, 0.6), (Verdict.PASS, 1.1, 2, 1.5)],
)
def test_the_macro_reward_is_the_papers(verdict: Verdict, gain: float, step: int, expected: float) -> None:
    """Built, ran, faster than the step before, less a penalty that grows with the step."""
    assert reward(verdict, gain, step, 0.05) == pytest.approx(expected)


def test_stopping_gains_with_every_step() -> None:
    """The planner policy scores a step by its rating, and stop higher the longer the episode."""
    offer = Offer(action=Action(kind=ActionKind.TILING, region="r0"), score=4.0)
    choices = [MacroChoice(group="tiling r0", best=offer), MacroChoice(group=STOP)]
    seen = [Observation(kernel="k", step=step, speedup=1.0, signature="", history=()) for step in (1, 6)]
    assert [PlannerPolicy(1.0).scores(one, choices) for one in seen] == [[4.0, 1.5], [4.0, 4.0]]


def test_a_foreseen_gain_is_worth_more_and_a_step_back_costs() -> None:
    """A rollout's reward is the fractional change, more where the prediction held, less for a miss and for a slower kernel."""
    assert rollout_reward(1.5, 1.4) == pytest.approx(0.7)
    assert rollout_reward(1.5, 3.0) == pytest.approx(0.4)
    assert rollout_reward(0.9, None) == pytest.approx(-0.6)


def test_a_cell_keeps_its_fastest_and_islands_trade_their_best() -> None:
    """A slower program of the same cell is not kept; migration copies the best of an island to the next."""
    speedups = {"a": 1.0, "b": 2.0, "c": 1.5}
    islands = Islands.empty(2).entered("a", 0, "x", speedups).entered("b", 0, "x", speedups).entered("c", 0, "x", speedups)
    assert islands.members(0, speedups) == ["b"]
    assert islands.migrated(0.1, speedups).members(1, speedups) == ["b"]


def test_the_cell_does_not_depend_on_speed() -> None:
    """Two programs of one strategy and size share a cell whatever their times."""
    slow, fast = (
        Portrait(candidate="a", signature="k1", lines=50, time_us=90.0),
        Portrait(candidate="b", signature="k1", lines=51, time_us=9.0),
    )
    assert slow.cell == fast.cell


def test_clusters_part_what_runs_differently() -> None:
    """Two groups of points that lie apart get two labels."""
    labels = cluster([(0.0, 0.0), (9.0, 9.0), (0.1, 0.0), (9.1, 9.0)], 2)
    assert labels[0] == labels[2] != labels[1] == labels[3]


def test_a_kind_of_a_saturated_resource_is_masked() -> None:
    """Where the memory is busy, no kind that relieves it is asked for on what was measured so; where all is busy, some kind still is."""
    search = open_search("bandit", SearchSettings(batch=9, options={"exploration": "5"}), "", Gallery(dram=0.9))
    search.tell([_passed("a", 2.0), Told(parent=ROOT)])
    asked = {kind for ask in search.ask() for kind in ask.kinds}
    assert asked
    assert asked.isdisjoint({ActionKind.FUSION, ActionKind.VECTORISATION, ActionKind.LAYOUT, ActionKind.ALGORITHM})
    busy = open_search("bandit", SearchSettings(batch=2), "", Gallery(dram=0.9, sm=0.9, l2=0.9))
    busy.tell([_passed("a", 2.0), Told(parent=ROOT)])
    assert busy.ask()


def test_a_kind_without_steps_is_not_asked_for_again() -> None:
    """Told that a parent has no step of a kind, the bandit leaves that pair alone."""
    search = open_search("bandit", SearchSettings(batch=1))
    for _ in set(KINDS) - {ActionKind.REWRITE}:
        (ask,) = search.ask()
        search.tell([Told(parent=ask.parent, constrained=True, tag=ask.tag)])
    assert search.ask() == ()


def test_the_root_is_throttled_and_a_dead_branch_left() -> None:
    """After five plans on the reference tree search works elsewhere, and after three failures leaves a childless version."""
    search = open_search("tree", SearchSettings(batch=1, options={"epsilon": "0"}))
    search.tell([_passed(name, 0.5 + i / 10) for i, name in enumerate("abcde")])
    assert [ask.parent for ask in search.ask()] == ["e"]
    search.tell([Told(parent="e", plan=f"f{i}", candidate=f"x{i}", verdict=Verdict.WRONG) for i in range(3)])
    assert [ask.parent for ask in search.ask()] == ["d"]


def test_the_tree_window_shows_leaders_and_children() -> None:
    """The planner sees the fastest others and the parent's own children, at most five."""
    search = open_search("tree", SearchSettings(batch=1, options={"epsilon": "0"}))
    search.tell([_passed("a", 3.0), _passed("b", 2.0), _passed("c", 1.5, parent="a"), _passed("d", 1.1)])
    (ask,) = search.ask()
    assert (ask.parent, ask.inspirations) == ("a", ("b", "c"))


def test_a_portfolio_gives_the_turn_to_whoever_gains() -> None:
    """The member whose plans raise the best gets more turns than the one whose plans fail, and that one is not forgotten."""
    search = open_search("portfolio", SearchSettings(batch=1, options={"methods": "tree,greedy"}))
    turns = []
    for number in range(20):
        (ask,) = search.ask()
        turns.append(ask.tag.partition(":")[0])
        plan = {"plan": f"p{number}", "parent": ask.parent, "tag": ask.tag}
        gained = _passed(f"c{number}", 1.1 + number / 10, **plan)
        search.tell([gained if turns[-1] == "greedy" else Told(candidate="x", verdict=Verdict.WRONG, **plan)])
    assert turns.count("greedy") > turns.count("tree") > 1


def test_a_portfolio_passes_settings_on_and_refuses_strangers() -> None:
    """A dotted setting goes to its member; one of a method that is not a member, or a portfolio in a portfolio, is a user's error."""
    open_search("portfolio", SearchSettings(options={"tree.epsilon": "0.1"}))
    for options in ({"tree.epsilon": "7"}, {"random.x": "1"}, {"methods": "portfolio"}, {"methods": "annealing"}):
        with pytest.raises(UserError):
            open_search("portfolio", SearchSettings(options=options))


def test_macro_needs_a_policy_that_exists() -> None:
    """A policy that cannot be imported is a user's error when the search begins to choose."""
    simulation = Simulation(easy_landscape(), "macro", SearchSettings(options={"policy": "no.such:policy"}))
    with pytest.raises(UserError, match=r"no\.such"):
        simulation.run(2)
