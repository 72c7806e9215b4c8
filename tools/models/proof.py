"""Runs a whole model with and without its operators: is it right, is it faster, and by which. It meets kernels, so in walls only."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import zip_longest
from typing import Any
from unittest.mock import patch

import torch
from torch import nn

from tools.models.calls import tensors
from tools.models.copies import copied, fresh, twin, widened
from tools.models.jobs import OutputProof, Proof
from tools.models.loading import Workload
from tools.models.random_numbers import Recorded, Replayed, same_numbers
from tools.models.suitability import alike, held

FACTOR = 4.0
"""How many times as far from the oracle as the original is the model may be with operators in place."""
FLOOR = {"float64": 1e-14, "float32": 1e-6, "float16": 2e-3, "bfloat16": 1.6e-2}
"""Distance that is allowed in any case: some roundoffs of the dtype, as an original may be closer by chance."""
EAGER, OURS, COMPILED, COMPILED_OURS = "eager", "eager, ours", "torch.compile", "torch.compile, ours"
AUTOTUNED, AUTOTUNED_OURS = "max-autotune", "max-autotune, ours"
WITHOUT = "eager, ours without "
WARM = 3
"""Runs before the first that is timed."""


Times = dict[str, dict[str, tuple[float, ...]]]
"""Microseconds of each round, by way of running the model and by workload."""


class Prover:
    """One model, its package, and workloads by seed."""

    def __init__(self, model: nn.Module, package: Any, workloads: Callable[[int], list[Workload]], seed: int) -> None:
        """Take the model as it is; `package` has `apply`, `remove` and `counts`, `workloads` makes fresh ones."""
        self._model, self._package, self._make, self._seed = model, package, workloads, seed
        self._device = next((str(value.device) for value in held(model)), "cpu")
        self._notes: list[str] = []

    def correctness(self, *, graphs: bool) -> Proof:
        """Compare outputs on two fresh sets of inputs, count what the guards did, and put everything back; `graphs`: look for breaks."""
        keys = list(self._model.state_dict())
        calls = [one for seed in (self._seed, self._seed + 1) for one in self._make(seed)]
        if _same_inputs(self._make(self._seed), self._make(self._seed + 1)):
            self._notes.append("The workloads have the same contents under every seed.")
        plain = self._runs(self._model, calls)
        drawn = self._drawn(calls)
        oracle, title = self._oracle(drawn[0])
        replaced = tuple(self._package.apply(self._model, verify=False))
        self._package.counts(reset=True)
        ours = self._runs(self._model, calls)
        counted = self._package.counts()
        breaks = self._breaks(calls[0]) if graphs else {}
        kept = keys == list(self._model.state_dict())
        self._package.remove(self._model)
        again = self._runs(self._model, calls)
        wide = self._runs(oracle, calls, drawn, _widest(oracle))
        outputs = [found for one, *results in zip(calls, ours, plain, wide, strict=True) for found in _compared(one.name, *results)]
        return Proof(
            oracle=title,
            outputs=tuple(outputs),
            replaced=replaced,
            hits=counted["hits"],
            misses=counted["misses"],
            breaks=breaks,
            restored=kept and keys == list(self._model.state_dict()) and all(map(alike, plain, again)),
            notes=tuple(self._notes),
        )

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
        found: dict[str, dict[str, tuple[float, ...]]] = {}
        with _as_it_is(self._model):
            for one in self._make(self._seed):
                for way, times in self._interleaved(ways, one, rounds).items():
                    found.setdefault(way, {})[one.name] = times
                yield {way: dict(times) for way, times in found.items() if len(times) == len(found[EAGER])}

    def _interleaved(self, ways: Mapping[str, Any], workload: Workload, rounds: int) -> dict[str, tuple[float, ...]]:
        calls: dict[str, Callable[[], Any]] = {}
        for way, model in ways.items():
            call = partial(model, *workload.args, **workload.kwargs)
            try:
                with torch.no_grad():
                    for _ in range(WARM):
                        call()
                calls[way] = call
            except Exception as error:
                self.note(f"{way} was not timed: {type(error).__name__}: {' '.join(str(error).split())[:160]}")
        times: dict[str, list[float]] = {way: [] for way in calls}
        with torch.no_grad():
            for turn in range(rounds):
                order = list(calls)
                # each way comes after each other one
                for way in order[turn % len(order) :] + order[: turn % len(order)]:
                    times[way].append(_timed(calls[way]))
        return {way: tuple(found) for way, found in times.items()}

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader of the figures should know."""
        return tuple(self._notes)

    def note(self, text: str) -> None:
        """Add a note, once."""
        if text not in self._notes:
            self._notes.append(text)

    def _applied(self, without: Sequence[str] = ()) -> nn.Module:
        other = twin(self._model)
        self._package.apply(other, without=without, verify=False)
        return other

    def _runs(
        self,
        model: nn.Module,
        calls: Sequence[Workload],
        drawn: Sequence[list[torch.Tensor]] = (),
        dtype: torch.dtype | None = None,
    ) -> list[list[torch.Tensor]]:
        """Run calls one after the other on a copy of a model; random numbers are the same every time, or those given."""
        model, found = self._fresh(model), []
        for one, numbers in zip_longest(calls, drawn):
            args, kwargs = copied(one.args, dtype), copied(one.kwargs, dtype)
            with torch.no_grad(), same_numbers(self._device), Replayed(numbers) if numbers else contextlib.nullcontext():
                found.append([value.clone() for value in _outputs(model(*args, **kwargs))])
        return found

    def _drawn(self, calls: Sequence[Workload]) -> list[list[torch.Tensor]]:
        """Find the random numbers that the model draws in each call."""
        model, found = self._fresh(self._model), []
        for one in calls:
            try:
                with torch.no_grad(), same_numbers(self._device), Recorded() as recorded:
                    model(*copied(one.args, None), **copied(one.kwargs, None))
            except Exception as error:
                self.note(f"What random numbers the model draws was not looked for: {type(error).__name__}: {str(error)[:120]}")
                return [[] for _ in calls]
            found.append(recorded.drawn)
        if any(found):
            self.note("The model draws random numbers: every run is given the same.")
        return found

    def _fresh(self, model: nn.Module) -> nn.Module:
        try:
            return fresh(model)
        except Exception as error:
            self.note(f"What the model keeps from call to call cannot be copied: {type(error).__name__}: {str(error)[:120]}")
            return model

    def _oracle(self, drawn: list[torch.Tensor]) -> tuple[nn.Module, str]:
        """Make the model in float64; in float32, or as it is, where that does not run."""
        call = self._make(self._seed)[0]
        for dtype in (torch.float64, torch.float32):
            try:
                wide = widened(self._model, dtype)
                self._runs(wide, [call], [drawn], dtype)
            except Exception as error:
                self.note(f"The model does not run in {dtype}: {type(error).__name__}: {' '.join(str(error).split())[:120]}")
            else:
                return wide, str(dtype).removeprefix("torch.")
        self.note("Its outputs are compared with its own, not with a wider format.")
        return self._model, "its own dtype"

    def _breaks(self, workload: Workload) -> dict[str, int]:
        """Count what torch.compile breaks at, without operators and with them."""
        found = {}
        for name, model in (("without", twin(self._model)), ("with", self._applied())):
            if name == "without":
                self._package.remove(model)
            try:
                with torch.no_grad(), _as_it_is(model):
                    explained = torch._dynamo.explain(model)(*workload.args, **workload.kwargs)
                found[name] = explained.graph_break_count
            except Exception as error:
                self.note(f"torch.compile does not trace the model ({name} operators): {type(error).__name__}: {str(error)[:120]}")
            finally:
                torch._dynamo.reset()
        return found


@contextlib.contextmanager
def _as_it_is(model: nn.Module) -> Iterator[None]:
    """Have torch.compile of a model on the CPU find no device, also where host code of kernels is told that there is one."""
    with patch.object(torch.cuda, "is_available", lambda: any(value.is_cuda for value in model.parameters())):
        yield


def _outputs(result: Any) -> list[torch.Tensor]:
    """List the tensors of a result, of records such as a model's output too."""
    found = list(tensors(result))
    if not found and hasattr(result, "to_tuple"):
        found = list(tensors(result.to_tuple()))
    return found or list(tensors(dict(vars(result)) if hasattr(result, "__dict__") else {}))


def _compared(
    workload: str, mine: Sequence[torch.Tensor], theirs: Sequence[torch.Tensor], wide: Sequence[torch.Tensor]
) -> list[OutputProof]:
    return [
        _output(workload, place, *each) for place, each in enumerate(zip(mine, theirs, wide, strict=True)) if each[0].dtype != torch.bool
    ]


def _output(workload: str, place: int, mine: torch.Tensor, theirs: torch.Tensor, wide: torch.Tensor) -> OutputProof:
    dtype = str(theirs.dtype).removeprefix("torch.")
    own, error = _distance(theirs, wide), _distance(mine, wide)
    limit = max(FACTOR * own, FLOOR.get(dtype, 0.0))
    return OutputProof(workload=workload, output=place, dtype=dtype, error=error, own=own, limit=limit)


def _distance(value: torch.Tensor, wide: torch.Tensor) -> float:
    """Relative L2; infinite where shapes differ or NaN stand elsewhere."""
    if value.shape != wide.shape or not bool((value.isnan() == wide.isnan()).all()):
        return float("inf")
    a, b = value.double().nan_to_num(), wide.double().nan_to_num()
    size = b.norm().item()
    return (a - b).norm().item() / size if size else float(bool((a != b).any()))


def _compiled(model: nn.Module, mode: str | None = None) -> Any:
    return torch.compile(model, mode=mode, dynamic=False)


def _widest(model: nn.Module) -> torch.dtype:
    return next((value.dtype for value in model.parameters() if value.is_floating_point()), torch.float64)


def _same_inputs(one: Sequence[Workload], other: Sequence[Workload]) -> bool:
    mine, theirs = ([value for each in calls for value in tensors((each.args, each.kwargs))] for calls in (one, other))
    return alike(mine, theirs)


def _timed(call: Callable[[], Any]) -> float:
    """Time one run from the host, the device idle before and after it, microseconds."""
    _settle()
    begun = time.perf_counter()
    call()
    _settle()
    return (time.perf_counter() - begun) * 1e6


def _settle() -> None:
    device: Any = torch.cuda
    if device.is_initialized():
        device.synchronize()
