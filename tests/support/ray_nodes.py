"""A Ray cluster of several nodes on this machine, and evaluators on it that judge by text alone, so that tests of it cost no evaluation.

All of Ray's ports are on the loopback interface: its environment is set here, before anything imports it.
"""

from __future__ import annotations

import asyncio
import os
import socket
import time
from pathlib import Path
from typing import Any

from tools.cluster.joining import same_sigterm

SETTINGS = {
    "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_AUTH_MODE": "token",
    "RAY_AUTH_TOKEN": "of-these-tests-alone",
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "1",
    "RAY_worker_niceness": "0",
    # a killed node refuses at once, and is missed after three times; one that is slow on a busy machine is waited for
    "RAY_health_check_period_ms": "700",
    "RAY_health_check_timeout_ms": "30000",
    "RAY_health_check_failure_threshold": "3",
}
os.environ.update(SETTINGS)

LOG, TITLE, SECONDS, CALIBRATION = "KERNELWRIGHT_TEST_LOG", "KERNELWRIGHT_TEST_TITLE", "KERNELWRIGHT_TEST_S", "KERNELWRIGHT_TEST_US"
"""Variables of a node: where its evaluators write what they begin and end, what its GPUs are called, how long an evaluation takes, and
microseconds of the calibration kernel by GPU."""
CALIBRATING = "KERNELWRIGHT_TEST_CALIBRATING_S"
"""Another: how long calibration takes."""
STATION = "tests.support.ray_nodes:open_text_station"
STORE_BYTES = 80 << 20
WITHOUT = {"include_dashboard": False, "include_log_monitor": False, "no_monitor": True}
"""What no test asks of a node: its logs are not passed on, and nothing scales the cluster. Each would be a process that imports Ray."""


def open_text_station(order: Any) -> Any:
    """A station of a scripted pool, which takes a while for each candidate."""
    from tests.support.spool_worker import ScriptedPool
    from tools.cluster.station import Station
    from tools.records import Evaluation, EvaluationRequest

    # as this machine's own pool has, which a station has otherwise
    places = asyncio.Semaphore(order.parallel)

    class Slow(ScriptedPool):
        async def evaluate(self, request: EvaluationRequest) -> Evaluation:
            async with places:
                began = time.monotonic()
                _write(Path(os.environ[LOG]), f"start {request.key}")
                await asyncio.sleep(float(os.environ[SECONDS]))
                found = await super().evaluate(request)
                return found.model_copy(update={"seconds": time.monotonic() - began})

    async def calibrate() -> float:
        _write(Path(os.environ[LOG]), f"calibrate {unit}")
        await asyncio.sleep(float(os.environ.get(CALIBRATING, "0")))
        return float(os.environ[CALIBRATION].split(",")[int(unit)])

    unit = os.environ.get("CUDA_VISIBLE_DEVICES", "")
    title = os.environ[TITLE] if order.gpu else ""
    return Station(Slow(Path(os.environ[LOG]), title), title, unit if title else "", calibrate if title else None)


def _write(log: Path, line: str) -> None:
    with log.open("a") as file:
        file.write(line + "\n")


class Nodes:
    """A head without processors, and nodes that come and go."""

    def __init__(self, log: Path, **variables: str) -> None:
        """Start the head and join it; nodes take over `variables` unless they are given others."""
        from ray.cluster_utils import Cluster

        self._variables = {LOG: str(log), **variables}
        self.log = log
        log.touch()
        self._cluster = Cluster(initialize_head=False)
        self.workers: list[Any] = []
        self._add(num_cpus=0)
        import ray

        with same_sigterm():
            ray.init(self.address, log_to_driver=False, logging_level="error", namespace="kernelwright")

    @property
    def address(self) -> str:
        """Of the head."""
        return str(self._cluster.address)

    def add(self, cpus: int = 1, gpus: int = 0, kind: str = "", **variables: str) -> Any:
        """Add a node whose evaluators see these variables."""
        resources = {f"accelerator_type:{kind}": 1.0} if kind else {}
        node = self._add({**self._variables, **variables}, num_cpus=cpus, num_gpus=gpus, resources=resources)
        self.workers.append(node)
        return node

    def _add(self, variables: dict[str, str] | None = None, **given: Any) -> Any:
        before = {name: os.environ.get(name) for name in variables or {}}
        os.environ.update(variables or {})
        try:
            with same_sigterm():
                return self._cluster.add_node(node_ip_address="127.0.0.1", object_store_memory=STORE_BYTES, **WITHOUT, **given)
        finally:
            for name, value in before.items():
                os.environ.pop(name) if value is None else os.environ.update({name: value})

    def kill(self, node: Any) -> None:
        """End a node as a machine ends that loses its power."""
        self.workers.remove(node)
        self._cluster.remove_node(node, allow_graceful=False)

    def close(self) -> None:
        """End them all."""
        import ray

        ray.shutdown()
        self._cluster.shutdown()

    def lines(self, word: str = "") -> list[str]:
        """What evaluators wrote that begins so."""
        return [line for line in self.log.read_text().splitlines() if line.startswith(word)]


def free_port() -> int:
    """A port of the loopback interface where nobody listens."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])
