"""Ray: evaluations on the machines of a cluster, behind the same protocol as this machine's pool.

`RayPool` is the agents' side, an `EvaluatorPool`. On each node an actor holds one GPU, or one processor, and has that node's own pool
judge there, with its sandboxes and its device lock. Records travel as JSON text; tensors never travel, since inputs are made on the node.
Ray places actors and asks its autoscaler for nodes. Ray itself is imported by `join` and by nobody before.
"""

from tools.cluster.joining import RAY, address_of, demand_ray, join
from tools.cluster.opening import check_devices, cluster_target, open_ray
from tools.cluster.pool import RayPool

__all__ = ["RAY", "RayPool", "address_of", "check_devices", "cluster_target", "demand_ray", "join", "open_ray"]
