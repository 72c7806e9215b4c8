"""Runs a whole model with and without its operators: is it right, is it faster, and by which. It meets kernels, so in walls only."""

from __future__ import annotations

import contextlib
import gc
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import Any
from unittest.mock import patch

import torch
from torch import nn

from tools.models.copies import copied, twin
from tools.models.jobs import AUTOTUNED, AUTOTUNED_OURS, COMPILED, COMPILED_OURS, EAGER, IN_GRAPH, OURS, WITHOUT, OutputProof, Proof
from tools.models.loading import Workload, given
from tools.models.proof.call import WARM, Call
from tools.models.proof.comparing import FACTOR, FLOOR, Comparing, distance
from tools.models.replay import NotRecordedError, Record, recorder
from tools.models.suitability import alike, held

COMPILERS = {COMPILED_OURS: COMPILED, AUTOTUNED_OURS: AUTOTUNED}
"""Ways in which a compiler sees the operators, and the same without."""
BUSY = 0.95
"""Part of eager's time that a model takes in a CUDA graph from which on a graph is no other way of running it."""

Times = dict[str, dict[str, tuple[float, ...]]]
"""Microseconds of each round, by way of running the model and by workload."""


class _NotSeenThroughError(Exception):
    """A compiler fails, or is wrong, where it sees the operators' kernels."""


class Prover:
    """One model, its package, and workloads by seed."""

    def __init__(
        self,
        model: nn.Module,
        package: Any,
        workloads: Callable[[int], list[Workload]],
        seed: int,
        record: Record | None = None,
        policy: str = "",
    ) -> None:
        """Take the model as it is; `package` has `apply`, `remove` and `counts`, `workloads` makes fresh ones.

        `record` makes graphs of calls; without it CUDA's where the model is on such a device. Under the `policy` default operators may
        round as cuDNN does on a GPU, and so may the original on a CPU.
        """
        self._model, self._package, self._make, self._seed = model, package, workloads, seed
        self._device = next((str(value.device) for value in (*held(model), *given(workloads(seed)))), "cpu")
        self._record = record or (recorder() if self._device.startswith("cuda") else None)
        self._rounds = policy == "default" and self._device == "cpu"
        self._notes: list[str] = []
        self._own: dict[tuple[str, int], float] = {}
        self.opaque = False
        """Whether a compiler did not take the operators' kernels into its graph."""

    def correctness(self, *, graphs: bool, known: Proof | None = None) -> Proof:
        """Compare outputs on two fresh sets of inputs, count what the guards did, and put everything back; `graphs`: look for breaks.

        What is `known` of the same operators on the same inputs is not found out again.
        """
        if known is not None:
            self._keep(known.outputs)
            self._notes += known.notes
            breaks = self._breaks(self._make(self._seed)[0]) if graphs else known.breaks
            return known.model_copy(update={"breaks": breaks, "notes": self.notes, "times": {}})
        if _same_inputs(self._make(self._seed), self._make(self._seed + 1)):
            self.note("The workloads have the same contents under every seed.")
        breaks = self._breaks(self._make(self._seed)[0]) if graphs else {}
        comparing = Comparing(self._model, self._package, self._device, self.note, rounds=self._rounds)
        found = comparing.outputs([partial(self._make, self._seed), partial(self._make, self._seed + 1)])
        counted = self._package.counts()
        self._keep(found.outputs)
        return Proof(
            oracle=found.oracle,
            outputs=found.outputs,
            replaced=found.replaced,
            hits=counted["hits"],
            misses=counted["misses"],
            breaks=breaks,
            restored=found.restored,
            notes=self.notes,
        )

    def _keep(self, outputs: Sequence[OutputProof]) -> None:
        """Keep how far the original is from the oracle, by workload and output."""
        for one in outputs:
            place = one.workload, one.output
            self._own[place] = max(one.own, self._own.get(place, 0.0))

    def times(self, operators: Sequence[str], rounds: int, *, compiled: bool, max_autotune: bool) -> Iterator[Times]:
        """Time all ways of running the model in turn, microseconds of each round; a way that fails is left out and noted.

        Gives what is known after each workload: a compiler may take longer than there is time.
        """
        ways: dict[str, Any] = {EAGER: self._model, OURS: self._applied()}
        if len(operators) > 1:
            ways |= {f"{WITHOUT}{name}": self._applied((name,)) for name in operators}
        if compiled:
            ways |= {COMPILED: _compiled(self._model), COMPILED_OURS: _compiled(ways[OURS])}
        if max_autotune:
            mode = "max-autotune"
            ways |= {AUTOTUNED: _compiled(twin(self._model), mode), AUTOTUNED_OURS: _compiled(self._applied(), mode)}
        self._look_at_graphs(ways)
        with _as_it_is(self._device):
            try:
                yield from self._all_workloads(ways, rounds)
            except _NotSeenThroughError as error:
                self._package.see_through(False)
                self.opaque = True
                self.note(f"torch.compile gets the operators as they are, not their kernels: with these, {error}")
                # graphs that are kept by the operators' names would come back
                with torch._functorch.config.patch(enable_autograd_cache=False):
                    yield from self._all_workloads(ways, rounds)

    def _look_at_graphs(self, ways: Mapping[str, Any]) -> None:
        """Leave CUDA graphs out where they hold the model neither as it is nor with operators, or the device is as busy without.

        They double the ways to time.
        """
        if self._record is None:
            return
        held = False
        for way in (EAGER, OURS):
            plain = graphed = 0.0
            try:
                with torch.no_grad():
                    for one in self._make(self._seed):
                        call = Call(ways[way], one)
                        replayed = call.recorded(self._record)
                        plain, graphed = (so_far + one.weight * each.fastest() for so_far, each in ((plain, call), (graphed, replayed)))
            except NotRecordedError as error:
                self.note(f"{way} was not timed in a CUDA graph: {error}")
                continue
            if graphed <= BUSY * plain:
                return
            held = True
        self._record = None
        if held:
            self.note("The model was not timed in a CUDA graph: the device is as busy without one.")

    def _all_workloads(self, ways: Mapping[str, Any], rounds: int) -> Iterator[Times]:
        found: Times = {}
        for one in self._make(self._seed):
            for way, times in self._interleaved(ways, one, rounds).items():
                found.setdefault(way, {})[one.name] = times
            yield {way: dict(times) for way, times in found.items() if len(times) == len(found[EAGER])}

    def _interleaved(self, ways: Mapping[str, Any], workload: Workload, rounds: int) -> dict[str, tuple[float, ...]]:
        # what a compiler keeps of other workloads would count against its limit, and be tried before what fits
        torch._dynamo.reset()
        calls: dict[str, Call] = {}
        given: dict[str, list[torch.Tensor]] = {}
        compared = self._record is not None or not COMPILERS.keys().isdisjoint(ways)
        with torch.no_grad(), _limits_told(self.note):
            for way, model in ways.items():
                call = Call(model, workload)
                try:
                    for _ in range(WARM):
                        call.us()
                    why = ""
                    if compared and (way in (EAGER, OURS) or way in COMPILERS.values()):
                        given[way] = call.outputs()
                    elif way in COMPILERS:
                        why = self._differs(workload, call.outputs(), given, COMPILERS[way])
                except Exception as error:
                    why = f"{type(error).__name__}: {' '.join(str(error).split())[:160]}"
                if why and way in COMPILERS and COMPILERS[way] in given and self._seen_through():
                    raise _NotSeenThroughError(why)
                if why:
                    self.note(f"{way} was not timed: {why}")
                else:
                    calls[way] = call
            calls |= self._replays(calls, given, workload)
            given.clear()
            times: dict[str, list[float]] = {way: [] for way in calls}
            with _no_collection():
                for turn in range(rounds):
                    order = list(calls)
                    # each way comes after each other one
                    for way in order[turn % len(order) :] + order[: turn % len(order)]:
                        times[way].append(calls[way].us())
        return {way: tuple(found) for way, found in times.items()}

    def _differs(self, workload: Workload, found: Sequence[torch.Tensor], given: Mapping[str, Sequence[torch.Tensor]], plain: str) -> str:
        own = {place: near for (name, place), near in self._own.items() if name == workload.name}
        return differs(found, given, plain, own)

    def _replays(self, calls: Mapping[str, Call], given: Mapping[str, Sequence[torch.Tensor]], workload: Workload) -> dict[str, Call]:
        """Record ways as CUDA graphs, in which the host does not take time; what differs from eager in one is left out and noted."""
        found: dict[str, Call] = {}
        for way in calls:
            # these are graphs by themselves
            if self._record is None or way in (AUTOTUNED, AUTOTUNED_OURS):
                continue
            why = ""
            try:
                found[f"{way}{IN_GRAPH}"] = replayed = calls[way].recorded(self._record)
                for _ in range(WARM):
                    replayed.us()
                why = self._differs(workload, replayed.outputs(), given, way)
            except NotRecordedError as error:
                why = str(error)
            if why:
                found.pop(f"{way}{IN_GRAPH}", None)
                self.note(f"{way} was not timed in a CUDA graph: {why}")
        return found

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader of the figures should know."""
        return tuple(self._notes)

    def note(self, text: str) -> None:
        """Add a note, once."""
        if text not in self._notes:
            self._notes.append(text)

    def _seen_through(self) -> bool:
        asked = getattr(self._package, "see_through", None)
        return bool(asked is not None and asked())

    def _applied(self, without: Sequence[str] = ()) -> nn.Module:
        other = twin(self._model)
        self._package.apply(other, without=without, verify=False)
        return other

    def _breaks(self, workload: Workload) -> dict[str, int]:
        """Count what torch.compile breaks at, without operators and with them."""
        found = {}
        for name, model in (("without", twin(self._model)), ("with", self._applied())):
            if name == "without":
                self._package.remove(model)
            try:
                call = copied(workload.args, None), copied(workload.kwargs, None)
                with torch.no_grad(), _as_it_is(self._device):
                    explained = workload.called(torch._dynamo.explain(model), call)
                found[name] = explained.graph_break_count
            except Exception as error:
                self.note(f"torch.compile does not trace the model ({name} operators): {type(error).__name__}: {str(error)[:120]}")
            finally:
                torch._dynamo.reset()
        return found


@contextlib.contextmanager
def _no_collection() -> Iterator[None]:
    """Keep Python from looking for garbage while models are timed: it takes as long as some runs."""
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


@contextlib.contextmanager
def _as_it_is(device: str) -> Iterator[None]:
    """Have torch.compile of a model on the CPU find no device, also where host code of kernels is told that there is one."""
    with patch.object(torch.cuda, "is_available", lambda: False) if device == "cpu" else contextlib.nullcontext():
        yield


def _compiled(model: nn.Module, mode: str | None = None) -> Any:
    return torch.compile(model, mode=mode, dynamic=False)


def _same_inputs(one: Sequence[Workload], other: Sequence[Workload]) -> bool:
    return alike(list(given(one)), list(given(other)))


def differs(
    found: Sequence[torch.Tensor], given: Mapping[str, Sequence[torch.Tensor]], plain: str, own: Mapping[int, float] = MappingProxyType({})
) -> str:
    """Say how outputs of a compiled model with operators differ from eager by more than without them, and than those do by themselves.

    `given` has what eager, eager with the operators and the compiler without them, `plain`, gave. A compiler also keeps in float32 what
    eager rounds between operators: by as much as eager is off itself, its `own` error by output, another may differ from it.
    """
    right = [given[name] for name in (OURS, plain) if name in given]
    for place, (mine, eager) in enumerate(zip(found, given[EAGER], strict=True)):
        near = max((own.get(place, 0.0), *(distance(each[place], eager) for each in right)))
        # two that are right may lie on both sides of what is exact
        limit = FACTOR * max(near, FLOOR.get(str(eager.dtype).removeprefix("torch."), 0.0))
        if mine.dtype != torch.bool and not (error := distance(mine, eager)) <= limit:
            return f"output {place} is {error:.1e} from eager's, and may be {limit:.1e}"
    return ""


@contextlib.contextmanager
def _limits_told(note: Callable[[str], None]) -> Iterator[None]:
    """Have a note made where a compiler gives up a part of a model: that part runs as it is."""
    handler = logging.Handler(logging.WARNING)

    def emit(record: logging.LogRecord) -> None:
        if "recompile_limit" in record.getMessage():
            note("torch.compile met its limit of recompilations: parts of the model ran in eager mode there.")

    handler.emit = emit  # type: ignore[method-assign]  # a handler of one function
    logger = logging.getLogger("torch._dynamo")
    logger.addHandler(handler)
    try:
        yield
    finally:
        logger.removeHandler(handler)
