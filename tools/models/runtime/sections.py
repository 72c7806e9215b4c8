"""Cuts the forward of a large module: what it does between the modules that it calls is done by sections, modules of their own.

Sections have no parameters and are no children of the module: its state dict, and what lists its modules, know nothing of them.
"""

from __future__ import annotations

import functools
import hashlib
import inspect
import textwrap
from collections.abc import Iterator, Sequence
from types import CellType, FunctionType
from typing import Any, NamedTuple

from torch import nn

CUT = "kernelwright_cut"
OWNER = "_owner"


class Cut(NamedTuple):
    """How modules of one class are cut."""

    paths: tuple[str, ...]
    digest: str
    """Of the source of the forward that they have."""
    text: str
    """Source of the one that they get."""
    sections: tuple[tuple[str, str, tuple[str, ...]], ...]
    """Of each section: the name of its attribute, the source of its forward, and names of the modules that are called in it."""


class Section(nn.Module):
    """A part of a module's forward. The modules that it calls are its module's, whichever these are at the time."""

    calls: tuple[str, ...] = ()

    @property
    def _modules(self) -> dict[str, Any]:
        owner = self.__dict__.get(OWNER)
        return {} if owner is None else {name: owner._modules[name] for name in self.calls}

    @_modules.setter
    def _modules(self, value: dict[str, Any]) -> None:
        """Leave them to the module."""

    @property
    def training(self) -> bool:
        """Whether the module that it is a part of is in training mode."""
        owner = self.__dict__.get(OWNER)
        return owner is not None and bool(owner.training)

    @training.setter
    def training(self, value: bool) -> None:
        """Leave it to the module."""


def source_of(module: nn.Module) -> str:
    """Read the source of a module's forward; empty where there is none, or where it is of this one object."""
    if "forward" in module.__dict__:
        return ""
    try:
        return textwrap.dedent(inspect.getsource(type(module).forward))
    except (OSError, TypeError):
        return ""


def digest_of(source: str) -> str:
    """Tell sources apart."""
    return hashlib.sha256(source.encode()).hexdigest()[:16]


def named(model: nn.Module) -> Iterator[tuple[str, nn.Module]]:
    """List a model's modules by their paths, sections too, each behind the module that it is a part of."""
    for path, module in model.named_modules():
        yield path, module
        for name, *_ in getattr(type(module), CUT).sections if hasattr(type(module), CUT) else ():
            yield f"{path}.{name}".lstrip("."), module.__dict__[name]


def cut(model: nn.Module, cuts: Sequence[Cut]) -> list[str]:
    """Cut modules, and return the paths of those that do not have the forward that was cut, and are left alone."""
    modules = dict(model.named_modules())
    odd = []
    for one in cuts:
        for path in one.paths:
            module: Any = modules.get(path)
            if hasattr(type(module), CUT):
                continue
            source = source_of(module) if module is not None else ""
            if not source or digest_of(source) != one.digest:
                odd.append(path)
                continue
            own_class: Any = type(module)
            module.__class__, parts = _classes_of(own_class, one._replace(paths=()))
            for name, part in parts.items():
                section = part()
                section.__dict__[OWNER] = module
                # what tells sections of other forwards apart
                section.cut_from = one.digest
                module.__dict__[name] = section
    return odd


def uncut(model: nn.Module) -> None:
    """Give every module that was cut its own forward back."""
    for module in model.modules():
        any_module: Any = module
        if (one := getattr(type(module), CUT, None)) is not None:
            any_module.__class__ = type(any_module).kernelwright_whole
            for name, *_ in one.sections:
                any_module.__dict__.pop(name, None)


@functools.cache
def _classes_of(original: Any, one: Cut) -> tuple[Any, dict[str, Any]]:
    """Make the class of a module that is cut, and those of its sections."""
    told = {"__doc__": original.__doc__, "__module__": original.__module__, "__qualname__": original.__qualname__}
    own = {"forward": in_place_of(original.forward, forward_from(original.forward, one.text)), CUT: one, "kernelwright_whole": original}
    parts = {}
    for name, text, modules in one.sections:
        title = f"{original.__name__}{name.title().replace('_', '')}"
        told_part = {"__module__": original.__module__, "__qualname__": title, "calls": modules}
        children = {each: property(functools.partial(_child, each)) for each in modules}
        parts[name] = type(title, (Section,), {"forward": forward_from(original.forward, text), **told_part, **children})
    return type(original.__name__, (original,), {**own, **told}), parts


def _child(name: str, section: Any) -> Any:
    return getattr(section._owner, name)


def forward_from(original: Any, text: str) -> Any:
    """Make the function that a text defines where `original` was defined: it finds the same names there."""
    inner = inspect.unwrap(original)
    made: dict[str, Any] = {}
    exec(compile(text, f"<kernelwright: {inner.__qualname__}>", "exec"), inner.__globals__, made)  # noqa: S102 - the user's own statements
    return made["forward"]


def in_place_of(original: Any, inner: Any) -> Any:
    """Make what `original` is with another function inside of all that decorates it; TypeError where that cannot be had."""
    own = getattr(original, "__wrapped__", None)
    if own is None:
        inner.__defaults__, inner.__kwdefaults__, inner.__annotations__ = (
            original.__defaults__,
            original.__kwdefaults__,
            original.__annotations__,
        )
        return inner
    cells = original.__closure__ or ()
    if not any(cell.cell_contents is own for cell in cells):
        raise TypeError(f"{original.__qualname__} is decorated in a way that is not known")
    other = in_place_of(own, inner)
    changed = tuple(CellType(other) if cell.cell_contents is own else cell for cell in cells)
    made = FunctionType(original.__code__, original.__globals__, original.__name__, original.__defaults__, changed)
    functools.update_wrapper(made, original)
    made.__kwdefaults__ = original.__kwdefaults__
    made.__dict__["__wrapped__"] = other
    return made
