"""`kernelwright worker` and runs that evaluate through it: real processes, a real folder, Triton's interpreter."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from graphs.optimize.execute import execute
from graphs.run.assembly import start_run
from graphs.run.evaluators import open_evaluator
from graphs.run.settings import RunSettings
from tests.support.loop import small_services
from tests.support.spool_worker import ScriptedPool, announcement
from tools.errors import Postponed, UserError
from tools.hardware import load_sheet
from tools.problems import load_problem
from tools.records import Budget, EvaluationRequest, Problem, Verdict
from tools.spool import Spool, Worker
from tools.spool.records import BaselinesQuestion, Job

StartWorker = Callable[..., "subprocess.Popen[str]"]

ROOT = Path(__file__).parents[2]
FOREIGN = "langgraph langchain langchain_core langchain_openai openai chromadb sentence_transformers agents graphs knowledge"

DOUBLE = """import torch

rows, columns = 8, 16
SMALL_SIZES = [{"rows": 3, "columns": 5}]


def double(x):
    return x * 2


def example_inputs():
    return (torch.randn(rows, columns),)
"""

KERNEL = """import time
import torch
import triton
import triton.language as tl


@triton.jit
def double_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    mask = offsets < n
    tl.store(out_ptr + offsets, tl.load(x_ptr + offsets, mask=mask) * 2, mask=mask)


class ModelNew(torch.nn.Module):
    def forward(self, x):
        time.sleep(SECONDS)
        out = torch.empty_like(x)
        double_kernel[(1,)](x, out, x.numel(), BLOCK=128)
        return out
"""


@pytest.fixture
def problem(tmp_path: Path) -> Problem:
    """Twice a tiny matrix."""
    (tmp_path / "double.py").write_text(DOUBLE)
    return load_problem(tmp_path / "double.py")


@pytest.fixture
def spool(tmp_path: Path) -> Spool:
    """An empty spool."""
    return Spool(tmp_path / "spool")


@pytest.fixture
def worker(spool: Spool) -> Iterator[StartWorker]:
    """Start `kernelwright worker` as a user does; what still runs at the end of the test is killed."""
    running = []

    def start(*options: str) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "kernelwright", "worker", "--spool", str(spool.folder), *options]
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
        running.append(subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True))
        return running[-1]

    yield start
    for process in running:
        with process:
            process.kill()


def job_of(problem: Problem, seconds: float) -> Job:
    """A right candidate that takes its time."""
    source = KERNEL.replace("SECONDS", str(seconds))
    request = EvaluationRequest(problem=problem, candidate="c", source=source, target=load_sheet("h200"))
    return Job(token="t", asked=time.time(), asker="here", evaluation=request)


@pytest.mark.slow
def test_a_worker_killed_in_mid_job_loses_nothing(spool: Spool, problem: Problem, worker: StartWorker) -> None:
    """A real candidate whose worker is killed while it runs is judged by the next worker's drain, once; the reference too."""
    job = job_of(problem, seconds=0.01)
    question = Job(token="t", asked=0.0, asker="here", baselines=BaselinesQuestion(problem=problem, target=load_sheet("h200")))
    spool.put_job(job)
    first = worker("--devices", "interpreter")
    assert first.stderr
    assert any("took" in line for line in first.stderr)
    first.kill()
    first.wait()
    spool.put_job(question)
    out, said = worker("--devices", "interpreter", "--drain", "--json").communicate()
    summary = json.loads(out)
    assert (summary["answered"], summary["verdicts"], summary["baselines"]) == (2, {"PASS": 1}, 1), said
    answer = spool.answer(job.id)
    assert answer
    assert answer.evaluation
    assert (answer.generation, answer.evaluation.tier) == (2, "estimated")
    assert not spool.job_files()


@pytest.mark.slow
def test_a_terminated_worker_hands_back_what_it_was_judging(spool: Spool, problem: Problem, worker: StartWorker) -> None:
    """SIGTERM in mid-job: soon gone, exit status 143, the job free for others, and no process left behind."""
    spool.put_job(job_of(problem, seconds=60))
    first = worker("--devices", "interpreter")
    assert first.stderr
    assert any("took" in line for line in first.stderr)
    end = time.monotonic() + 30
    # the first process, two that are warm, and two zygotes
    while len(below := psutil.Process(first.pid).children(recursive=True)) < 5:
        assert time.monotonic() < end
        time.sleep(0.05)
    first.send_signal(signal.SIGTERM)
    out, _ = first.communicate(timeout=30)
    assert first.returncode == 128 + signal.SIGTERM
    assert "1 given back" in out
    assert len(spool.job_files()) == 1
    assert not [process for process in below if process.is_running()]


def test_a_worker_needs_no_agent_library(spool: Spool) -> None:
    """The command imports neither the agents nor what they need: a GPU node needs torch, triton, pydantic and little else."""
    script = (
        "import sys; sys.argv = ['kernelwright', 'worker', '--spool', sys.argv[1], '--devices', 'interpreter', '--drain', '--json']\n"
        "from kernelwright.cli.app import main\n"
        "try: main()\n"
        "except SystemExit as ended: assert not ended.code, ended.code\n"
        f"print(sorted(set({FOREIGN!r}.split()) & {{name.partition('.')[0] for name in sys.modules}}))"
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, "-c", script, str(spool.folder)], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


def test_a_worker_without_a_gpu_says_so(spool: Spool) -> None:
    """Estimates are made only where they are asked for: no GPU and no word about it is wrong input, and the jobs stay."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "CUDA_VISIBLE_DEVICES": ""}
    command = [sys.executable, "-m", "kernelwright", "worker", "--spool", str(spool.folder), "--drain"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "--devices interpreter" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_run_without_a_target_takes_the_workers(spool: Spool, problem: Problem, tmp_path: Path) -> None:
    """Where the spool's GPU workers have announced one device, that is the run's target; the spool's path is kept whole."""
    spool.announce(announcement("a100"))
    store = start_run(problem, RunSettings(evaluator=f"spool:{os.path.relpath(spool.folder)}", memory=False), tmp_path / "home")
    settings = RunSettings.model_validate_json(store.meta("settings"))
    assert (settings.target, settings.evaluator) == ("a100", f"spool:{spool.folder}")


def test_an_unknown_evaluator_is_wrong_input(problem: Problem, tmp_path: Path) -> None:
    """A word that names no evaluator is refused with those there are, and no run is made."""
    with pytest.raises(UserError, match="'slurm'") as refused:
        start_run(problem, RunSettings(evaluator="slurm"), tmp_path / "home")
    assert "spool:DIR" in refused.value.mend
    assert not (tmp_path / "home").exists()


async def _drain(spool: Spool, log: Path, gpu: str = "") -> None:
    await Worker(spool, ScriptedPool(log, f"Scripted {gpu}" if gpu else ""), announcement(gpu), jobs=4).run(asyncio.Event(), drain=True)


def _run(folder: Path, spool: Spool, *, wait: bool = False) -> Any:
    """Run or continue a run whose pool is the spool, as a process of its own would: everything is opened anew."""
    evaluator = f"spool:{spool.folder}"
    settings = RunSettings(target="h200", memory=False, evaluator=evaluator, wait=wait, parents="none", budget=Budget(evaluations=6))
    services = small_services(folder, settings)
    services.pool = open_evaluator(settings, services.store)
    return asyncio.run(execute(services, lambda event: None))


def test_agents_run_a_round_and_exit_while_a_drain_answers(spool: Spool, tmp_path: Path) -> None:
    """Round after round: the agents stop where answers are missing, a drain makes them, the resumed run goes on to its end."""
    log = tmp_path / "pool.log"
    log.touch()
    stops, most = 0, 0
    while True:
        try:
            delivery = _run(tmp_path / "run", spool)
            break
        except Postponed:
            stops += 1
            most = max(most, len(spool.job_files()))
            asyncio.run(_drain(spool, log, gpu="h200"))
    begun = [line for line in log.read_text().splitlines() if line.startswith("begin")]
    assert stops >= 3
    assert most >= 2
    assert len(set(begun)) == len(begun)
    assert delivery.candidate != "root"
    assert "measured (bracketed)" in delivery.reason


def test_a_resumed_run_finds_what_was_answered_meanwhile(spool: Spool, tmp_path: Path) -> None:
    """The agents' process is killed while it waits; the worker goes on; the resumed run repeats no evaluation."""
    log = tmp_path / "pool.log"
    script = (
        "import sys; from pathlib import Path; from tests.kernelwright.test_worker import _run; from tools.spool import Spool\n"
        "_run(Path(sys.argv[1]), Spool(Path(sys.argv[2])), wait=True)"
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    agents = subprocess.Popen([sys.executable, "-c", script, str(tmp_path / "run"), str(spool.folder)], env=environment, cwd=ROOT)
    end = time.monotonic() + 60
    while not spool.job_files():
        assert time.monotonic() < end
        time.sleep(0.05)
    agents.kill()
    agents.wait()
    asyncio.run(_drain(spool, log, gpu="h200"))

    async def work_until_done() -> Any:
        stop = asyncio.Event()
        working = asyncio.create_task(Worker(spool, ScriptedPool(log, "Scripted h200"), announcement("h200"), jobs=4).run(stop))
        delivery = await asyncio.to_thread(_run, tmp_path / "run", spool, wait=True)
        stop.set()
        await working
        return delivery

    delivery = asyncio.run(work_until_done())
    lines = log.read_text().splitlines()
    assert lines.count("baselines exp") == 1
    begun = [line for line in lines if line.startswith("begin")]
    assert len(set(begun)) == len(begun)
    assert delivery.candidate != "root"
    found = [spool.answer(path.stem) for path in (spool.folder / "answers").iterdir()]
    assert {Verdict.PASS} <= {answer.evaluation.verdict for answer in found if answer and answer.evaluation}
