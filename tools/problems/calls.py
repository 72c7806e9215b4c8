"""What a user gives in Python, a module or a function with an example of a call, as a module and its positional arguments."""

from __future__ import annotations

import copy
import inspect
import traceback
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch
from torch import nn

from tools.errors import UserError

_PARAMETER = inspect.Parameter
_TORCH = Path(torch.__file__).resolve().parent


def positional(module: nn.Module, example: Any, title: str) -> tuple[Any, ...]:
    """Bind an example of a call to `module`'s parameters: a tensor, a tuple or list of arguments, or a mapping of keyword arguments.

    What is left out keeps its default, which is written down only where a later argument is given. UserError where the call does not fit.
    """
    if isinstance(example, Mapping):
        return _bound(module, dict(example), title)
    return tuple(example) if isinstance(example, tuple | list) else (example,)


def _bound(module: nn.Module, given: dict[str, Any], title: str) -> tuple[Any, ...]:
    signature = inspect.signature(module.forward)
    try:
        bound = signature.bind(**given)
    except TypeError as error:
        raise UserError(f"{title} cannot be called with those keyword arguments: {error}.", f"It takes {signature}.") from error
    last = max((place for place, name in enumerate(signature.parameters) if name in bound.arguments), default=-1)
    bound.apply_defaults()
    taken = list(signature.parameters.values())[: last + 1]
    if any(one.kind in (_PARAMETER.VAR_KEYWORD, _PARAMETER.KEYWORD_ONLY) for one in taken):
        raise UserError(f"{title} takes arguments by keyword alone: {signature}.", "Wrap it in a function that takes them by position.")
    return tuple(bound.arguments[one.name] for one in taken)


def as_module(given: nn.Module | Callable[..., Any]) -> tuple[nn.Module, str]:
    """Return the module to export and what to call it; a function becomes a module without parameters, its source is not needed.

    UserError for a function that reaches into a module, whose weights it would hide.
    """
    if isinstance(given, nn.Module):
        module = getattr(given, "_orig_mod", given)
        return module, type(module).__name__
    name = getattr(given, "__name__", type(given).__name__)
    name = name if name.isidentifier() else "function"
    _demand_plain(given, name)
    # a class of its own, so that the parameters keep their names
    return type(name, (nn.Module,), {"forward": staticmethod(given)})().eval(), name


def _demand_plain(function: Callable[..., Any], name: str) -> None:
    try:
        inspect.signature(function)
    except (TypeError, ValueError):
        what = f"{name} is built in and does not say what it takes."
        raise UserError(what, f"Wrap it: lambda x: {name}(x).") from None
    reached = inspect.getclosurevars(function) if inspect.isfunction(function) else None
    held = {**reached.nonlocals, **reached.globals} if reached else {}
    owners = [key for key, value in held.items() if isinstance(value, nn.Module)]
    if isinstance(getattr(function, "__self__", None), nn.Module) or owners:
        what = f"{name} is a function that calls a module{f' ({owners[0]})' if owners else ''}, whose weights a kernel would not get."
        raise UserError(what, "Give the module itself; where a method is meant, a module whose forward calls it.")


def on_cpu(module: nn.Module, arguments: tuple[Any, ...]) -> tuple[nn.Module, tuple[Any, ...]]:
    """Return module and tensors on the CPU, where a reference is kept; copies of what lies elsewhere."""
    tensors = [*module.parameters(), *module.buffers()]
    if any(tensor.device.type != "cpu" for tensor in tensors):
        module = copy.deepcopy(module).to("cpu")
    return module, tuple(value.detach().cpu() if isinstance(value, torch.Tensor) else value for value in arguments)


def names_of(module: nn.Module, count: int) -> list[str]:
    """Names of the first `count` positional parameters of a forward, as an exported module has them."""
    names: list[str] = []
    for name, parameter in inspect.signature(module.forward).parameters.items():
        if parameter.kind is _PARAMETER.VAR_POSITIONAL:
            return names + [f"{name}_{place}" for place in range(count - len(names))]
        names.append(name)
    return names[:count]


def optional(module: nn.Module, given: Mapping[str, Any]) -> set[str]:
    """Name the arguments whose given value is the default that the module itself has for them."""
    parameters = inspect.signature(module.forward).parameters
    plain = {name: value for name, value in given.items() if value is None or isinstance(value, bool | int | float | str)}
    return {name for name, value in plain.items() if name in parameters and _same(parameters[name].default, value)}


def _same(one: Any, other: Any) -> bool:
    return type(one) is type(other) and repr(one) == repr(other)


def refuse_call(module: nn.Module, arguments: tuple[Any, ...], title: str) -> None:
    """Call the module on the example; raise UserError with its own error and the user's line where even that fails."""
    try:
        with torch.no_grad():
            copy.deepcopy(module)(*arguments)
    except Exception as error:
        frames = traceback.extract_tb(error.__traceback__)[1:]
        own = [frame for frame in frames if _TORCH not in Path(frame.filename).parents]
        where = f" in line {own[-1].lineno} of {Path(own[-1].filename).name} ({(own[-1].line or '')[:100]})" if own else ""
        text = " ".join(str(error).split())[:300].rstrip(".") or "no message"
        raise UserError(
            f"{title}: the call on the example raised {type(error).__name__}{where}: {text}.", "Give inputs that its forward takes."
        ) from error
