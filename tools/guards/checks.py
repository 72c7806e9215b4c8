"""The part of a guard that is the same in every delivered file: `text.py` copies everything below this docstring into it."""

import inspect
import re
from collections.abc import Sequence
from operator import attrgetter
from typing import Any, NoReturn

import torch

facts = attrgetter("shape", "dtype", "device", "requires_grad")


def worked_out(text: str, known: dict[str, int]) -> int | None:
    """Work out a size without parentheses, from left to right; None where nothing tells it, or what tells it is not known."""
    # what is rounded up is the negative of a negative that is rounded down: `-(-x.shape[0] // 16)`
    words = text.replace("--", "").split()
    total, *terms = (number(word, known) for word in words[::2])
    for sign, term in zip(words[1::2], terms, strict=True):
        if total is None or term is None:
            return None
        if sign in ("//", "%"):
            total = None if not term else total // term if sign == "//" else total % term
        else:
            total = {"+": total + term, "-": total - term, "*": total * term}[sign]
    return total


def number(word: str, known: dict[str, int]) -> int | None:
    """Read a number, or a size that is known; either may have a sign."""
    bare = word.removeprefix("-")
    worth = int(bare) if bare.isdigit() else known.get(bare)
    return worth if bare == word or worth is None else -worth


class Size(str):
    """A size that may vary: `any`, `any * 2` for an even one, or in terms of sizes before it, worked out from left to right."""

    def worth(self, known: dict[str, int]) -> int | None:
        """Work it out; None where nothing tells it, or what tells it is not known."""
        text = "None" if self.startswith("any") else str(self)
        while (inner := re.search(r"\(([^()]*)\)", text)) is not None:
            text = text.replace(inner[0], str(worked_out(inner[1], known)))
        return worked_out(text, known)

    def allows(self, real: int, known: dict[str, int]) -> bool:
        """Whether a number may stand for it."""
        if self.startswith("any"):
            return real > 0 and real % int(self.split()[-1].replace("any", "1")) == 0
        return self.worth(known) in (None, real)

    def __repr__(self) -> str:
        """Read as it is written."""
        return str(self)


def shares(tensors: dict[str, torch.Tensor], name: str, other: str) -> bool:
    """Whether two tensors of a call have bytes in common, as they lie from their first element on."""
    if name == other or tensors[name].untyped_storage()._cdata != tensors[other].untyped_storage()._cdata:
        return False
    (first, end), (start, last) = (
        (each.storage_offset() * each.element_size(), (each.storage_offset() + each.numel()) * each.element_size())
        for each in (tensors[name], tensors[other])
    )
    return first < last and start < end


class Guard:
    """What a module was made for, and how a call differs from that."""

    def __init__(
        self,
        model: Any,
        arguments: dict[str, Any],
        parameters: dict[str, Any],
        constructor: tuple[Any, ...],
        training: bool | None,
        written: tuple[str, ...] = (),
    ) -> None:
        """Take the module's class, by name (dtype, sizes) of a tensor or (value,) of what is none, and what a call writes to."""
        self.signature = inspect.signature(model.__init__)
        self.arguments, self.parameters, self.constructor, self.training = arguments, parameters, constructor, training
        self.written = written

    def constructed(self, given: tuple[Any, ...], named: dict[str, Any]) -> list[str]:
        """List how the constructor's arguments differ from those that the file was made for."""
        made, here = self._bound(self.constructor, {}), self._bound(given, named)
        return [
            f"the constructor's {name} is {here.get(name)!r}, not {made.get(name)!r}"
            for name in dict.fromkeys((*made, *here))
            if not self._alike(made.get(name), here.get(name))
        ]

    def called(self, module: Any, inputs: tuple[Any, ...]) -> list[str]:
        """List how a call differs from those that the file was made for."""
        values = dict(zip(self.arguments, inputs, strict=True))
        held = dict(module.named_parameters(remove_duplicate=False)) | dict(module.named_buffers(remove_duplicate=False))
        given, named = module.guard_arguments
        known: dict[str, int] = {}
        wrong = self.constructed(given, named)
        for name, (made, *sizes) in self.arguments.items():
            if sizes:
                wrong += self._tensor(name, values[name], made, sizes[0], known)
            elif not self._alike(made, values[name]):
                wrong.append(f"{name} is {values[name]!r}, not {made!r}")
        for name, (dtype, sizes) in self.parameters.items():
            wrong += self._tensor(name, held.get(name), dtype, sizes, known)
            if isinstance(held.get(name), torch.Tensor) and (held[name].is_conj() or not held[name].is_contiguous()):
                wrong.append(f"{name} is {'a conjugate view' if held[name].is_conj() else 'not contiguous'}")
        wrong += self._sizes(self.constructor, given, "init", known)
        tensors = {name: value for name, value in (values | held).items() if isinstance(value, torch.Tensor)}
        wrong += self._lying(tensors)
        devices = {value.device: name for name, value in tensors.items()}
        if len(devices) > 1:
            wrong.append("not all is on one device: " + ", ".join(f"{name} on {device}" for device, name in devices.items()))
        wanting = [name for name, value in tensors.items() if value.requires_grad and torch.is_grad_enabled()]
        if wanting:
            more = f" and {len(wanting) - 3} more" if len(wanting) > 3 else ""
            wrong.append(f"a gradient is wanted of {', '.join(wanting[:3])}{more}, and none is computed: call it under torch.no_grad()")
        if torch.is_autocast_enabled():
            wrong.append("autocast is on, under which the reference rounds: call it under torch.autocast('cuda', enabled=False)")
        if self.training not in (None, module.training):
            wrong.append(f"the module is in {'training' if module.training else 'evaluation'} mode, and was made for the other")
        return wrong

    def _lying(self, tensors: dict[str, torch.Tensor]) -> list[str]:
        """List which of the tensors that a call writes to cannot be written where they lie."""
        wrong = [f"{name} is written to and is not contiguous" for name in self.written if not tensors[name].is_contiguous()]
        for name in self.written if not wrong else ():
            wrong += [f"{name} is written to and shares memory with {other}" for other in tensors if shares(tensors, name, other)]
        return wrong

    def refuse(self, wrong: list[str]) -> NoReturn:
        """Raise the one error that there is."""
        made = [f"{name}: {rule[0]}" + (f" {list(rule[1])}" if rule[1:] else "") for name, rule in self.arguments.items()]
        call = f"ModelNew({', '.join(map(repr, self.constructor))})({', '.join(made)})"
        mend = "Call it so, or make a kernel for the other: kernelwright optimize"
        raise ValueError(f"This kernel was not made for that: {'; '.join(wrong)}. It was made for {call}. {mend}.")

    def places(self, module: Any) -> list[tuple[dict[str, Any], str]]:
        """List where the module keeps its parameters and buffers."""
        found = []
        for name in self.parameters:
            owner, _, leaf = name.rpartition(".")
            part = module.get_submodule(owner)
            found.append((part._parameters if leaf in part._parameters else part._buffers, leaf))
        return found

    def _bound(self, given: tuple[Any, ...], named: dict[str, Any]) -> dict[str, Any]:
        """Give the constructor's arguments by name, defaults included."""
        bound = self.signature.bind(None, *given, **named)
        bound.apply_defaults()
        return dict(list(bound.arguments.items())[1:])

    def _alike(self, made: Any, given: Any) -> bool:
        """Whether a value is the one that the file was made for; a size may be any whole number."""
        if isinstance(made, Size):
            return type(given) is int
        if made is ...:
            return True
        if isinstance(made, tuple | list):
            return isinstance(given, tuple | list) and len(made) == len(given) and all(map(self._alike, made, given))
        return type(made) is type(given) and repr(made) == repr(given)

    def _tensor(self, name: str, value: Any, dtype: torch.dtype, sizes: Sequence[Any], known: dict[str, int]) -> list[str]:
        """List how one tensor differs from what it has to be."""
        if not isinstance(value, torch.Tensor) or value.layout != torch.strided:
            return [f"{name} is no dense tensor, but {type(value).__name__}"]
        wrong = [] if value.dtype == dtype else [f"{name} is {value.dtype}, not {dtype}"]
        if value.ndim == len(sizes):
            return wrong + self._sizes(sizes, value.shape, f"{name}.shape", known)
        return [*wrong, f"{name} has {value.ndim} dimensions {list(value.shape)}, not {len(sizes)}"]

    def _sizes(self, made: Sequence[Any], given: Sequence[Any], name: str, known: dict[str, int]) -> list[str]:
        """List how sizes differ from what they have to be, in a shape or among the constructor's arguments."""
        wrong: list[str] = []
        for place, (size, real) in enumerate(zip(made, given, strict=False)):
            at = f"{name}[{place}]"
            if isinstance(size, tuple | list) and isinstance(real, tuple | list):
                wrong += self._sizes(size, real, at, known)
            elif isinstance(real, int):
                known[at] = real
                if not (size.allows(real, known) if isinstance(size, Size) else real == size):
                    told = size.worth(known) if isinstance(size, Size) else None
                    wrong.append(f"{at} is {real}, not {size}" + (f", {told}" if told is not None else ""))
        return wrong
