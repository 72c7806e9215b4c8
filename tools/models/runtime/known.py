"""Calls that guards let through, or sent to the original, before: of one that looks the same nothing is asked but that."""

from __future__ import annotations

import itertools
import weakref
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch import nn
from torch.utils._device import DeviceContext

from tools.models.runtime.call_text import CallText
from tools.models.runtime.looks import asked_one_by_one, guard_of, look_of, marks_of
from tools.models.runtime.texts import function_of

if TYPE_CHECKING:
    from tools.models.runtime.patching import Entry

MOST_CALLS = 8
"""Ways to be called that are kept for each module; the one that was new longest ago goes first."""
MOST_WRITTEN = 512
"""Functions that are kept, for all modules together."""
UNLIKE: Any = object()
"""Stands for an answer where a call is like none that is known."""
Known = Callable[[nn.Module, tuple[Any, ...], dict[str, Any]], Any]
"""Answers a call of a module, with UNLIKE where it is not like the one that it stands for."""
Path = tuple[str, ...]
"""Where a module has a parameter: names of attributes, and of what is kept there, in turn."""
_KNOWN: dict[int, tuple[weakref.ref[nn.Module], list[Known]]] = {}
"""By the module's id, not in the module: a copy has other parameters, and a state dict or a pickle has nothing of this."""
_WRITTEN: dict[tuple[Any, ...], Known] = {}


def answered(module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Answer a call that is like one that is known, where nobody listens to PyTorch's calls; else give UNLIKE."""
    found = _KNOWN.get(id(module))
    if found is None or not is_unheard():
        return UNLIKE
    for known in found[1]:
        if (result := known(module, args, kwargs)) is not UNLIKE:
            return result
    return UNLIKE


def keep(module: nn.Module, known: Known) -> None:
    """Know a call of a module from now on."""
    name = id(module)
    if name not in _KNOWN:
        _KNOWN[name] = weakref.ref(module, lambda _: _KNOWN.pop(name, None)), []
    module_itself, calls = _KNOWN[name]
    if known not in calls:
        _KNOWN[name] = module_itself, [known, *calls[: MOST_CALLS - 1]]


def forget(module: nn.Module) -> None:
    """Know no call of a module."""
    _KNOWN.pop(id(module), None)


def places_of(module: nn.Module, paths: Sequence[tuple[str, ...]], held: Sequence[torch.Tensor]) -> tuple[Path, ...] | None:
    """Write how parameters are had of a module; None where one is not kept where PyTorch keeps them."""
    found = []
    for path, tensor in zip(paths, held, strict=True):
        part: Any = module
        for name in path[:-1]:
            part = part._modules.get(name)
        own = [kept for kept in ("_parameters", "_buffers") if getattr(part, kept, {}).get(path[-1]) is tensor]
        if not own:
            return None
        found.append((*(step for name in path[:-1] for step in ("_modules", name)), own[0], path[-1]))
    return tuple(found)


def known_call(entry: Entry, places: tuple[Path, ...], tensors: Sequence[torch.Tensor]) -> Known:
    """Make what answers calls of an entry's structure, whose tensors and parameters look so; these are asked for anew in each call."""
    look = look_of(tensors)

    def write() -> Known:
        play = entry.operator.replayed if entry.replays else entry.operator.player(look)
        return _Writer(entry.structure, places, tensors, entry.autocast).answering(entry.result, play)

    return _kept((entry, places, look, marks_of(tensors)), write)


def missed_call(structure: Any, tensors: Sequence[torch.Tensor], original: Known, autocast: torch.dtype | None) -> Known:
    """Make what has `original` answer calls of a structure whose tensors look so, while autocast rounds to this, or not at all."""
    key = repr(structure), look_of(tensors), marks_of(tensors), original, autocast
    return _kept(key, lambda: _Writer(structure, (), tensors, autocast).leaving(original))


def _kept(key: tuple[Any, ...], write: Callable[[], Known]) -> Known:
    if key not in _WRITTEN:
        if len(_WRITTEN) >= MOST_WRITTEN:
            del _WRITTEN[next(iter(_WRITTEN))]
        _WRITTEN[key] = write()
    return _WRITTEN[key]


class _Writer(CallText):
    """Writes that function: a guard as one expression."""

    def __init__(self, structure: Any, places: Sequence[Path], given: Sequence[torch.Tensor], autocast: torch.dtype | None) -> None:
        super().__init__(structure)
        self._autocast = autocast
        self.names |= {"grads": torch.is_grad_enabled, "rounds": torch.is_autocast_enabled, "rounding": torch.get_autocast_dtype}
        self._places, self._given = places, given

    def answering(self, result: Any, play: Callable[..., Any]) -> Known:
        """Have it give what `play` gives for the tensors."""
        return self._written([f"found = play({self._every})", f"return {self.filled(result, itertools.count())}"], play)

    def leaving(self, play: Callable[..., Any]) -> Known:
        """Have it leave the whole call to `play`."""
        return self._written(["return play(module, args, kwargs)"], play)

    @property
    def _every(self) -> str:
        return ", ".join(f"t{place}" for place in range(len(self._given)))

    def _written(self, lines: Sequence[str], play: Callable[..., Any]) -> Known:
        text = [
            "def known(module, args, kwargs):",
            "    try:",
            f"        if not ({' and '.join([*self.conditions, 'not module.training'])}):",
            "            return unlike",
            *(f"        t{place} = {text}" for place, text in enumerate(self.tensors)),
            *(f"        {line}" for line in self._taken()),
            f"        if not ({' and '.join(self._looks())}):",
            "            return unlike",
            "    except (AttributeError, KeyError):",
            "        return unlike",
            *(f"    {line}" for line in lines),
        ]
        known: Known = function_of("\n".join(text), "known", self.names | {"play": play, "unlike": UNLIKE})
        return known

    def _taken(self) -> Iterator[str]:
        """Take parameters of the module, what several of them have before their names once."""
        known: dict[Path, str] = {(): "module"}
        for place, path in enumerate(self._places, len(self.tensors)):
            for end in range(1, len(path), 2):
                if path[:end] not in known:
                    before = f"{known[path[: end - 2]]}[{path[end - 2]!r}]" if end > 1 else "module"
                    known[path[:end]] = f"m{len(known)}"
                    yield f"{known[path[:end]]} = {before}.{path[end - 1]}"
            yield f"t{place} = {known[path[:-1]]}[{path[-1]!r}]"

    def _looks(self) -> Iterator[str]:
        guard = guard_of(self._given)
        if guard is None:
            yield from asked_one_by_one(look_of(self._given), self.name)
        else:
            yield from ["not grads()"] if any(one.requires_grad for one in self._given) else []
            yield f"{self.name(guard)}({self._every})"
        kind = repr(self._given[0].device.type)
        yield f"not rounds({kind})" if self._autocast is None else f"rounds({kind}) and rounding({kind}) is {self.name(self._autocast)}"


def is_unheard() -> bool:
    """Whether no mode, transform, trace or profiler would see a call of an operator."""
    known: Any = torch._C
    return (
        known._len_torch_dispatch_stack() == 0
        and ((count := known._len_torch_function_stack()) == 0 or _only_say_where(count))
        and known._get_tracing_state() is None
        and known._functorch.peek_interpreter_stack() is None
        and not known._autograd._profiler_enabled()
    )


def _only_say_where(count: int) -> bool:
    """Whether all function modes are of `torch.set_default_device`, for which no kernel's host code has use: it names devices."""
    known: Any = torch._C
    return all(type(known._get_function_stack_at(place)) is DeviceContext for place in range(count))
