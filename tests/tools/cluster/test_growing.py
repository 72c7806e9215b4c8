"""A cluster with Ray's own autoscaler, which starts nodes for evaluators that have no place, and ends those with nothing to do."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator

import pytest

from tests.support.ray_growing import GrowingCluster
from tests.support.ray_nodes import CALIBRATION, LOG, SECONDS, STATION, TITLE
from tests.support.spool_worker import small_problem
from tests.tools.cluster.conftest import H100
from tools.cluster import RayPool, join, open_ray
from tools.hardware import load_sheet
from tools.records import Evaluation, EvaluationRequest

pytestmark = [pytest.mark.slow, pytest.mark.thorough, pytest.mark.filterwarnings("ignore")]


@pytest.fixture(scope="module")
def growing(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GrowingCluster]:
    """Up to two nodes with one GPU each that they only say they have."""
    import ray

    folder = tmp_path_factory.mktemp("g")
    (folder / "pool.log").touch()
    variables = {LOG: str(folder / "pool.log"), TITLE: H100, CALIBRATION: "100", SECONDS: "2"}
    made = GrowingCluster(folder, {"CPU": 2, "GPU": 1, "accelerator_type:H100": 1}, 2, 5.0, **variables)
    try:
        join(made.address)
        yield made
    finally:
        ray.shutdown()
        made.close()


async def _judged(pool: RayPool, name: str) -> Evaluation:
    return await pool.evaluate(EvaluationRequest(problem=small_problem(), candidate=name, source=f"# {name}", target=load_sheet("h100")))


async def _kept_busy(pool: RayPool, number: int) -> None:
    turn = 0
    while "2 evaluators on 2 nodes" not in pool.name:
        await _judged(pool, f"before {number} {turn}")
        turn += 1


def _until(holds: Callable[[], bool]) -> None:
    last = time.monotonic() + 90
    while not holds():
        assert time.monotonic() < last
        time.sleep(0.2)


async def test_nodes_come_for_work_are_replaced_when_taken_away_and_go(growing: GrowingCluster) -> None:
    """No GPU is there at first, and the autoscaler could have some; of two nodes one is lost, and its work is done by another."""
    assert growing.nodes() == 0
    pool, said = open_ray("", "all", H100, opener=STATION), list[str]()
    pool.listener = said.append
    try:
        async with asyncio.timeout(120):
            await asyncio.gather(*(_kept_busy(pool, number) for number in range(20)))
            judging = asyncio.gather(*(_judged(pool, str(number)) for number in range(24)))
            await asyncio.sleep(1)
            await asyncio.to_thread(growing.kill_one)
            found = await judging
    finally:
        await pool.close()
    assert [one.candidate for one in found] == [str(number) for number in range(24)]
    assert any("is gone" in line for line in said)
    await asyncio.to_thread(_until, lambda: growing.nodes() == 0)
