"""Opens a user's file of a whole model: `make()` and `workloads()`, or an ordinary operator file. Runs the user's code."""

from __future__ import annotations

import importlib.util
import inspect
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
from torch import nn

from tools.autocast.as_cuda import round_as_cuda
from tools.autocast.state import dtype_named, rounding_to
from tools.errors import UserError
from tools.models.calls import tensors
from tools.models.form import AUTOCAST, EXPECTED, WEIGHTS, WORKLOADS, factory_of
from tools.problems.blueprint import WEIGHT_SEED
from tools.problems.execution import blaming
from tools.problems.seeding import seeded


@dataclass(frozen=True)
class Workload:
    """One kind of call of the whole model."""

    name: str
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    weight: float
    autocast: str = ""
    """Dtype to which `torch.autocast` rounds around the call; empty for none but the model's own."""

    def called(self, model: Any, call: tuple[tuple[Any, ...], dict[str, Any]] | None = None) -> Any:
        """Run a model with it, or with a copy of what it gives as arguments and keywords."""
        args, kwargs = call or (self.args, self.kwargs)
        device = next((value.device.type for value in tensors((args, kwargs))), "cpu")
        with rounding_to(self.autocast, device):
            return model(*args, **kwargs)


class ModelFile:
    """A user's file at work."""

    def __init__(self, file: Path, factory: str = "", autocast: str = "") -> None:
        """Import it; what is wrong with it raises UserError. `factory` names the function that makes the model.

        Its workloads run under autocast to the dtype that `autocast` names, else to that which the file names.
        """
        self._title = file.name
        self._python = _imported(file)
        self._factory = factory_of(set(vars(self._python)), factory)
        self._is_operator = self._factory == "Model"
        self._autocast = dtype_named(autocast or getattr(self._python, AUTOCAST, ""), f"{AUTOCAST} of {file.name}")
        for name in (self._factory, "get_inputs" if self._is_operator else WORKLOADS):
            if not callable(getattr(self._python, name, None)):
                raise UserError(f"{self._title} defines no {name}().", EXPECTED)

    def model(self, device: str) -> nn.Module:
        """Make the model, its weights the same every time, and put it on `device`; on the CPU autocast rounds as on a GPU from now on."""
        if device == "cpu":
            round_as_cuda()
        init = getattr(self._python, "get_init_inputs", list) if self._is_operator else list
        with self._blaming(f"{self._factory}()"):
            made = _drawn(lambda: getattr(self._python, self._factory)(*init()), WEIGHT_SEED, device)
        if not isinstance(made, nn.Module):
            raise UserError(f"{self._title}: {self._factory}() returns {type(made).__name__}, not an nn.Module.", EXPECTED)
        with self._blaming("moving the model"):
            return (made.eval() if self._is_operator else made).to(device)

    def workloads(self, model: nn.Module, seed: int, device: str) -> list[Workload]:
        """Make the workloads with contents by `seed`, on `device`."""
        # a cache that the model fills is copied later, which what has a gradient cannot be
        with self._blaming("the workloads"), torch.no_grad():
            found = _drawn(lambda: self._made(model), seed, device)
        weights = getattr(self._python, WEIGHTS, {})
        if not isinstance(found, dict) or not found or not isinstance(weights, dict):
            raise UserError(f"{self._title}: the workloads are {type(found).__name__}, not a dictionary of calls.", EXPECTED)
        made = [_workload(self._title, name, call, float(weights.get(name, 1.0)), device) for name, call in found.items()]
        return [replace(one, autocast=self._autocast) for one in made]

    def _made(self, model: nn.Module) -> Any:
        if self._is_operator:
            return {"as written": tuple(self._python.get_inputs())}
        make = getattr(self._python, WORKLOADS)
        return make(model) if inspect.signature(make).parameters else make()

    def _blaming(self, doing: str) -> Any:
        return blaming(self._title, self._python, doing)


def as_workload(name: str, call: Any, weight: float = 1.0) -> Workload:
    """Read one call: a tensor, a tuple of arguments, or a dictionary of keyword arguments."""
    if isinstance(call, torch.Tensor):
        call = (call,)
    if isinstance(call, tuple | list):
        return Workload(name, tuple(call), {}, weight)
    if isinstance(call, dict):
        return Workload(name, (), {str(key): value for key, value in call.items()}, weight)
    raise UserError(
        f"The workload {name!r} is a {type(call).__name__}.", "Give a tuple of arguments, or a dictionary of keyword arguments."
    )


def given(calls: Iterable[Workload]) -> Iterator[torch.Tensor]:
    """List the tensors that workloads give to a model."""
    for one in calls:
        yield from tensors((one.args, one.kwargs))


def moved(tree: Any, device: str) -> Any:
    """Put the tensors of a call on a device."""
    if isinstance(tree, torch.Tensor):
        return tree.to(device)
    if type(tree) in (tuple, list):
        return type(tree)(moved(item, device) for item in tree)
    if type(tree) is dict:
        return {key: moved(item, device) for key, item in tree.items()}
    return tree


def _drawn(make: Callable[[], Any], seed: int, device: str) -> Any:
    """Draw numbers on `device`, where a billion take no time; on the CPU where the user's file does not work so."""
    if device != "cpu":
        try:
            with seeded(seed, device), torch.device(device):
                return make()
        except (RuntimeError, TypeError, ValueError):
            # the CPU may have room for what is too much here, and says what is wrong with the file
            torch.cuda.empty_cache()
    with seeded(seed):
        return make()


def _workload(title: str, name: Any, call: Any, weight: float, device: str) -> Workload:
    found = as_workload(str(name), call, weight)
    if weight <= 0:
        raise UserError(f"{title}: the weight of {found.name!r} is {weight:g}.", "Give a number above 0: how often it counts.")
    return Workload(found.name, moved(found.args, device), moved(found.kwargs, device), weight)


def _imported(file: Path) -> ModuleType:
    """Import the file under its own name, its folder first on the path, so that it finds its neighbours."""
    sys.path.insert(0, str(file.parent))
    spec = importlib.util.spec_from_file_location(file.stem, file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[file.stem] = module
    with blaming(file.name, module, "running the file"):
        spec.loader.exec_module(module)
    return module
