"""Workers: every job is judged once, whatever is killed, stopped, copied or damaged."""

from __future__ import annotations

import asyncio
import signal
from collections import Counter
from pathlib import Path

import pytest

from tests.support.spool_worker import ScriptedPool, announcement
from tests.tools.spool.conftest import StartWorker, begun, request_of, wait_for, wait_until
from tests.tools.spool.test_claims import claims_of, ended_worker
from tests.tools.spool.test_folder import job_of
from tools.errors import MachineError
from tools.records import Verdict
from tools.spool import Spool, Summary, Worker


async def drain(spool: Spool, log: Path, gpu: str = "", jobs: int = 4) -> Summary:
    """Work in this process until nothing is left."""
    worker = Worker(spool, ScriptedPool(log, gpu), announcement(gpu), jobs=jobs, settle_s=1.5)
    return await worker.run(asyncio.Event(), drain=True)


def test_two_workers_share_twenty_jobs_without_a_double(spool: Spool, log: Path, start_worker: StartWorker) -> None:
    """Two processes that drain one spool judge each of its jobs exactly once."""
    jobs = [job_of(f"# seconds: 0.05 {number}") for number in range(20)]
    for job in jobs:
        spool.put_job(job)
    done = [start_worker(spool.folder, "drain") for _ in range(2)]
    counts = [int(worker.communicate()[0].split()[0]) for worker in done]
    assert sum(counts) == 20
    assert sorted(begun(log)) == sorted(job.question.key for job in jobs)
    assert all(spool.has_answer(job.id) for job in jobs)
    assert not spool.job_files()


async def test_what_a_killed_worker_held_is_judged_once_more_and_counted_once(spool: Spool, log: Path, start_worker: StartWorker) -> None:
    """After SIGKILL in mid-job, the next worker sees at once that the process is gone, and its answer is the only one."""
    job = job_of("# seconds: 2")
    spool.put_job(job)
    worker = start_worker(spool.folder)
    await wait_until(lambda: begun(log))
    worker.kill()
    worker.wait()
    summary = await drain(spool, log)
    answer = spool.answer(job.id)
    assert summary.answered == 1
    assert len(begun(log)) == 2
    assert answer
    assert answer.generation == 2
    assert list((spool.folder / "claims").iterdir()) == []


async def test_a_worker_that_was_only_slow_drops_what_it_did(spool: Spool, log: Path, start_worker: StartWorker) -> None:
    """A worker that was stopped for longer than the lease finds its job taken over, and the first answer stays."""
    job = job_of("# seconds: 0.5")
    spool.put_job(job)
    slow = start_worker(spool.folder, "far", "lease=1")
    await wait_until(lambda: begun(log))
    slow.send_signal(signal.SIGSTOP)
    other = start_worker(spool.folder, "drain", "lease=1")
    assert other.communicate()[0].split()[0] == "1"
    slow.send_signal(signal.SIGCONT)
    await asyncio.sleep(0.7)
    slow.terminate()
    assert slow.communicate()[0].split()[0] == "0"
    answer = spool.answer(job.id)
    assert answer
    assert answer.announced.worker.host != "elsewhere"


def test_a_terminated_worker_gives_its_job_back(spool: Spool, log: Path, start_worker: StartWorker) -> None:
    """SIGTERM ends a worker soon; the job it held is free for the next, and no answer was made up."""
    job = job_of("# seconds: 60")
    spool.put_job(job)
    worker = start_worker(spool.folder)
    wait_for(lambda: begun(log))
    worker.terminate()
    assert worker.communicate(timeout=10)[0].split()[:2] == ["0", "1"]
    assert not spool.has_answer(job.id)
    taken = claims_of(spool).take(job)
    assert taken
    assert taken.died == 0


async def test_what_is_no_job_is_set_aside_with_a_reason(spool: Spool, log: Path) -> None:
    """Damaged, foreign and misnamed files, and a folder, are moved away, another version's job is left, and the good one is answered."""
    jobs = spool.folder / "jobs"
    good, renamed = job_of("good"), job_of("renamed")
    (jobs / "0000000000000000.json").write_text(renamed.model_dump_json())
    (jobs / "1111111111111111.json").write_text(good.model_dump_json()[:200])
    (jobs / "2222222222222222.json").write_bytes(b"\xff\xfe\x00")
    (jobs / "notes.txt").write_text("remember the milk")
    (jobs / "3333333333333333.json").mkdir()
    (jobs / "4444444444444444.json").write_text(good.model_dump_json().replace('"version":1', '"version":9', 1))
    spool.put_job(good)
    summary = await drain(spool, log)
    assert summary.answered == 1
    assert len(summary.set_aside) == 5
    assert list(summary.left) == ["4444444444444444"]
    assert {path.name for path in (spool.folder / "aside").glob("*.reason")} == {f"jobs.{name}.reason" for name in summary.set_aside}
    assert "renamed" in spool.reason("0000000000000000")


@pytest.mark.parametrize("place", ["withdrawn/{}.json", "claims/{}.1", "claims/{}.1/claim.json", "workers/0123456789ab.json"])
@pytest.mark.parametrize("what", ["text", "bytes", "folder"])
async def test_rubbish_anywhere_stops_nobody(spool: Spool, log: Path, place: str, what: str) -> None:
    """Wherever a file that means something could lie, one that means nothing neither ends the worker nor keeps the job from it."""
    job = job_of()
    spool.put_job(job)
    path = spool.folder / place.format(job.id)
    path.parent.mkdir(exist_ok=True)
    if what == "folder":
        path.mkdir()
    else:
        path.write_bytes(b"{}" if what == "text" else b"\xff\x00")
    assert (await drain(spool, log)).answered == 1
    assert spool.has_answer(job.id)


async def test_a_job_still_being_copied_is_waited_for(spool: Spool, log: Path) -> None:
    """A file that a plain copy is still writing is judged when it is whole, not set aside."""
    job = job_of("late")
    place = spool.folder / "jobs" / f"{job.id}.json"
    place.write_text(job.model_dump_json()[:300])
    draining = asyncio.create_task(drain(spool, log))
    await asyncio.sleep(1.0)
    place.write_text(job.model_dump_json())
    summary = await draining
    assert summary.answered == 1
    assert not summary.set_aside


async def test_jobs_for_another_device_are_left(spool: Spool, log: Path) -> None:
    """A worker with one kind of GPU leaves the others' jobs where they are, and says so."""
    other, own = request_of("x", target="a100"), request_of("x", target="h200")
    foreign = job_of().model_copy(update={"evaluation": other})
    spool.put_job(foreign)
    spool.put_job(job_of().model_copy(update={"evaluation": own}))
    summary = await drain(spool, log, gpu="h200")
    assert summary.answered == 1
    assert "this worker has h200" in summary.left[foreign.id]
    assert spool.has_job(foreign.id)


async def test_measurements_are_not_replaced_by_estimates(spool: Spool, log: Path) -> None:
    """A worker without a GPU leaves a job that asks for a measurement."""
    job = job_of().model_copy(update={"executor": "gpu"})
    spool.put_job(job)
    summary = await drain(spool, log)
    assert summary.answered == 0
    assert job.id in summary.left


async def test_a_bad_candidate_is_an_answer(spool: Spool, log: Path) -> None:
    """Verdicts are counted, and the worker goes on."""
    for source in ("# verdict: WRONG", "# verdict: CRASHED", "# verdict: PASS"):
        spool.put_job(job_of(source))
    summary = await drain(spool, log)
    assert summary.verdicts == Counter({Verdict.WRONG: 1, Verdict.CRASHED: 1, Verdict.PASS: 1})


async def test_a_broken_machine_does_not_empty_the_spool(spool: Spool, log: Path) -> None:
    """After three failures in a row a worker ends with the reason; the other jobs stay for a healthy one."""
    for number in range(6):
        spool.put_job(job_of(f"# broken: fan{number}"))
    with pytest.raises(MachineError, match="3 jobs in a row"):
        await drain(spool, log, jobs=1)
    assert len(spool.job_files()) == 3


async def test_a_job_that_kills_its_workers_is_given_up(spool: Spool, log: Path) -> None:
    """After three workers died over one job it is answered with that, and takes no fourth with it."""
    job = job_of()
    spool.put_job(job)
    for _ in range(3):
        assert claims_of(spool, ended_worker()).take(job)
    summary = await drain(spool, log)
    answer = spool.answer(job.id)
    assert summary.failures == 1
    assert answer
    assert answer.failure
    assert "3 workers died" in answer.failure.what
    assert not begun(log)


async def test_a_withdrawn_job_is_ended(spool: Spool, log: Path) -> None:
    """A job that its asker withdraws in mid-evaluation is cancelled, and nothing of it is left."""
    job = job_of("# seconds: 60")
    spool.put_job(job)
    draining = asyncio.create_task(drain(spool, log))
    await wait_until(lambda: begun(log))
    spool.withdraw(job)
    summary = await asyncio.wait_for(draining, 10)
    assert summary.withdrawn == 1
    assert not spool.has_answer(job.id)
    assert list((spool.folder / "claims").iterdir()) == []
