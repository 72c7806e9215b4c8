"""A pool on a real Ray cluster of several nodes on this machine, whose evaluators judge by text alone."""

from __future__ import annotations

import asyncio
import os

import pytest

from tests.support.ray_nodes import STATION, Nodes
from tests.support.spool_worker import small_problem
from tests.tools.cluster.conftest import H100
from tools.cluster import RayPool, check_devices, cluster_target, open_ray
from tools.cluster.keys import secrets_in, without_keys
from tools.cluster.opening import processors_beside_a_gpu
from tools.errors import MachineError, UserError
from tools.hardware import load_sheet
from tools.records import Evaluation, EvaluationRequest

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]


def _request(source: str) -> EvaluationRequest:
    return EvaluationRequest(problem=small_problem(), candidate=source, source=source, target=load_sheet("h100"))


def _pool(devices: str = "interpreter", station: str = STATION, title: str = H100) -> RayPool:
    return open_ray("", devices, title, opener=station)


async def _judged(pool: RayPool, sources: list[str]) -> tuple[list[Evaluation], list[str]]:
    """Evaluate all at once; the evaluations, and what the pool had to say."""
    said: list[str] = []
    pool.listener = said.append
    try:
        return await asyncio.gather(*(pool.evaluate(_request(one)) for one in sources)), said
    finally:
        await pool.close()


async def _asked_until(pool: RayPool, number: int, word: str) -> Evaluation:
    """Have candidates judged one after the other until the pool's name has this word in it, and one more."""
    turn = 0
    while word not in pool.name:
        await pool.evaluate(_request(f"# {number} {turn}"))
        turn += 1
    return await pool.evaluate(_request(f"# last {number}"))


async def test_gpus_are_placed_by_their_kind_and_who_times_differently_is_named(nodes: Nodes) -> None:
    """Each evaluation is of its own candidate and names host and device; the GPU whose calibration kernel takes longer is told of."""
    pool, said = _pool("all"), list[str]()
    pool.listener = said.append
    # until each of them has been placed and asked
    found = await asyncio.gather(*(_asked_until(pool, number, "3 evaluators") for number in range(9)))
    await pool.close()
    assert [one.candidate for one in found] == [f"# last {number}" for number in range(9)]
    assert {one.place.partition(", ")[2] for one in found} == {f"GPU {unit} ({H100})" for unit in range(3)}
    odd = f"GPU 2 ({H100}): the calibration kernel takes 3.5% longer than the median of 3 evaluators."
    assert any(line.endswith(odd) for line in said)
    assert any(note.endswith(odd) for one in found for note in one.notes if "GPU 2" in one.place)


def test_evaluators_take_no_processor_where_builds_would_find_none(nodes: Nodes) -> None:
    """Three processors beside three GPUs, all held by evaluators, would leave builds waiting for ever."""
    assert processors_beside_a_gpu() == 0


async def test_a_killed_node_costs_what_was_in_flight_and_no_more(nodes: Nodes) -> None:
    """Candidates judged on it are kept; those it was at are judged on another node, and their notes say so."""
    lost = nodes.add(cpus=2)
    pool, before = _pool(), len(nodes.lines("end"))
    asking = asyncio.gather(*(_asked_until(pool, number, "2 nodes") for number in range(6)))
    tasks = [asyncio.create_task(pool.evaluate(_request(f"# kill {number}"))) for number in range(24)]
    await asking
    await asyncio.to_thread(nodes.kill, lost)
    found = await asyncio.gather(*tasks)
    await pool.close()
    ends = nodes.lines("end")[before:]
    assert [one.candidate for one in found] == [f"# kill {number}" for number in range(24)]
    assert len(ends) == len(set(ends))


async def test_a_gpu_of_another_title_is_not_timed_on(nodes: Nodes) -> None:
    """Ray's kinds are coarser than titles: an H100 PCIe is no H100 SXM, and their figures would mix."""
    with pytest.raises(UserError, match="its GPU is NVIDIA H100 80GB HBM3, and the target is NVIDIA H100 PCIe"):
        await _judged(_pool("all", title="NVIDIA H100 PCIe"), ["# pcie"])


async def test_what_a_cluster_has_not_is_refused_in_a_line(nodes: Nodes) -> None:
    """Another kind of GPU, numbers of devices; its only kind is the target that nobody named."""
    with pytest.raises(UserError, match="No node of the Ray cluster has an NVIDIA H200: its GPUs are H100"):
        check_devices("all", "NVIDIA H200")
    with pytest.raises(UserError, match="names GPUs of one machine"):
        check_devices("0,1", H100)
    assert not check_devices("interpreter", H100)
    assert cluster_target("", "all") == "h100"


async def test_a_station_that_cannot_be_opened_says_why(nodes: Nodes) -> None:
    """The reason is the node's error, not a stack of Ray's."""
    with pytest.raises(MachineError, match="The driver is missing there"):
        await _judged(_pool(station="tests.tools.cluster.stations:open_broken"), ["# broken"])


async def test_a_candidate_over_which_three_evaluators_die_is_given_up(nodes: Nodes) -> None:
    """Their nodes live on, so it is the candidate's doing, or the machines': it is not tried for ever."""
    with pytest.raises(MachineError, match="3 evaluators were lost or failed over one question"):
        await _judged(_pool(station="tests.tools.cluster.stations:open_fatal"), ["# fatal"])


async def test_workers_of_a_cluster_of_ones_own_have_no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keys are out of the environment that Ray is started in, and back afterwards; what looks like one is told of."""
    monkeypatch.setenv("OPENAI_API_KEY", "secret")
    monkeypatch.setenv("SOME_SERVICE", "secret")
    with without_keys():
        assert {"OPENAI_API_KEY", "SOME_SERVICE"}.isdisjoint(os.environ)
        assert "PATH" in os.environ
    assert os.environ["OPENAI_API_KEY"] == os.environ["SOME_SERVICE"] == "secret"
    assert secrets_in({"OPENAI_API_KEY": "a", "HF_TOKEN": "b", "RAY_AUTH_TOKEN": "c", "KEYBOARD": "d", "X_SECRET": ""}) == (
        "HF_TOKEN",
        "OPENAI_API_KEY",
    )
