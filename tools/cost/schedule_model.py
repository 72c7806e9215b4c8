"""What the cost model says of the schedules of one graph: their regions' settings, and what a whole call takes."""

from __future__ import annotations

import math

from tools.codegen import OperatorGraph, Region, Schedule
from tools.codegen.ir.dispatch import Dispatch
from tools.codegen.ir.graph import LaidOut
from tools.codegen.ir.loop import Loop
from tools.codegen.ir.operators.families import CONVOLUTIONS, PRODUCTS, RECURRENT
from tools.codegen.ir.schedule import EPILOGUE
from tools.codegen.rewrite.operands.pad_sums import is_unaligned, makes_unaligned
from tools.codegen.schedule.bodies import body_of, loop_of
from tools.codegen.schedule.cuda_graph import kernels as launches_of
from tools.codegen.schedule.partition import STANDING_ALONE
from tools.codegen.schedule.placed import writes_place
from tools.codegen.schedule.plan import TILE, Planned, can_generate, plan_region
from tools.codegen.schedule.rounding import policy_of_region
from tools.codegen.templates.shared.knob import Parameters
from tools.codegen.templates.shared.tile_launch import HALVES
from tools.cost.call_time import call_us
from tools.cost.channels_last import laid_out_copies_us
from tools.cost.choice import Choice
from tools.cost.fusion_plans import RIVALS
from tools.cost.launched_together import spared_kernels, spared_us
from tools.cost.launches import modelled, region_launches, region_us
from tools.cost.library import Call, batch_tiles, convolves_on_tensor_cores, left_us, library_us
from tools.cost.library_copies import broadcast_copies_us, einsum_copies_us
from tools.cost.prepack import PackingWalk, packed_where_worth
from tools.cost.region_settings import TRUSTED, UNTRIED, Setting, key, spread, words_of
from tools.cost.walk import SCORED
from tools.cost.walks import Walks
from tools.hardware.rates import copy_gbps, operator_family
from tools.records import HardwareSheet, OperatorFamily, PrecisionPolicy

GLANCED = 80
"""Settings of a region that are looked at to decide on a fusion."""
SEEN = 3000
"""Settings of all regions of one structure, so that a network takes no longer than an operator."""
FEWEST = 60
IN_TURN = RIVALS | {TILE}
"""Templates whose launches each wait for the one before: none takes less than the sheet's launch interval. The model tells apart all that
their parameters say, so that no two settings lie at no distance from one another."""
LONG, THOROUGH = 0.03, 300
"""Share of a structure's time from which on a region is looked at further, and so many of its settings."""
SLOWEST = 4.0
"""Factor of the library's modelled time, an operator at a time, beyond which a region without products is not generated: twice the
model's error."""
HEAVY = 0.25
"""Share of a schedule's time from which on a region is worth trying in another setting."""
DOUBTS = {OperatorFamily.CONVOLUTION: 1.2}
"""Factor by which a generated kernel may take longer than modelled when it is compared with the library's, by family: the best settings of
eleven convolutions of halves took 0.7 to 1.25 times as long as modelled on an H100 (`tools.codegen.templates.convolution.launches`)."""
VOLUME_DOUBT = 1.05
"""The same over three dimensions: eleven operators with such convolutions of halves took 0.74 to 1.02 times as long as modelled, with the
library's in their place 1.08 to 1.9 times (an H100, 2026-11-26)."""
DOUBT = 1.3
"""The same for products and attention, which were measured; an assumption between the error of the best and that of all schedules."""
MOVING_DOUBT, MOVING = 1.1, 0.7
"""The same where memory takes at least such a part of the modelled time: of three decoding steps whose products were ours, measured over
modelled was 0.93, 0.96 and 1.10 (an H100, 2026-11-25; decode of the wild suite)."""
HALF_DOUBT = 1.05
"""The same for plain products of halves on Hopper: of four large ones on an H100 the model's first settings took 0.92 to 1.4 times as
long as modelled, and the best of each 0.9 to 0.97 times (docs/results/generated-kernels.md)."""


def is_convolution(graph: OperatorGraph, region: Region) -> bool:
    """Whether a region holds a convolution."""
    return any(operator_family(graph.by_name[name].target) is OperatorFamily.CONVOLUTION for name in region.nodes)


class ScheduleModel:
    """What the cost model says of regions; each set of nodes is lowered and looked at once."""

    def __init__(
        self,
        graph: OperatorGraph,
        sheet: HardwareSheet,
        policy: PrecisionPolicy,
        known: frozenset[str] | None = None,
        walks: Walks | None = None,
    ) -> None:
        """Model schedules of one graph on one device; models of one search share their walks."""
        self.graph, self.sheet, self.policy = graph, sheet, policy
        self.known = modelled() if known is None else known
        self._planned: dict[tuple[tuple[str, ...], bool], Planned] = {}
        self._glances: dict[tuple[tuple[str, ...], bool], float] = {}
        self._libraries: dict[tuple[str, ...], float] = {}
        self._times: dict[tuple[tuple[str, ...], str], float] = {}
        self._counts: dict[tuple[tuple[str, ...], str], int] = {}
        self._walks: dict[tuple[tuple[str, ...], str], PackingWalk] = {}
        self._bodies: dict[int, ScheduleModel] = {}
        self._begun = walks or Walks(sheet)

    def of(self, graph: OperatorGraph) -> ScheduleModel:
        """Model schedules of another graph on the same device."""
        return ScheduleModel(graph, self.sheet, self.policy, self.known, self._begun)

    @property
    def knows_layouts(self) -> bool:
        """Whether it is known what the layout of the library's convolutions is worth: then it is chosen for a whole graph."""
        return convolves_on_tensor_cores(self.graph, self.sheet, self.policy)

    def planned(self, region: Region) -> Planned:
        """Lower a region."""
        name = (region.nodes, region.template == TILE)
        if name not in self._planned:
            self._planned[name] = plan_region(self.graph, region.nodes, region.template)
        return self._planned[name]

    def glance(self, graph: OperatorGraph, schedule: Schedule) -> float:
        """Time of the generated regions of a schedule at about their best settings; no end of it where one is not modelled."""
        return sum(self._glance(region) for region in schedule.regions if region.is_generated)

    def glance_of_all(self, graph: OperatorGraph, schedule: Schedule) -> float:
        """The same with the time of what is left to the library."""
        return self._left(schedule) + self.glance(graph, schedule)

    def _glance(self, region: Region) -> float:
        name = (region.nodes, region.template == TILE)
        if name not in self._glances:
            self._glances[name] = self._looked(region) if region.template in self.known else math.inf
        return self._glances[name]

    def _looked(self, region: Region) -> float:
        if first := self._at_once(region):
            return first.us
        ranked = self._ranked(region, GLANCED)
        # tiles are to beat what their rivals are given, which is not always what the model likes best
        return (self._taken(region, ranked, 1) if region.template in RIVALS else ranked)[0].us

    def _allowed(self, region: Region) -> PrecisionPolicy:
        """Say what the policy comes to for a region."""
        return policy_of_region(self.graph, region.nodes, self.policy)

    def _walk(self, region: Region) -> PackingWalk:
        start: Parameters = dict(region.parameters)
        walk = (region.nodes, key(start))
        if walk not in self._walks:
            self._walks[walk] = self._begun.of(self.planned(region), start, self._allowed(region))
        return self._walks[walk]

    def _ranked(self, region: Region, most: int) -> list[Setting]:
        return self._walk(region).ranked(most)

    def _at_once(self, region: Region) -> Setting | None:
        """Give the coder's own first values where they take no longer than any launch: no other setting is faster, and they come first."""
        first = self._walk(region).first if region.template in IN_TURN else None
        return first if first and first.us <= self.sheet.launch_us else None

    def _taken(self, region: Region, ranked: list[Setting], most: int) -> tuple[Setting, ...]:
        return spread(ranked, dict(region.parameters), most, UNTRIED if region.template == TILE else TRUSTED)

    def choices(self, schedule: Schedule, most: int) -> list[Choice]:
        """Set a structure's regions to their best settings, then the heavy ones to their next different ones."""
        known = [region for region in schedule.regions if region.template in self.known]
        others = self._left(schedule)
        rankings = packed_where_worth(self._looked_at(known, others), others)
        spreads = {region.id: self._taken(region, rankings[region.id], 1) for region in known}
        total = others + sum(settings[0].us for settings in spreads.values())
        heavy = {name for name, settings in spreads.items() if settings[0].us >= HEAVY * total}
        spreads |= {region.id: self._taken(region, rankings[region.id], most) for region in known if region.id in heavy}
        unmodelled = tuple(region.id for region in schedule.regions if region.is_generated and region.template not in self.known)
        found: list[Choice] = []
        for place in range(max([len(spreads[name]) for name in heavy] or [1])):
            chosen = {name: each[min(place, len(each) - 1) if name in heavy else 0] for name, each in spreads.items()}
            changed = schedule.replaced(*(one.model_copy(update={"parameters": chosen[one.id].parameters}) for one in known))
            device = others + sum(one.us for one in chosen.values())
            doubtful = device + self.doubt_us(changed)
            words = tuple((region.template, words_of(dict(region.parameters))) for region in changed.regions if region.id in heavy)
            us, order_us = (self.call_us(changed, time) for time in (device, doubtful))
            found.append(Choice(changed, us, unmodelled, words, max([order_us, *(one.order_us for one in found)]), device))
        return found

    def _looked_at(self, regions: list[Region], others: float) -> dict[str, list[Setting]]:
        """Rank settings of each region of one structure, more of those that take much of its time."""
        share = max(FEWEST, min(SCORED, SEEN // max(1, len(regions))))
        first = {region.id: self._at_once(region) for region in regions}
        found = {region.id: [one] if (one := first[region.id]) else self._ranked(region, share) for region in regions}
        total = others + sum(settings[0].us for settings in found.values())
        long = [region for region in regions if found[region.id][0].us >= LONG * total]
        more = max(share, min(THOROUGH, SEEN // max(1, len(long))))
        return found | {region.id: self._ranked(region, more) for region in long}

    def region_us(self, region: Region) -> float:
        """Time of a region as it is: of our kernel, or of the library's calls, microseconds."""
        if region.is_generated:
            return self._generated(region)
        return self._steps(region) if region.body else self._library(region)

    def call_us(self, schedule: Schedule, device_us: float, *, in_use: bool = False) -> float:
        """Time of a call whose kernels take `device_us`, microseconds."""
        return call_us(self.graph, schedule, device_us, self.sheet, self.kernels(schedule), in_use=in_use)

    def kernels(self, schedule: Schedule) -> int:
        """Count the launches of generated regions: passes before a product are launches, too."""
        own = launches_of(self.graph, schedule.regions, lambda graph, region: self._of_graph(graph).launched(region))
        return own - spared_kernels(self, schedule)

    def _of_graph(self, graph: OperatorGraph) -> ScheduleModel:
        """Give the model of this graph, or of a body of its loops."""
        if graph is self.graph:
            return self
        if id(graph) not in self._bodies:
            self._bodies[id(graph)] = self.of(graph)
        return self._bodies[id(graph)]

    def of_body(self, region: Region) -> ScheduleModel | None:
        """Model one step of a region's loop; None where it has none."""
        body = body_of(self.graph, region)
        return self._of_graph(body) if body else None

    def launched(self, region: Region) -> int:
        """Count the launches of one generated region."""
        name = (region.nodes, key(dict(region.parameters)))
        if name not in self._counts:
            self._counts[name] = len(region_launches(self.planned(region), region.parameters, self.sheet)) or 1
        return self._counts[name]

    def share(self, region: Region) -> float:
        """The share of the device's multiprocessors that a generated region's programs take, at most 1; of several launches the most."""
        found = region_launches(self.planned(region), region.parameters, self.sheet)
        return min(1.0, max((launch.programs for launch in found), default=self.sheet.sms) / self.sheet.sms)

    def doubt(self, region: Region) -> float:
        """Factor by which a generated region may take longer than modelled, where the library's kernel is the alternative."""
        if is_convolution(self.graph, region):
            asked = self.planned(region).kernel.convolution if can_generate(self.graph, region.nodes) else None
            return VOLUME_DOUBT if asked and len(asked.size) > 2 else DOUBTS[OperatorFamily.CONVOLUTION]
        if not any(self.graph.by_name[name].op in STANDING_ALONE for name in region.nodes):
            return 1.0
        planned = self.planned(region)
        fitted = planned.template.name == "matmul" and self.sheet.generation == "hopper"
        if fitted and planned.template.products(planned.kernel).dtype in HALVES:
            return HALF_DOUBT
        return MOVING_DOUBT if region.is_generated and self._moves(region) else DOUBT

    def _moves(self, region: Region) -> bool:
        """Whether a generated region takes about as long as its bytes do."""
        launches = region_launches(self.planned(region), region.parameters, self.sheet)
        return sum(work.dram_bytes for work in launches) / copy_gbps(self.sheet) / 1e3 >= MOVING * self._generated(region)

    def doubt_us(self, schedule: Schedule) -> float:
        """How much longer a schedule may take than modelled because of kernels that the library has, too."""
        modelled = (region for region in schedule.regions if region.is_generated and region.template in self.known)
        return sum((self.doubt(region) - 1) * self._generated(region) for region in modelled)

    def would_gain(self, region: Region) -> bool:
        """Whether a region that is the library's yet would be one of ours by `prefers_own`."""
        if not can_generate(self.graph, region.nodes):
            return False
        planned = self.planned(region)
        return self.prefers_own(
            region.model_copy(update={"template": planned.template.name, "parameters": planned.defaults(self.sheet.sms)})
        )

    def prefers_own(self, region: Region) -> bool:
        """Whether a generated product or convolution is expected to be faster than the library's, whatever the doubt.

        Any other region is generated unless the model sees something very wrong with it: an operator at a time, the library's are slow.
        """
        if writes_place(self.graph, region):
            return True
        doubt, library = self.doubt(region), self._library(region)
        if doubt > 1.0:
            return doubt * self._glance(region) < library
        return region.template not in self.known or self._glance(region) < SLOWEST * len(region.nodes) * library

    def _left(self, schedule: Schedule) -> float:
        """Time of what a structure leaves to the library, with what brings it to the layout in which convolutions lie."""
        turning = laid_out_copies_us(self.graph, self.sheet)
        return turning + sum(self.region_us(region) for region in schedule.regions if not region.is_generated)

    def _steps(self, region: Region) -> float:
        """Time of a loop of Python, each step of which runs the regions of its body, and of what is beside it in its region."""
        loop, inside = loop_of(self.graph, region), self.of_body(region)
        assert loop is not None, "a region with a body is a loop"
        assert inside is not None, "a region with a body is a loop"
        beside = tuple(name for name in region.nodes if name != loop.name)
        step = sum(inside.region_us(each) for each in region.body)
        return loop.steps[0] * step + (left_us(self.graph, beside, self.sheet) if beside else 0.0)

    def _library(self, region: Region) -> float:
        """Time of a region's library calls; of what could not be generated either, their launches or the bytes they move."""
        if region.nodes not in self._libraries:
            nodes = [self.graph.by_name[name] for name in region.nodes]
            loops = any(isinstance(node, Loop | Dispatch) or node.op in RECURRENT for node in nodes)
            if not loops and can_generate(self.graph, region.nodes) and not self.planned(region).kernel.general:
                family = OperatorFamily.CONVOLUTION if is_convolution(self.graph, region) else None
                us = library_us(self.planned(region), self.sheet, self._allowed(region), family, self._call(region))
            else:
                us = left_us(self.graph, region.nodes, self.sheet)
            us += einsum_copies_us(self.graph, region.nodes, self.sheet) + broadcast_copies_us(self.graph, region.nodes, self.sheet)
            self._libraries[region.nodes] = us
        return self._libraries[region.nodes]

    def _call(self, region: Region) -> Call:
        """Say how the library is asked for a region's convolution, or for its product."""
        node = self.graph.by_name[region.nodes[0]]
        biased = node.op in CONVOLUTIONS and node.argument(2, "bias") is not None and EPILOGUE not in region.parameters
        single_row = node.op in PRODUCTS and self.planned(region).template.name == "rows" and node.outputs[0].dtype in HALVES
        unaligned = is_unaligned(self.graph, node) or makes_unaligned(self.graph, node)
        tiles = batch_tiles(self.planned(region).kernel)
        return Call(channels_last=isinstance(node, LaidOut), biased=biased, single_row=single_row, unaligned=unaligned, tiles=tiles)

    def _generated(self, region: Region) -> float:
        """Time of a generated region with the parameters that it has."""
        name = (region.nodes, key(dict(region.parameters)))
        if name not in self._times:
            self._times[name] = region_us(self.planned(region), region.parameters, self.sheet) or 0.0
        return self._times[name]

    def schedule_us(self, schedule: Schedule, *, in_use: bool = False) -> float | None:
        """Time of a call as a schedule has it, timed or in use; None where one of its templates is not modelled."""
        generated = [region for region in schedule.regions if region.is_generated]
        if any(region.template not in self.known for region in generated):
            return None
        left = self.graph.calls * self.sheet.launch_us if self.graph.blocked else self._left(schedule)
        device = left + sum(self._generated(region) for region in generated) - spared_us(self, schedule)
        return self.call_us(schedule, device, in_use=in_use)
