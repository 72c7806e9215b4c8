"""The border from the other side: a runner that has been taken over says and writes whatever it likes."""

from __future__ import annotations

import asyncio
import base64
import time
from collections.abc import Callable, Iterator

import psutil
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from tools.evaluation import EvaluationRequest, LocalPool
from tools.evaluation.processes.log import TAIL_BYTES
from tools.evaluation.wire.defences import Defence
from tools.records import Evaluation

TAKEN_OVER = """
import base64
import gc
import mmap
import os
import socket

import torch

PLAN = {plan!r}


def act(what, value):
    channels = [thing for thing in gc.get_objects() if isinstance(thing, socket.socket) and thing.fileno() >= 0]
    if what == "send":
        for channel in channels:
            channel.send(base64.b64decode(value), socket.MSG_DONTWAIT)
    elif what == "descriptors":
        for channel in channels:
            socket.send_fds(channel, [b"take these"], [os.open("/dev/null", os.O_RDONLY) for _ in range(value)])
    elif what == "memory":
        for thing in gc.get_objects():
            if isinstance(thing, mmap.mmap):
                pattern = base64.b64decode(value) or b"x"
                thing[:] = (pattern * (len(thing) // len(pattern) + 1))[: len(thing)]
    elif what == "answer":
        for name in os.listdir("/proc/self/fd"):
            if "answer" in os.readlink(f"/proc/self/fd/{{name}}") if os.path.islink(f"/proc/self/fd/{{name}}") else False:
                os.pwrite(int(name), base64.b64decode(value), 0)
    elif what == "close":
        for channel in channels:
            channel.close()
    elif what == "log":
        os.write(1, b"z\\x00\\x1b[31m" * value)
    elif what == "exit":
        os._exit(value)
    elif what == "raise":
        raise MemoryError("out of ideas")


def follow(moment):
    for when, what, value in PLAN:
        if when == moment:
            try:
                act(what, value)
            except (OSError, ValueError, BufferError, StopIteration):
                pass


follow("import")


class ModelNew(torch.nn.Module):
    def forward(self, x):
        if type(x) is torch.Tensor:
            follow("call")
        return torch.zeros_like(x)
"""


def _text(data: bytes) -> str:
    return base64.b64encode(data).decode()


messages = st.one_of(st.binary(max_size=100), st.binary(min_size=64, max_size=64), st.integers(1, 200_000).map(bytes))
doings = st.one_of(
    st.tuples(st.just("send"), messages.map(_text)),
    st.tuples(st.just("descriptors"), st.integers(1, 20)),
    st.tuples(st.just("memory"), st.one_of(st.binary(max_size=9), st.sampled_from([b"\xff", b"\x00", b"\x00\x00\xc0\x7f"])).map(_text)),
    st.tuples(st.just("answer"), st.one_of(st.binary(max_size=400), st.integers(0, 100).map(lambda depth: b"[" * depth)).map(_text)),
    st.tuples(st.just("close"), st.just(0)),
    st.tuples(st.just("log"), st.integers(1, 200_000)),
    st.tuples(st.just("exit"), st.sampled_from([0, 1, 255])),
    st.tuples(st.just("raise"), st.just(0)),
)
plans = st.lists(st.tuples(st.sampled_from(["import", "call"]), doings).map(lambda pair: (pair[0], *pair[1])), min_size=1, max_size=6)

REPLIES = _text(b"".join(bytes([state, 0, 0, 0]) + bytes(60) for state in (1, 2, 3)))
BUILT = _text(b'{"status": "built", "launches": [], "kernels": [], "verdict": "PASS"}')


@pytest.fixture(scope="module")
def border(tmp_path_factory: pytest.TempPathFactory, request_for: Callable[..., EvaluationRequest]) -> Iterator[LocalPool]:
    """A pool of its own without static rules, already at work, so that what is left can be counted."""
    made = LocalPool(tmp_path_factory.mktemp("border"), None, parallel=1)
    view = made.weakened(frozenset([Defence.STATIC_RULES]))
    asyncio.run(view.evaluate(request_for(TAKEN_OVER.format(plan=[]))))
    yield view
    asyncio.run(made.close())


@settings(max_examples=4, deadline=None, suppress_health_check=list(HealthCheck))
@given(plan=plans)
@example(plan=[("call", "send", REPLIES), ("call", "exit", 0)])
@example(plan=[("import", "answer", BUILT), ("import", "exit", 0)])
@example(plan=[("call", "descriptors", 200), ("call", "send", _text(bytes(200_000)))])
@example(plan=[("call", "memory", _text(b"\xff")), ("call", "close", 0)])
@example(plan=[("import", "log", 2_000_000), ("call", "log", 2_000_000)])
def test_whatever_a_runner_says_ends_in_a_verdict(
    border: LocalPool, request_for: Callable[..., EvaluationRequest], plan: list[tuple[str, str, object]]
) -> None:
    """Random bytes, oversize answers, an early end, forged descriptors and floods of text give a verdict, no PASS, and leak nothing."""
    descriptors, zygotes = _descriptors(), _below()

    found: Evaluation = asyncio.run(border.evaluate(request_for(TAKEN_OVER.format(plan=plan), timeout_s=5.0)))

    assert found.verdict in ("WRONG", "CRASHED", "TIMED_OUT", "CHEATED", "BUILD_FAILED", "UNSTABLE"), found.notes
    assert not str(found.rule).startswith("static")
    assert len(found.log) <= TAIL_BYTES + 8
    assert not _left(zygotes)
    assert _descriptors() <= descriptors


def _descriptors() -> int:
    """Count those of this process and of its zygotes."""
    return sum(process.num_fds() for process in (psutil.Process(), *_below()))


def _left(zygotes: set[psutil.Process]) -> set[psutil.Process]:
    """Find the processes of phases, which are all below this one but the zygotes; those that are ending get a moment."""
    for _ in range(50):
        left = _below() - zygotes
        if not left:
            break
        time.sleep(0.1)
    return left


def _below() -> set[psutil.Process]:
    return {*psutil.Process().children(recursive=True)}
