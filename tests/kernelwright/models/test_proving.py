"""What is taken out of a package again: operators that make the model wrong, are never reached, or do not make it faster."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

from graphs.run.settings import RunSettings
from kernelwright.models.operators import Listener
from kernelwright.models.proving import MORE_ROUNDS, Instead, Proving
from kernelwright.models.records import ROUNDS, ModelSettings, OperatorOutcome, Outcome
from kernelwright.models.report import report_text, summary
from kernelwright.models.ways import COPIED
from tests.tools.models.test_choice import group
from tools.guards.contract import Contract, Size, TensorRule
from tools.hardware import load_sheet
from tools.models.jobs import COMPILED, COMPILED_OURS, EAGER, IN_GRAPH, OURS, WITHOUT, OutputProof, Proof, ProofJob
from tools.models.packaging.delivered import Delivered
from tools.models.records import Capture, Group

GROUPS = tuple(
    group(name, (path,), share, 100.0).model_copy(update={"calls": {"w": 1, "v": 1}})
    for name, path, share in (("norm", "a", 0.4), ("gate", "b", 0.2))
)
ANSWER = Callable[[ProofJob], Proof]


class Scripted:
    """A model whose proofs are written down."""

    device = "cuda"

    def __init__(self, answer: ANSWER) -> None:
        """Answer by what is asked."""
        self.asked: list[ProofJob] = []
        self._answer = answer

    def prove(self, job: ProofJob) -> Proof:
        """Answer."""
        self.asked.append(job)
        return self._answer(job)


def present(job: ProofJob) -> list[str]:
    """Operators in the package that a job has."""
    return sorted(Path(name).stem for name in job.package if name.startswith("kernels/"))


def proof(job: ProofJob, times: dict[str, float] | None = None, *, error: float = 1e-7, unused: str = "") -> Proof:
    """A proof with an output of this error and these times, every round alike but for a thousandth."""
    output = OutputProof(workload="w", output=0, dtype="float32", error=error, own=1e-7, limit=4e-7)
    hits = {name: 2 for name in present(job) if name != unused}
    rounds = {way: {"w": tuple(us * (1 + turn % 3 / 1000) for turn in range(9))} for way, us in (times or {}).items()}
    return Proof(oracle="float64", outputs=(output,), replaced=("a",), hits=hits, restored=True, times=rounds)


def kernel(one: Group) -> Delivered:
    """A kernel for a group."""
    made_for = Contract(inputs=(TensorRule("x", "float32", (Size("any"),)),), parameters=(), constructor=(), training=None)
    assert one.trace is not None
    return Delivered(group=one, trace=one.trace, contract=made_for, kernel=f"# {one.name}", evidence=None)


def settled(
    answer: ANSWER,
    *,
    timed: bool = True,
    instead: Instead = lambda outcome: (outcome, ()),
    groups: tuple[Group, ...] = GROUPS,
    weights: Mapping[str, float] = MappingProxyType({"w": 1.0}),
    listener: Listener = lambda event: None,
) -> tuple[Outcome, dict[str, Delivered], Scripted]:
    """Settle a package of two operators."""
    model = Scripted(answer)
    capture = Capture(title="M", clock="", us=dict(weights), weights=dict(weights), modules=3, groups=groups)
    operators = tuple(
        OperatorOutcome(name=one.name, run="r", reason="Right.", delivered=True, speedup=2.0, tier="sealed") for one in GROUPS
    )
    outcome = Outcome(
        file="m.py",
        factory="",
        target="H200",
        device="cuda",
        policy="default",
        capture=capture,
        chosen=(),
        operators=operators,
        proof=Proof(),
    )
    delivered = [kernel(one) for one in groups if one.name in ("norm", "gate")]
    settings = ModelSettings(run=RunSettings())
    proving = Proving(model, Path("m.py"), "", "", load_sheet("h200"), settings, timed, 1, listener)
    found, left = proving.settle(outcome, delivered, instead)
    return found, {one.group.name: one for one in left}, model


def timed(job: ProofJob) -> dict[str, float]:
    """Both help in eager mode: the norm by 30 µs of 100, the gate by 10; under torch.compile they do not."""
    gains = {"norm": 30.0, "gate": 10.0}
    ours = 100.0 - sum(gains[name] for name in present(job))
    times = {EAGER: 100.0, OURS: ours, **{f"{WITHOUT}{name}": ours + gains[name] for name in job.operators}}
    return times | ({COMPILED: 60.0, COMPILED_OURS: 61.0} if job.compiled else {})


def test_what_helps_stays_and_its_part_of_the_gain_is_told() -> None:
    """Each is left out in turn, and the compiler is timed with what stands."""
    outcome, left, model = settled(lambda job: proof(job, timed(job)))
    assert set(left) == {"norm", "gate"}
    found = {(one.over, one.under): round(one.value, 2) for one in outcome.ratios}
    assert found[EAGER, OURS] == 1.67
    assert found[f"{WITHOUT}norm", OURS] == 1.5
    assert [job.compiled for job in model.asked] == [False, True]
    # what is right is not judged again to be timed
    assert [job.known is None for job in model.asked] == [True, False]


def test_eagers_figures_are_told_before_a_compiler_is_timed() -> None:
    """Who does not wait for the compiler has the speed-up and the operators."""
    heard: list[dict[str, Any]] = []
    settled(lambda job: proof(job, timed(job)), listener=heard.append)
    assert [event["event"] for event in heard] == ["proving", "proven", "proving"]
    found = {(one.over, one.under): round(one.value, 2) for one in heard[1]["outcome"].ratios}
    assert found[EAGER, OURS] == 1.67
    assert len(heard[1]["delivered"]) == 2


def test_what_does_not_help_under_a_compiler_steps_aside_there() -> None:
    """torch.compile was faster by itself, so it is to see the originals."""
    _, left, _ = settled(lambda job: proof(job, timed(job)))
    assert not any(one.compiled for one in left.values())


def test_what_a_compiler_does_not_take_steps_aside_there() -> None:
    """The model alone was timed under torch.compile, with the operators it failed or was wrong: eager gets them."""

    def answer(job: ProofJob) -> Proof:
        found = timed(job)
        return proof(job, {way: us for way, us in found.items() if way != COMPILED_OURS})

    outcome, left, _ = settled(answer)
    assert set(left) == {"norm", "gate"}
    assert not any(one.compiled for one in left.values())
    assert (EAGER, OURS) in {(one.over, one.under) for one in outcome.ratios}


def test_a_proof_that_was_cut_off_under_a_compiler_keeps_eagers_figures() -> None:
    """One workload of two was compiled in time: eager's speed-up is still that of both, and that is said."""

    def answer(job: ProofJob) -> Proof:
        found = proof(job, timed(job))
        slow = {way: {"v": tuple(1000.0 + us for us in each["w"])} for way, each in found.times.items()}
        return found if job.compiled else found.model_copy(update={"times": {way: each | slow[way] for way, each in found.times.items()}})

    outcome, _, _ = settled(answer, weights={"w": 1.0, "v": 1.0})
    assert {(one.over, one.under): round(one.value, 2) for one in outcome.ratios}[EAGER, OURS] == round(1200.0 / 1120.0, 2)
    assert any(note.endswith("are of w alone; eager's speed-up is of all workloads.") for note in outcome.proof.notes)


def by_workload(job: ProofJob, under: dict[str, dict[str, float]]) -> Proof:
    """Both help in eager mode in both workloads; under a compiler the model takes 60 µs alone, and with the operators these."""
    found = proof(job, {way: us for way, us in timed(job).items() if way not in (COMPILED, COMPILED_OURS)})
    times = {way: each | {"v": each["w"]} for way, each in found.times.items()}
    rounds = {
        way: {name: tuple(us * (1 + turn % 3 / 1000) for turn in range(9)) for name, us in each.items()} for way, each in under.items()
    }
    return found.model_copy(update={"times": times | (rounds if job.compiled else {})})


ALONE = {"w": 60.0, "v": 60.0}
APART = tuple(one.model_copy(update={"calls": {"w" if one.name == "norm" else "v": 1}}) for one in GROUPS)
"""Each is called in one of two workloads."""


def test_under_a_compiler_operators_step_aside_by_workload() -> None:
    """The norm makes its workload faster there, the gate the other slower: that one goes, and the rest is timed again."""

    def answer(job: ProofJob) -> Proof:
        steps = "compiled=False" in job.package["table.py"]
        return by_workload(job, {COMPILED: ALONE, COMPILED_OURS: {"w": 50.0, "v": 60.1 if steps else 70.0}})

    outcome, left, model = settled(answer, groups=APART, weights={"w": 1.0, "v": 1.0})
    assert {name: one.compiled for name, one in left.items()} == {"norm": True, "gate": False}
    assert [job.compiled for job in model.asked] == [False, True, True]
    assert outcome.proof.notes[-1] == "Under torch.compile operators step aside where it was no faster with them: v (0.86x)."
    assert outcome.proof.times[COMPILED_OURS]["v"][0] == 60.1
    assert "| v | torch.compile: 60.1 | eager, ours: 60.1 |" in report_text(outcome)


def test_the_best_way_of_all_decides() -> None:
    """In a graph, which is faster, the operators help under the compiler, too: without one they do not, and stay."""
    graphed = {f"{COMPILED}{IN_GRAPH}": {"w": 40.0, "v": 40.0}, f"{COMPILED_OURS}{IN_GRAPH}": {"w": 30.0, "v": 30.0}}
    under = {COMPILED: ALONE, COMPILED_OURS: {"w": 70.0, "v": 70.0}, **graphed}
    _, left, model = settled(lambda job: by_workload(job, under), weights={"w": 1.0, "v": 1.0})
    assert all(one.compiled for one in left.values())
    assert [job.compiled for job in model.asked] == [False, True]


def test_where_all_step_aside_a_compilers_times_are_those_without() -> None:
    """It is the same program, which nobody times again; a workload that no operator is called in stays out of it."""
    outcome, left, model = settled(
        lambda job: by_workload(job, {COMPILED: ALONE, COMPILED_OURS: {"w": 70.0, "v": 70.0}}), weights={"w": 1.0, "v": 1.0}
    )
    assert not any(one.compiled for one in left.values())
    assert outcome.proof.times[COMPILED_OURS] == outcome.proof.times[COMPILED]
    assert outcome.proof.notes[-1] == COPIED
    assert [job.compiled for job in model.asked] == [False, True]


def test_what_is_not_timed_again_keeps_the_times_of_before() -> None:
    """Its limit was met: the workload in which operators step aside has the compiler's own times, and that is said."""
    answers = iter((True, False))

    def answer(job: ProofJob) -> Proof:
        if not job.compiled or next(answers):
            return by_workload(job, {COMPILED: ALONE, COMPILED_OURS: {"w": 50.0, "v": 70.0}})
        return Proof(what="It was cut off.")

    outcome, left, _ = settled(answer, groups=APART, weights={"w": 1.0, "v": 1.0})
    assert {name: one.compiled for name, one in left.items()} == {"norm": True, "gate": False}
    assert {name: times[0] for name, times in outcome.proof.times[COMPILED_OURS].items()} == {"w": 50.0, "v": 60.0}
    assert outcome.proof.notes[-2:] == (COPIED, "It was not timed again with those that are left.")


def test_an_operator_that_does_not_help_is_taken_out_and_the_rest_proven_again() -> None:
    """Without the gate the model is as fast: it goes, and the figures are those of the norm alone."""

    def answer(job: ProofJob) -> Proof:
        return proof(job, {EAGER: 100.0, OURS: 70.0, f"{WITHOUT}norm": 100.0, f"{WITHOUT}gate": 70.0})

    outcome, left, model = settled(answer)
    assert set(left) == {"norm"}
    assert [present(job) for job in model.asked] == [["gate", "norm"], ["norm"], ["norm"]]
    [gate] = [one for one in outcome.operators if one.name == "gate"]
    assert "no faster with it" in gate.taken_out
    assert not gate.kept
    assert "gate | 2.00x (sealed) | no: the model is no faster with it" in report_text(outcome)


def test_where_the_host_is_what_takes_time_an_operator_counts_by_graphs() -> None:
    """In eager mode nothing helps; in CUDA graphs, which are faster, the norm does, and the gate does not."""

    def answer(job: ProofJob) -> Proof:
        here = present(job)
        graphed = {EAGER: 40.0, OURS: 30.0 if "norm" in here else 40.0, f"{WITHOUT}norm": 40.0, f"{WITHOUT}gate": 30.0}
        plain = dict.fromkeys(graphed, 100.0)
        return proof(job, plain | {f"{way}{IN_GRAPH}": us for way, us in graphed.items()})

    outcome, left, _ = settled(answer)
    assert set(left) == {"norm"}
    assert "1.00x [1.00, 1.00] as fast as eager, 1.33x [1.33, 1.33] in a CUDA graph" in summary(outcome)


def faster_in_graphs(job: ProofJob) -> Proof:
    """Times in which operators help only where a graph saves their host code."""
    graphed = {EAGER: 101.0, OURS: 80.0, f"{WITHOUT}norm": 90.0, f"{WITHOUT}gate": 90.0}
    plain = {EAGER: 100.0, OURS: 150.0, f"{WITHOUT}norm": 125.0, f"{WITHOUT}gate": 125.0}
    return proof(job, plain | {f"{way}{IN_GRAPH}": us for way, us in graphed.items()})


def test_where_operators_are_faster_in_graphs_they_count_by_these() -> None:
    """The model alone is as fast either way, to the noise; with operators a graph saves their host code."""
    outcome, left, _ = settled(faster_in_graphs)
    assert set(left) == {"norm", "gate"}
    report = report_text(outcome)
    assert "| gain by norm | 0.833x |" in report
    assert "| gain by norm, CUDA graph (decides what stays) | 1.125x |" in report


def test_where_a_graph_holds_the_model_only_with_operators_it_is_compared_with_the_model_alone() -> None:
    """Without the norm the model waits for the device, so no graph holds it; without the gate one does, and is no slower."""

    def answer(job: ProofJob) -> Proof:
        plain = {EAGER: 100.0, OURS: 90.0, f"{WITHOUT}norm": 100.0, f"{WITHOUT}gate": 90.0}
        return proof(job, plain | {f"{OURS}{IN_GRAPH}": 25.0, f"{WITHOUT}gate{IN_GRAPH}": 25.0})

    outcome, left, _ = settled(answer)
    assert set(left) == {"norm"}
    assert "1.11x [1.11, 1.11] as fast as eager, 4.00x [4.00, 4.00] in a CUDA graph, which holds the model only with" in summary(outcome)
    assert "| against eager, in a CUDA graph only with operators (decides what stays) | 4.000x |" in report_text(outcome)


def test_what_costs_the_model_time_goes_first_and_alone() -> None:
    """It hides what the other brings, which is seen once it is out."""

    def answer(job: ProofJob) -> Proof:
        both = {EAGER: 100.0, OURS: 101.0, f"{WITHOUT}norm": 101.0, f"{WITHOUT}gate": 90.0}
        return proof(job, both if len(present(job)) == 2 else {EAGER: 100.0, OURS: 90.0})

    _, left, model = settled(answer)
    assert set(left) == {"norm"}
    assert [present(job) for job in model.asked][:2] == [["gate", "norm"], ["norm"]]


def test_where_it_is_not_sure_that_an_operator_helps_more_rounds_tell() -> None:
    """By a tenth of a percent less than the noise: it is asked again once, with more rounds, before it may go."""

    def answer(job: ProofJob) -> Proof:
        gain = 0.05 if job.rounds == ROUNDS else 5.0
        return proof(job, {EAGER: 100.0, OURS: 70.0, f"{WITHOUT}norm": 100.0, f"{WITHOUT}gate": 70.0 + gain})

    _, left, model = settled(answer)
    assert set(left) == {"norm", "gate"}
    assert [job.rounds for job in model.asked] == [ROUNDS, ROUNDS * MORE_ROUNDS, ROUNDS]


def test_where_nothing_helps_nothing_is_left() -> None:
    """The last one is compared with eager."""
    outcome, left, _ = settled(lambda job: proof(job, {EAGER: 100.0, OURS: 100.0, f"{WITHOUT}norm": 100.0, f"{WITHOUT}gate": 100.0}))
    assert not left
    assert summary(outcome).startswith("No operator helps M")


def test_a_model_that_is_wrong_loses_operators_until_it_is_right() -> None:
    """The one that the model gains least by goes first."""
    outcome, left, _ = settled(lambda job: proof(job, error=1e-2 if "gate" in present(job) else 1e-7), timed=False)
    assert set(left) == {"norm"}
    assert outcome.proof.holds


def test_an_operator_that_was_never_reached_is_taken_out() -> None:
    """Guards turned every call away."""
    outcome, left, _ = settled(lambda job: proof(job, unused="norm"), timed=False)
    assert set(left) == {"gate"}
    assert {one.name: one.taken_out for one in outcome.operators}["norm"] == "its kernels were never reached"


def test_a_proof_that_could_not_be_made_is_said_first() -> None:
    """The operators stay in the package, and nobody is told that the model is right."""
    outcome, left, _ = settled(lambda job: Proof(what="The process ended.", mend="Look."), timed=False)
    assert set(left) == {"norm", "gate"}
    assert not outcome.proof.holds
    assert summary(outcome) == "2 operators for M are in the package. The whole model was not proven with them: The process ended."


def test_without_a_clock_the_gain_is_estimated_and_says_so() -> None:
    """By the shares of the time and the operators' own speed-ups: 0.4 and 0.2, each halved."""
    outcome, _, model = settled(proof, timed=False)
    assert round(outcome.expected, 3) == round(1 / 0.7, 3)
    assert "Not timed: an estimated 1.43x" in summary(outcome)
    assert len(model.asked) == 1


def test_what_is_made_in_the_place_of_an_operator_is_proven_with_the_rest() -> None:
    """The gate goes; what lies in it is asked for once, stays, and the compiler is timed with it."""
    inner = group("inner", ("b.inner",), 0.1, 100.0)

    def answer(job: ProofJob) -> Proof:
        gains = {"norm": 30.0, "gate": 0.0, "inner": 5.0}
        ours = 100.0 - sum(gains[name] for name in present(job))
        return proof(job, {EAGER: 100.0, OURS: ours, **{f"{WITHOUT}{name}": ours + gains[name] for name in job.operators}})

    def instead(outcome: Outcome) -> tuple[Outcome, tuple[Delivered, ...]]:
        assert [one.name for one in outcome.operators if one.taken_out] == ["gate"]
        made = OperatorOutcome(name="inner", run="r", reason="Right.", delivered=True, speedup=2.0, tier="sealed")
        return outcome.model_copy(update={"operators": (*outcome.operators, made)}), (kernel(inner),)

    outcome, left, model = settled(answer, instead=instead, groups=(*GROUPS, inner))
    assert set(left) == {"norm", "inner"}
    assert [present(job) for job in model.asked] == [["gate", "norm"], ["norm"], ["inner", "norm"], ["inner", "norm"]]
    assert [one.name for one in outcome.operators if one.kept] == ["norm", "inner"]
