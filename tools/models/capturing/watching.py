"""Hooks on all modules of a model: what they are given, and how long they take."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import torch
from torch import nn

from tools.autocast.state import rounded_to
from tools.models.capturing.found import Found
from tools.models.capturing.signatures import signature
from tools.models.runtime.config import config_of
from tools.models.runtime.sections import named


class Watch:
    """Watches runs of one model's workloads: the first looks at each call, later ones go by its order and take little more time."""

    def __init__(self, model: nn.Module, cuda: bool) -> None:
        """Watch `model`; with `cuda` times are those of events on the device."""
        self.found: dict[tuple[str, str], Found] = {}
        """By configuration and signature: equal calls."""
        self._model, self._cuda = model, cuda
        self._open: list[tuple[Found, Any]] = []
        self._timed: list[tuple[Found, Any, Any]] = []
        self._known: dict[str, list[tuple[str, Found]]] = {}
        self._seen: list[tuple[str, Found]] = []
        self._config = {path: config_of(module) for path, module in named(model)}

    @contextmanager
    def watching(self, workload: str) -> Iterator[None]:
        """Watch one run of a workload; what an earlier run of it counted is forgotten, and another list of times begun."""
        for found in self.found.values():
            found.calls.pop(workload, None)
        self._seen, before = [], self._known.get(workload, [])
        handles = []
        for path, module in list(named(self._model)):
            handles.append(module.register_forward_pre_hook(partial(self._enter, before, path), with_kwargs=True))
            handles.append(module.register_forward_hook(self._leave))
        try:
            yield
        finally:
            for handle in handles:
                handle.remove()
        if self._cuda:
            torch.cuda.synchronize()
        self._known[workload] = self._seen
        lists: dict[int, list[float]] = {}
        for found, begun, ended in self._timed:
            found.calls[workload] = found.calls.get(workload, 0) + 1
            if id(found) not in lists:
                lists[id(found)] = []
                found.us.setdefault(workload, []).append(lists[id(found)])
            lists[id(found)].append(begun.elapsed_time(ended) * 1e3 if self._cuda else (ended - begun) * 1e6)
        self._timed.clear()

    def _enter(self, before: list[tuple[str, Found]], path: str, module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        place = len(self._seen)
        known = place < len(before) and before[place][0] == path
        found = before[place][1] if known else self._looked_at(path, module, args, kwargs)
        self._seen.append((path, found))
        self._open.append((found, self._now()))

    def _looked_at(self, path: str, module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Found:
        autocast = rounded_to("cuda" if self._cuda else "cpu")
        key = (self._config[path], f"{autocast} {signature((args, kwargs))}")
        found = self.found.get(key)
        if found is None:
            found = self.found[key] = Found(module, _copied(args), _copied(kwargs), autocast=autocast)
        found.paths[path] = None
        return found

    def _leave(self, module: nn.Module, args: Any, result: Any) -> None:
        ended = self._now()
        found, begun = self._open.pop()
        self._timed.append((found, begun, ended))

    def _now(self) -> Any:
        if not self._cuda:
            return clock()
        make: Any = torch.cuda.Event
        event = make(enable_timing=True)
        event.record()
        return event


def clock() -> float:
    """Read seconds: of the processor where one thread does the work, else of the wall."""
    return time.thread_time() if torch.get_num_threads() == 1 else time.perf_counter()


def _copied(tree: Any) -> Any:
    """Copy the tensors of a call: a later operator may write to them. A part of a wider tensor stays one, by its strides."""
    if isinstance(tree, torch.Tensor):
        made = tree.detach().clone()
        apart = type(tree) is torch.Tensor and tree.layout is torch.strided and made.stride() != tree.stride() and 0 not in tree.stride()
        return torch.empty_strided(tree.shape, tree.stride(), dtype=tree.dtype, device=tree.device).copy_(made) if apart else made
    if type(tree) in (tuple, list):
        return type(tree)(map(_copied, tree))
    if type(tree) is dict:
        return {key: _copied(value) for key, value in tree.items()}
    return tree
