"""Parents of zygotes that are warmed up before there is a pool."""

from __future__ import annotations

import threading

from tools.evaluation.processes.worker_pool import WorkerPool, warm_ahead
from tools.evaluation.processes.zygote_ancestry import ANCESTRY


def test_a_pool_finds_the_parents_that_were_warmed_up_for_it(workers: WorkerPool) -> None:
    """What is warm ahead is what a pool without a GPU forks its zygotes from, and nothing else is left of it."""
    before = dict(ANCESTRY._kept)
    warm_ahead(None)
    for thread in threading.enumerate():
        if thread.name == "warm":
            thread.join(60)
    assert ANCESTRY._kept == before
