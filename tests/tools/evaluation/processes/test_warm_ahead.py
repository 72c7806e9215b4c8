"""Parents of zygotes that are warmed up before there is a pool."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path

from tools.evaluation import LocalPool
from tools.evaluation.processes.worker_pool import warm_ahead
from tools.evaluation.processes.zygote_ancestry import ANCESTRY


def test_a_pool_finds_the_parents_that_were_warmed_up_for_it(tmp_path: Path) -> None:
    """What is warm ahead is what a pool without a GPU forks its zygotes from, and nothing else is left of it."""
    warm_ahead(None)
    for thread in threading.enumerate():
        if thread.name == "warm":
            thread.join(60)
    warmed = dict(ANCESTRY._kept)
    pool = LocalPool(tmp_path / "scratch", None)
    pool._workers.start()
    assert ANCESTRY._kept == warmed
    asyncio.run(pool.close())
