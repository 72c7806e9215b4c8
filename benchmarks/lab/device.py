"""The lab's judging process: runs what our own coder wrote, has the evaluator's oracle judge it, and times it when the device is its own.

What the evaluator does beyond it: walls and a process for each candidate, other sizes, more calls, parameters that are shaken, poisoned
memory, answers held against each other, and a second clock.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Sequence
from multiprocessing.connection import Connection
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from benchmarks.lab.device_lock import DeviceLock
from benchmarks.lab.trusted import load_source, make_model, outputs_of, times_us
from benchmarks.lab.truth import Known, KnownCall, Truths
from tools.evaluation.untrusted.loading import packing_step
from tools.evaluation.wire.calls import CallSpec
from tools.evaluation.wire.jobs.oracle import CallVerdict
from tools.hardware import load_sheet
from tools.records import Problem, Verdict

if TYPE_CHECKING:
    import torch

READY = "ready"
"""Sent when the reference is known: what goes wrong from then on is the candidate's."""
AFTER = "as made, after it was timed"
"""What notes call the first call's second run."""
KEPT_SHARE = 0.2
"""Of a device's memory, what its judging processes keep of problems between two questions."""
KEPT_ON_HOST = 1 << 30
SPARE_BYTES = 1 << 30
"""What an idle process may have in PyTorch's own stock of device memory; the rest goes back for the others."""


class Judged(NamedTuple):
    """What became of one source."""

    verdict: Verdict
    times_us: tuple[float, ...] = ()
    packing_us: tuple[float, ...] = ()
    """Of the step that packs weights, where the candidate has one; it was done before the calls that were timed."""
    calls: tuple[CallVerdict, ...] = ()
    """What the oracle found; empty where nothing was judged."""
    notes: tuple[str, ...] = ()
    poisoned: bool = False
    """The process's device context may be broken: nothing more is to be asked of it."""
    seconds: float = 0.0
    """For how long it had the device to itself."""


class Shape(Exception):  # noqa: N818 - data for a verdict, seen by nobody else
    """An output is not of the form that is asked for."""


def serve(channel: Connection, device: str, target: str, scratch: str, lock: str, share: float) -> None:
    """Answer (problem, source, calls) with `READY` and a Judged, or with a Judged alone, until the channel ends."""
    bench = Bench(device, target, Path(scratch), DeviceLock(Path(lock)), share)
    while True:
        text, source, calls = channel.recv()
        channel.send(bench.judge(Problem.model_validate_json(text), source, calls, lambda: channel.send(READY)))


class Bench:
    """Problems with their inputs and what is known of their results, on one device."""

    def __init__(self, device: str, target: str, scratch: Path, lock: DeviceLock, share: float = KEPT_SHARE) -> None:
        """Use `device`, `cuda` (that of the sheet `target`) or `cpu`; sources lie in `scratch`; keep `share` of the device's memory."""
        self._device, self._scratch, self._lock = device, scratch, lock
        self._cold = cold_cache(device, target)
        self._truths = Truths(device, lock, _room(device, share))

    def judge(self, problem: Problem, source: str, calls: Sequence[CallSpec], ready: Callable[[], None] = lambda: None) -> Judged:
        """Judge every call of a source, time it, and judge the first call once more; `ready` is called before the source is run."""
        before = self._lock.held_s
        with self._lock.room(problem):
            found = self._judge(problem, source, calls, ready)
            if found.verdict is not Verdict.PASS:
                # it may have written to its inputs
                self._truths.drop(problem)
            self._truths.trim(problem)
            if not found.poisoned:
                with self._lock.taken():
                    give_back(self._device)
        return found._replace(seconds=self._lock.held_s - before)

    def _judge(self, problem: Problem, source: str, calls: Sequence[CallSpec], ready: Callable[[], None]) -> Judged:
        import torch

        try:
            known = self._truths.of(problem, calls)
        except Exception as error:
            poisoned = isinstance(error, torch.OutOfMemoryError) or self._is_poisoned()
            return Judged(Verdict.INFRASTRUCTURE, notes=(f"The reference could not be judged: {said(error)}",), poisoned=poisoned)
        ready()
        try:
            return self._run(problem, source, known)
        except Shape as error:
            return Judged(Verdict.WRONG, notes=(str(error), *known.notes))
        except torch.OutOfMemoryError as error:
            # others on the device may have it
            return Judged(Verdict.INFRASTRUCTURE, notes=(said(error),), poisoned=True)
        except Exception as error:
            return Judged(Verdict.CRASHED, notes=(said(error),), poisoned=self._is_poisoned())

    def _run(self, problem: Problem, source: str, known: Known) -> Judged:
        from tools.evaluation.wire.precision import set_precision

        model = make_model(load_source(source, self._scratch), problem, known.opened, "cpu")
        # as the evaluator has it for every side
        set_precision(problem.policy.precision)
        with self._lock.taken():
            model.to(self._device)
            found = tuple(self._verdict(model, problem, number, call) for number, call in enumerate(known.calls))
            if not all(error.passed for one in found for error in one.outputs):
                return Judged(Verdict.WRONG, calls=found, notes=known.notes)
            arguments = known.calls[0].arguments
            times = times_us(lambda: model(*arguments), self._cold)
            step = packing_step(model)
            packing = times_us(step, self._cold) if step is not None else ()
            # a candidate that keeps something, or writes to its inputs, is wrong by now
            again = self._verdict(model, problem, len(found), known.calls[0]).model_copy(update={"group": AFTER})
        verdict = Verdict.PASS if all(error.passed for error in again.outputs) else Verdict.WRONG
        passed = verdict is Verdict.PASS
        return Judged(verdict, times if passed else (), packing if passed else (), (*found, again), known.notes)

    def _verdict(self, model: Any, problem: Problem, number: int, call: KnownCall) -> CallVerdict:
        outputs = outputs_of(model, call.arguments, problem)
        wait(self._device)
        _check_form(problem, outputs)
        return CallVerdict(call_plan=0, call=number, group=call.distribution, outputs=call.errors(problem, outputs))

    def _is_poisoned(self) -> bool:
        try:
            wait(self._device)
        except Exception:
            return True
        return False


def cold_cache(device: str, target: str) -> Any:
    """Make what clears the device's cache between two timed calls; None for the host."""
    from tools.evaluation.wire.lead_in import ColdCache, flush_bytes

    return ColdCache(flush_bytes(load_sheet(target))) if device == "cuda" else None


def wait(device: str) -> None:
    """Wait for everything that is queued."""
    import torch

    if device == "cuda":
        torch.cuda.synchronize()


def give_back(device: str) -> None:
    """Give memory back to the device that PyTorch keeps in stock, where it is much; the lock is ours."""
    import torch

    if device == "cuda" and torch.cuda.memory_reserved() - torch.cuda.memory_allocated() > SPARE_BYTES:
        gc.collect()
        torch.cuda.empty_cache()


def said(error: Exception) -> str:
    """One line of what was raised."""
    return f"{type(error).__name__}: {str(error)[:300]}"


def _room(device: str, share: float) -> int:
    import torch

    return int(share * torch.cuda.get_device_properties(0).total_memory) if device == "cuda" else KEPT_ON_HOST


def _check_form(problem: Problem, outputs: Sequence[torch.Tensor]) -> None:
    wanted = [(spec.shape, spec.dtype) for spec in problem.abi.returned]
    found = [(tuple(value.shape), str(value.dtype).removeprefix("torch.")) for value in outputs]
    if found != wanted:
        raise Shape(f"It returns {found}, and {wanted} is asked for.")
