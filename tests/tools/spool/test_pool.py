"""The agents' side: it waits, survives, asks nothing twice, and says what it waits for."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest

from tests.support.spool_worker import ScriptedPool, announcement, small_problem
from tests.tools.spool.conftest import StartWorker, begun, request_of, wait_until
from tests.tools.spool.test_worker import drain
from tools.errors import MachineError, Postponed, UserError
from tools.hardware import load_sheet
from tools.records import Tier, Verdict
from tools.spool import Spool, SpoolPool, Worker
from tools.spool.heartbeat import Heartbeat


@asynccontextmanager
async def working(spool: Spool, log: Path, gpu: str = "") -> AsyncIterator[None]:
    """Have a worker of this process work meanwhile."""
    stop = asyncio.Event()
    worker = Worker(spool, ScriptedPool(log, f"Scripted {gpu}" if gpu else ""), announcement(gpu), jobs=4, settle_s=0.5)
    task = asyncio.create_task(worker.run(stop))
    yield
    stop.set()
    await task


async def give_up(task: asyncio.Task[object]) -> None:
    """Cancel and wait."""
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task


async def test_an_evaluation_comes_back_with_who_made_it(spool: Spool, log: Path) -> None:
    """Verdict and figures are the worker's; the candidate is the asker's; the worker and its device are named."""
    pool = SpoolPool(spool.folder)
    async with working(spool, log, gpu="h200"):
        found = await pool.evaluate(request_of("a", candidate="mine"))
    assert (found.verdict, found.candidate, found.tier) == (Verdict.PASS, "mine", Tier.BRACKETED)
    assert "Scripted h200" in found.notes[-1]


async def test_baselines_say_what_the_worker_builds_with(spool: Spool, log: Path) -> None:
    """Versions of the packages are the worker's: whoever writes for it must know them."""
    async with working(spool, log, gpu="h200"):
        found = await SpoolPool(spool.folder).baselines(small_problem(), load_sheet("h200"))
    (worker,) = spool.announcements()
    assert found.versions == worker.versions
    assert found.versions


async def test_an_answered_question_is_not_asked_again(spool: Spool, log: Path) -> None:
    """Another pool, later, is answered from what is there, with no worker."""
    async with working(spool, log):
        first = await SpoolPool(spool.folder).evaluate(request_of("a"))
    again = await SpoolPool(spool.folder).evaluate(request_of("a"))
    assert again == first
    assert len(begun(log)) == 1


async def test_a_weakened_answer_is_refused(spool: Spool, log: Path) -> None:
    """An evaluation with a defence switched off is nobody's answer, wherever it was made."""
    async with working(spool, log):
        with pytest.raises(UserError, match="poison"):
            await SpoolPool(spool.folder).evaluate(request_of("# verdict: WRONG\n# weakened: poison\n"))


async def test_two_askers_of_one_question_share_one_answer(spool: Spool, log: Path) -> None:
    """Two runs that ask the same at the same time cost one evaluation."""
    async with working(spool, log):
        pools = [SpoolPool(spool.folder), SpoolPool(spool.folder)]
        one, other = await asyncio.gather(*(pool.evaluate(request_of("# seconds: 0.3")) for pool in pools))
    assert one == other
    assert len(begun(log)) == 1


async def test_a_run_mixes_no_tiers(spool: Spool, log: Path) -> None:
    """Once a GPU timed the reference, the run's candidates wait for a GPU, whoever else works there."""
    pool = SpoolPool(spool.folder)
    async with working(spool, log, gpu="h200"):
        baselines = await pool.baselines(small_problem(), load_sheet("h200"))
    assert baselines.tier is Tier.IN_PROCESS
    async with working(spool, log):
        task = asyncio.create_task(pool.evaluate(request_of("a")))
        await asyncio.sleep(1.2)
        assert not task.done()
    async with working(spool, log, gpu="h200"):
        assert (await task).tier is Tier.BRACKETED


async def test_where_a_gpu_announced_itself_a_measurement_is_asked_for(spool: Spool, log: Path) -> None:
    """An estimate that lies there from a worker without a GPU does not answer, and no such worker takes the job."""
    question = small_problem(), load_sheet("h200")
    async with working(spool, log):
        assert (await SpoolPool(spool.folder).baselines(*question)).tier is Tier.ESTIMATED
    spool.announce(announcement("h200"))
    async with working(spool, log), working(spool, log, gpu="h200"):
        assert (await SpoolPool(spool.folder).baselines(*question)).tier is Tier.IN_PROCESS


async def test_a_cancelled_evaluation_withdraws_its_job(spool: Spool, log: Path) -> None:
    """Nobody begins what nobody waits for; asked again later, it is judged."""
    pool = SpoolPool(spool.folder)
    task = asyncio.create_task(pool.evaluate(request_of("a")))
    await wait_until(spool.job_files)
    await give_up(task)
    assert not spool.job_files()
    assert (await drain(spool, log)).answered == 0
    async with working(spool, log):
        assert (await pool.evaluate(request_of("a"))).verdict is Verdict.PASS


async def test_a_failing_machine_is_an_error_and_is_asked_again(spool: Spool, log: Path, tmp_path: Path) -> None:
    """A worker's MachineError is raised as such, with its words; the next asking is a new attempt."""
    pool = SpoolPool(spool.folder)
    request = request_of("# broken: fan")
    for _ in range(2):
        async with working(spool, log):
            with pytest.raises(MachineError, match="broken: fan") as raised:
                await pool.evaluate(request)
    assert raised.value.mend == "Mend it."
    assert len(begun(log)) == 2


async def test_a_job_that_gets_lost_is_asked_again(spool: Spool, log: Path) -> None:
    """Whoever deletes or damages a waiting job only delays it."""
    task = asyncio.create_task(SpoolPool(spool.folder).evaluate(request_of("a")))
    await wait_until(spool.job_files)
    shutil.rmtree(spool.folder / "jobs")
    (spool.folder / "jobs").mkdir()
    await wait_until(spool.job_files)
    (spool.folder / "jobs" / spool.job_files()[0]).write_text("{")
    async with working(spool, log):
        assert (await task).verdict is Verdict.PASS


async def test_a_damaged_answer_is_asked_again(spool: Spool, log: Path) -> None:
    """An answer that cannot be read is set aside, and the job judged once more."""
    async with working(spool, log):
        pool = SpoolPool(spool.folder)
        await pool.evaluate(request_of("a"))
        answer = next((spool.folder / "answers").iterdir())
        answer.write_text(answer.read_text()[:500])
        assert (await pool.evaluate(request_of("a"))).verdict is Verdict.PASS
    assert (spool.folder / "aside" / f"answers.{answer.name}").exists()
    assert len(begun(log)) == 2


async def test_an_answer_of_a_newer_worker_says_what_to_update(spool: Spool, log: Path) -> None:
    """It has a field that nobody here knows: it is kept, nothing is judged again, and one line says which side to update."""
    async with working(spool, log):
        await SpoolPool(spool.folder).evaluate(request_of("a"))
        answer = next((spool.folder / "answers").iterdir())
        whole = answer.read_text()
        answer.write_text(whole.replace('"evaluation":{', '"evaluation":{"spin":1,', 1))
        with pytest.raises(UserError, match=r"a newer kernelwright: it has evaluation\.spin") as caught:
            await SpoolPool(spool.folder).evaluate(request_of("a"))
    assert "Update kernelwright here" in caught.value.mend
    answer.write_text(whole)
    assert (await SpoolPool(spool.folder).evaluate(request_of("a"))).verdict is Verdict.PASS
    assert len(begun(log)) == 1


async def test_an_answer_of_an_older_worker_says_what_to_update(spool: Spool, log: Path) -> None:
    """It lacks what is needed here: whoever answered must be updated, and is then asked again."""
    async with working(spool, log):
        await SpoolPool(spool.folder).evaluate(request_of("a"))
        answer = next((spool.folder / "answers").iterdir())
        answer.write_text(answer.read_text().replace('"verdict":"PASS"', '"spent":0', 1).replace('"spent":0,', "", 1))
        with pytest.raises(UserError, match=r"an older kernelwright: it lacks evaluation\.verdict") as caught:
            await SpoolPool(spool.folder).evaluate(request_of("a"))
        assert "Update kernelwright where the worker runs" in caught.value.mend
        assert (await SpoolPool(spool.folder).evaluate(request_of("a"))).verdict is Verdict.PASS


async def test_a_job_of_a_newer_asker_waits_for_a_worker_that_can_read_it(spool: Spool, log: Path) -> None:
    """An older worker leaves it where it is and says what to update; the asker hears it, and a worker that can read it answers."""
    heard: list[str] = []
    pool = SpoolPool(spool.folder)
    pool.listener = heard.append
    task = asyncio.create_task(pool.evaluate(request_of("a")))
    await wait_until(spool.job_files)
    job = spool.folder / "jobs" / spool.job_files()[0]
    whole = job.read_text()
    job.write_text(whole.replace('"evaluation":{', '"evaluation":{"spin":1,', 1))
    async with working(spool, log):
        await wait_until(lambda: any("update kernelwright on host" in line and "it has evaluation.spin" in line for line in heard))
    assert job.exists()
    job.write_text(whole)
    async with working(spool, log):
        assert (await task).verdict is Verdict.PASS
    assert not list((spool.folder / "aside").iterdir())


async def test_a_job_no_worker_can_read_is_an_error_in_the_end(spool: Spool) -> None:
    """Set aside twice, a job is not asked for ever: the reason is told."""
    task = asyncio.create_task(SpoolPool(spool.folder).evaluate(request_of("a")))
    for _ in range(2):
        await wait_until(spool.job_files)
        spool.set_aside("jobs", spool.job_files()[0], "version: Input should be 2")
    with pytest.raises(MachineError, match="Input should be 2"):
        await task


async def test_the_wait_is_visible(spool: Spool, log: Path) -> None:
    """The listener hears that a job is queued, that nobody works there, and who took it where."""
    heard: list[str] = []
    pool = SpoolPool(spool.folder, hint_after_s=0.5)
    pool.listener = heard.append
    task = asyncio.create_task(pool.evaluate(request_of("# seconds: 3")))
    await wait_until(lambda: any("kernelwright worker --spool" in line for line in heard))
    async with working(spool, log, gpu="h200"):
        await wait_until(lambda: any("Scripted h200" in line and "taken by worker" in line for line in heard))
        assert "Scripted h200" in pool.name
        await give_up(task)
    assert "queued" in heard[0]


async def test_a_worker_that_stirs_is_not_called_absent(spool: Spool) -> None:
    """While a worker is busy with other jobs, nobody is told to start one."""
    heard: list[str] = []
    pool = SpoolPool(spool.folder, hint_after_s=0.5)
    pool.listener = heard.append
    with Heartbeat(spool, announcement(), lease_s=1.2):
        task = asyncio.create_task(pool.evaluate(request_of("a")))
        await asyncio.sleep(1.5)
        await give_up(task)
    assert not [line for line in heard if "no worker" in line]


async def test_without_waiting_the_job_stays(spool: Spool, log: Path) -> None:
    """A pool that does not wait says so at once; after a drain the same question is answered."""
    pool = SpoolPool(spool.folder, wait=False)
    with pytest.raises(Postponed, match="waits in"):
        await pool.evaluate(request_of("a"))
    assert (await drain(spool, log)).answered == 1
    assert (await pool.evaluate(request_of("a"))).verdict is Verdict.PASS


async def test_a_copied_folder_serves_as_a_shared_one(spool: Spool, log: Path, tmp_path: Path, start_worker: StartWorker) -> None:
    """Copied out, drained and copied back, twice over: each job is judged once, and the asker finds every answer."""
    pool = SpoolPool(spool.folder, wait=False)
    away = tmp_path / "away"
    for names in (("a", "b"), ("c",)):
        for name in names:
            with pytest.raises(Postponed):
                await pool.evaluate(request_of(name))
        shutil.copytree(spool.folder, away, dirs_exist_ok=True)
        start_worker(away, "drain").wait()
        shutil.copytree(away, spool.folder, dirs_exist_ok=True)
    for name in ("a", "b", "c"):
        assert (await pool.evaluate(request_of(name))).verdict is Verdict.PASS
    assert len(begun(log)) == 3
    assert not spool.job_files()
