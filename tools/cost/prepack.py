"""Whether the weights of a region are worth packing, and which settings the cost model likes then."""

from __future__ import annotations

from functools import cached_property, partial

from tools.codegen.schedule.plan import Planned
from tools.codegen.templates.shared.knob import Parameters
from tools.codegen.templates.shared.prepack import PREPACKED, WEIGHTS
from tools.codegen.templates.shared.work import nbytes_of
from tools.cost.region_settings import Setting, modelled_names
from tools.cost.walk import SCORED, Walk
from tools.records import HardwareSheet, PrecisionPolicy

WORTH = 0.95
"""Share of the time without packing that a region may take at most with it: packing holds a second copy of the weights."""

WORTH_WHOLE = 0.98
"""The same of a whole call."""


class PackingWalk:
    """The walk over a region's settings, and where it may be worth it another over those that pack its weights."""

    def __init__(self, planned: Planned, start: Parameters, sheet: HardwareSheet, policy: PrecisionPolicy) -> None:
        """Begin with the coder's own first values."""
        self._planned, self._sheet = planned, sheet
        names = modelled_names(planned.template.knobs)
        self._plain = Walk(planned, start, names, sheet, policy)
        self._begin_packed = partial(Walk, planned, {**start, WEIGHTS: PREPACKED}, names, sheet, policy)
        self._rankings: dict[int, list[Setting]] = {}

    @cached_property
    def _packed(self) -> Walk:
        return self._begin_packed()

    @property
    def first(self) -> Setting:
        """The coder's own first values."""
        return self._plain.first

    def ranked(self, most: int = SCORED) -> list[Setting]:
        """Rank a region's settings, once; those that pack its weights are among them where the best of them is worth it."""
        if most not in self._rankings:
            self._rankings[most] = self._ranked(most)
        return self._rankings[most]

    def _ranked(self, most: int) -> list[Setting]:
        found = self._plain.ranked(most)
        if not _may_be_worth(self._planned, found[0].us, self._sheet):
            return found
        packed = [one for one in self._packed.ranked(most) if self._planned.template.prepacks(self._planned.kernel, one.parameters)]
        if not packed or packed[0].us > WORTH * found[0].us:
            return found
        return sorted([*found, *packed], key=lambda each: (each.us, each.name))


def packed_where_worth(rankings: dict[str, list[Setting]], others_us: float) -> dict[str, list[Setting]]:
    """Leave settings that pack out of the rankings of a schedule's regions where all packing together saves too little of a call.

    `others_us` is what the rest of the call takes. On networks whose regions were promised a twentieth each, and the call less than a
    fiftieth, nothing was gained on an H200 (docs/results/kernelbench/prepacked.md).
    """
    plain = {name: [one for one in found if one.parameters.get(WEIGHTS) != PREPACKED] for name, found in rankings.items()}
    without = sum(found[0].us for found in plain.values())
    saved = without - sum(found[0].us for found in rankings.values())
    return rankings if saved > (1 - WORTH_WHOLE) * (others_us + without) else plain


def _may_be_worth(planned: Planned, us: float, sheet: HardwareSheet) -> bool:
    """Whether reading the weights, writing them again and one launch is that share of a region's time: a second walk costs as much."""
    nbytes = sum(nbytes_of(operand) for operand in planned.template.weights(planned.kernel) if operand.fixed)
    return nbytes > 0 and sheet.launch_us + 2 * nbytes / (sheet.memory_gbps * 1e3) > (1 - WORTH) * us
