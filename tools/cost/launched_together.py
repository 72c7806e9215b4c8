"""What it spares to launch regions together that wait for none of one another: the filling and draining of a kernel each."""

from __future__ import annotations

from typing import Protocol

from tools.codegen import OperatorGraph, Region, Schedule
from tools.codegen.schedule.plan import Planned
from tools.codegen.schedule.together import together
from tools.hardware import rates
from tools.records import HardwareSheet


class RegionTimes(Protocol):
    """What the cost model says of regions."""

    graph: OperatorGraph
    sheet: HardwareSheet

    def planned(self, region: Region) -> Planned:
        """Lower a region."""

    def launched(self, region: Region) -> int:
        """Count the launches of one generated region."""

    def region_us(self, region: Region) -> float:
        """Time of a region as it is, microseconds."""


def spared_kernels(model: RegionTimes, schedule: Schedule) -> int:
    """Count the kernels of a schedule that are launched with others."""
    if not schedule.together:
        return 0
    regions = {region.id: region for region in schedule.regions}
    counts = ([model.launched(regions[name]) for name in group] for group in together(model.graph, schedule))
    return sum(sum(each) - max(each) for each in counts)


def longer_us(model: RegionTimes, one: Schedule, other: Schedule) -> float:
    """How much longer the generated regions of another schedule take, which has the same ones."""
    before, after = ([region for region in each.regions if region.is_generated] for each in (one, other))
    return sum(model.region_us(new) - model.region_us(old) for old, new in zip(before, after, strict=True) if new != old)


def evened(model: RegionTimes, schedule: Schedule) -> Schedule:
    """Give regions that could share a launch the warps of the longest of them, where that costs less than it spares."""
    for names in together(model.graph, schedule, any_warps=True):
        group = [region for name in names if (region := schedule.region(name))]
        warps = max(group, key=model.region_us).parameters.get("num_warps")
        evener = []
        for region in group:
            parameters = {**region.parameters, "num_warps": warps} if warps else dict(region.parameters)
            if parameters != region.parameters and model.planned(region).fits(parameters, "num_warps", model.sheet):
                evener.append(region.model_copy(update={"parameters": parameters}))
        if not evener:
            continue
        changed = schedule.replaced(*evener)
        before, after = (spared_kernels(model, each.model_copy(update={"together": True})) for each in (schedule, changed))
        if longer_us(model, schedule, changed) < (after - before) * rates.KERNEL_US:
            schedule = changed
    return schedule
