"""How evaluators begin on a real Ray cluster on this machine: what takes a while is waited for, what does not begin is told of."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.ray_nodes import CALIBRATING, CALIBRATION, SECONDS, STATION, TITLE, Nodes
from tests.support.spool_worker import small_problem
from tests.tools.cluster.conftest import H100
from tools.cluster import RayPool, join, open_ray
from tools.cluster.builds import RayBuilds
from tools.cluster.member import Needs
from tools.cluster.opening import evaluations_beside_each_other, processors_beside_a_gpu
from tools.cluster.shortage import lacking, needed
from tools.cluster.station import Order
from tools.errors import MachineError
from tools.evaluation.several import capacity
from tools.hardware import load_sheet
from tools.records import Evaluation, EvaluationRequest

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]

CALIBRATING_S = 4.0
"""Longer than the pool takes from one look for idle evaluators to the next, as on a GPU, where torch is imported first."""


@pytest.fixture(scope="module")
def nodes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Nodes]:
    """A head, and a node with one GPU that it only says it has."""
    variables = {CALIBRATION: "100", CALIBRATING: str(CALIBRATING_S), TITLE: H100, SECONDS: "0.1"}
    made = Nodes(tmp_path_factory.mktemp("ray") / "pool.log", **variables)
    made.add(cpus=2, gpus=1, kind="H100")
    yield made
    made.close()


async def _judged(pool: RayPool, names: list[str]) -> tuple[list[Evaluation], list[str]]:
    """Evaluate all at once; the evaluations, and what the pool had to say."""
    said: list[str] = []
    pool.listener = said.append
    asked = (EvaluationRequest(problem=small_problem(), candidate=one, source=f"# {one}", target=load_sheet("h100")) for one in names)
    try:
        return await asyncio.gather(*map(pool.evaluate, asked)), said
    finally:
        await pool.close()


async def test_an_evaluator_that_is_calibrated_is_not_idle(nodes: Nodes) -> None:
    """It was let go as such after a second and begun anew, for ever: on a GPU, the first calibration takes several."""
    async with asyncio.timeout(60):
        found, _ = await _judged(open_ray("", "all", H100, opener=STATION), ["a", "b"])
    assert [one.candidate for one in found] == ["a", "b"]
    assert nodes.lines("calibrate") == ["calibrate 0"]


def _pool(station: str = STATION, gpus: int = 1, **limits: float) -> RayPool:
    options: tuple[tuple[str, Any], ...] = (("num_cpus", 1), ("num_gpus", gpus), ("max_restarts", 0))
    order = Order(gpu=True, parallel=1, compile_s=1.0, max_autotune=False)
    return RayPool(join(""), Needs(station, order, options, H100, f"{gpus} GPUs and 1 processor", **limits))


async def test_an_evaluator_without_a_place_says_what_is_missing(nodes: Nodes) -> None:
    """The wait ends with the resources by name and where Ray's logs are."""
    with pytest.raises(MachineError, match=r"no place for an evaluator .* 9 GPUs .*: GPUs: 9 needed, \d of 1 free.*session_latest/logs"):
        await _judged(_pool(gpus=9, place_s=2.0), ["a"])


async def test_an_evaluator_that_does_not_begin_is_given_up(nodes: Nodes) -> None:
    """What it was at and where are told."""
    with pytest.raises(MachineError, match=r"GPU 0 .*it has not begun after 1 s: it times the calibration kernel.*session_latest/logs"):
        await _judged(_pool(begin_s=1.0), ["a"])


async def test_an_evaluator_that_dies_while_it_begins_is_told_of(nodes: Nodes) -> None:
    """Three are tried, each loss is a line, and the last error is the reason."""
    pool, said = _pool("tests.tools.cluster.stations:open_dying"), list[str]()
    pool.listener = said.append
    request = EvaluationRequest(problem=small_problem(), candidate="a", source="# a", target=load_sheet("h100"))
    with pytest.raises(MachineError, match=r"An evaluator could not be started: .*session_latest/logs"):
        await pool.evaluate(request)
    await pool.close()
    assert sum("is gone before it has begun" in line for line in said) >= 3
    with pytest.raises(MachineError, match="The pool has been closed"):
        await pool.evaluate(request)


def test_builds_that_no_processor_takes_are_given_up(nodes: Nodes) -> None:
    """As are those whose process dies each time: an evaluator does not wait for ever, and says what for."""
    import ray

    def build(job: bytes, limit_s: float) -> None:
        os._exit(1)

    began = time.monotonic()
    with pytest.raises(MachineError, match=r"A build has not ended 1 s after it was asked for: "):
        RayBuilds(ray.remote(num_cpus=9)(build), place_s=0.5)(b"", 0.5, -1)
    with pytest.raises(MachineError, match=r"A build was lost"):
        RayBuilds(ray.remote(num_cpus=1, max_retries=0)(build))(b"", 60.0, -1)
    assert time.monotonic() - began < 30


def test_evaluators_leave_a_processor_to_builds(nodes: Nodes) -> None:
    """On two processors beside one GPU an evaluator takes one, and has as much under way as the pool of such a machine."""
    assert processors_beside_a_gpu() == 1
    assert evaluations_beside_each_other() == capacity(1, 2)


@pytest.mark.parametrize(
    ("has", "free", "words"),
    [
        ({"CPU": 8, "GPU": 1}, {"CPU": 7}, "GPUs: 1 needed, 0 of 1 free, held by others or by a process that has not started"),
        ({"CPU": 8}, {"CPU": 8}, "GPUs: 1 needed, 0 of 0 free"),
        ({"CPU": 8, "GPU": 1}, {"CPU": 8, "GPU": 1}, "what it needs is free, though maybe not on one node, or its process does not start"),
    ],
)
def test_what_a_cluster_lacks_is_named(has: dict[str, float], free: dict[str, float], words: str) -> None:
    """Whether it is there at all, is held, or is free."""
    assert lacking(needed({"num_cpus": 1, "num_gpus": 1, "max_restarts": 0}), has, free) == words
