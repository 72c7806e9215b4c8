"""A Ray cluster on this machine that an autoscaler lets grow and shrink: Ray's own, with its provider of nodes that are processes here."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import psutil

from tests.support.ray_nodes import SETTINGS, STORE_BYTES, free_port

HEAD = "f" * 51 + "00000"
"""What Ray's provider calls the head."""
_WAIT_S = 60.0
_AS_KUBERAY = {"disable_node_updaters": True, "disable_launch_config_check": True, "use_node_id_as_ip": True}
"""Nobody logs in to nodes to mend them: a lost one is ended, and another one started."""


class GrowingCluster:
    """A head without processors, beside which nodes of one type are started as they are wanted."""

    def __init__(self, folder: Path, resources: dict[str, float], most: int, idle_s: float, **variables: str) -> None:
        """Start the head; nodes have `resources`, see `variables`, are `most` at most, and are ended when they were idle for so long."""
        self.address = f"127.0.0.1:{free_port()}"
        self._temporary = folder / "r"
        config = folder / "autoscaler.json"
        config.write_text(json.dumps(_config(self.address, resources, most, idle_s)))
        words = ["--head", f"--port={self.address.rpartition(':')[2]}", "--node-ip-address=127.0.0.1", f"--autoscaling-config={config}"]
        words += ["--num-cpus=0", "--include-dashboard=false", f"--object-store-memory={STORE_BYTES}", f"--temp-dir={self._temporary}"]
        seen = {
            "AUTOSCALER_UPDATE_INTERVAL_S": "1",
            "AUTOSCALER_HEARTBEAT_TIMEOUT_S": "10",
            "RAY_FAKE_CLUSTER": "1",
            "RAY_OVERRIDE_NODE_ID_FOR_TESTING": HEAD,
        }
        ray = str(Path(sys.executable).with_name("ray"))
        started = subprocess.run(
            [ray, "start", *words],
            env=os.environ | SETTINGS | {"RAY_CLOUD_INSTANCE_ID": HEAD} | seen | variables,
            capture_output=True,
            text=True,
            check=False,
            timeout=_WAIT_S,
        )
        assert started.returncode == 0, started.stdout + started.stderr

    def nodes(self) -> int:
        """How many there are beside the head; the cluster has been joined."""
        import ray

        return sum(bool(node["Alive"]) for node in ray.nodes()) - 1

    def kill_one(self) -> None:
        """Take a node away, as whoever lends spot machines does."""
        raylets = [one for one in self._processes() if "raylet/raylet" in " ".join(one.cmdline()[:1])]
        max(raylets, key=lambda one: one.create_time()).kill()

    def close(self) -> None:
        """End them all, and nobody else's."""
        until = time.monotonic() + _WAIT_S
        while (left := self._processes()) and time.monotonic() < until:
            for one in left:
                one.kill()
            psutil.wait_procs(left, timeout=2)

    def _processes(self) -> list[psutil.Process]:
        found = []
        for one in psutil.process_iter(["cmdline", "status"]):
            words = " ".join(one.info["cmdline"] or ())
            if str(self._temporary) in words and one.info["status"] != psutil.STATUS_ZOMBIE and one.pid != os.getpid():
                found.append(one)
        return found


def _config(address: str, resources: dict[str, float], most: int, idle_s: float) -> dict[str, object]:
    return {
        "cluster_name": "growing",
        "max_workers": most,
        "upscaling_speed": 1.0,
        "idle_timeout_minutes": idle_s / 60,
        "provider": {"type": "fake_multinode", "gcs_address": address, "head_node_id": HEAD, "launch_multiple": True, **_AS_KUBERAY},
        "available_node_types": {
            "ray.head.default": {"resources": {}, "node_config": {}, "max_workers": 0},
            "gpu": {"resources": resources, "node_config": {}, "min_workers": 0, "max_workers": most},
        },
        "head_node_type": "ray.head.default",
        "auth": {},
        "cluster_synced_files": [],
        "file_mounts": {},
        "initialization_commands": [],
        "setup_commands": [],
        "head_setup_commands": [],
        "worker_setup_commands": [],
        "head_start_ray_commands": [],
        "worker_start_ray_commands": [],
    }
