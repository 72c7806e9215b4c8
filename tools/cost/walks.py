"""Walks over the settings of regions, one for all regions whose kernels are alike: networks have many, and so have their rewritings."""

from __future__ import annotations

from collections.abc import Hashable

from tools.codegen.ir.likeness import likeness
from tools.codegen.schedule.plan import Planned
from tools.codegen.templates.shared.knob import Parameters
from tools.cost.prepack import PackingWalk
from tools.cost.region_settings import key
from tools.records import HardwareSheet, PrecisionPolicy


class Walks:
    """All walks of one search on one device."""

    def __init__(self, sheet: HardwareSheet) -> None:
        """Begin with none."""
        self.sheet = sheet
        self._begun: dict[Hashable, PackingWalk] = {}

    def of(self, planned: Planned, start: Parameters, policy: PrecisionPolicy) -> PackingWalk:
        """Find the walk over a region's settings from `start`, or begin it."""
        name = (planned.template.name, likeness(planned.kernel), key(start), policy.model_dump_json())
        # the name is long: it is looked up once
        walk = self._begun.get(name)
        if walk is None:
            walk = self._begun[name] = PackingWalk(planned, start, self.sheet, policy)
        return walk
