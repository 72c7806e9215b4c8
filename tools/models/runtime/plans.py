"""Plays what was recorded of a call for other tensors of the same shapes, as Python that allocates, calls and launches."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch

from tools.models.runtime.launching import ALIGNED, Launch, UnplannedError, is_hooked
from tools.models.runtime.recording import Called, Made, Recording, Slot
from tools.models.runtime.texts import function_of

Play = Callable[..., list[torch.Tensor] | None]
"""Takes inputs and parameters; gives results, or None where this call is not like the recorded one, or somebody listens to launches."""


def played(found: Recording, results: Sequence[torch.Tensor]) -> Play:
    """Make what plays a recording that gave these results; UnplannedError where it cannot be played."""
    if found.wrong:
        raise UnplannedError(found.wrong)
    return _Writer(found, [found.slot(one) for one in results]).written()


class _Writer:
    """Writes the function of a plan, line by line."""

    def __init__(self, found: Recording, results: Sequence[int]) -> None:
        self._found, self._results = found, results
        self._names: dict[str, Any] = {}
        self._device = found.tensors[0].device
        self._launches = [step for step in found.steps if isinstance(step, Launch)]
        self._addressed = {found.roots[slot.number][0] for step in self._launches for slot in _slots(step.arguments)}
        self._used = _used(found, results)

    def written(self) -> Play:
        """Write it, and have Python compile it."""
        given = ", ".join(f"t{slot}" for slot in range(self._found.given))
        steps = [line for step in self._found.steps for line in self._step(step)]
        returned = ", ".join(f"t{slot}{self._own(slot)}" for slot in self._results)
        body = [*self._checks(), *steps, f"return [{returned}]"]
        lines = [f"def play({given}):", *(f"    {line}" for line in body)]
        play: Play = function_of("\n".join(lines), "play", self._names)
        return play

    def _checks(self) -> Iterator[str]:
        """Ask what shapes do not say: hooks, the device, and whether addresses are as aligned as those that kernels were made for."""
        if self._launches:
            yield f"if {self._name(is_hooked)}():"
            yield "    return None"
            yield from self._stream()
        for slot in sorted(slot for slot in self._addressed if slot < self._found.given):
            yield f"p{slot} = t{slot}.data_ptr()"
        wanted = self._alignments()
        for rest in sorted(set(wanted.values())):
            every = [f"p{slot}" for slot, one in wanted.items() if one == rest]
            odd = f"({' | '.join(every)}) % {ALIGNED}" if rest == 0 else " or ".join(f"{one} % {ALIGNED} != {rest}" for one in every)
            yield f"if {odd}:"
            yield "    return None"

    def _stream(self) -> Iterator[str]:
        if self._device.type != "cuda":
            yield "stream = 0"
            return
        yield f"if {self._name(torch._C._cuda_getDevice)}() != {self._device.index}:"
        yield "    return None"
        yield f"stream = {self._name(torch._C._cuda_getCurrentRawStream)}({self._device.index})"

    def _alignments(self) -> dict[int, int]:
        """Say for each tensor that is given, and lies behind an aligned address of a kernel, what its own address leaves."""
        found = self._found
        taken = {slot.number for step in self._launches for slot in _slots(step.arguments)}
        aligned = [found.roots[slot][0] for slot in taken if found.tensors[slot].data_ptr() % ALIGNED == 0]
        return {root: found.tensors[root].data_ptr() % ALIGNED for root in sorted(set(aligned)) if root < found.given}

    def _step(self, step: Made | Called | Launch) -> Iterator[str]:
        match step:
            case Made():
                empty, named = _empty(step.device)
                more = "".join(f", {name}={self._name(value)}" for name, value in named.items())
                size, stride, dtype = map(self._name, (step.size, step.stride, step.dtype))
                yield f"t{step.slot} = {self._name(empty)}({size}, {stride}, {dtype}{more})"
                yield from self._ask([step.slot])
            case Called():
                new = [one.number for one in _slots(step.result) if one.number >= self._found.given]
                if step.is_view and self._used.isdisjoint(new):
                    return
                given = [self._text(one) for one in step.args] + [f"{name}={self._text(one)}" for name, one in step.named.items()]
                yield f"{self._target(step.result)} = {self._name(step.function)}({', '.join(given)})"
                yield from self._ask(new)
            case Launch():
                self._name(step.kernel)
                given = [self._address(one) if isinstance(one, Slot) else self._text(one) for one in step.arguments]
                text = ", ".join([*map(self._text, step.grid), "stream", *map(self._text, step.before), *given])
                yield f"{self._name(step.call)}({text})"

    def _ask(self, slots: Sequence[int]) -> Iterator[str]:
        """Ask new tensors for their addresses, where kernels take these."""
        yield from (f"p{slot} = t{slot}.data_ptr()" for slot in slots if slot in self._addressed)

    def _address(self, slot: Slot) -> str:
        root, offset = self._found.roots[slot.number]
        return f"p{root} + {self._name(offset)}" if offset else f"p{root}"

    def _own(self, slot: int) -> str:
        """Have a result be contiguous, and share no memory with what is given."""
        if self._found.roots[slot][0] < self._found.given:
            return f".clone(memory_format={self._name(torch.contiguous_format)})"
        return "" if self._found.tensors[slot].is_contiguous() else ".contiguous()"

    def _target(self, result: Any) -> str:
        """Write what results are bound to; what is given keeps its name."""
        if isinstance(result, Slot):
            return f"t{result.number}" if result.number >= self._found.given else "_"
        if isinstance(result, (tuple, list)):
            return f"[{', '.join(map(self._target, result))}]"
        return "_"

    def _text(self, value: Any) -> str:
        """Write an argument."""
        if isinstance(value, Slot):
            return f"t{value.number}"
        if next(_slots(value), None) is None:
            return repr(value) if value is None or isinstance(value, bool) else self._name(value)
        if isinstance(value, dict):
            return "{" + ", ".join(f"{key!r}: {self._text(item)}" for key, item in value.items()) + "}"
        items = "".join(f"{self._text(item)}, " for item in value)
        return f"({items})" if isinstance(value, tuple) else f"[{items}]"

    def _name(self, value: Any) -> str:
        """Give the text a name for a value."""
        name = f"c{len(self._names)}"
        self._names[name] = value
        return name


def _used(found: Recording, results: Sequence[int]) -> set[int]:
    """List the tensors that are returned, or given to a call that is played."""
    used = set(results)
    for step in reversed(found.steps):
        if isinstance(step, Called) and not (step.is_view and used.isdisjoint(one.number for one in _slots(step.result))):
            used |= {one.number for one in _slots([step.args, step.named])}
    return used


def _slots(tree: Any) -> Iterator[Slot]:
    if isinstance(tree, Slot):
        yield tree
    elif isinstance(tree, (tuple, list)):
        for item in tree:
            yield from _slots(item)
    elif isinstance(tree, dict):
        for item in tree.values():
            yield from _slots(item)


def _empty(device: torch.device) -> tuple[Any, dict[str, Any]]:
    """Give what makes an empty tensor of a size, a stride and a dtype: Inductor's own, past the dispatcher, where torch has that."""
    from torch._C._dynamo import guards

    own = getattr(guards, f"_empty_strided_{device.type}", None)
    return (own, {}) if own is not None else (_empty_strided, {"device": device})


def _empty_strided(size: Any, stride: Any, dtype: torch.dtype, device: torch.device) -> torch.Tensor:
    return torch.empty_strided(size, stride, dtype=dtype, device=device)
