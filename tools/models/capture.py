"""Runs a model under its workloads and finds which calls its modules get, how long they take, and what each can be traced to."""

from __future__ import annotations

import inspect
import re
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import torch
from torch import nn

from tools.models.calls import UnsupportedCallError, structure, tensors
from tools.models.loading import Workload
from tools.models.problem_text import ProblemText, UntraceableError
from tools.models.records import Capture, Group, Input, Trace
from tools.models.runtime.config import config_of
from tools.models.suitability import alike, counted_run, shared_tensors, static_reason
from tools.records import ABI, ITEM_BYTES, TensorSpec

LARGEST = 24
"""ATen operators up to which a module is looked at as a whole; of larger ones only the modules inside."""
LEAST_SHARE = 0.002
"""Share of the time below which a module is not looked at."""
RUNS = 3
"""Timed runs of a workload; the fastest of them counts, for each call by itself."""
EVENTS, WALL = "CUDA events of an eager run", "wall clock of an eager run on the CPU"


@dataclass
class _Found:
    """Equal calls, while they are being collected."""

    module: nn.Module
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    """Of the first call, its tensors copied."""
    paths: dict[str, None] = field(default_factory=dict)
    calls: dict[str, int] = field(default_factory=dict)
    us: dict[str, list[list[float]]] = field(default_factory=dict)
    """By workload: of each run, of each call."""


class _Watch:
    """Hooks on all modules of a model: what they are given, and how long they take."""

    def __init__(self, model: nn.Module, cuda: bool) -> None:
        self.found: dict[tuple[str, str], _Found] = {}
        self._model, self._cuda = model, cuda
        self._open: list[Any] = []
        self._timed: list[tuple[_Found, str, Any, Any]] = []
        self._config = {path: config_of(module) for path, module in model.named_modules()}

    def begin(self, workload: str) -> None:
        """Forget what earlier runs of a workload counted, and begin another list of times."""
        for found in self.found.values():
            found.calls.pop(workload, None)

    @contextmanager
    def watching(self, workload: str) -> Iterator[None]:
        """Watch one run of a workload."""
        handles = []
        for path, module in self._model.named_modules():
            handles.append(module.register_forward_pre_hook(partial(self._enter, path), with_kwargs=True))
            handles.append(module.register_forward_hook(partial(self._leave, workload), with_kwargs=True))
        try:
            yield
        finally:
            for handle in handles:
                handle.remove()
        if self._cuda:
            torch.cuda.synchronize()
        lists: dict[int, list[float]] = {}
        for found, name, begun, ended in self._timed:
            if id(found) not in lists:
                lists[id(found)] = []
                found.us.setdefault(name, []).append(lists[id(found)])
            lists[id(found)].append(begun.elapsed_time(ended) * 1e3 if self._cuda else (ended - begun) * 1e6)
        self._timed.clear()

    def _enter(self, path: str, module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        key = (self._config[path], _signature((args, kwargs)))
        found = self.found.get(key)
        if found is None:
            found = self.found[key] = _Found(module, _copied(args), _copied(kwargs))
        found.paths[path] = None
        self._open.append((found, self._now()))

    def _leave(self, workload: str, module: nn.Module, args: Any, kwargs: Any, result: Any) -> None:
        ended = self._now()
        found, begun = self._open.pop()
        found.calls[workload] = found.calls.get(workload, 0) + 1
        self._timed.append((found, workload, begun, ended))

    def _now(self) -> Any:
        if not self._cuda:
            return time.perf_counter()
        make: Any = torch.cuda.Event
        event = make(enable_timing=True)
        event.record()
        return event


def capture(model: nn.Module, workloads: Sequence[Workload], largest: int = LARGEST) -> Capture:
    """Run each workload a few times in eager mode, the last time with hooks, then trace what each kind of call does."""
    cuda = any(value.is_cuda for value in model.parameters())
    watch = _Watch(model, cuda)
    us: dict[str, float] = {}
    with torch.no_grad():
        for one in workloads:
            run = partial(model, *one.args, **one.kwargs)
            us[one.name] = _time(run, cuda)
            # the first run with hooks pays for what they copy
            for _ in range(1 + RUNS):
                watch.begin(one.name)
                with watch.watching(one.name):
                    run()
    weights = {one.name: one.weight for one in workloads}
    whole = max(_weighted(found, weights) for found in watch.found.values())
    shared = shared_tensors(model)
    groups: list[Group] = []
    waiting = [(config, found) for (config, _), found in watch.found.items()]
    while waiting:
        config, found = waiting.pop(0)
        own = list(found.calls)
        # where there are several workloads, one that has these calls for itself is in the name
        title = f"{type(found.module).__name__} {own[0]}" if len(own) == 1 < len(workloads) else type(found.module).__name__
        name = _name(title, {group.name for group in groups})
        group, others = _group(model, name, config, found, _weighted(found, weights) / whole, shared, largest)
        groups.append(group)
        waiting += [(config, _part(model, found, others))] if others else []
    return Capture(
        title=type(model).__name__,
        clock=EVENTS if cuda else WALL,
        us=us,
        weights=weights,
        modules=len(list(model.modules())),
        groups=tuple(sorted(groups, key=lambda group: -group.share)),
    )


def _fastest(found: _Found, workload: str) -> list[float]:
    """Take of each call of a workload its fastest run, microseconds."""
    return [min(times) for times in zip(*found.us.get(workload, []), strict=False)]


def _weighted(found: _Found, weights: dict[str, float]) -> float:
    return sum(sum(_fastest(found, name)) * weight for name, weight in weights.items())


def _part(model: nn.Module, found: _Found, paths: Sequence[str]) -> _Found:
    """Take some modules out of a group as one of their own; of its calls and times they get their part by number."""

    def part(count: int) -> int:
        return count * len(paths) // len(found.paths)

    us = {name: [times[: part(len(times))] for times in runs] for name, runs in found.us.items()}
    module = model.get_submodule(paths[0])
    return _Found(module, found.args, found.kwargs, dict.fromkeys(paths), {name: part(count) for name, count in found.calls.items()}, us)


def _group(
    model: nn.Module, name: str, config: str, found: _Found, share: float, shared: set[int], largest: int
) -> tuple[Group, tuple[str, ...]]:
    """Look at one group; give back those of its paths, too, whose modules do something else than the first."""
    calls = sum(found.calls.values())
    times = [each for name in found.calls for each in _fastest(found, name)]
    group = Group(
        name=name,
        title=type(found.module).__name__,
        paths=tuple(found.paths),
        config=config,
        calls=found.calls,
        us=sum(times) / len(times) if times else 0.0,
        share=share,
        operators=0,
    )
    if share < LEAST_SHARE or not calls:
        return group, ()
    if reason := static_reason(found.module, (found.args, found.kwargs), shared):
        return group.model_copy(update={"reason": reason}), ()
    try:
        result, work, reason = counted_run(found.module, found.args, found.kwargs)
        group = group.model_copy(update={"operators": len(work.operators), "reason": reason})
        if reason or not work.operators or len(work.operators) > largest:
            return group, ()
        paths, others = _same(model, found, list(tensors(result)))
        trace = _trace(found, result, name, paths, work)
    except (UntraceableError, UnsupportedCallError) as error:
        return group.model_copy(update={"reason": f"it gives a {error}" if isinstance(error, UnsupportedCallError) else str(error)}), ()
    except Exception as error:
        # a module is the user's code, and not every one can be called by itself
        said = f"{type(error).__name__}: {' '.join(str(error).split())[:120]}"
        return group.model_copy(update={"reason": f"a call of it by itself fails ({said})"}), ()
    left = {"paths": paths, "share": share * len(paths) / len(found.paths)}
    counts = {name: count * len(paths) // len(found.paths) for name, count in found.calls.items()}
    return group.model_copy(update={"trace": trace, "calls": counts, **left}), others


def _trace(found: _Found, result: Any, name: str, paths: Sequence[str], work: Any) -> Trace:
    shape = structure(result)
    where = f"{type(found.module).__name__} at {paths[0] or 'the top'}" + (f" and {len(paths) - 1} more" if len(paths) > 1 else "")
    text = ProblemText(found.module, found.args, found.kwargs, where)
    given = list(tensors((found.args, found.kwargs)))
    inputs = tuple(
        Input(name=label, shape=tuple(value.shape), dtype=_dtype(value), contiguous=value.is_contiguous())
        for label, value in zip(text.inputs, given, strict=True)
    )
    outputs = tuple(
        TensorSpec(name=f"output{place}", shape=tuple(value.shape), dtype=_dtype(value)) for place, value in enumerate(tensors(result))
    )
    state = {**dict(found.module.named_parameters()), **dict(found.module.named_buffers())}
    parameters = tuple(
        TensorSpec(name=label, shape=tuple(state[own].shape), dtype=_dtype(state[own]), dynamic=False)
        for label, own in text.parameters.items()
    )
    arguments = tuple(TensorSpec(name=each.name, shape=each.shape, dtype=each.dtype) for each in inputs)
    return Trace(
        source=text.source,
        structure=structure((found.args, found.kwargs)),
        result=shape,
        signature=tuple((each.name, each.kind.name) for each in inspect.signature(found.module.forward).parameters.values()),
        inputs=inputs,
        outputs=tuple(text.outputs),
        parameters=text.parameters,
        abi=ABI(arguments=arguments, parameters=parameters, outputs=outputs),
        work=work,
    )


def _same(model: nn.Module, found: _Found, expected: list[torch.Tensor]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Part the paths of a group: those whose module gives what the first one gives with that one's weights, and the others."""
    same: list[str] = []
    others: list[str] = []
    modules = dict(model.named_modules())
    for path in found.paths:
        module = modules[path]
        state = {**dict(module.named_parameters()), **dict(module.named_buffers())}
        with torch.no_grad():
            mine = list(tensors(module(*found.args, **found.kwargs)))
            theirs = list(tensors(torch.func.functional_call(found.module, state, found.args, found.kwargs)))
        (same if alike(mine, theirs) else others).append(path)
    return tuple(same), tuple(others)


def _time(run: Callable[[], Any], cuda: bool) -> float:
    """Time a run after one that warms up: the fastest of three, microseconds."""
    run()
    times = []
    for _ in range(3):
        if cuda:
            torch.cuda.synchronize()
        begun = time.perf_counter()
        run()
        if cuda:
            torch.cuda.synchronize()
        times.append((time.perf_counter() - begun) * 1e6)
    return min(times)


def _signature(tree: Any) -> str:
    """Write what tells calls apart: shapes, dtypes, strides, devices, and other arguments by their repr or class."""
    if isinstance(tree, torch.Tensor):
        return f"{type(tree).__name__} {tuple(tree.shape)} {tree.dtype} {tree.stride()} {tree.device}"
    if isinstance(tree, tuple | list):
        return f"[{', '.join(map(_signature, tree))}]"
    if isinstance(tree, dict):
        return f"{{{', '.join(f'{key}: {_signature(value)}' for key, value in tree.items())}}}"
    return repr(tree) if isinstance(tree, bool | int | float | str | None) else type(tree).__name__


def _copied(tree: Any) -> Any:
    """Copy the tensors of a call: a later operator may write to them."""
    if isinstance(tree, torch.Tensor):
        return tree.detach().clone()
    if type(tree) in (tuple, list):
        return type(tree)(map(_copied, tree))
    if type(tree) is dict:
        return {key: _copied(value) for key, value in tree.items()}
    return tree


def _dtype(value: torch.Tensor) -> str:
    found = str(value.dtype).removeprefix("torch.")
    if found not in ITEM_BYTES:
        raise UntraceableError(f"it works on {found}")
    return found


def _name(title: str, taken: set[str]) -> str:
    words = (
        re.sub(r"[^a-z0-9]+", "_", re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", title).lower()).strip("_") or "module"
    )
    name, count = words, 1
    while name in taken:
        count += 1
        name = f"{words}_{count}"
    return name
