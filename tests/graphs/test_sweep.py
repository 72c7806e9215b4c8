"""The action `tune` on a written source: what is compiled, tried and left alone, and when the loop asks for it."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

import pytest

from agents.coder.written import WrittenSpace, by_numbers
from graphs.optimize.execute import execute
from graphs.optimize.sweeping import SWEEPER, sweeping_ask, sweeping_plan
from graphs.refine.tuning import carry_out
from graphs.replay.pool import RecordedPool
from graphs.run.context import Services
from graphs.run.records import Tuning
from graphs.run.settings import RunSettings
from tests.support.loop import TextPool, small_problem, small_services
from tests.support.makers import launch, resources
from tools.records import ROOT, Action, ActionKind, Budget, Candidate, Evaluation, EvaluationRequest, Plan, Verdict

KERNEL = """
import torch
import triton
import triton.language as tl


@triton.jit
def exp_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr, STEPS: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    for step in range(STEPS):
        tl.store(y_ptr + at, tl.exp(tl.load(x_ptr + at, mask=at < n)), mask=at < n)


class ModelNew(torch.nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        exp_kernel[(triton.cdiv(x.numel(), 256),)](x, y, x.numel(), BLOCK=256, STEPS=16)
        return y
"""


class NumbersPool(TextPool):
    """Two warps and 1,024 elements are the fastest; 16 warps do not build; another number of steps is wrong."""

    def __init__(self, log: Path) -> None:
        """Keep what was compiled, too."""
        super().__init__(log)
        self.built: list[str] = []
        self.judged: list[str] = []

    async def evaluate(self, request: EvaluationRequest) -> Evaluation:
        """Read the numbers."""
        found = {name: int(value) for name, value in re.findall(r"(BLOCK|STEPS|num_warps|num_stages)=(\d+)", request.source)}
        warps = found.get("num_warps", 4)
        if request.depth == "build":
            self.built.append(request.source)
            verdict = Verdict.BUILD_FAILED if warps == 8 else Verdict.BUILT
            made = (launch((1024, 1024), (1024, 1024), name="exp_kernel"),) if verdict is Verdict.BUILT else ()
            return Evaluation(candidate=request.candidate, verdict=verdict, launches=made, kernels=(resources(name="exp_kernel"),))
        if "BLOCK" not in found:
            return await super().evaluate(request)
        self.judged.append(request.source)
        time = 20 + abs(found["BLOCK"].bit_length() - 11) * 5 + abs(warps.bit_length() - 2) * 5
        verdict = Verdict.PASS if found["STEPS"] == 16 else Verdict.WRONG
        text = f"# time: {time}\n# verdict: {verdict}\n# of {request.candidate}\n"
        return await super().evaluate(request.model_copy(update={"source": text}))


def opened(folder: Path, **settings: object) -> tuple[Services, Plan, NumbersPool]:
    """A run whose first candidate is a written kernel that passed, and the plan of its sweep."""
    chosen = RunSettings.model_validate({"target": "h200", "tune": 16, "memory": False, "budget": Budget(evaluations=0), **settings})
    services = small_services(folder, chosen)
    pool = NumbersPool(folder / "evaluations.log")
    services.pool = pool
    made = Action(kind=ActionKind.ALGORITHM, region="exp")
    parent = Candidate(problem=services.problem.id, parent=ROOT, action=made, source=KERNEL, coder="model")
    services.store.put_candidate(parent)
    request = services.request(parent)
    services.store.put("evaluation", request.key, asyncio.run(pool.evaluate(request)), subject=parent.id)
    plan = sweeping_plan(services, parent.id)
    services.store.put("plan", plan.id, plan, subject=parent.id)
    return services, plan, pool


def test_a_sweep_finds_faster_numbers(tmp_path: Path) -> None:
    """The best trial is faster than the kernel as it was written, says what was changed, and no model was asked for it."""
    services, plan, _ = opened(tmp_path / "run")
    done = asyncio.run(carry_out(services, plan))
    best, before = services.evaluation(done.best), services.evaluation(plan.parent)
    assert best is not None
    assert before is not None
    assert (before.time_us, best.time_us) == (35.0, 20.0)
    found = services.candidate(done.best)
    assert found.coder == SWEEPER
    assert "exp_kernel.BLOCK 256 to 1024, exp_kernel.num_warps 4 to 2" in found.notes[0]


def test_single_moves_are_compiled_and_what_does_not_build_is_not_tried(tmp_path: Path) -> None:
    """Each move of one number is compiled once, none of that is an evaluation, and a move that does not build is in no trial."""
    services, plan, pool = opened(tmp_path / "run")
    done = asyncio.run(carry_out(services, plan))
    assert len(pool.built) == len(set(pool.built)) == 1 + len(WrittenSpace(services.problem, KERNEL).moves())
    assert not any("num_warps=8" in source or "num_warps=16" in source for source in pool.judged)
    assert services.store.spent().evaluations == 1 + len(done.trials)


def test_a_number_that_breaks_the_kernel_is_left_alone(tmp_path: Path) -> None:
    """Once a change of a number alone came out wrong, no later wave changes it."""
    services, plan, pool = opened(tmp_path / "run")
    asyncio.run(carry_out(services, plan))
    wrong = [place for place, source in enumerate(pool.judged) if "STEPS=16" not in source]
    assert all(place < wrong[0] + 4 for place in wrong)


def test_a_sweep_that_was_cut_short_goes_on(tmp_path: Path) -> None:
    """What was tried before a kill is not tried again, and the sweep ends the same."""
    services, plan, _ = opened(tmp_path / "run")
    whole = asyncio.run(carry_out(services, plan))
    services.store.put("tuning", plan.id, whole.model_copy(update={"trials": (), "best": ""}), subject=plan.parent)
    asked = (tmp_path / "run" / "evaluations.log").read_text()
    assert asyncio.run(carry_out(services, plan)) == whole
    assert (tmp_path / "run" / "evaluations.log").read_text() == asked


@pytest.mark.parametrize(("budget", "allowed"), [(0, 16), (16, 5), (3, 1)])
def test_a_sweep_takes_a_third_of_what_is_left(tmp_path: Path, budget: int, allowed: int) -> None:
    """A limited budget keeps two thirds of its evaluations for what only a new kernel can gain."""
    services, plan, _ = opened(tmp_path / "run", budget=Budget(evaluations=budget))
    assert asyncio.run(carry_out(services, plan)).allowed == allowed


@pytest.mark.parametrize(("kind", "parameters", "changed"), [
    (ActionKind.LAUNCH, {"num_warps": 8}, "num_warps=8"),
    (ActionKind.TILING, {"BLOCK": 64, "num_warps": 2}, "BLOCK=64, STEPS=16, num_warps=2"),
    (ActionKind.TILING, {"BLOCK": 64, "unheard_of": 2}, ""),
    (ActionKind.ALGORITHM, {"BLOCK": 64}, ""),
    (ActionKind.TILING, {"BLOCK": "large"}, ""),
])  # fmt: skip
def test_a_plan_of_numbers_needs_no_coder(kind: ActionKind, parameters: dict[str, int | str], changed: str) -> None:
    """What only sets numbers that stand in the parent's text is done there; anything else is left to the coder."""
    parent = Candidate(problem="p", parent=ROOT, action=Action(kind=kind, region="exp"), source=KERNEL, coder="model")
    draft = by_numbers(small_problem(), parent, Action(kind=kind, region="exp_kernel", parameters=parameters))
    assert (draft.source if draft else "").count(changed or "never") == (1 if changed else 0)


def test_it_is_asked_for_once_when_it_is_time(tmp_path: Path) -> None:
    """The champion is swept where it is text and the budget has come down; not the reference, and not what a sweep ended with."""
    services, plan, _ = opened(tmp_path / "run")
    ask = sweeping_ask(services, plan.parent)
    assert ask is not None
    assert ask.parent == plan.parent
    assert sweeping_ask(services, ROOT) is None
    done = asyncio.run(carry_out(services, plan))
    assert sweeping_ask(services, plan.parent) is None
    assert sweeping_ask(services, done.best) is None
    early, plan, _ = opened(tmp_path / "early", budget=Budget(evaluations=40))
    assert sweeping_ask(early, plan.parent) is None
    early.settings = early.settings.model_copy(update={"tune": 0, "budget": Budget(evaluations=0)})
    assert sweeping_ask(early, plan.parent) is None


async def test_a_run_sweeps_the_kernel_it_was_given(tmp_path: Path) -> None:
    """A user's kernel that passes is swept in the next round by nobody's plan but the tuner's, and what that found is delivered."""
    settings = RunSettings(
        target="h200", tune=12, memory=False, start=f"# block: 16\n{KERNEL}", start_file="mine.py", budget=Budget(evaluations=20)
    )
    services = small_services(tmp_path / "run", settings)
    services.pool = NumbersPool(tmp_path / "run" / "evaluations.log")
    delivery = await execute(services, lambda event: None)
    plans = list(services.store.all("plan", Plan).values())
    assert [plan.planner for plan in plans][:2] == ["user", SWEEPER]
    done = services.store.get("tuning", plans[1].id, Tuning)
    assert done is not None
    assert delivery.candidate == done.best


def test_a_repeated_run_finds_what_was_compiled(tmp_path: Path) -> None:
    """A repetition, which does not know the problem's small sizes, gets the recorded machine code of each move, and nothing is built."""
    services, plan, pool = opened(tmp_path / "run")
    done = asyncio.run(carry_out(services, plan))
    built = len(pool.built)
    again, _, _ = opened(tmp_path / "again")
    before = services.evaluation(plan.parent)
    assert before is not None
    again.pool, again.variants = RecordedPool(services.store), (services.problem,)
    again.store.put("evaluation", again.request(again.candidate(plan.parent)).key, before, subject=plan.parent)
    assert asyncio.run(carry_out(again, plan)) == done
    assert len(pool.built) == built


class SlowPool(NumbersPool):
    """A compiler that never ends with two stages."""

    async def evaluate(self, request: EvaluationRequest) -> Evaluation:
        """Wait where it would not end."""
        if request.depth == "build" and "num_stages=2" in request.source:
            await asyncio.sleep(600.0)
        return await super().evaluate(request)


def test_moves_that_take_too_long_to_compile_do_not_take_the_time_of_trials(tmp_path: Path) -> None:
    """Of the wall time that is left, looking at moves gets a part; what is not compiled by then is tried as it is, or not at all."""
    services, plan, _ = opened(tmp_path, budget=Budget(evaluations=0, wall_s=12.0))
    services.pool = SlowPool(tmp_path / "slow.log")
    done = asyncio.run(carry_out(services, plan))
    assert done.best
