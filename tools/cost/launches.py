"""From a region of a schedule to the launches it will make, before anything is compiled."""

from __future__ import annotations

from collections.abc import Mapping

from tools.codegen.ir.launch import LaunchWork
from tools.codegen.schedule.plan import Planned
from tools.codegen.templates.registry import TEMPLATES
from tools.codegen.templates.shared.knob import Value
from tools.cost.launch_time import launch_time_us
from tools.records import HardwareSheet


def modelled() -> frozenset[str]:
    """Name the templates whose launches the model knows: each says its own."""
    return frozenset(template.name for template in TEMPLATES)


def region_launches(planned: Planned, parameters: Mapping[str, Value], sheet: HardwareSheet) -> tuple[LaunchWork, ...]:
    """Describe the launches of one generated region."""
    return planned.template.launches(planned.kernel, parameters, sheet)


def region_us(planned: Planned, parameters: Mapping[str, Value], sheet: HardwareSheet) -> float:
    """Time of a region by the coarse model, microseconds."""
    return sum(max(sheet.launch_us, launch_time_us(launch, sheet)) for launch in region_launches(planned, parameters, sheet))
