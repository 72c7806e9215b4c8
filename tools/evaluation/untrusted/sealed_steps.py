"""Issues the steps of a launch plan: kernels by the driver, fills, operators of torch, and graphs that it captures of them itself."""

from __future__ import annotations

import functools
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tools.evaluation.untrusted.sealed_memory import Allotted, BreachError, Held
from tools.evaluation.wire.driver_api import Driver, Launchable
from tools.evaluation.wire.launch_plan import BASES, AnyStep, Argument, Choice, Fill, KernelLaunch, LaunchPlan, layout, pack, used
from tools.evaluation.wire.library_calls import LibraryCall, View, ready
from tools.evaluation.wire.tensor_maps import TensorMap

if TYPE_CHECKING:
    import torch

_CLEARED_BYTES = 256 << 20
"""Written before each run of a configuration that is tried: more than any L2 holds."""
_TRIALS = 9
_WARM_UPS = 2


@dataclass
class Prepared:
    """One step, ready to be issued."""

    issue: Callable[[], int]
    """0 where the driver took it."""
    done: tuple[int, ...] = ()
    """Buffers that are let go before it."""
    ways: list[list[Callable[[], int]]] = field(default_factory=list)
    """Of an autotuned launch whose configuration is not chosen yet."""


class Issuer:
    """Issues steps on memory, on the default stream or on one that captures."""

    def __init__(self, plan: LaunchPlan, memory: Sequence[Held | Allotted], driver: Driver, device: str) -> None:
        """Issue steps of `plan`."""
        self._plan = plan
        self._memory = memory
        self._allotted = [one for one in memory if isinstance(one, Allotted)]
        self._driver = driver
        self._device = device
        self._stream = 0

    def prepared(self, steps: Sequence[AnyStep]) -> list[Prepared]:
        """Lay steps out: those of a call, or those that pack weights."""
        packs = steps is self._plan.packing
        ready_steps = []
        for place, step in enumerate(steps):
            done = () if packs else tuple(index for index, buffer in enumerate(self._plan.buffers) if buffer.until == place)
            if isinstance(step, Choice):
                ways = [[self._one(one, packs=packs) for one in way] for way in step.ways]
                ready_steps.append(Prepared(functools.partial(_in_turn, ways[0]), done, ways))
            else:
                ready_steps.append(Prepared(self._one(step, packs=packs), done))
        return ready_steps

    def issue(self, steps: Sequence[Prepared]) -> None:
        """Issue steps in order; DriverError where one is not taken."""
        for step in steps:
            for place in step.done:
                self._let_go(place)
            result = step.issue()
            if result:
                self._driver.check(result, "launching a recorded kernel")

    def forget(self) -> None:
        """Let go of all that torch allotted to the call before."""
        for memory in self._allotted:
            memory.let_go()

    def settled(self, steps: list[Prepared]) -> list[Prepared]:
        """Choose what is to be tuned, on the device, and capture what the candidate captures; a graph is one step then."""
        self.forget()
        for step in steps:
            for place in step.done:
                self._let_go(place)
            if step.ways:
                step.issue = functools.partial(_in_turn, min(step.ways, key=self._time_us))
            step.issue()
        for first, end in reversed(self._plan.captured):
            if self._is_closed(first, end):
                steps = [*steps[:first], self._captured(steps[first:end]), *steps[end:]]
                for buffer, maker in self._plan.makers.items():
                    memory = self._memory[buffer]
                    if first <= maker < end and isinstance(memory, Allotted):
                        memory.stay()
        return steps

    def _is_closed(self, first: int, end: int) -> bool:
        """Whether steps read nothing that torch allots before them: a graph would look for it where it was."""
        places = self._plan.makers
        return all(places.get(buffer, first) >= first for step in self._plan.steps[first:end] for buffer in used(step))

    def _captured(self, steps: list[Prepared]) -> Prepared:
        import torch

        graph = torch.cuda.CUDAGraph()
        torch.cuda.synchronize()
        with torch.cuda.graph(graph):
            self._stream = int(torch.cuda.current_stream().cuda_stream)
            try:
                self.issue(steps)
            finally:
                self._stream = 0

        def replay() -> int:
            graph.replay()
            return 0

        return Prepared(replay)

    def _time_us(self, way: Sequence[Callable[[], int]]) -> float:
        """Time one configuration on a cold cache; the median of some runs, microseconds."""
        import torch

        cleared = torch.empty(_CLEARED_BYTES, dtype=torch.uint8, device=self._device)
        event: Any = torch.cuda.Event
        times = []
        for _ in range(_WARM_UPS + _TRIALS):
            first, last = event(enable_timing=True), event(enable_timing=True)
            cleared.zero_()
            first.record()
            _in_turn(way)
            last.record()
            last.synchronize()
            times.append(first.elapsed_time(last) * 1e3)
        return float(statistics.median(times[_WARM_UPS:]))

    def _let_go(self, place: int) -> None:
        memory = self._memory[place]
        if isinstance(memory, Allotted):
            memory.let_go()

    def _getter(self, view: View) -> Callable[[], torch.Tensor]:
        return self._memory[view.buffer].getter(view)

    def _keep(self, view: View, made: torch.Tensor) -> None:
        memory = self._memory[view.buffer]
        assert isinstance(memory, Allotted)
        memory.take(made)

    def _one(self, step: KernelLaunch | Fill | LibraryCall, *, packs: bool) -> Callable[[], int]:
        if isinstance(step, Fill):
            return functools.partial(self._fill, step)
        if isinstance(step, LibraryCall):
            return ready(step, self._getter, self._device, None if packs else self._keep)
        return self._kernel(step)

    def _fill(self, step: Fill) -> int:
        count = step.nbytes // step.width
        address = self._memory[step.buffer].address + step.offset
        return self._driver.fill(address, step.pattern, step.width, count, self._stream) if count else 0

    def _kernel(self, step: KernelLaunch) -> Callable[[], int]:
        function = self._driver.function(self._plan.code(step.cubin), step.function, step.shared_bytes)
        found = self._driver.layout(function)
        if all(found != layout(step.arguments, base) for base in BASES):
            raise BreachError(f"{step.function} takes parameters at {found}, the plan gives them at {layout(step.arguments)}")
        buffers = tuple(dict.fromkeys(used(step)))
        known: dict[tuple[int, ...], Launchable] = {}

        def issue() -> int:
            # where torch allots some of its memory, addresses may differ from call to call
            places = (self._stream, *(self._memory[buffer].address for buffer in buffers))
            if places not in known:
                known.clear()
                known[places] = self._launchable(step, function)
            return known[places]()

        issue_once = issue if any(isinstance(self._memory[buffer], Allotted) for buffer in buffers) or self._plan.captured else None
        return issue_once or self._launchable(step, function)

    def _launchable(self, step: KernelLaunch, function: Any) -> Launchable:
        addresses = tuple(memory.address for memory in self._memory)
        return self._driver.launchable(
            function,
            step.grid,
            step.threads,
            step.shared_bytes,
            [self._packed(argument, addresses) for argument in step.arguments],
            cluster=step.cluster,
            cooperative=step.cooperative,
            overlapping=step.overlapping,
            stream=self._stream,
        )

    def _packed(self, argument: Argument | TensorMap, addresses: tuple[int, ...]) -> bytes:
        if isinstance(argument, TensorMap):
            return argument.encode(self._driver, addresses[argument.buffer])
        return pack(argument, addresses)


def _in_turn(steps: Sequence[Callable[[], int]]) -> int:
    """Issue some launches; the first that is not taken says why."""
    return next((result for step in steps if (result := step())), 0)
