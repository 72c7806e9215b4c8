"""How evaluators begin on a real Ray cluster on this machine: what takes a while is waited for, what does not begin is told of."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from tests.support.ray_nodes import CALIBRATING, CALIBRATION, SECONDS, STATION, TITLE, Nodes
from tests.support.spool_worker import small_problem
from tests.tools.cluster.conftest import H100
from tools.cluster import RayPool, open_ray
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
