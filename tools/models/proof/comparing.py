"""Compares a whole model with its operators, without them and in a wider format, call by call: all outputs at once may fill a device."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import torch
from torch import nn

from tools.autocast.state import never_rounding
from tools.complex_pairs import in_parts
from tools.errors import UserError
from tools.evaluation.trusted.cudnn import cudnn_operators
from tools.models.calls import tensors
from tools.models.copies import copied, fresh, widened
from tools.models.jobs import OutputProof
from tools.models.loading import Workload
from tools.models.proof.pace import INTERPRETED_S, Pace
from tools.models.proof.random_numbers import Recorded, Replayed, same_numbers
from tools.models.suitability import alike

FACTOR = 4.0
"""How many times as far from the oracle as the original is the model may be with operators in place."""
FLOOR = {"float64": 1e-14, "float32": 1e-6, "float16": 2e-3, "bfloat16": 1.6e-2, "complex64": 1e-6}
"""Distance that is allowed in any case: some roundoffs of the dtype, as an original may be closer by chance."""
ORACLES = (torch.float64, torch.float32, None)
"""What outputs are compared with, the first in which the model runs: None is its own format."""


class _NoOracleError(Exception):
    """The model does not run in a format; the text says why."""


class Compared(NamedTuple):
    """What came of all calls."""

    oracle: str
    outputs: tuple[OutputProof, ...]
    replaced: tuple[str, ...]
    restored: bool
    """Whether the model without its operators has the classes and the state that it had, and gives what it gave within its precision.

    Bits prove nothing: a library may choose another algorithm for the same call at another address.
    """


class Comparing:
    """One model and its package, whose copies are given the same calls in turn; each begins as the model is, whatever it keeps."""

    def __init__(self, model: nn.Module, package: Any, device: str, note: Callable[[str], None], *, rounds: bool = False) -> None:
        """Take the model as it is, without operators; `note` is told what a reader should know.

        On a device that is not the operators' own the original may be as far off as where cuDNN `rounds` what it multiplies to TF32.
        """
        self._model, self._package, self._device, self._note, self._rounds = model, package, device, note, rounds
        self._pace = Pace(0.0)

    def outputs(self, sets: Sequence[Callable[[], list[Workload]]]) -> Compared:
        """Compare on several sets of inputs; UserError where there is no room to."""
        for dtype in ORACLES:
            name = "its own format" if dtype is None else str(dtype).removeprefix("torch.")
            try:
                return self._compared(dtype, name, sets)
            except torch.OutOfMemoryError:
                why = "there is too little memory"
            except _NoOracleError as error:
                why = str(error)
            # what the failed copy held is given back before the next one is made
            torch.cuda.empty_cache()
            self._note(f"The model does not run in {name}: {why}")
        raise UserError("The model could not be compared: there is too little memory for two copies' outputs.", "Give smaller workloads.")

    def _compared(self, dtype: torch.dtype | None, name: str, sets: Sequence[Callable[[], list[Workload]]]) -> Compared:
        self._pace = Pace(INTERPRETED_S if self._device == "cpu" else 0.0)
        wide = self._wide(dtype)
        plain, twice, drawing = (self._fresh() for _ in range(3))
        keys, classes = list(self._model.state_dict()), self._classes()
        replaced = tuple(self._package.apply(self._model, verify=False))
        ours = self._fresh()
        restored = list(self._model.state_dict()) == keys
        self._package.remove(self._model)
        again = self._fresh()
        restored = restored and list(self._model.state_dict()) == keys and self._classes() == classes
        self._package.counts(reset=True)
        outputs: list[OutputProof] = []
        varies = False
        for one in (call for make in sets for call in make()):
            numbers = self._drawn(drawing, one)
            oracle = self._oracle(wide, one, numbers, dtype)
            first, second = self._run(plain, one), self._run(twice, one)
            own = [max(distance(mine, value), distance(other, value)) for mine, other, value in zip(first, second, oracle, strict=True)]
            varies = varies or not alike(first, second)
            if self._rounds:
                as_there = self._run(plain, one, mode=cudnn_operators(rounds=True))
                own = [max(near, distance(there, value)) for near, there, value in zip(own, as_there, oracle, strict=True)]
            del second
            with self._in_place(ours), self._pace.watching(ours):
                outputs += _judged(one.name, self._run(ours, one), oracle, own)
            third = self._run(again, one)
            if not alike(first, third):
                varies = True
                restored = restored and all(found.holds for found in _judged(one.name, third, oracle, own))
        if varies:
            self._note("The original gives other bits from run to run: what `remove` brings back is compared within its precision.")
        for note in self._pace.notes():
            self._note(note)
        if dtype is None:
            self._note("Its outputs are compared with its own, not with a wider format.")
        return Compared(name, tuple(outputs), replaced, restored)

    def _classes(self) -> list[type]:
        return [type(part) for part in self._model.modules()]

    @contextlib.contextmanager
    def _in_place(self, model: nn.Module) -> Iterator[None]:
        """Put the operators in for a while where the model could not be copied with them."""
        if model is self._model:
            self._package.apply(model, without=tuple(self._pace.over), verify=False)
        yield
        if model is self._model:
            self._package.remove(model)

    def _wide(self, dtype: torch.dtype | None) -> nn.Module:
        if dtype is None:
            return self._fresh()
        try:
            return widened(self._model, dtype)
        except torch.OutOfMemoryError:
            raise
        except Exception as error:
            raise _NoOracleError(_said(error)) from error

    def _oracle(self, wide: nn.Module, one: Workload, numbers: list[torch.Tensor], dtype: torch.dtype | None) -> list[torch.Tensor]:
        if dtype is None:
            return self._run(wide, one)
        try:
            return self._run(wide, one, dtype, Replayed(numbers) if numbers else contextlib.nullcontext())
        except torch.OutOfMemoryError:
            raise
        except Exception as error:
            raise _NoOracleError(_said(error)) from error

    def _run(self, model: nn.Module, one: Workload, dtype: torch.dtype | None = None, mode: Any = None) -> list[torch.Tensor]:
        """Run a call on copies of what it is given; random numbers are the same every time, or those that `mode` gives."""
        call = copied(one.args, dtype), copied(one.kwargs, dtype)
        rounding = contextlib.nullcontext() if dtype is None else never_rounding()
        with torch.no_grad(), same_numbers(self._device), mode or contextlib.nullcontext(), rounding:
            # a later run may write to what this one gives
            return [value.clone() for value in listed(one.called(model, call))]

    def _drawn(self, model: nn.Module, one: Workload) -> list[torch.Tensor]:
        """Find the random numbers that the model draws in a call."""
        recorded = Recorded()
        try:
            self._run(model, one, mode=recorded)
        except torch.OutOfMemoryError:
            raise
        except Exception as error:
            self._note(f"What random numbers the model draws was not looked for: {_said(error)}")
            return []
        if recorded.drawn:
            self._note("The model draws random numbers: every run is given the same.")
        return recorded.drawn

    def _fresh(self) -> nn.Module:
        try:
            return fresh(self._model)
        except torch.OutOfMemoryError:
            raise
        except Exception as error:
            self._note(f"What the model keeps from call to call cannot be copied: {_said(error)}")
            return self._model


def listed(result: Any) -> list[torch.Tensor]:
    """List the tensors of a result, of records such as a model's output too."""
    found = list(tensors(result))
    if not found and hasattr(result, "to_tuple"):
        found = list(tensors(result.to_tuple()))
    return found or list(tensors(dict(vars(result)) if hasattr(result, "__dict__") else {}))


def _judged(workload: str, mine: Sequence[torch.Tensor], wide: Sequence[torch.Tensor], own: Sequence[float]) -> list[OutputProof]:
    """Judge outputs by their distance from the oracle; truth values are left out."""
    found = []
    for place, (value, oracle, near) in enumerate(zip(mine, wide, own, strict=True)):
        if value.dtype != torch.bool:
            dtype = str(value.dtype).removeprefix("torch.")
            limit = max(FACTOR * near, FLOOR.get(dtype, 0.0))
            error = distance(value, oracle)
            found.append(OutputProof(workload=workload, output=place, dtype=dtype, error=error, own=near, limit=limit))
    return found


def distance(value: torch.Tensor, wide: torch.Tensor) -> float:
    """Relative L2; infinite where shapes differ or NaN stand elsewhere."""
    if value.shape != wide.shape or not bool((value.isnan() == wide.isnan()).all()):
        return float("inf")
    a, b = (in_parts(each).double().nan_to_num() for each in (value, wide))
    size = b.norm().item()
    return (a - b).norm().item() / size if size else float(bool((a != b).any()))


def _said(error: Exception) -> str:
    return f"{type(error).__name__}: {' '.join(str(error).split())[:120]}"
