"""From a region of a schedule to the launches it will make, before anything is compiled."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from functools import cache

from tools.codegen.ir.launch import LaunchWork
from tools.codegen.schedule.plan import Planned
from tools.codegen.templates.registry import TEMPLATES
from tools.codegen.templates.shared.knob import Settings
from tools.codegen.templates.shared.template import Template
from tools.cost.launch_time import launch_time_us
from tools.records import HardwareSheet


def modelled() -> frozenset[str]:
    """Name the templates whose launches the model knows: those that say them."""
    return frozenset(template.name for template in TEMPLATES if type(template).launches is not Template.launches)


def region_launches(planned: Planned, parameters: Settings, sheet: HardwareSheet) -> tuple[LaunchWork, ...]:
    """Describe the launches of one generated region; none where its template does not say them."""
    return planned.template.launches(planned.kernel, parameters, sheet)


def region_us(planned: Planned, parameters: Settings, sheet: HardwareSheet) -> float | None:
    """Time of a region by the coarse model, microseconds; None where its template does not say its launches."""
    return timed_once(sheet)(region_launches(planned, parameters, sheet))


def timed_once(sheet: HardwareSheet) -> Callable[[tuple[LaunchWork, ...]], float | None]:
    """Give what tells the time of launches on a device, None for none, and works each out once: many settings make the same passes."""

    @cache
    def issued_us(launch: LaunchWork) -> float:
        return max(sheet.launch_us - launch.early_us, launch_time_us(launch, sheet))

    def times_us(launches: tuple[LaunchWork, ...]) -> float | None:
        if len(launches) <= 1:
            return issued_us(launches[0]) if launches else None
        # alike, as a recurrent layer's waves are, they are added up as one
        return sum([count * issued_us(launch) for launch, count in Counter(launches).items()])

    return times_us
