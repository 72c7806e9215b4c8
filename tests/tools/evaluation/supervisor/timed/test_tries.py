"""How often a candidate is timed, which session counts, and that nobody gains by an unsteady machine."""

from __future__ import annotations

import pytest

from tests.tools.evaluation.supervisor.timed.simulated_machine import ALONE_US, CANDIDATE_US, Machine, time_it
from tools.evaluation.supervisor.checking.call_plan import Stage
from tools.evaluation.supervisor.checking.correctness import Outcome
from tools.evaluation.supervisor.timed.plausibility import SABOTAGE
from tools.records import Problem, Timing, Verdict

LIED = Outcome(Verdict.TIMING_INCONSISTENT, notes=["Its events say 4 µs, but it answered 90 µs later."])
BY_CHANCE = Outcome(Verdict.TIMING_INCONSISTENT, notes=["On an idle device a call takes 90 µs more."], by_chance=True)


def busy(until_s: float) -> Machine:
    """A host that is busy to a changing degree, and then quiet: as an H200's was, whose honest candidate was refused.

    There the compiled baseline took 397 µs before and 673 µs after its process, and 918 µs beside it; then 673, 708 and 823 µs.
    """

    def host(now: float, alive: bool) -> float:
        return 1.0 if now < 0.25 or now > until_s else 2.3 if alive else 1.7 if now % 0.6 < 0.4 else 1.2

    return Machine(host=host)


def test_a_steady_machine_needs_one_session(problem: Problem) -> None:
    """An honest candidate is timed once."""
    found, case, _ = time_it(problem, machine := Machine(noise=0.01))
    assert isinstance(found, Timing)
    assert (machine.sessions, case.notes) == (1, [])


@pytest.mark.parametrize(
    ("stage", "sealable", "figure"),
    [("search", True, CANDIDATE_US), ("search", False, 4 * CANDIDATE_US), ("confirm", True, 4 * CANDIDATE_US)],
)
def test_a_busy_host_makes_no_candidate_slow_in_a_search(problem: Problem, stage: Stage, sealable: bool, figure: float) -> None:
    """There its calls in chains are the figure, and a note says so; what is published needs the sealed time beside its own process's.

    One that cannot be sealed may have a thread of its own launch for calls ahead.
    """
    found, case, _ = time_it(problem, Machine(late=4.0), stage=stage, sealable=sealable)
    assert isinstance(found, Timing)
    assert found.candidate.median_us == figure
    assert found.speedups["compile"][0] == pytest.approx(ALONE_US["compile"] / figure)
    assert any("Its host was late: calls one by one took 400 µs" in note for note in case.notes) is (figure == CANDIDATE_US)


def test_the_first_session_with_a_steady_baseline_counts(problem: Problem) -> None:
    """Where the baselines alone vary, sessions are made until none is slowed down, and notes say why."""
    found, case, _ = time_it(problem, machine := busy(until_s=6.0))
    assert isinstance(found, Timing)
    assert 2 < machine.sessions <= 4
    assert found.baselines["compile"].median_us == pytest.approx(ALONE_US["compile"])
    assert case.notes[0].startswith("Timed again, since a first session did not count: The compile baseline took 920 µs")
    assert "The machine was unsteady: with no candidate's process alive the eager baseline took 2000 to" in case.notes[-1]
    assert len(case.seeds) == machine.sessions


def test_a_machine_that_stays_unsteady_is_at_fault(problem: Problem) -> None:
    """After four sessions the verdict is the machine's, in one line with figures and what to do; the candidate has none."""
    found, _, kind = time_it(problem, machine := busy(until_s=1e9))
    assert isinstance(found, Outcome)
    assert (found.verdict, machine.sessions) == (Verdict.INFRASTRUCTURE, 4)
    (said,) = found.notes
    assert said.startswith("The machine is unsteady: with no candidate's process alive the eager baseline took 2000 to ")
    assert "none of 4 sessions" in said
    assert said.endswith("Have other work leave the host's cores and the GPU, and judge it again.")
    assert kind.most_held == 2


@pytest.mark.parametrize("beside", [1.2, 1.6, 3.0])
def test_whoever_slows_baselines_down_is_refused_after_two_sessions(problem: Problem, beside: float) -> None:
    """What ends with the candidate's process makes no machine unsteady."""
    found, case, _ = time_it(problem, machine := Machine(beside=beside, noise=0.01))
    assert isinstance(found, Outcome)
    assert (found.verdict, machine.sessions) == (Verdict.TIMING_INCONSISTENT, 2)
    assert "baseline took" in found.notes[0]
    assert len(case.notes) == 1


def test_heat_that_is_gone_after_a_pause_brings_no_further_session(problem: Problem) -> None:
    """A device that was made slow is looked at when it had time to cool."""
    found, _, _ = time_it(problem, machine := Machine(beside=1.8, left=1.4, half_life_s=0.1))
    assert isinstance(found, Outcome)
    assert (found.verdict, machine.sessions) == (Verdict.TIMING_INCONSISTENT, 2)


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize(("left", "half_life_s"), [(1.6, 1.0), (1.6, 8.0), (1.3, 60.0), (2.0, 1e9)])
def test_nobody_gains_by_making_the_machine_unsteady(problem: Problem, left: float, half_life_s: float, seed: int) -> None:
    """Whatever a hostile candidate leaves behind, at the limit of luck: no further session counts by a baseline it slowed down."""
    beside = left * (1 + SABOTAGE) * (0.99 + 0.005 * seed)
    found, _, _ = time_it(problem, machine := Machine(beside=beside, left=left, half_life_s=half_life_s, noise=0.05, seed=seed))
    if isinstance(found, Timing) and machine.sessions > 1:
        assert all(times.median_us <= (1 + SABOTAGE) * ALONE_US[name] for name, times in found.baselines.items())
        assert all(gain <= (1 + SABOTAGE) * ALONE_US[name] / CANDIDATE_US for name, (gain, _, _) in found.speedups.items())


def test_a_helper_that_keeps_the_host_busy_brings_no_gain(problem: Problem) -> None:
    """On a machine that another process keeps slow a session does not count for the candidate because its baselines are slow throughout."""
    found, _, _ = time_it(problem, Machine(host=lambda now, _: 1.0 if now < 0.25 else 2.5 if now < 0.5 else 1.5))
    assert isinstance(found, Outcome)
    assert found.verdict is Verdict.INFRASTRUCTURE


def test_a_baseline_that_is_steady_stays_proof_on_an_unsteady_machine(problem: Problem) -> None:
    """Whoever slows down one baseline gains nothing by another that varies by itself."""
    machine = busy(until_s=1e9)
    host, machine.host = machine.host, lambda *_: 1.0
    call = machine.call

    class Half(Machine):
        """Its compiled baseline varies, and the candidate slows down the eager one, which is nearly as fast."""

        def call(self, name: str) -> float:
            near = 0.3 if name == "eager" else 1.0
            return call(name) * near * (host(self.now_s, False) if name == "compile" else 1.5 if self.alive else 1.0)

    found, _, _ = time_it(problem, half := Half())
    assert isinstance(found, Outcome)
    assert (found.verdict, half.sessions) == (Verdict.TIMING_INCONSISTENT, 2)


@pytest.mark.parametrize("slower", ["eager", "compile"])
def test_a_reference_that_is_no_rival_may_vary(problem: Problem, slower: str) -> None:
    """A reference of many launches beside a compiled one of 400 µs: its time alone counts. Whoever slows down the rival is refused."""

    class Many(Machine):
        """Its eager baseline takes 2 ms."""

        def call(self, name: str) -> float:
            return super().call(name) * (1.6 if self.alive and name == slower else 1.0)

    found, case, _ = time_it(problem, machine := Many(noise=0.01))
    if slower == "compile":
        assert isinstance(found, Outcome)
        assert (found.verdict, machine.sessions) == (Verdict.TIMING_INCONSISTENT, 2)
        return
    assert isinstance(found, Timing)
    assert machine.sessions == 1
    assert found.baselines["eager"].median_us == pytest.approx(ALONE_US["eager"], rel=0.03)
    assert "The eager baseline is unsteady" in case.notes[0]


def test_no_other_ending_is_looked_at_again(problem: Problem) -> None:
    """A lie to the clock is one in whatever session it is found, be the machine as it may."""
    for number in (1, 2, 3):
        found, _, _ = time_it(problem, machine := busy(until_s=1e9), endings={number: LIED})
        assert (found, machine.sessions) == (LIED, number)


def test_what_a_busy_host_may_have_made_is_looked_at_once_more(problem: Problem) -> None:
    """Another ending by chance is the candidate's the second time, at once and without a pause."""
    found, case, _ = time_it(problem, machine := Machine(), endings={1: BY_CHANCE})
    assert isinstance(found, Timing)
    assert case.notes == ["Timed again, since a first session did not count: On an idle device a call takes 90 µs more."]
    assert machine.now_s < 2
    found, _, _ = time_it(problem, machine := Machine(), endings={1: BY_CHANCE, 2: BY_CHANCE})
    assert (found, machine.sessions) == (BY_CHANCE, 2)


def test_judged_calls_that_a_busy_host_held_up_are_timed_once_more(problem: Problem) -> None:
    """Few calls are judged, and all of them may be slow by chance; who leaves work out of the others does it again."""
    found, _, _ = time_it(problem, Machine(judged=(2.0,)))
    assert isinstance(found, Timing)
    found, _, _ = time_it(problem, machine := Machine(judged=(2.0, 2.0)))
    assert isinstance(found, Outcome)
    assert (found.verdict, machine.sessions) == (Verdict.TIMING_INCONSISTENT, 2)


@pytest.mark.parametrize(("wrong_at", "sessions"), [(1, 2), (2, 2), (3, 4), (4, 4)])
def test_wrong_answers_of_a_timed_call_outrank_every_time(problem: Problem, wrong_at: int, sessions: int) -> None:
    """The oracle judges every session, those that did not count, too: the first two before there is a third."""
    found, _, _ = time_it(problem, machine := busy(until_s=1e9), wrong_at=wrong_at)
    assert isinstance(found, Outcome)
    assert (found.verdict, machine.sessions) == (Verdict.WRONG, sessions)
