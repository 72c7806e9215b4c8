"""Whether a cluster can get nodes that it does not have yet."""

from __future__ import annotations

import json
from typing import Any

_ALONE = "node_"
"""How the type of a node begins that nobody has given one; its id follows."""


def grows() -> bool:
    """Whether an autoscaler looks after the cluster that was joined: its nodes have types, from the autoscaler's settings.

    Ray does not say which types there are as long as there is no node of one.
    """
    return any(not name.startswith(_ALONE) for name in (*_types(), *_types_before()) if name)


def _types() -> list[str]:
    """Of the nodes, as they say themselves: KubeRay and the second autoscaler have them started so."""
    import ray
    from ray.autoscaler.v2.sdk import get_cluster_status

    status: Any = get_cluster_status(ray.get_runtime_context().gcs_address)
    return [str(node.ray_node_type_name) for node in (*status.active_nodes, *status.idle_nodes)]


def _types_before() -> list[str]:
    """Of the nodes, as the first autoscaler says: what `ray status` reads."""
    from ray._private.ray_constants import DEBUG_AUTOSCALING_STATUS
    from ray.experimental.internal_kv import _internal_kv_get

    said: Any = _internal_kv_get(DEBUG_AUTOSCALING_STATUS)
    report: dict[str, Any] = (json.loads(said) if said else {}).get("autoscaler_report") or {}
    return [str(name) for name in (report.get("node_type_mapping") or {}).values()]
