"""What else may be made of a choice whose regions stay as they are: other layouts, fused epilogues, shared launches, a CUDA graph."""

from __future__ import annotations

from dataclasses import replace

from tools.codegen.schedule.together import side_by_side
from tools.cost.call_time import counted, worth_capturing
from tools.cost.channels_last import channels_last, copies_us
from tools.cost.choice import AGAIN, Choice
from tools.cost.cudnn_fusion import with_epilogues
from tools.cost.estimate import issuing_us
from tools.cost.launched_together import evened, longer_us, spared_kernels, spared_us
from tools.cost.schedule_model import ScheduleModel

LAST = "channels last"
"""Word of choices whose convolutions lie so."""
JUST_BEFORE = 0.999
"""Factor that puts a choice before another that is as fast."""
MOST_LOST = 1.25
"""Factor of the time of a timed call beyond which nothing is captured first: the first choice would seldom be delivered. An assumption;
clipping gradients of 103 MB took 333 µs captured, which copies them first, of which about 170 are modelled for its kernels (an H100,
2026-11-26; optimisers/clip_by_global_norm of the wild suite)."""
MUCH = 3.0
"""Factor of a captured call's time from which on launching one by one is so slow that it is captured first all the same; an assumption."""
LITTLE = 1.03
"""Factor of the time of a timed call up to which a capture comes first wherever launches may be what a call waits for: hosts differ by
more. Three forwards of 39 to 86 generated kernels took 50 to 95 µs a launch on the host of an H200 whose GPUs others shared (2026-11-28,
level 3 of KernelBench: 14, 26, 45), where `rates.GENERATED_HOST_US` says 35."""


class Alternatives:
    """Those of the choices of one graph."""

    def __init__(self, model: ScheduleModel) -> None:
        """Take times from the graph's model."""
        self._model = model

    def of(self, choices: list[Choice]) -> list[Choice]:
        """Lay the library's convolutions out with their channels last or give them their relu, and capture what may wait for launches."""
        changes = (self._turned, self._with_epilogues, self._together)
        others = [other for change in changes for choice in choices if (other := change(choice))]
        return [*others, *(other for choice in (*choices, *others) if (other := self._captured(choice)))]

    def launching(self, choices: list[Choice]) -> list[Choice]:
        """Capture choices whose calls would do little but launch, whatever their settings are."""
        found = []
        for choice in choices:
            captured = self._captured(choice)
            if captured is not None and choice.us > MUCH * captured.us:
                found.append(captured)
        return found

    def _with_epilogues(self, choice: Choice) -> Choice | None:
        found = with_epilogues(self._model.graph, choice.schedule, self._model.region_us) if self._model.sheet.backend == "cuda" else None
        if found is None:
            return None
        schedule, saved = found
        device = choice.device_us - saved
        us, order_us = (self._model.call_us(schedule, time) for time in (device, device + self._model.doubt_us(schedule)))
        return replace(choice, schedule=schedule, us=us, order_us=order_us, device_us=device, words=(*choice.words, "fused epilogues"))

    def _together(self, choice: Choice) -> Choice | None:
        """Let regions that wait for none of one another share their launches: each spares the filling and draining of a kernel."""
        moved = side_by_side(self._model.graph, choice.schedule)
        orders = [choice.schedule, *([moved] if moved != choice.schedule else [])]
        found = [evened(self._model, order).model_copy(update={"together": True}) for order in orders]
        spared = [spared_us(self._model, order) - longer_us(self._model, choice.schedule, order) for order in found]
        schedule = found[spared.index(max(spared))]
        if not spared_kernels(self._model, schedule) or choice.schedule.together:
            return None
        device = choice.device_us - max(spared)
        us = self._model.call_us(schedule, device)
        words = (*choice.words, "launched together")
        return replace(choice, schedule=schedule, us=us, order_us=choice.order_us * us / choice.us, device_us=device, words=words)

    def _turned(self, choice: Choice) -> Choice | None:
        schedule = None if self._model.knows_layouts else channels_last(self._model.graph, choice.schedule)
        if schedule is None:
            return None
        device = choice.device_us + copies_us(self._model.graph, schedule, self._model.sheet)
        us, order_us = (self._model.call_us(schedule, time) for time in (device, device + self._model.doubt_us(schedule)))
        # nothing was measured: the reference's own layout comes first
        order_us *= AGAIN
        return replace(choice, schedule=schedule, us=us, order_us=order_us, device_us=device, words=(*choice.words, LAST))

    def _captured(self, choice: Choice) -> Choice | None:
        """Capture a choice: doubt in its kernels does not count against it, since they are the same.

        It comes before them where launching takes longer than they do, since a timed call has a head start and a call in use has none;
        not where a timed call would lose much by copying its inputs and results, and a call in use gain no more. Where it loses next to
        nothing, it comes first on the mere doubt.
        """
        launched = self._model.kernels(choice.schedule)
        if not worth_capturing(self._model.graph, choice.schedule, choice.device_us, launched):
            return None
        schedule = choice.schedule.model_copy(update={"captured": True})
        us = self._model.call_us(schedule, choice.device_us)
        ratio = us / choice.us
        issuing = issuing_us(*counted(self._model.graph, choice.schedule, launched))
        if ratio <= LITTLE or (issuing > us and (ratio <= MOST_LOST or issuing > MUCH * us)):
            ratio = min(ratio, JUST_BEFORE)
        return replace(choice, schedule=schedule, us=us, order_us=choice.order_us * ratio, words=(*choice.words, "captured"))
