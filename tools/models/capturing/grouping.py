"""Looks at equal calls of a model's modules: can they be replaced, by which problem, and which modules do the same."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from tools.autocast.state import rounding_to
from tools.models.calls import UnsupportedCallError, filled, structure, tensors
from tools.models.capturing.cutting import MOST_WRITTEN, Looped, looped
from tools.models.capturing.found import Found, represented
from tools.models.capturing.generic import Sizes, as_given, generic_call, shapes_of
from tools.models.capturing.problem_text import ProblemText
from tools.models.forward.steps import SHORT, Cut
from tools.models.forward.text import UntraceableError
from tools.models.records import WHOLE, Group, Input, Trace
from tools.models.runtime.sections import named
from tools.models.suitability import counted_run, expert_by_expert, repeats, static_reason
from tools.records import ABI, ITEM_BYTES, ProblemShape, TensorSpec, Work

LEAST_SHARE = 0.002
"""Share of the time below which a module is not looked at."""


@dataclass(frozen=True)
class Parted:
    """Calls at several shapes that are not one group: each is to be one of its own."""

    why: str
    """Why one problem cannot stand for all of them, as a clause; empty where that was not looked at."""


@dataclass(frozen=True)
class Grouping:
    """What all groups of one capture have in common."""

    model: nn.Module
    weights: Mapping[str, float]
    whole: float
    """Microseconds of all workloads by their weights."""
    shared: set[int]
    """Tensors that several modules own."""
    largest: int

    def group(self, name: str, config: str, founds: Sequence[Found]) -> tuple[Group, tuple[str, ...]] | Parted:
        """Look at calls of one kind, at several shapes where there is more than one.

        Gives back those of its paths, too, whose modules do something else than the first.
        """
        founds = represented(founds, self.weights)
        first = max(founds, key=lambda found: found.weighted(self.weights))
        group = self._empty(name, config, founds)
        if group.share < LEAST_SHARE or not group.calls:
            return (group, ()) if len(founds) == 1 else Parted("")
        try:
            with rounding_to(first.autocast, first.device):
                return self._traced(group, first, founds)
        except (UntraceableError, UnsupportedCallError) as error:
            reason = f"it gives a {error}" if isinstance(error, UnsupportedCallError) else str(error)
        except Exception as error:
            # a module is the user's code, and not every one can be called by itself
            reason = _failed(first, error)
        return (group.model_copy(update={"reason": reason}), ()) if len(founds) == 1 else Parted(f"with sizes that vary {reason}")

    def _empty(self, name: str, config: str, founds: Sequence[Found]) -> Group:
        calls: dict[str, int] = {}
        for found in founds:
            for workload, count in found.calls.items():
                calls[workload] = calls.get(workload, 0) + count
        us = sum(found.weighted(self.weights) for found in founds)
        return Group(
            name=name,
            title=type(founds[0].module).__name__,
            paths=tuple(dict.fromkeys(path for found in founds for path in found.paths)),
            config=config,
            calls=calls,
            us=us / (sum(found.weight(self.weights) for found in founds) or 1.0),
            share=us / self.whole,
            operators=0,
            autocast=founds[0].autocast,
        )

    def _traced(self, group: Group, first: Found, founds: Sequence[Found]) -> tuple[Group, tuple[str, ...]] | Parted:
        calls: list[_Call] = []
        most = min(self.largest, WHOLE) if "" in group.paths else self.largest
        for found in founds:
            if reason := static_reason(found.module, (found.args, found.kwargs), self.shared):
                return group.model_copy(update={"reason": reason}), ()
            result, work, reason = counted_run(found.module, found.args, found.kwargs)
            operators = len(expert_by_expert(work.operators))
            group = group.model_copy(update={"operators": max(group.operators, operators), "reason": reason})
            if reason or not work.operators:
                return group, ()
            loop = looped(found.module, found.args, found.kwargs, work.operators) if operators > most else None
            if operators > most and (loop is None or loop.once > most):
                return group, ()
            calls.append(_Call(found, result, work, loop))
        paths, others = _same(self.model, first, group.paths)
        trace = _trace(calls, founds.index(first), self.weights, paths, most)
        if isinstance(trace, Parted):
            return trace
        if trace is None:
            return group, ()
        left = {"paths": paths, "share": group.share * len(paths) / len(group.paths)}
        counts = {name: count * len(paths) // len(group.paths) for name, count in group.calls.items()}
        return group.model_copy(update={"trace": trace, "calls": counts, **left}), others


def _failed(found: Found, error: Exception) -> str:
    """Say why a module cannot be called by itself: a cache that has grown since, say, or what it raises."""
    try:
        structure((found.args, found.kwargs))
    except UnsupportedCallError as held:
        return f"it is called with {held}"
    return f"a call of it by itself fails ({type(error).__name__}: {' '.join(str(error).split())[:120]})"


@dataclass(frozen=True)
class _Call:
    """Equal calls with what one of them gives and does."""

    found: Found
    result: Any
    work: Work
    loop: Looped | None
    """Its loop over time, where it has so many operators that one was looked for."""

    @property
    def given(self) -> list[torch.Tensor]:
        return list(tensors((self.found.args, self.found.kwargs)))


def _trace(calls: Sequence[_Call], first: int, weights: Mapping[str, float], paths: Sequence[str], most: int) -> Trace | Parted | None:
    """Write calls as one problem, where that holds at each shape; None where it has more than `most` operators after all."""
    main = calls[first]
    module = main.found.module
    where = f"{type(module).__name__} at {paths[0] or 'the top'}" + (f" and {len(paths) - 1} more" if len(paths) > 1 else "")
    given = [call.given for call in calls]
    args, kwargs = generic_call(main.found.args, main.found.kwargs, given)
    if len({call.loop for call in calls}) > 1:
        return Parted("its loops differ in length")
    autocast = main.found.autocast
    text = _looped_text(main, args, kwargs, where) if main.loop else ProblemText(module, args, kwargs, where, autocast=autocast)
    if main.loop and text.part * len(main.work.operators) > most and not text.cut:
        return None
    names = _names(calls)
    if (text.picks_rows or autocast) and not as_given(text, module, main.given, main.result):
        return Parted("what it was traced to gives something else")
    sizes: tuple[Sizes, ...] = ({},)
    if len(calls) > 1:
        found = shapes_of(text, given)
        if found is None:
            return Parted("its sizes do not hang together in the same way at each shape")
        if not all(as_given(text, call.found.module, call.given, call.result) for call in calls):
            return Parted("what it was traced to at one shape gives something else at another")
        sizes = found
        text.set_shapes(main.given, {name: (call.found.weight(weights), one) for name, call, one in zip(names, calls, sizes, strict=True)})
    abis = [_abi(text, module, call) for call in calls]
    return Trace(
        source=text.source,
        structure=structure((main.found.args, main.found.kwargs)),
        result=structure(main.result),
        signature=tuple((each.name, each.kind.name) for each in inspect.signature(module.forward).parameters.values()),
        inputs=tuple(_input(text, place, [values[place] for values in given], first) for place in range(len(text.inputs))),
        outputs=tuple(text.outputs),
        parameters=text.parameters,
        abi=abis[first],
        work=main.work,
        shapes=tuple(
            ProblemShape(name=name, weight=call.found.weight(weights), sizes=one, abi=abi, work=call.work)
            for name, call, one, abi in zip(names, calls, sizes, abis, strict=True)
        )
        if len(calls) > 1
        else (),
    )


def _looped_text(main: _Call, args: tuple[Any, ...], kwargs: dict[str, Any], where: str) -> ProblemText:
    """Write a call with a loop over time: with the number of steps as a constant where that holds, else with this very number."""
    module, cut = main.found.module, main.loop.cut if main.loop else None
    why = ""
    if cut is not None:
        try:
            text = ProblemText(module, args, kwargs, where, cut, autocast=main.found.autocast)
            if as_given(text, module, main.given, main.result) and _holds_short(text, module, main, cut):
                return text
        except UntraceableError as error:
            why = f": {error}"
    if len(main.work.operators) > MOST_WRITTEN:
        raise UntraceableError(f"its loop was not found in a shorter call{why}")
    text = ProblemText(module, args, kwargs, where, autocast=main.found.autocast)
    if not as_given(text, module, main.given, main.result):
        raise UntraceableError("what it was traced to gives something else")
    return text


def _holds_short(text: ProblemText, module: nn.Module, main: _Call, cut: Cut) -> bool:
    """Whether the file gives what the module gives at the fewest steps that a kernel is tried at."""
    short = cut.at(main.given, SHORT[-1])
    args, kwargs = filled(structure((main.found.args, main.found.kwargs)), iter(short))
    with torch.no_grad():
        return as_given(text, module, short, module(*args, **kwargs), SHORT[-1])


def _names(calls: Sequence[_Call]) -> list[str]:
    """Call each shape by its workloads; numbered where one workload has several."""
    names: list[str] = []
    for call in calls:
        wanted = ", ".join(call.found.calls)
        same = sum(name == wanted or name.startswith(f"{wanted} (") for name in names)
        names.append(f"{wanted} ({same + 1})" if same else wanted)
    return names


def _input(text: ProblemText, place: int, every: Sequence[torch.Tensor], first: int) -> Input:
    value = every[first]
    in_rows = not value.is_contiguous() and all(one.stride(-1) == 1 for one in every)
    return Input(
        name=text.inputs[place],
        shape=tuple(value.shape),
        dtype=_dtype(value),
        contiguous=value.is_contiguous(),
        in_rows=in_rows,
        held=text.held(place),
    )


def _abi(text: ProblemText, module: nn.Module, call: _Call) -> ABI:
    state = {**dict(module.named_parameters()), **dict(module.named_buffers())}
    return ABI(
        arguments=tuple(
            TensorSpec(name=label, shape=tuple(value.shape), dtype=_dtype(value))
            for label, value in zip(text.inputs, call.given, strict=True)
        ),
        parameters=tuple(
            TensorSpec(name=label, shape=tuple(state[own].shape), dtype=_dtype(state[own]), dynamic=False)
            for label, own in text.parameters.items()
        ),
        outputs=tuple(
            TensorSpec(name=f"output{place}", shape=tuple(value.shape), dtype=_dtype(value))
            for place, value in enumerate(tensors(call.result))
        ),
    )


def _same(model: nn.Module, found: Found, paths: Sequence[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Part the paths of a group: those whose module gives what the first one gives with that one's weights, and the others."""
    same: list[str] = []
    others: list[str] = []
    modules = dict(named(model))
    for path in paths:
        module = modules[path]
        state = {**dict(module.named_parameters()), **dict(module.named_buffers())}
        with torch.no_grad():
            mine = list(tensors(module(*found.args, **found.kwargs)))
            theirs = list(tensors(torch.func.functional_call(found.module, state, found.args, found.kwargs)))
        (same if repeats(mine, theirs) else others).append(path)
    return tuple(same), tuple(others)


def _dtype(value: torch.Tensor) -> str:
    found = str(value.dtype).removeprefix("torch.")
    if found not in ITEM_BYTES:
        raise UntraceableError(f"it works on {found}")
    return found
