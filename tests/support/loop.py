"""A small landscape for tests of the loop: a problem, a coder and an evaluator whose candidates say in their text how they end.

The planner, the profiler and the reviewer are the built-in ones or whatever a test passes in; store, graph and checkpoints are real.
"""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

from agents import AgentTeam
from agents.coder.protocol import Coder, CodingTask, Draft, Refusal
from agents.planner.protocol import Briefing
from agents.profiler.builtin import BuiltinProfiler
from agents.reviewer.builtin import BuiltinReviewer
from graphs.run.context import Services
from graphs.run.settings import RunSettings
from knowledge.protocol import Memory, NoMemory
from tools.hardware import load_sheet
from tools.profiling.ncu import Counters
from tools.records import (
    ABI,
    Action,
    ActionKind,
    Baselines,
    Candidate,
    Correctness,
    Estimate,
    Evaluation,
    EvaluationRequest,
    HardwareSheet,
    OperatorFamily,
    OutputError,
    Plan,
    Problem,
    ProblemForm,
    TensorSpec,
    Tier,
    Verdict,
    Work,
)
from tools.tracing import RunStore

EAGER_US = 100.0
BLOCKS = (16, 32, 64, 128, 256, 512)
TIMES = {16: 90.0, 32: 70.0, 64: 50.0, 128: 40.0, 256: 45.0, 512: 80.0}
"""Microseconds by block size, relative to nothing measured: a landscape for tests."""


SOURCE = """import torch

def exp(x):
    return torch.exp(x)

def example_inputs():
    return [torch.randn(1024, 1024)]
"""


def small_problem() -> Problem:
    """A pointwise problem, made without torch."""
    x = TensorSpec(name="x", shape=(1024, 1024), dtype="float32")
    work = Work(
        operators=("aten.exp.default",),
        families=(OperatorFamily.POINTWISE,),
        matmul_flops=0,
        pointwise_flops=x.numel,
        eager_bytes=2 * x.nbytes,
    )
    return Problem(name="exp", form=ProblemForm.FUNCTION, entry="exp", source=SOURCE, abi=ABI(arguments=(x,), outputs=(x,)), work=work)


class TextPool:
    """Judges a candidate by the `verdict:` and `time:` comments in its text, and counts how often it was asked."""

    name = "text"

    def __init__(self, log: Path, delay: float = 0.0) -> None:
        """Append a line to `log` for each evaluation; take `delay` seconds for it."""
        self._log = log
        self._delay = delay

    async def evaluate(self, request: EvaluationRequest) -> Evaluation:
        """Read the verdict."""
        with self._log.open("a") as log:
            log.write(request.key + "\n")
        await asyncio.sleep(self._delay)
        verdict = Verdict(_read(request.source, "verdict") or "PASS")
        if verdict is not Verdict.PASS:
            return Evaluation(candidate=request.candidate, verdict=verdict, log="Error: as the text says")
        fine = OutputError(
            output="output0",
            relative_l2=1e-7,
            worst_row=1e-7,
            reference_relative_l2=1e-7,
            reference_worst_row=1e-7,
            limit_relative_l2=4e-7,
            limit_worst_row=4e-7,
        )
        return Evaluation(
            candidate=request.candidate,
            verdict=verdict,
            correctness=Correctness(outputs=(fine,), calls=1, sizes=("as written",), executor="interpreter"),
            estimate=_estimate(_time(request.source)),
        )

    async def baselines(self, problem: Problem, target: HardwareSheet) -> Baselines:
        """Eager takes EAGER_US."""
        return Baselines(tier=Tier.ESTIMATED, estimate=_estimate(EAGER_US), device=target.name)

    async def counters(self, request: EvaluationRequest) -> Counters:
        """Count nothing."""
        return Counters(note="Nothing was counted.")

    async def close(self) -> None:
        """Nothing is open."""


def _time(source: str) -> float:
    """A source that says nothing, such as the built-in coder's own, takes as long as eager."""
    if said := _read(source, "time"):
        return float(said)
    block = _read(source, "block")
    return TIMES[int(block)] if block else EAGER_US


def _read(source: str, name: str) -> str:
    found = re.search(rf"# {name}: (\S+)", source)
    return found.group(1) if found else ""


def _estimate(us: float) -> Estimate:
    return Estimate(target="h200", candidate_us=us, eager_us=EAGER_US, floor_us=1.0, model="text 1")


class BlockCoder:
    """Writes a few lines for a block size: the first draft of 32 is wrong and can be repaired, 16 never works, 512 is refused."""

    name = "blocks"
    free = False

    async def begin(self, problem: Problem, sheet: HardwareSheet, trace_s: float) -> None:
        """Need nothing."""

    async def options(self, problem: Problem, parent: Candidate | None, sheet: HardwareSheet) -> tuple[Action, ...]:
        """Every block size but the parent's own."""
        own = int(_read(parent.source, "block")) if parent else 0
        return tuple(Action(kind=ActionKind.TILING, region="r0", parameters={"BLOCK": size}) for size in BLOCKS if size != own)

    async def limits(self, problem: Problem) -> tuple[str, ...]:
        """None."""
        return ()

    async def write(self, task: CodingTask) -> Draft | Refusal:
        """Write the block size down; the parent's line keeps candidates of different parents apart."""
        size = int(task.plan.action.parameters["BLOCK"])
        if size == 512:
            return Refusal(reason="512 does not fit into shared memory.")
        verdict = "WRONG" if size in {16, 32} else "PASS"
        return Draft(source=f"# block: {size}\n# time: {TIMES[size]}\n# verdict: {verdict}\n# parent: {task.plan.parent}\n")

    async def repair(self, task: CodingTask, draft: Draft, evaluation: Evaluation, attempt: int) -> Draft | Refusal:
        """Mend block 32."""
        if "# block: 32" not in draft.source:
            return Refusal(reason="There is nothing to mend.")
        return Draft(source=draft.source.replace("WRONG", "PASS"))


class BadFirst(BlockCoder):
    """Offers first what ends WRONG, 16, and what it refuses, 512."""

    async def options(self, problem: Problem, parent: Candidate | None, sheet: HardwareSheet) -> tuple[Action, ...]:
        """Those two, then the others."""
        found = await super().options(problem, parent, sheet)
        return tuple(sorted(found, key=lambda one: one.parameters["BLOCK"] not in {16, 512}))


class FirstOptionPlanner:
    """Takes the first options not tried yet, in the coder's order."""

    name = "first-option"

    async def plan(self, briefing: Briefing, count: int) -> tuple[Plan, ...]:
        """Plan `count` untried options."""
        tried = {one.action.id for one in briefing.tried}
        cited = tuple(r.strategy.id for r in briefing.recalled if not r.warning)
        fresh = [action for action in briefing.options if action.id not in tried][:count]
        return tuple(Plan(parent=briefing.parent, action=a, rationale="It is next.", strategies=cited, planner=self.name) for a in fresh)


def small_team(coder: Coder | None = None) -> AgentTeam:
    """Scripted planner and coder, built-in profiler and reviewer."""
    return AgentTeam(planner=FirstOptionPlanner(), coder=coder or BlockCoder(), profiler=BuiltinProfiler(), reviewer=BuiltinReviewer())


def small_services(
    folder: Path,
    settings: RunSettings | None = None,
    memory: Memory | None = None,
    team: AgentTeam | None = None,
    store: RunStore | None = None,
) -> Services:
    """Services of a run in `folder`, made on the first call and opened on the next."""
    if store is None:
        exists = (folder / "run.db").is_file()
        store = RunStore(folder) if exists else RunStore.create(folder, {"run": folder.name, "created": "0"})
    problem = small_problem()
    settings = settings or RunSettings(target="h200", memory=False)
    store.set_meta("settings", settings.model_dump_json())
    store.put("problem", problem.id, problem)
    store.put_root(problem.source)
    return Services(
        run=folder.name,
        settings=settings,
        problem=problem,
        variants=(),
        sheet=load_sheet("h200"),
        store=store,
        pool=TextPool(folder / "evaluations.log"),
        team=team or small_team(),
        memory=memory or NoMemory(),
    )
