"""What runs in the sandbox on a node of Ray's reaches neither its ports nor its sockets nor its object store."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.support.ray_nodes import Nodes
from tests.support.spool_worker import small_problem
from tools.evaluation.local import LocalPool
from tools.evaluation.wire.defences import Defence
from tools.hardware import load_sheet
from tools.records import EvaluationRequest, Verdict

pytestmark = [pytest.mark.slow, pytest.mark.thorough, pytest.mark.filterwarnings("ignore")]

HOSTILE = """
import os
import socket

tried = {{}}

def attempt(name, work):
    try:
        work()
        tried[name] = "REACHED"
    except OSError as error:
        tried[name] = type(error).__name__

def connect(family, address):
    with socket.socket(family) as one:
        one.settimeout(5)
        one.connect(address)

for port in {ports}:
    attempt(f"port {{port}}", lambda: connect(socket.AF_INET, ("127.0.0.1", port)))
for path in {paths}:
    attempt(path, lambda: connect(socket.AF_UNIX, path))
    attempt(f"listing of {{path}}", lambda: os.stat(os.path.dirname(path)))
found = [name for name in os.listdir("/dev/shm")]
raise RuntimeError(f"tried {{tried}}; shared memory: {{found}}")
"""


def test_a_candidate_reaches_nothing_of_ray(nodes: Nodes, tmp_path: Path) -> None:
    """Every try fails, and shared memory is its own: an escape to Ray would be one to every node."""
    import ray

    tmp_path.chmod(0o711)
    there = ray.nodes()
    ports = sorted(
        {int(nodes.address.rpartition(":")[2]), *(one[name] for one in there for name in ("NodeManagerPort", "ObjectManagerPort"))}
    )
    paths = sorted({one[name] for one in there for name in ("ObjectStoreSocketName", "RayletSocketName")})
    assert all(Path(path).exists() for path in paths)
    pool = LocalPool(tmp_path, None)
    source = HOSTILE.format(ports=ports, paths=paths)
    request = EvaluationRequest(problem=small_problem(), candidate="c", source=source, target=load_sheet("h100"), depth="build")
    judged = pool.weakened(frozenset({Defence.STATIC_RULES})).evaluate(request)
    try:
        # the rule against sockets in its text apart, the walls must hold
        found = asyncio.run(judged)
    finally:
        asyncio.run(pool.close())
    assert found.verdict is Verdict.BUILD_FAILED
    assert f"port {ports[0]}" in found.log
    assert "shared memory: []" in found.log
    assert "REACHED" not in found.log
