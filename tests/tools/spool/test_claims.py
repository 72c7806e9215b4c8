"""Claims: of several takers one wins; what a dead or unwilling worker held goes to another."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

from tests.support.spool_worker import announcement
from tests.tools.spool.conftest import wait_for
from tests.tools.spool.test_folder import answer_to, job_of
from tools.spool import Spool
from tools.spool.claims import Claims
from tools.spool.heartbeat import Heartbeat
from tools.spool.identity import myself
from tools.spool.lookout import Lookout
from tools.spool.records import Claim, Identity


def claims_of(spool: Spool, worker: Identity | None = None, lease_s: float = 60.0) -> Claims:
    """The claims as one worker sees them."""
    return Claims(spool, worker or myself(), Lookout(spool, lease_s))


def far_worker() -> Identity:
    """A worker of another machine: whether its process lives cannot be seen from here."""
    return myself().model_copy(update={"host": "elsewhere", "boot": "another"})


def ended_worker() -> Identity:
    """A worker whose process has ended on this machine."""
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    return myself().model_copy(update={"pid": process.pid, "started": 1})


def test_of_sixteen_takers_one_wins(spool: Spool) -> None:
    """Sixteen workers that take the same twenty jobs at one moment get each job once."""
    jobs = [job_of(str(number)) for number in range(20)]
    gate = threading.Barrier(16)

    def take(_: int) -> list[Claim | None]:
        mine = claims_of(spool)
        gate.wait()
        return [mine.take(job) for job in jobs]

    with ThreadPoolExecutor(16) as threads:
        taken = [claim.job for row in threads.map(take, range(16)) for claim in row if claim]
    assert sorted(taken) == sorted(job.id for job in jobs)


def test_of_sixteen_that_take_over_one_wins(spool: Spool) -> None:
    """A dead worker's job is taken over once, however many see that it died."""
    job, gate = job_of(), threading.Barrier(16)
    claims_of(spool, ended_worker()).take(job)

    def take(_: int) -> Claim | None:
        mine = claims_of(spool)
        gate.wait()
        return mine.take(job)

    with ThreadPoolExecutor(16) as threads:
        taken = [claim for claim in threads.map(take, range(16)) if claim]
    assert [(claim.generation, claim.died) for claim in taken] == [(2, 1)]


def test_what_a_living_worker_holds_is_its_own(spool: Spool) -> None:
    """A job that a running process of this machine holds is not taken, however long its announcement is silent."""
    job = job_of()
    assert claims_of(spool).take(job)
    assert claims_of(spool).take(job) is None


def test_what_was_given_back_is_taken_again(spool: Spool) -> None:
    """A job that was given back goes to the next, and nobody counts as having died."""
    job, first = job_of(), claims_of(spool)
    claim = first.take(job)
    assert claim
    first.give_back(claim)
    again = claims_of(spool).take(job)
    assert again
    assert (again.generation, again.died) == (2, 0)
    assert not first.holds(claim)


def test_a_silent_worker_elsewhere_loses_its_job_after_the_lease(spool: Spool) -> None:
    """A worker of another machine that does not stir for the lease is held for dead, by the watcher's clock alone."""
    job = job_of()
    claims_of(spool, far_worker()).take(job)
    mine = claims_of(spool, lease_s=0.3)
    assert mine.take(job) is None
    time.sleep(0.4)
    assert mine.take(job)


def test_a_beating_worker_elsewhere_keeps_its_job(spool: Spool) -> None:
    """While its announcement changes, a worker of another machine keeps what it holds for longer than the lease."""
    job, far = job_of(), far_worker()
    mine = claims_of(spool, lease_s=0.6)
    with Heartbeat(spool, announcement(identity=far), lease_s=0.6):
        claims_of(spool, far).take(job)
        for _ in range(12):
            assert mine.take(job) is None
            time.sleep(0.1)


def test_a_worker_that_ended_in_order_leaves_its_job_at_once(spool: Spool) -> None:
    """Its last beat says that it ended: nobody waits for the lease."""
    job, far = job_of(), far_worker()
    with Heartbeat(spool, announcement(identity=far)):
        claims_of(spool, far).take(job)
    assert claims_of(spool).take(job)


def test_an_answered_job_cannot_be_taken(spool: Spool) -> None:
    """A copy of a job that comes back after its answer is not judged again, and its claim is not left behind."""
    job = job_of()
    spool.put_answer(answer_to(job, "done"))
    assert claims_of(spool).take(job) is None
    assert list((spool.folder / "claims").iterdir()) == []


def test_a_process_id_used_again_is_another_process(spool: Spool) -> None:
    """A claim of a process with our number and another start is of a dead worker."""
    job = job_of()
    claims_of(spool, myself().model_copy(update={"started": 1})).take(job)
    wait_for(lambda: claims_of(spool).take(job))
