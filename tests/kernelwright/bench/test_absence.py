"""A bench at a spool where nobody works says so, once."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from kernelwright.bench.absence import tell_of_absence
from tests.support.spool_worker import announcement, small_problem
from tools.hardware import load_sheet
from tools.spool import Spool
from tools.spool.heartbeat import Heartbeat
from tools.spool.records import BaselinesQuestion, Job


@pytest.fixture
def spool(tmp_path: Path) -> Spool:
    """A spool at which one job waits."""
    made = Spool(tmp_path / "spool")
    question = BaselinesQuestion(problem=small_problem(), target=load_sheet("h200"))
    made.put_job(Job(token="a", asked=0.0, asker="here", executor="any", attempt=1, baselines=question))
    return made


async def test_nobody_announced(spool: Spool) -> None:
    """Where no worker was ever announced, the line names the command that starts one."""
    heard: list[str] = []
    await tell_of_absence(spool, heard.append, soon_s=0.1, late_s=60)
    assert len(heard) == 1
    assert f"kernelwright worker --spool {spool.folder}" in heard[0]


async def test_a_worker_that_was_killed(spool: Spool) -> None:
    """A worker whose announcement is there and never changes is waited for longer, then told of."""
    spool.announce(announcement())
    heard: list[str] = []
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(tell_of_absence(spool, heard.append, soon_s=0.1, late_s=60), 1.0)
    assert not heard
    await tell_of_absence(spool, heard.append, soon_s=0.1, late_s=0.2)
    assert "do not stir" in heard[0]


async def test_a_worker_that_stirs(spool: Spool) -> None:
    """Where a worker beats, nothing is said, however long its job takes."""
    heard: list[str] = []
    task = asyncio.create_task(tell_of_absence(spool, heard.append, soon_s=3.0, late_s=3.0))
    with Heartbeat(spool, announcement(), lease_s=1.2):
        await asyncio.wait_for(task, 10)
    assert not heard


async def test_nothing_waits(tmp_path: Path) -> None:
    """Where every answer is there already, nobody is needed, and nothing is said."""
    heard: list[str] = []
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(tell_of_absence(Spool(tmp_path / "spool"), heard.append, soon_s=0.1, late_s=0.1), 1.5)
    assert not heard
