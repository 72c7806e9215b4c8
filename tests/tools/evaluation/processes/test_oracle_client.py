"""The oracle server's processes: who is kept, and who is replaced."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import AbstractContextManager, contextmanager
from functools import partial

import pytest

from tools.evaluation.processes.child import Child, DeadlineError
from tools.evaluation.processes.kept import LEAST
from tools.evaluation.processes.oracle_client import OracleClient
from tools.evaluation.processes.worker_pool import WorkerPool
from tools.evaluation.supervisor.checking.call_plan import plan_calls
from tools.evaluation.wire.jobs.inputs import InputsAnswer, InputsJob
from tools.evaluation.wire.tensor_store import HostStore
from tools.records import Problem


class Court:
    """An oracle server that counts the processes it starts."""

    def __init__(self, workers: WorkerPool, problem: Problem) -> None:
        self.oracle = OracleClient(more=1)
        self.started: list[int] = []
        self._fork: Callable[[], AbstractContextManager[Child]] = partial(workers.trusted, "oracle_server", b"", {}, -1)
        self._problem = problem

    @contextmanager
    def fork(self) -> Iterator[Child]:
        """Start a process and take that down."""
        with self._fork() as child:
            self.started.append(len(self.started))
            yield child

    @contextmanager
    def busy(self, name: str) -> Iterator[None]:
        """Keep the first process of a problem at work."""
        with self.oracle.using(name) as kept, self.oracle._turn(kept, is_first=True, is_pressing=True):
            yield

    def ask(self, name: str, *, job: bytes = b"", limit_s: float = 60.0, is_first: bool = True) -> bytes:
        """Have inputs made in a process of the problem called `name`; empty where it failed."""
        plan = plan_calls(self._problem, 0, "search", battery=False)
        store = HostStore(self._problem.abi, plan.calls)
        answer = os.memfd_create("answer")
        try:
            shared = {"inputs0": store.inputs_memory.fd, "outputs0": store.outputs_memory.fd, "answer": answer}
            job = job or InputsJob(call_plans=(plan,), device="cpu").model_dump_json().encode()
            self.oracle.ask(self.fork, name, "inputs", job, shared, time.monotonic() + limit_s, -1, is_first=is_first)
            return os.pread(answer, 1 << 16, 0)
        finally:
            store.close()
            os.close(answer)


@pytest.fixture
def court(workers: WorkerPool, problem: Problem) -> Iterator[Court]:
    """A court of its own for each test."""
    made = Court(workers, problem)
    yield made
    made.oracle.close()


def test_problems_side_by_side_keep_their_processes(court: Court) -> None:
    """Two problems in turn need one process each, and both answer."""
    answers = [court.ask(name) for name in ("a", "b", "a", "b")]

    assert all(all(InputsAnswer.model_validate_json(answer).usable[0]) for answer in answers)
    assert len(court.started) == 2


def test_the_one_used_longest_ago_makes_room(court: Court) -> None:
    """No more than a few are kept; the newest are."""
    for name in [str(number) for number in range(LEAST + 1)]:
        court.ask(name)
    court.ask(str(LEAST))
    assert len(court.started) == LEAST + 1
    court.ask("0")
    assert len(court.started) == LEAST + 2


def test_a_job_that_fails_costs_its_own_process_alone(court: Court) -> None:
    """After a job that raises, the problem's next job has a new process; another problem keeps its own."""
    court.ask("a")
    court.ask("b")
    assert court.ask("a", job=b"no job") == b""
    court.ask("a")
    court.ask("b")
    assert len(court.started) == 3


def test_a_job_that_takes_too_long_ends_its_process(court: Court) -> None:
    """The deadline is told, and the next job is done by another process."""
    court.ask("a")
    with pytest.raises(DeadlineError):
        court.ask("a", limit_s=0.0)
    assert court.ask("a")
    assert len(court.started) == 2


def test_a_problem_with_too_much_to_do_gets_another(court: Court) -> None:
    """While its process works, a job that needs nothing of it is done by a second one, which is kept."""
    court.ask("a")
    for _ in range(2):
        with court.busy("a"):
            assert court.ask("a", is_first=False)
    assert len(court.started) == 2


def test_what_is_stored_in_the_first_is_waited_for(court: Court) -> None:
    """A job for the first process is done by no other."""
    court.ask("a")
    with ThreadPoolExecutor(1) as threads:
        with court.busy("a"):
            asked = threads.submit(court.ask, "a")
            assert not wait([asked], timeout=0.3).done
        assert asked.result()
    assert len(court.started) == 1


def test_inputs_are_made_before_others_are_judged(court: Court) -> None:
    """A candidate's calls wait for inputs; of two that wait, who wants some is first, whenever it came."""
    order: list[str] = []

    def turn(*, is_pressing: bool) -> None:
        with court.oracle.using("a") as kept, court.oracle._turn(kept, is_first=True, is_pressing=is_pressing):
            order.append("inputs" if is_pressing else "judged")

    with ThreadPoolExecutor(2) as threads:
        with court.busy("a"):
            asked = [threads.submit(turn, is_pressing=is_pressing) for is_pressing in (False, True)]
            assert not wait(asked, timeout=0.3).done
        wait(asked)
    assert order == ["inputs", "judged"]


def test_the_further_ones_are_few(court: Court) -> None:
    """A problem that nobody works on gives its second process up to one with too much to do; one that is worked on does not."""
    with ThreadPoolExecutor(1) as threads, court.busy("a"):
        court.ask("a", is_first=False)
        with court.busy("b"):
            asked = threads.submit(court.ask, "b", is_first=False)
            assert not wait([asked], timeout=0.3).done
        asked.result()
    with court.busy("b"):
        court.ask("b", is_first=False)
    assert [len(kept.servers) for kept in court.oracle._kept.values()] == [1, 2]


def test_after_a_failure_all_that_rest_are_new(court: Court) -> None:
    """What broke one process may have broken the others."""
    with court.busy("a"):
        court.ask("a", is_first=False)
    court.ask("a")
    court.ask("a", job=b"no job")
    court.ask("a")
    with court.busy("a"):
        court.ask("a", is_first=False)
    assert len(court.started) == 4


def test_those_of_problems_that_rest_can_be_ended(court: Court) -> None:
    """A problem that is worked on keeps its process; one that rests starts anew."""
    for name in ("a", "b"):
        court.ask(name)
    with court.oracle.using("a"):
        court.oracle.end_resting()
    court.ask("a")
    assert len(court.started) == 2
    court.ask("b")
    assert len(court.started) == 3


def test_closing_ends_all(court: Court) -> None:
    """Nothing is kept after the end; asking again starts anew."""
    court.ask("a")
    court.oracle.close()
    court.ask("a")
    assert len(court.started) == 2
