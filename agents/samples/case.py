"""One small case of everything an agent is told: a softmax on an H200."""

from __future__ import annotations

from agents.coder.protocol import CodingTask
from agents.planner.protocol import Briefing, Tried
from agents.planner.weigh import Step, WeighCase
from agents.planner.world import Decision, Ended, TreeCase
from agents.records.inspiration import Inspiration
from agents.records.standing import Attempt, Standing
from agents.reviewer.protocol import Review, ReviewCase
from agents.samples.sources import KERNEL, REFERENCE
from knowledge.records import Recalled, Situation, Strategy, Trial
from tools.hardware import load_sheet
from tools.records import (
    ABI,
    ATTEMPT,
    ROOT,
    Action,
    ActionKind,
    Baselines,
    Bottleneck,
    Candidate,
    Correctness,
    Estimate,
    Evaluation,
    Figure,
    FigureSource,
    KernelResources,
    OperatorFamily,
    OutputError,
    Plan,
    Problem,
    ProblemForm,
    Profile,
    TensorSpec,
    Tier,
    Verdict,
    Work,
)

SHEET = load_sheet("h200")

# as the built-in coder lists them for a parent with ROWS=4 and num_warps=4
TILING = tuple(Action(kind=ActionKind.TILING, region="r0", parameters={"ROWS": rows}) for rows in (1, 2, 8, 16))
FUSION = Action(kind=ActionKind.FUSION, region="r0+r1")
LAUNCH = tuple(Action(kind=ActionKind.LAUNCH, region="r0", parameters={"num_warps": warps}) for warps in (1, 2, 8))
OPTIONS = (*TILING, FUSION, *LAUNCH)


def problem() -> Problem:
    """softmax(2 x) over rows of 1024."""
    tensor = {"shape": (4096, 1024), "dtype": "float32"}
    return Problem(
        name="softmax",
        form=ProblemForm.KERNELBENCH,
        entry="Model",
        source=REFERENCE,
        abi=ABI(
            arguments=(TensorSpec(name="x", **tensor),),
            outputs=(TensorSpec(name="output0", **tensor),),
        ),
        work=Work(
            operators=("aten.mul.Tensor", "aten.softmax.int"),
            families=(OperatorFamily.SOFTMAX, OperatorFamily.POINTWISE),
            matmul_flops=0,
            pointwise_flops=8388608,
            eager_bytes=67108864,
        ),
    )


def profile(bottleneck: Bottleneck = Bottleneck.EXCESS_TRAFFIC, candidate: str = ROOT) -> Profile:
    """A profile with two figures."""
    return Profile(
        candidate=candidate,
        target="h200",
        figures=(
            Figure(name="traffic_ratio", value=2.0, unit="times the compulsory bytes", source=FigureSource.STATIC),
            Figure(name="memory_rate", value=0.62, unit="share of the copy rate", source=FigureSource.MODEL),
        ),
        bottleneck=bottleneck,
        evidence="Moves 2.0x its compulsory bytes (traffic_ratio).",
        notes=("Nsight Compute is not here.",),
    )


def profile_with(name: str, value: float) -> Profile:
    """The profile with one more figure."""
    made = profile()
    return made.model_copy(update={"figures": (*made.figures, Figure(name=name, value=value, unit="ratio", source=FigureSource.MODEL))})


def strategy(kind: ActionKind = ActionKind.FUSION, gain: float | None = 1.8, **fields: object) -> Strategy:
    """A strategy with one measured trial, or with none where `gain` is None."""
    trials = (Trial(run="r", candidate="c", verdict=Verdict.PASS, gain=gain, tier=Tier.BRACKETED, device="NVIDIA H200"),) if gain else ()
    situation = Situation(families=(OperatorFamily.SOFTMAX,), bottleneck=Bottleneck.EXCESS_TRAFFIC)
    made = {
        "title": f"try {kind}",
        "situation": situation,
        "kind": kind,
        "lesson": f"Use {kind} here.",
        "source": "a run",
        "trials": trials,
    }
    return Strategy.model_validate({**made, **fields})


def recalled(one: Strategy, score: float = 0.6, warning: bool = False) -> Recalled:
    """A recalled strategy."""
    return Recalled(strategy=one, score=score, why="family softmax", warning=warning)


def briefing(**changes: object) -> Briefing:
    """The reference, with options of the built-in coder."""
    made = {
        "problem": problem(),
        "parent": ROOT,
        "parent_source": REFERENCE,
        "profile": profile(),
        "options": OPTIONS,
        "free": False,
        "tried": (),
        "recalled": (),
        "sheet": SHEET,
        "speedup": 1.0,
    }
    return Briefing.model_validate({**made, **changes})


def tried(action: Action, gain: float | None, verdict: Verdict | None = Verdict.PASS) -> Tried:
    """An action that was tried."""
    return Tried(action=action, verdict=verdict, gain=gain, reason="The interval says so.")


def standing() -> Standing:
    """After a built-in kernel, a wrong design and a right one."""
    errors = failed().correctness
    assert errors is not None
    built = Attempt(
        candidate="0123456789abcdef", parent=ROOT, action=FUSION, verdict=Verdict.PASS, time_us=28.0, tier="bracketed", speedup=1.2
    )
    first = Action(kind=ActionKind.REWRITE, region="Model", parameters={ATTEMPT: 1})
    wrong = Attempt(
        candidate="fedcba9876543210", parent=ROOT, action=first, idea="Two rows a program.", verdict=Verdict.WRONG, errors=errors.outputs
    )
    return Standing(baselines={"eager": 41.0, "compile": 33.5}, tier="bracketed", floor_us=10.0, attempts=(built, wrong))


def programs() -> tuple[Inspiration, ...]:
    """A leading program and one of another strategy."""
    top = Inspiration(
        candidate="0123456789abcdef", speedup=1.6, steps=(FUSION, TILING[0]), time_us=21.0, tier="bracketed", bottleneck="dram-bandwidth"
    )
    other = top.model_copy(update={"candidate": "fedcba9876543210", "steps": (FUSION,), "speedup": 1.2, "time_us": 28.0, "diverse": True})
    return top.model_copy(update={"source": KERNEL}), other.model_copy(update={"source": KERNEL.replace("1)", "1)  # other")})


def weigh_case() -> WeighCase:
    """Two steps and stopping, after one step of the episode."""
    parent = candidate()
    return WeighCase(
        name="weigh 1",
        briefing=briefing(parent=parent.id, parent_source=parent.source),
        groups=("stop", "tiling r0", "launch r0"),
        actions=(None, TILING[1], Action(kind=ActionKind.LAUNCH, region="r0", parameters={"num_warps": 8})),
        history=(Step(group="fusion r0+r1", reward=1.6),),
    )


def tree_case() -> TreeCase:
    """A tree of three decisions after the first was refined."""
    done, parent = TILING[0], candidate()
    nodes = (
        Decision(id=0, parent=-1, action=None, state="closed", solution=ROOT, score=0, gain=1, confidence=1, difficulty=2),
        Decision(id=1, parent=0, action=done, state="closed", solution=parent.id, score=8, gain=1.6, confidence=1, difficulty=2),
        Decision(id=2, parent=0, action=TILING[1], state="open", score=5, gain=1.2, confidence=0.3, difficulty=2),
    )
    return TreeCase(
        name="edit 1",
        briefing=briefing(parent=parent.id, parent_source=parent.source),
        focus=1,
        nodes=nodes,
        ended=Ended(node=1, expected=1.3, measured=1.6, attempts=3, second="0123456789abcdef", second_gain=1.55),
        most=3,
    )


def candidate() -> Candidate:
    """A kernel of free text."""
    return Candidate(problem=problem().id, parent=ROOT, action=FUSION, source=KERNEL, coder="scripted")


def plan(action: Action = TILING[0], parent: str = ROOT) -> Plan:
    """A plan of one action."""
    return Plan(parent=parent, action=action, rationale="Because of traffic_ratio.", planner="builtin")


def task(parent: Candidate | None = None, action: Action = TILING[0]) -> CodingTask:
    """A coding task on `parent`, or on the reference."""
    name = parent.id if parent else ROOT
    return CodingTask(problem=problem(), parent=parent, plan=plan(action, name), profile=profile(candidate=name), sheet=SHEET)


def failed(verdict: Verdict = Verdict.WRONG, log: str = "") -> Evaluation:
    """An evaluation that did not pass."""
    error = OutputError(
        output="output0",
        relative_l2=0.5,
        worst_row=0.9,
        reference_relative_l2=1e-7,
        reference_worst_row=2e-7,
        limit_relative_l2=4e-7,
        limit_worst_row=8e-7,
    )
    wrong = Correctness(outputs=(error,), calls=3, sizes=("as written", "rows=37"), executor="interpreter")
    return Evaluation(candidate="c", verdict=verdict, correctness=wrong if verdict is Verdict.WRONG else None, log=log)


def passed(microseconds: float = 20.0) -> Evaluation:
    """An evaluation that passed, with an estimated time."""
    error = OutputError(
        output="output0",
        relative_l2=1e-7,
        worst_row=2e-7,
        reference_relative_l2=1e-7,
        reference_worst_row=2e-7,
        limit_relative_l2=4e-7,
        limit_worst_row=8e-7,
    )
    kernel = KernelResources(
        name="softmax_kernel", arch="sm_90", registers=40, spill_bytes=0, shared_bytes=128, stack_bytes=0, instructions={"load": 4}
    )
    return Evaluation(
        candidate=candidate().id,
        verdict=Verdict.PASS,
        correctness=Correctness(outputs=(error,), calls=3, sizes=("as written",), executor="interpreter"),
        estimate=Estimate(target="h200", candidate_us=microseconds, eager_us=40.0, floor_us=10.0, model="test 1"),
        kernels=(kernel,),
    )


def baselines() -> Baselines:
    """Estimated baselines."""
    estimate = Estimate(target="h200", candidate_us=40.0, eager_us=40.0, floor_us=10.0, model="test 1")
    return Baselines(tier=Tier.ESTIMATED, estimate=estimate, device="h200")


def case(evaluation: Evaluation | None = None) -> ReviewCase:
    """A candidate made from the reference."""
    judged = passed() if evaluation is None else evaluation
    return ReviewCase(
        problem=problem(),
        plan=plan(FUSION),
        candidate=candidate(),
        evaluation=judged,
        profile=profile(candidate=candidate().id) if judged.verdict is Verdict.PASS else None,
        parent_source="",
        parent_evaluation=None,
        baselines=baselines(),
    )


def review() -> Review:
    """A review that accepts nothing."""
    return Review(
        verdict=Verdict.PASS, accepted=False, gain=None, reason="The interval includes 1.", lesson="It is noise.", reviewer="builtin"
    )
