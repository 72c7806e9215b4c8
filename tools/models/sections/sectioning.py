"""Cuts the forwards of a model's large modules while it is captured."""

from __future__ import annotations

import ast
import inspect
from collections import Counter as Tally
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Any, NamedTuple

import torch
from torch import nn

from tools.models.calls import PLAIN, UnsupportedCallError, structure, tensors
from tools.models.copies import copied
from tools.models.loading import Workload
from tools.models.records import WHOLE, Section, SectionedForward
from tools.models.runtime.sections import Cut, cut, digest_of, named, source_of, uncut
from tools.models.sections.expressions import Attributes, chain_of
from tools.models.sections.text import UncutForwardError, arguments, sectioned, stored
from tools.models.suitability import held, repeats
from tools.problems.counting import Counter
from tools.problems.seeding import seeded

TRIES = 4
"""Cuts of a forward that are tried: sections may give only tensors, and that is seen when they run."""
MOST_CALLS = 64
"""Calls of a section in one of its module's: more are a loop over time."""
SEED = 1
MATRIX = 2
"""Dimensions of one."""

Forwards = dict[str, SectionedForward]
"""By the path of a module."""


class Cuts(NamedTuple):
    """Which forwards are cut."""

    forwards: Forwards
    whole: dict[str, str]
    """By the path of a module that was to be cut: why that failed, as a clause."""


@contextmanager
def cutting(model: nn.Module, workloads: Sequence[Workload], largest: int) -> Iterator[Cuts]:
    """Have the large modules of a model cut in the body, where it gives the same then."""
    found = _cuts(model, workloads, largest)
    try:
        cut(model, [cut_of([path], forward) for path, forward in found.forwards.items()])
        yield found
    finally:
        uncut(model)


def cut_of(paths: Sequence[str], forward: SectionedForward) -> Cut:
    """Write a forward as what modules are cut by."""
    return Cut(tuple(paths), forward.digest, forward.text, tuple((each.name, each.text, each.modules) for each in forward.sections))


def _cuts(model: nn.Module, workloads: Sequence[Workload], largest: int) -> Cuts:
    try:
        wanted, given = _to_cut(model, workloads, largest)
    except Exception:
        # what fails as it is, a capture tells of
        return Cuts({}, {})
    kinds: dict[type, list[str]] = {}
    for path in wanted:
        kinds.setdefault(type(model.get_submodule(path)), []).append(path)
    found, whole = Cuts({}, {}), dict[str, str]()
    for paths in (wanted, *(kinds.values() if len(kinds) > 1 else ())):
        # what the user's code does in other functions than its own is not to be known
        try:
            found.forwards.update(_that_hold(model, workloads, paths, given))
        except Exception as error:
            why = str(error) if isinstance(error, UncutForwardError) else f"{type(error).__name__}: {' '.join(str(error).split())[:120]}"
            whole |= dict.fromkeys(paths, why)
        else:
            if paths is wanted:
                return found
    return Cuts(found.forwards, {path: why for path, why in whole.items() if path not in found.forwards})


def _that_hold(model: nn.Module, workloads: Sequence[Workload], wanted: Sequence[str], given: Sequence[list[torch.Tensor]]) -> Forwards:
    """Cut forwards anew until all that sections give is tensors."""
    modules = dict(model.named_modules())
    kept: dict[str, set[str]] = {path: set() for path in wanted}
    for _ in range(TRIES if wanted else 0):
        found = {path: forward for path in wanted if (forward := _forward(modules[path], kept[path])) and forward.sections}
        try:
            cut(model, [cut_of([path], forward) for path, forward in found.items()])
            wrong = _run(model, workloads, found, given)
        finally:
            uncut(model)
        if not wrong:
            return found
        for path, statements in wrong:
            kept[path] |= statements
    return {}


def _to_cut(model: nn.Module, workloads: Sequence[Workload], largest: int) -> tuple[list[str], list[list[torch.Tensor]]]:
    """Find the modules that do something themselves, but cannot be one operator; and what workloads give.

    They are too large, or are given or give what no operator can, such as a cache.
    """
    found: dict[str, None] = {}
    paths = {id(module): path for path, module in model.named_modules()}
    calls: list[tuple[int, list[int]]] = []
    counter = Counter()

    def enter(module: nn.Module, args: Any, kwargs: Any) -> None:
        calls.append((len(counter.operators), []))

    def leave(module: nn.Module, args: Any, kwargs: Any, result: Any) -> None:
        begun, inside = calls.pop()
        every = len(counter.operators) - begun
        if calls:
            calls[-1][1].append(every)
        path = paths[id(module)]
        large = inside and every > (min(largest, WHOLE) if not path else largest)
        if sum(inside) < every and (large or not _is_plain((args, kwargs, result))):
            found[path] = None

    with ExitStack() as hooks:
        for module in model.modules():
            hooks.callback(module.register_forward_pre_hook(enter, with_kwargs=True).remove)
            hooks.callback(module.register_forward_hook(leave, with_kwargs=True).remove)
        with counter:
            given = [_outputs(model, one) for one in workloads]
    return list(found), given


def _outputs(model: nn.Module, workload: Workload) -> list[torch.Tensor]:
    """Run a workload, random numbers the same each time."""
    call = copied((workload.args, workload.kwargs), None)
    device = next((str(value.device) for value in (*model.parameters(), *tensors(call))), "cpu")
    with torch.no_grad(), seeded(SEED, device):
        return list(tensors(workload.called(model, call)))


def _forward(module: nn.Module, kept: set[str]) -> SectionedForward | None:
    """Cut a module's forward; None where that cannot be done."""
    source = source_of(module)
    if not source or inspect.unwrap(type(module).forward).__code__.co_freevars:
        return None
    try:
        return sectioned(source, digest_of(source), Attributes(partial(_is_value, module), partial(_is_part, module)), dir(module), kept)
    except UncutForwardError:
        return None


def _is_value(module: nn.Module, chain: str) -> bool:
    """Whether an attribute is a tensor or a plain value."""
    value: Any = module
    try:
        for name in chain.split(".")[1:]:
            value = getattr(value, name)
    except AttributeError:
        return False
    return isinstance(value, torch.Tensor) or type(value) in PLAIN


def _is_part(module: nn.Module, chain: str) -> bool:
    """Whether it is a module that may be called in a section: one without a matrix, such as a norm, has no library to call."""
    child = module._modules.get(chain.removeprefix("self."))
    return child is not None and all(value.dim() < MATRIX for value in held(child))


def _run(
    model: nn.Module, workloads: Sequence[Workload], forwards: Forwards, given: Sequence[list[torch.Tensor]]
) -> list[tuple[str, set[str]]]:
    """Run a model that is cut, and list by path statements that have to stay in its forwards; UncutForwardError where it is another."""
    wrong: list[tuple[str, set[str]]] = []
    calls: Tally[str] = Tally()

    def leave(path: str, section: Section, module: nn.Module, args: Any, result: Any) -> None:
        calls[f"{path}.{section.name}"] += 1
        wrong.append((path, _staying(section, args, result, often=calls[f"{path}.{section.name}"] > MOST_CALLS)))

    modules = dict(named(model))
    with ExitStack() as hooks:
        for path, forward in forwards.items():
            for section in forward.sections:
                module = modules[f"{path}.{section.name}".lstrip(".")]
                hooks.callback(module.register_forward_hook(partial(leave, path, section)).remove)
        for one, expected in zip(workloads, given, strict=True):
            calls.clear()
            if not repeats(_outputs(model, one), expected):
                raise UncutForwardError("it gives something else when it is cut")
    return [(path, statements) for path, statements in wrong if statements]


def _staying(section: Section, args: Sequence[Any], result: Any, *, often: bool) -> set[str]:
    """List the statements of a section that it cannot have: those that read or make anything but tensors, or all where it runs often."""
    statements = ast.parse(section.body).body
    if often:
        return set(map(ast.unparse, statements))
    objects = {name for name, value in zip(arguments(section), args, strict=True) if not _is_plain(value)}
    if objects:
        return {ast.unparse(one) for one in statements if any(chain_of(node) in objects for node in ast.walk(one))}
    if not section.outputs:
        return set() if _is_of_tensors(result) else {ast.unparse(statements[-1])}
    made = zip(section.outputs, result if len(section.outputs) > 1 else (result,), strict=True)
    odd = {name for name, value in made if not _is_tensors(value)}
    return {ast.unparse(statement) for statement in statements if not odd.isdisjoint(stored(statement))}


def _is_tensors(value: Any) -> bool:
    """Whether a value is a tensor, or a tuple of tensors: an operator gives no list."""
    return isinstance(value, torch.Tensor) or (type(value) is tuple and bool(value) and all(map(_is_tensors, value)))


def _is_of_tensors(result: Any) -> bool:
    return _is_plain(result) and any(True for _ in tensors(result))


def _is_plain(tree: Any) -> bool:
    """Whether there are only tensors and plain values in it."""
    try:
        structure(tree)
    except UnsupportedCallError:
        return False
    return True
