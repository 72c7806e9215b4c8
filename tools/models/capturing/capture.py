"""Runs a model under its workloads and finds which calls its modules get, how long they take, and what each can be traced to."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping, Sequence

import torch
from torch import nn

from tools.models.capturing.device_time import by_device
from tools.models.capturing.found import BY_ROWS, Found, by_rows, represented
from tools.models.capturing.grouping import Grouping, Parted
from tools.models.capturing.own_time import with_sizes_told
from tools.models.capturing.signatures import signature
from tools.models.capturing.watching import Watch, clock
from tools.models.copies import copied, holds_objects
from tools.models.loading import Workload, given
from tools.models.records import LARGEST, Capture, Group
from tools.models.replay import recorder
from tools.models.runtime.sections import Section
from tools.models.sections.sectioning import Forwards, cutting
from tools.models.suitability import held, shared_tensors

RUNS = 3
"""Timed runs of a workload; the fastest of them counts, for each call by itself."""
EVENTS, WALL = "CUDA events of an eager run", "wall clock of an eager run on the CPU"
PROCESSOR = "processor time of an eager run on the CPU"
"""With one thread: what else the machine does is not in it."""


def capture(model: nn.Module, workloads: Sequence[Workload], largest: int = LARGEST) -> Capture:
    """Run each workload a few times in eager mode, the last time with hooks, then trace what each kind of call does.

    What modules that are too large for one operator do between those that they call is looked at as if these were modules.
    On a device times are of CUDA graphs, where these can hold the model: a module may be slow in eager mode by its launches alone.
    """
    with cutting(model, workloads, largest) as cuts:
        found = _captured(model, workloads, largest, cuts.forwards)
    return found.model_copy(update={"groups": tuple(_told_cut(group, found.groups, cuts.whole) for group in found.groups)})


def _captured(model: nn.Module, workloads: Sequence[Workload], largest: int, forwards: Forwards) -> Capture:
    cuda = any(value.is_cuda for value in (*held(model), *given(workloads)))
    watch = Watch(model, cuda)
    us: dict[str, float] = {}
    with torch.no_grad():
        for one in workloads:
            grows = holds_objects((one.args, one.kwargs))
            us[one.name] = _time(model, one, cuda, grows=grows)
            # the first run with hooks pays for what they look at and copy
            for _ in range(1 + RUNS):
                args, kwargs = copied((one.args, one.kwargs), None) if grows else (one.args, one.kwargs)
                with watch.watching(one.name):
                    one.called(model, (args, kwargs))
    weights = {one.name: one.weight for one in workloads}
    # of the model itself, whatever it is given
    whole = sum(found.weighted(weights) for found in watch.found.values() if "" in found.paths)
    grouping = Grouping(model, weights, whole, shared_tensors(model), largest)
    groups: list[Group] = []
    sources: dict[str, list[Found]] = {}
    waiting = _waiting(watch.found)
    while waiting:
        config, founds, apart = waiting.pop(0)
        own = dict.fromkeys(name for found in founds for name in found.calls)
        # where there are several workloads, one that has these calls for itself is in the name
        title = type(founds[0].module).__name__ + (f" {next(iter(own))}" if len(own) == 1 < len(workloads) else "")
        made = grouping.group(_name(title, {group.name for group in groups}), config, founds)
        if isinstance(made, Parted):
            waiting += [(config, [found], made.why) for found in founds]
            continue
        group = made[0].model_copy(update={"apart": apart, "forward": forwards.get(_owner(made[0])) if _is_section(founds) else None})
        # of a section that is none, the module that it is a part of is told of
        if group.forward is None or group.trace is not None:
            groups.append(group)
            sources[group.name] = represented(founds, weights)
        if made[1]:
            others = [found.part(model, made[1]) for found in founds if not found.paths.keys().isdisjoint(made[1])]
            waiting.append((config, others, apart))
    groups = [_placed(group, forwards) for group in groups]
    found = Capture(
        title=type(model).__name__,
        clock=EVENTS if cuda else PROCESSOR if torch.get_num_threads() == 1 else WALL,
        us=us,
        weights=weights,
        modules=len(list(model.modules())),
        groups=tuple(sorted(groups, key=lambda group: -group.share)),
    )
    # last of all, as a recording that fails leaves the device in a state that nobody asked for
    return with_sizes_told(by_device(found, model, workloads, sources, recorder()) if cuda else found, largest)


def _is_section(founds: Sequence[Found]) -> bool:
    return isinstance(founds[0].module, Section)


def _told_cut(group: Group, groups: Sequence[Group], whole: Mapping[str, str]) -> Group:
    """Say of a module that is left alone how many sections of its forward may be replaced, or why it was not cut, where that was tried."""
    why = next((whole[path] for path in group.paths if path in whole), "")
    sections = [path.rpartition(".") for one in groups if one.forward and one.trace for path in one.paths]
    own = {section for owner, _, section in sections if owner in group.paths}
    of_these = f"{len(own)} section{'s' if len(own) > 1 else ''} of its forward may be replaced"
    told = f"; {of_these}" if own else f"; its forward is not cut ({why})" if why else ""
    return group.model_copy(update={"reason": f"{group.reason}{told}"}) if group.reason else group


def _placed(group: Group, forwards: Forwards) -> Group:
    """Tell of which sections modules are called in."""
    inner = {
        f"{path}.{name}".lstrip("."): f"{path}.{section.name}.{name}".lstrip(".")
        for path, forward in forwards.items()
        for section in forward.sections
        for name in section.modules
    }
    places = tuple(inner.get(path, path) for path in group.paths)
    return group if places == group.paths else group.model_copy(update={"places": places})


def _owner(group: Group) -> str:
    """Name the module that a section is a part of."""
    return group.paths[0].rpartition(".")[0]


def _waiting(found: dict[tuple[str, str], Found]) -> list[tuple[str, list[Found], str]]:
    """Put calls together that differ in sizes alone, as one kernel may serve them, unless their products are of other kinds.

    With each list of calls come the module's configuration, and why others like them are not among them.
    """
    kinds: dict[tuple[str, str], list[Found]] = {}
    for (config, _), one in found.items():
        kinds.setdefault((config, f"{one.autocast} {signature((one.args, one.kwargs), sizes=False)}"), []).append(one)
    parts = [(config, by_rows(ones)) for (config, _), ones in kinds.items()]
    return [(config, part, BY_ROWS if len(part) == 1 < len(parted) else "") for config, parted in parts for part in parted]


def _time(model: nn.Module, one: Workload, cuda: bool, *, grows: bool) -> float:
    """Time a run after one that warms up: the fastest of three, microseconds."""
    times = []
    for _ in range(4):
        args, kwargs = copied((one.args, one.kwargs), None) if grows else (one.args, one.kwargs)
        if cuda:
            torch.cuda.synchronize()
        begun = time.perf_counter() if cuda else clock()
        one.called(model, (args, kwargs))
        if cuda:
            torch.cuda.synchronize()
        times.append(((time.perf_counter() if cuda else clock()) - begun) * 1e6)
    return min(times[1:])


def _name(title: str, taken: set[str]) -> str:
    words = (
        re.sub(r"[^a-z0-9]+", "_", re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", title).lower()).strip("_") or "module"
    )
    name, count = words, 1
    while name in taken:
        count += 1
        name = f"{words}_{count}"
    return name
