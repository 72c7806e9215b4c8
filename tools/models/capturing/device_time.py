"""Has modules count by what they take in CUDA graphs: there the host takes no time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

import torch
from torch import nn

from tools.models.capturing.found import Found
from tools.models.copies import holds_objects
from tools.models.loading import Workload
from tools.models.records import Capture
from tools.models.replay import Clock, NotRecordedError, Record, time_replay

REPLAYED = "replayed CUDA graphs, in which the host does not take time"


def by_device(
    found: Capture,
    model: nn.Module,
    workloads: Sequence[Workload],
    sources: Mapping[str, Sequence[Found]],
    record: Record,
    clocked: Clock = time_replay,
) -> Capture:
    """Have modules count by what they take in CUDA graphs, where these hold the model and are faster: there the host takes no time.

    `sources`: of each group the calls that it stands for. Replays begin with cold caches, so that calls may add up to more than the
    model takes: no share is above one.
    """
    with torch.no_grad():
        try:
            us = _whole_times(model, workloads, found.us, record, clocked)
        except NotRecordedError as error:
            return found.model_copy(update={"clock": f"{found.clock}, not CUDA graphs ({error})"})
        weights = found.weights
        whole = sum(weights[name] * us[name] for name in us)
        watched = sum(one.weighted(weights) for calls in sources.values() for one in calls if "" in one.paths)
        groups = []
        for group in found.groups:
            before = sum(one.weighted(weights) for one in sources[group.name])
            after = sum(_retimed(one, weights, us, whole / watched, record, clocked) for one in sources[group.name])
            scale = after / before if before else 1.0
            share = min(1.0, group.share * scale * watched / whole)
            groups.append(group.model_copy(update={"us": group.us * scale, "share": share}))
    ordered = tuple(sorted(groups, key=lambda group: -group.share))
    return found.model_copy(update={"clock": REPLAYED, "us": us, "eager_us": found.us, "groups": ordered})


def _whole_times(
    model: nn.Module, workloads: Sequence[Workload], eager: Mapping[str, float], record: Record, clocked: Clock
) -> dict[str, float]:
    """Time workloads as CUDA graphs, microseconds; NotRecordedError where these cannot hold the model, or are no faster than `eager`."""
    if any(holds_objects((one.args, one.kwargs)) for one in workloads):
        raise NotRecordedError("it is given an object, such as a cache that grows")
    us = {one.name: clocked(record(partial(one.called, model))) for one in workloads}
    if sum(one.weight * us[one.name] for one in workloads) >= sum(one.weight * eager[one.name] for one in workloads):
        raise NotRecordedError("the device is busy all the time")
    return us


def _retimed(found: Found, weights: Mapping[str, float], whole: Mapping[str, float], part: float, record: Record, clocked: Clock) -> float:
    """Give the microseconds of equal calls, by the workloads' weights, if each takes what a replay of one takes.

    The model itself takes what its workloads do, `whole`; a call that cannot be recorded by itself the same `part` as the model of what
    it took as hooks saw it. A cache would grow with every run of a call.
    """
    if "" in found.paths:
        return sum(weights[name] * whole[name] * count for name, count in found.calls.items())
    try:
        if not holds_objects((found.args, found.kwargs)):
            return found.weight(weights) * clocked(record(found.call))
    except NotRecordedError:
        pass
    return found.weighted(weights) * part
