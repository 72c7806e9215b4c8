"""What a run does for whoever writes a kernel before it is handed in."""

from __future__ import annotations

from pathlib import Path

import pytest

from agents.samples import case as samples
from graphs.run.context import Services
from graphs.run.inspecting import INSPECTION
from graphs.run.records import Recall
from graphs.run.settings import RunSettings
from graphs.run.workbench import USE, RunBench, ToolUse
from tests.support.loop import TextPool, small_services
from tests.support.makers import passed, timing
from tools.errors import MachineError
from tools.idioms.idiom import all_idioms
from tools.profiling.ncu import Counters
from tools.records import ROOT, Budget, Evaluation, EvaluationRequest, Figure, FigureSource, Plan

SOURCE = "# time: 60\n"
PLAN = samples.plan()


def opened(folder: Path, evaluations: int = 9) -> Services:
    """A run that may evaluate so often."""
    return small_services(folder, RunSettings(target="h200", memory=False, budget=Budget(evaluations=evaluations)))


async def use(services: Services, tool: str, source: str = SOURCE, plan: Plan = PLAN) -> str:
    """Call a tool."""
    return await RunBench(services).use(tool, source, plan, "p/write")


async def test_looking_at_a_source_is_no_evaluation(tmp_path: Path) -> None:
    """Compiling and checking are kept by themselves and cost nothing of the budget; a wrong source is told to be wrong."""
    services = opened(tmp_path / "run")
    assert (await use(services, "compile")).startswith("Verdict: ")
    assert (await use(services, "check", "# verdict: WRONG\n")).startswith("Verdict: WRONG")
    assert len(services.store.all(INSPECTION, Evaluation)) == 2
    assert services.store.spent().evaluations == 0


async def test_timing_is_the_evaluation_that_handing_in_needs(tmp_path: Path) -> None:
    """It counts once, says that nothing was timed without a GPU, and the candidate's own evaluation is there already."""
    services = opened(tmp_path / "run")
    said = await use(services, "time")
    assert "Time: 60.0 µs (estimated)" in said
    assert "There is no GPU here" in said
    assert services.store.spent().evaluations == 1
    handed_in = samples.candidate().model_copy(update={"problem": services.problem.id, "source": SOURCE})
    assert services.store.get("evaluation", services.request(handed_in).key, Evaluation) is not None


async def test_the_last_evaluation_is_kept_for_handing_in(tmp_path: Path) -> None:
    """Where one evaluation is left nothing more is timed, but what was timed before is told again."""
    services = opened(tmp_path / "run", evaluations=2)
    first = await use(services, "time")
    assert "No evaluation is left" in await use(services, "time", "# time: 50\n")
    assert await use(services, "time") == first


async def test_a_call_is_made_once_and_has_its_place_in_the_run(tmp_path: Path) -> None:
    """The same call of the same turn is answered from the store, after a kill too, and a line says how it ended."""
    services = opened(tmp_path / "run")
    said = await use(services, "check")
    services.pool = Broken(tmp_path / "none.log")
    assert await use(services, "check") == said
    (kept,) = services.store.all(USE, ToolUse, subject=PLAN.id).values()
    assert kept.line.startswith("check PASS (")


class Broken(TextPool):
    """A machine that fails."""

    async def evaluate(self, request: EvaluationRequest) -> Evaluation:
        """Fail."""
        raise MachineError("The disk is full.", "Clear it.")


async def test_a_failing_machine_is_an_answer(tmp_path: Path) -> None:
    """The writer is told, and goes on without."""
    services = opened(tmp_path / "run")
    services.pool = Broken(tmp_path / "none.log")
    assert await use(services, "compile") == "Not now: The disk is full."


class Measured(TextPool):
    """A GPU with counters."""

    counted = Counters(
        figures=(
            Figure(name="dram_percent", value=81.5, unit="percent", source=FigureSource.COUNTERS),
            Figure(name="stall_wait", value=0.4, unit="ratio", source=FigureSource.COUNTERS),
            Figure(name="stall_long_scoreboard", value=7.25, unit="ratio", source=FigureSource.COUNTERS),
        ),
        kernels=("exp_kernel",),
    )

    async def evaluate(self, request: EvaluationRequest) -> Evaluation:
        """Time it."""
        return passed(timing=timing(20.0)).model_copy(update={"candidate": request.candidate})

    async def counters(self, request: EvaluationRequest) -> Counters:
        """Count."""
        return self.counted


async def test_a_profile_says_what_warps_wait_for(tmp_path: Path) -> None:
    """Counters of a source that was timed come in words, the longest wait first; of another nothing is told."""
    services = opened(tmp_path / "run")
    services.pool = Measured(tmp_path / "none.log")
    assert await use(services, "profile") == "Time it first: only a source that was timed and is right is profiled."
    await use(services, "time", "x = 1\n")
    said = (await use(services, "profile", "x = 1\n")).splitlines()
    assert said[1:] == [
        "  dram_percent: 81.5 percent",
        "  warps wait for loads from global or local memory: 7.25 warps an instruction issued",
        "  warps wait for a fixed latency between dependent instructions: 0.40 warps an instruction issued",
    ]


@pytest.mark.parametrize("pool", [TextPool, Measured])
async def test_what_is_not_here_is_said(tmp_path: Path, pool: type[TextPool], monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a GPU, or without counters on one, a profile says so in one line."""
    monkeypatch.setattr(Measured, "counted", Counters(note="Nsight Compute (ncu) is not installed here."))
    services = opened(tmp_path / "run")
    services.pool = pool(tmp_path / "log")
    await use(services, "time")
    assert (await use(services, "profile")).startswith("Not here: ")


async def test_memory_tells_what_was_recalled_for_the_parent(tmp_path: Path) -> None:
    """Advice and warnings come with why they fit; where nothing was recalled that is said."""
    services = opened(tmp_path / "run")
    assert "knows nothing" in await use(services, "memory", "")
    advice = samples.recalled(samples.strategy())
    services.store.put("recall", f"1/{ROOT}", Recall(recalled=(advice,)), subject=ROOT)
    said = await RunBench(services).use("memory", "", PLAN, "another turn")
    assert said.startswith("Advice (")
    assert advice.strategy.lesson in said
    carrying = advice.model_copy(update={"strategy": advice.strategy.model_copy(update={"excerpt": "def k(): ..."})})
    services.store.put("recall", f"2/{ROOT}", Recall(recalled=(carrying,)), subject=ROOT)
    assert "def k(): ..." in await RunBench(services).use("memory", "", PLAN, "a third turn")


async def test_idioms_are_listed_and_read_by_name(tmp_path: Path) -> None:
    """An empty name lists what there is, a name gives the kernel, and an unknown one is said to be."""
    services = opened(tmp_path / "run")
    assert len((await use(services, "idioms", "")).splitlines()) == len(all_idioms())
    assert "class ModelNew" in await use(services, "idioms", "split_k")
    assert (await use(services, "idioms", "nothing")).startswith("There is no idiom 'nothing'.")
