"""Runs a model under its workloads and finds which calls its modules get, how long they take, and what each can be traced to."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

import torch
from torch import nn

from tools.models.found import Found
from tools.models.grouping import Grouping
from tools.models.loading import Workload
from tools.models.records import Capture, Group
from tools.models.runtime.config import config_of
from tools.models.suitability import shared_tensors

LARGEST = 80
"""ATen operators up to which a module is looked at as a whole; of larger ones only the modules inside."""
RUNS = 3
"""Timed runs of a workload; the fastest of them counts, for each call by itself."""
EVENTS, WALL = "CUDA events of an eager run", "wall clock of an eager run on the CPU"
PROCESSOR = "processor time of an eager run on the CPU"
"""With one thread: what else the machine does is not in it."""


class _Watch:
    """Hooks on all modules of a model: what they are given, and how long they take."""

    def __init__(self, model: nn.Module, cuda: bool) -> None:
        self.found: dict[tuple[str, str], Found] = {}
        self._model, self._cuda = model, cuda
        self._open: list[Any] = []
        self._timed: list[tuple[Found, str, Any, Any]] = []
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
            found = self.found[key] = Found(module, _copied(args), _copied(kwargs))
        found.paths[path] = None
        self._open.append((found, self._now()))

    def _leave(self, workload: str, module: nn.Module, args: Any, kwargs: Any, result: Any) -> None:
        ended = self._now()
        found, begun = self._open.pop()
        found.calls[workload] = found.calls.get(workload, 0) + 1
        self._timed.append((found, workload, begun, ended))

    def _now(self) -> Any:
        if not self._cuda:
            return _clock()
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
    # of the model itself, whatever it is given
    whole = sum(found.weighted(weights) for found in watch.found.values() if "" in found.paths)
    grouping = Grouping(model, weights, whole, shared_tensors(model), largest)
    groups: list[Group] = []
    waiting = _alike(watch.found)
    while waiting:
        config, founds = waiting.pop(0)
        own = dict.fromkeys(name for found in founds for name in found.calls)
        # where there are several workloads, one that has these calls for itself is in the name
        title = type(founds[0].module).__name__ + (f" {next(iter(own))}" if len(own) == 1 < len(workloads) else "")
        made = grouping.group(_name(title, {group.name for group in groups}), config, founds)
        if made is None:
            waiting += [(config, [found]) for found in founds]
            continue
        groups.append(made[0])
        if made[1]:
            waiting.append((config, [found.part(model, made[1]) for found in founds if not found.paths.keys().isdisjoint(made[1])]))
    return Capture(
        title=type(model).__name__,
        clock=EVENTS if cuda else PROCESSOR if torch.get_num_threads() == 1 else WALL,
        us=us,
        weights=weights,
        modules=len(list(model.modules())),
        groups=tuple(sorted(groups, key=lambda group: -group.share)),
    )


def _alike(found: dict[tuple[str, str], Found]) -> list[tuple[str, list[Found]]]:
    """Put calls together that differ in sizes alone: one kernel may serve all of them."""
    kinds: dict[tuple[str, str], list[Found]] = {}
    for (config, _), one in found.items():
        kinds.setdefault((config, _kind((one.args, one.kwargs))), []).append(one)
    return [(config, ones) for (config, _), ones in kinds.items()]


def _clock() -> float:
    """Read seconds: of the processor where one thread does the work, else of the wall."""
    return time.thread_time() if torch.get_num_threads() == 1 else time.perf_counter()


def _time(run: Callable[[], Any], cuda: bool) -> float:
    """Time a run after one that warms up: the fastest of three, microseconds."""
    clock = time.perf_counter if cuda else _clock
    run()
    times = []
    for _ in range(3):
        if cuda:
            torch.cuda.synchronize()
        begun = clock()
        run()
        if cuda:
            torch.cuda.synchronize()
        times.append((clock() - begun) * 1e6)
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


def _kind(tree: Any) -> str:
    """Write the same without sizes, and strides but for whether a tensor lies in order."""
    if isinstance(tree, torch.Tensor):
        return f"{type(tree).__name__} {tree.dim()} {tree.dtype} {tree.is_contiguous()} {tree.device}"
    if isinstance(tree, tuple | list):
        return f"[{', '.join(map(_kind, tree))}]"
    if isinstance(tree, dict):
        return f"{{{', '.join(f'{key}: {_kind(value)}' for key, value in tree.items())}}}"
    return _signature(tree)


def _copied(tree: Any) -> Any:
    """Copy the tensors of a call: a later operator may write to them."""
    if isinstance(tree, torch.Tensor):
        return tree.detach().clone()
    if type(tree) in (tuple, list):
        return type(tree)(map(_copied, tree))
    if type(tree) is dict:
        return {key: _copied(value) for key, value in tree.items()}
    return tree


def _name(title: str, taken: set[str]) -> str:
    words = (
        re.sub(r"[^a-z0-9]+", "_", re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", title).lower()).strip("_") or "module"
    )
    name, count = words, 1
    while name in taken:
        count += 1
        name = f"{words}_{count}"
    return name
