"""Opens a pool on a cluster: which evaluators it needs for a target, and whether the cluster can have such ones."""

from __future__ import annotations

import re
from typing import Any

from tools.cluster.growing import grows
from tools.cluster.joining import join
from tools.cluster.member import PATIENCE_S, PLACE_S, Needs
from tools.cluster.pool import RayPool
from tools.cluster.station import OPENER, Order
from tools.errors import UserError
from tools.evaluation.several import capacity
from tools.evaluation.supervisor.timed.compiling import COMPILE_S
from tools.hardware.devices import ALL, INTERPRETER
from tools.hardware.sheets import load_sheet, sheet_names

_KIND = "accelerator_type:"
_CORES = 16
"""What a GPU has beside it on a cluster that has none yet."""


def open_ray(
    address: str,
    devices: str,
    title: str,
    *,
    max_autotune: bool = False,
    compile_s: float = COMPILE_S,
    opener: str = OPENER,
) -> RayPool:
    """Open a pool on the cluster at `address` (see `join`), of GPUs called `title`, or with `devices` interpreter of processors."""
    joined = join(address)
    gpu = check_devices(devices, title)
    place_s = PLACE_S if joined.own else PATIENCE_S
    if not gpu:
        order = Order(gpu=False, parallel=1, compile_s=compile_s, max_autotune=False)
        return RayPool(joined, Needs(opener, order, (("num_cpus", 1), ("max_restarts", 0)), place_s=place_s))
    from tools.cluster.builds import build_function

    order = Order(
        gpu=True, parallel=evaluations_beside_each_other(), compile_s=compile_s, max_autotune=max_autotune, builds=build_function()
    )
    kind = kind_of(title, kinds())
    processors = processors_beside_a_gpu()
    options: list[tuple[str, Any]] = [("num_cpus", processors), ("num_gpus", 1), ("max_restarts", 0)]
    if kind:
        options.append(("accelerator_type", kind))
    words = f"1 GPU ({kind or title}){' and 1 processor' if processors else ''}"
    return RayPool(joined, Needs(opener, order, tuple(options), title, words, place_s))


def evaluations_beside_each_other() -> int:
    """On each GPU as many as a single machine has on one, by the cluster's processors and GPUs: one is timed, the others are built."""
    import ray

    has = ray.cluster_resources()
    gpus = int(has.get("GPU", 0))
    return capacity(gpus, int(has.get("CPU", 0))) // gpus if gpus else capacity(1, _CORES)


def processors_beside_a_gpu() -> int:
    """One for what is trusted and drives the GPU; none where builds, tasks of their own, would then find all of them taken, for ever."""
    import ray

    has = ray.cluster_resources()
    return int(has.get("CPU", 0) > has.get("GPU", 0))


def check_devices(devices: str, title: str) -> bool:
    """Whether GPUs are asked for; UserError where the cluster, joined before, has none like that and does not grow."""
    if devices == INTERPRETER:
        return False
    if devices != ALL:
        raise UserError(f"{devices!r} names GPUs of one machine.", f"With --evaluator ray give --devices {ALL} or {INTERPRETER}.")
    import ray

    has = ray.cluster_resources()
    can_grow = grows()
    if not (has.get("GPU") or can_grow):
        where = f"{has.get('CPU', 0):g} processors on {len(ray.nodes())} nodes"
        mend = (
            f"Add a node that has one, or give --devices {INTERPRETER} to check kernels in Triton's interpreter and estimate their times."
        )
        raise UserError(f"The Ray cluster has no GPU: it has {where}.", mend)
    there = kinds()
    if there and not kind_of(title, there) and not can_grow:
        raise UserError(f"No node of the Ray cluster has an {title}: its GPUs are {', '.join(there)}.", "Name one of these with --target.")
    return True


def kinds() -> tuple[str, ...]:
    """Kinds of GPU on the cluster, as Ray calls them."""
    import ray

    return tuple(sorted(name.removeprefix(_KIND) for name in ray.cluster_resources() if name.startswith(_KIND)))


def kind_of(title: str, there: tuple[str, ...]) -> str:
    """Which kind a GPU called `title` is: the one all of whose words are in the title, `H100` in `NVIDIA H100 80GB HBM3`; else empty."""
    words = set(re.split(r"[\s-]+", title.upper()))
    fitting = [kind for kind in there if set(kind.upper().split("-")) <= words]
    return max(fitting, key=len, default="")


def cluster_target(address: str, devices: str) -> str:
    """The sheet of the cluster's only kind of GPU; empty where it has none, several, or several sheets fit."""
    if devices == INTERPRETER:
        return ""
    join(address)
    there = kinds()
    fitting = [name for name in sheet_names() if kind_of(load_sheet(name).title, there)]
    return fitting[0] if len(fitting) == 1 else ""
