"""Puts operators in the place of a model's modules, behind guards, and takes them out again."""

from __future__ import annotations

import functools
import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import nn

from tools.models.runtime.forwards import forward_of
from tools.models.runtime.known import Known, forget, is_unheard, keep, known_call, missed_call, places_of
from tools.models.runtime.operators import INTERPRETED, OPERATORS, KernelOperator
from tools.models.runtime.rounding import reason_of, rounds_to
from tools.models.runtime.sections import Cut, cut, named, uncut
from tools.models.runtime.trees import filled, is_like, leaves

MISSES: Counter[str] = Counter()
"""By `module: reason`: calls that the original module answered. What a compiler has traced is not counted."""
OTHER_LOOK = "other shapes, dtypes or strides"
"""A reason against calls of an entry's structure that is one against all that look the same."""
INSTALLED = "kernelwright_installed"
SLACK = {torch.float64: 1e-9, torch.float32: 1e-3, torch.float16: 2e-2, torch.bfloat16: 5e-2, torch.complex64: 1e-3}
"""Relative L2 distance from the original that a verified first call may have: enough for another order of sums, not for an error."""


@dataclass(frozen=True, eq=False)
class Entry:
    """One kind of call that an operator takes over."""

    operator: KernelOperator
    structure: Any
    """Of `[arguments, keywords]`."""
    result: Any
    """Of what the module returns."""
    parameters: tuple[tuple[str, ...], ...]
    """Where the module keeps what the operator takes behind the inputs, each as a path of attributes."""
    fits: Callable[..., bool]
    """Whether tensors have shapes, dtypes and layouts that it was made for."""
    state: Callable[..., bool]
    """Whether parameters have theirs."""
    compiled: bool
    """Whether it is of use inside torch.compile; else the original is traced there."""
    replays: bool
    """Whether it replays a CUDA graph of its own: another graph, which cannot hold that, holds its kernels."""
    within: Callable[..., bool] | None = None
    """Which of the tensors that fit it takes inside torch.compile; without it, all."""
    autocast: torch.dtype | None = None
    """What autocast has to round to; without it, autocast has to be off."""


@dataclass(frozen=True, eq=False)
class Place:
    """Modules that entries take over."""

    title: str
    paths: tuple[str, ...]
    config: str
    """What a module has to be."""
    entries: tuple[Entry, ...]


class Installed(NamedTuple):
    """What stands in the place of a forward."""

    entries: tuple[Entry, ...]
    title: str
    original: Callable[..., Any]
    """Answers what no entry takes."""


def reason_against(entry: Entry, module: nn.Module, call: Any, given: Sequence[torch.Tensor], held: Sequence[torch.Tensor]) -> str:
    """Say why a call goes to the original; empty where the operator takes it."""
    if not is_like(call, entry.structure):
        return "other arguments"
    if not entry.fits(*given):
        return OTHER_LOOK
    if not entry.state(*held):
        return "other parameters"
    return _mode_against(entry, module, given, [*given, *held])


def _mode_against(entry: Entry, module: nn.Module, given: Sequence[torch.Tensor], every: Sequence[torch.Tensor]) -> str:
    """Say which mode speaks against it."""
    device = given[0].device
    if module.training:
        return "training mode"
    if torch.is_grad_enabled() and any(tensor.requires_grad for tensor in every):
        return "a gradient is wanted"
    if any(tensor.device != device for tensor in every) or not (device.type == "cuda" or (device.type == "cpu" and INTERPRETED)):
        return "another device"
    return reason_of(entry.autocast, device.type)


def answer(module: Any, installed: Installed, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Look at every entry; where no guard lets the call through, the original answers, and that is counted."""
    given = leaves((args, kwargs))
    reasons = set()
    reason = "" if installed.entries else "not a module that the kernels were made for"
    for entry in installed.entries:
        held = [_attribute(module, path) for path in entry.parameters]
        reason = reason_against(entry, module, [args, kwargs], given, held)
        if not reason:
            _know(module, entry, given, held)
            launched = entry.replays and torch.cuda.is_current_stream_capturing()
            return filled(entry.result, (entry.operator.launched if launched else entry.operator.call)(*given, *held))
        reasons.add(reason)
    leave = _leaving(installed.original, f"{installed.title}: {reason}")
    if reasons == {OTHER_LOOK} and is_unheard():
        keep(module, missed_call(installed.entries[-1].structure, given, leave, rounds_to(given[0].device.type)))
    return leave(module, args, kwargs)


@functools.cache
def _leaving(original: Callable[..., Any], reason: str) -> Known:
    """Have the original answer, and count it."""

    def leave(module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        MISSES[reason] += 1
        return original(module, *args, **kwargs)

    return leave


def _know(module: nn.Module, entry: Entry, given: Sequence[torch.Tensor], held: Sequence[torch.Tensor]) -> None:
    """Have calls that are like this one be answered at once."""
    tensors = (*given, *held)
    if not is_unheard() or any(one.is_neg() or one.is_conj() for one in tensors):
        return
    places = places_of(module, entry.parameters, held)
    if places is not None:
        keep(module, known_call(entry, places, tensors))


def _verified(self: Any, *args: Any, **kwargs: Any) -> Any:
    """Compare a first call with the original, and go back to that for good where they differ; a compiler gets the original until then."""
    if torch.compiler.is_compiling():
        return self.kernelwright_installed.original(self, *args, **kwargs)
    found = answer(self, self.kernelwright_installed, args, kwargs)
    expected = self.kernelwright_installed.original(self, *args, **kwargs)
    for mine, theirs in zip(leaves(found), leaves(expected), strict=True):
        wide = torch.complex128 if theirs.is_complex() else torch.float64
        distance = float((mine.to(wide) - theirs.to(wide)).norm() / (theirs.to(wide).norm() + 1e-30))
        if not distance <= _slack(theirs):
            warnings.warn(
                f"kernelwright: {self.kernelwright_installed.title} differs from the original by {distance:.1e}; it is not used.",
                stacklevel=2,
            )
            forget(self)
            self.__class__ = self.kernelwright_class
            return expected
    self.__class__ = _class_of(self.kernelwright_class, self.kernelwright_installed, verify=False)
    return found


def _slack(original: torch.Tensor) -> float:
    """Say how far from an original's result an operator's may be; under autocast it was rounded on the way."""
    rounded = rounds_to(original.device.type) if original.is_floating_point() else None
    return max(SLACK.get(original.dtype, 0.0), SLACK.get(rounded, 0.0) if rounded else 0.0)


def _attribute(module: Any, path: tuple[str, ...]) -> Any:
    for name in path:
        module = getattr(module, name)
    return module


@functools.cache
def _class_of(original: Any, installed: Installed, *, verify: bool) -> Any:
    """Make a subclass with another forward: it is copied, compiled and asked for its state as the original is."""
    own = {
        "forward": _verified if verify else forward_of(installed, answer, interpreted=INTERPRETED),
        INSTALLED: installed,
        "kernelwright_class": original,
        "__doc__": original.__doc__,
        "__module__": original.__module__,
        # what a module around it is known by
        "__qualname__": original.__qualname__,
    }
    return type(original.__name__, (original,), own)


def place(
    model: nn.Module,
    places: Sequence[Place],
    config_of: Callable[[nn.Module], str],
    *,
    cuts: Sequence[Cut] = (),
    without: Sequence[str] = (),
    verify: bool = False,
) -> list[str]:
    """Cut modules, replace what fits, and return the paths; a module of another configuration is left alone with a warning."""
    cut(model, cuts)
    modules = dict(named(model))
    done, odd = [], []
    for one in places:
        entries = tuple(entry for entry in one.entries if entry.operator.name not in without)
        for path in one.paths if entries else ():
            module: Any = modules.get(path)
            if hasattr(type(module), INSTALLED):
                continue
            if module is None or "forward" in module.__dict__ or config_of(module) != one.config:
                odd.append(path)
                continue
            module.__class__ = _class_of(module.__class__, Installed(entries, one.title, module.__class__.forward), verify=verify)
            done.append(path)
    if odd:
        shown = ", ".join(odd[:3]) + (f" and {len(odd) - 3} more" if len(odd) > 3 else "")
        warnings.warn(f"kernelwright: {len(odd)} modules are not what the kernels were made for, and left alone: {shown}.", stacklevel=3)
    return done


def take_out(model: nn.Module) -> list[str]:
    """Put every module's own class back, and return the paths."""
    done = []
    for path, module in list(named(model)):
        if hasattr(type(module), INSTALLED):
            for entry in getattr(type(module), INSTALLED).entries:
                entry.operator.forget()
            forget(module)
            any_module: Any = module
            any_module.__class__ = any_module.kernelwright_class
            done.append(path)
    uncut(model)
    return done


def counted() -> dict[str, dict[str, Any]]:
    """Say how often each operator ran since the last `reset`, and how often the original did, and why.

    Where a call could not be played again, though its host code only launches kernels, it is said why: it costs the host more.
    """
    unplanned = {one.name: one.unplanned for one in OPERATORS if one.unplanned}
    found: dict[str, dict[str, Any]] = {"hits": {one.name: one.hits for one in OPERATORS if one.hits}, "misses": dict(MISSES)}
    return found | ({"unplanned": unplanned} if unplanned else {})


def reset() -> None:
    """Count from nothing."""
    for one in OPERATORS:
        one.hits = 0
    MISSES.clear()
