"""What regions spare that are launched together and wait for none of one another: kernels that begin and end, and idle multiprocessors."""

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

    def share(self, region: Region) -> float:
        """The share of the device's multiprocessors that a generated region's programs take, at most 1."""


def spared_kernels(model: RegionTimes, schedule: Schedule) -> int:
    """Count the kernels of a schedule that are launched with others."""
    if not schedule.together:
        return 0
    regions = {region.id: region for region in schedule.regions}
    counts = ([model.launched(regions[name]) for name in group] for group in together(model.graph, schedule))
    return sum(sum(each) - max(each) for each in counts)


def spared_us(model: RegionTimes, schedule: Schedule) -> float:
    """Microseconds that a schedule's shared launches spare: a kernel's beginning and end each, and what others leave idle.

    Regions of few programs run side by side: together they take as long as the longest, or as all do that fill the device by their shares.
    """
    spared = spared_kernels(model, schedule) * rates.KERNEL_US
    regions = {region.id: region for region in schedule.regions}
    for names in together(model.graph, schedule) if schedule.together else ():
        group = [regions[name] for name in names]
        if any(model.launched(region) > 1 for region in group):
            continue
        own = [max(0.0, model.region_us(region) - rates.KERNEL_US) for region in group]
        full = sum(us * model.share(region) for us, region in zip(own, group, strict=True))
        spared += sum(own) - max(*own, full)
    return spared


def longer_us(model: RegionTimes, one: Schedule, other: Schedule) -> float:
    """How much longer the generated regions of another schedule take, which has the same ones."""
    before = {region.id: region for region in one.regions}
    changed = [(before[region.id], region) for region in other.regions if region.is_generated and region != before[region.id]]
    return sum(model.region_us(new) - model.region_us(old) for old, new in changed)


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
