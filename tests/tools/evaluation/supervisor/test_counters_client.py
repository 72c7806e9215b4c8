"""Counters in the sandbox, with a program in Nsight Compute's place: the walls, the way of its output, the ways it fails."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.tools.profiling.test_ncu import table
from tools.evaluation import EvaluationRequest, LocalPool
from tools.evaluation.processes.child import DeadlineError
from tools.evaluation.processes.worker_pool import WorkerPool
from tools.evaluation.supervisor.counters_client import NO_DEVICE, ask_counters
from tools.evaluation.wire.jobs.counters import CountersJob
from tools.evaluation.wire.memory import Memory
from tools.profiling.ncu import Counters
from tools.records import ABI, TensorSpec

NETWORK = """
import socket, sys
with socket.create_server(("127.0.0.1", 0)) as server:
    with socket.create_connection(server.getsockname()) as end:
        end.sendall(b"x")
        assert server.accept()[0].recv(1) == b"x"
outside = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
outside.settimeout(2)
try:
    outside.connect(("192.0.2.1", 80))
except OSError as error:
    print("==ERROR== outside:", error.errno)
"""
X = TensorSpec(name="x", shape=(4,), dtype="float32")


@pytest.fixture
def workers(pool: LocalPool) -> WorkerPool:
    """The pool's processes and walls."""
    pool._workers.start()
    return pool._workers


@pytest.fixture
def count(workers: WorkerPool, tmp_path: Path) -> Callable[..., Counters]:
    """Run the phase with a shell script as Nsight Compute."""

    def run(script: str, limit_s: float = 20.0) -> Counters:
        folder = tmp_path / "bin"
        folder.mkdir()
        ncu = folder / "ncu"
        ncu.write_text(f"#!/bin/sh\n{script}\n")
        ncu.chmod(0o755)
        for place in (tmp_path.parent.parent, tmp_path.parent, tmp_path, folder):
            place.chmod(0o755)
        memory = Memory(4096)
        try:
            job = CountersJob(ncu=str(ncu), abi=ABI(arguments=(X,), outputs=(X,)), source="")
            return ask_counters(workers, job, memory.fd, limit_s, -1, gpu=False)
        finally:
            memory.close()

    return run


def test_what_ncu_prints_becomes_figures(count: Callable[..., Counters]) -> None:
    """The table comes out of the sandbox and is read; what went to the log is not in it."""
    found = count("cat <<'END'\n" + table() + "\nEND\necho nonsense >&2")
    assert found.kernels == ("kernel0", "kernel1")
    assert next(figure.value for figure in found.figures if figure.name == "kernel_us") == pytest.approx(400.0)


def test_loopback_is_all_there_is_of_a_network(count: Callable[..., Counters], tmp_path: Path) -> None:
    """Two ends talk by TCP on the loopback interface, and no other address can be reached."""
    (tmp_path / "bin.py").write_text(NETWORK)
    found = count("exec /usr/bin/env python3 - <<'END'\n" + NETWORK + "\nEND")
    assert "outside: 101" in found.note, found


def test_the_program_inherits_its_job_and_inputs(count: Callable[..., Counters]) -> None:
    """Both descriptors survive into what Nsight Compute starts, and the program it is to start is named last."""
    found = count(
        'while [ "$1" != "-c" ]; do shift; done; [ -e /proc/self/fd/$3 ] && [ -e /proc/self/fd/$4 ] && echo "==ERROR== both are open"'
    )
    assert "both are open" in found.note, found


def test_a_flood_is_cut(count: Callable[..., Counters]) -> None:
    """Whatever is printed, the answer is bounded and the reason short."""
    found = count("head -c 8000000 /dev/zero | tr '\\0' 'x'")
    assert found.figures == ()
    assert len(found.note) < 1000


def test_hanging_ncu_ends_at_its_deadline(count: Callable[..., Counters]) -> None:
    """What does not end in time is ended."""
    with pytest.raises(DeadlineError):
        count("sleep 60", limit_s=1.0)


def test_pool_without_a_gpu_says_so(pool: LocalPool, request_for: Callable[..., EvaluationRequest], kernel: str) -> None:
    """Without a GPU nothing is started and the note says why."""
    assert asyncio.run(pool.counters(request_for(kernel))) == Counters(note=NO_DEVICE)
