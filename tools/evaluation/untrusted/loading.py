"""Importing a candidate and making its module; only ever called inside a sandbox."""

from __future__ import annotations

import ast
import importlib.util
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

from tools.evaluation.wire.source_text import PACKING
from tools.records import ABI, TensorSpec
from tools.returned import returned

if TYPE_CHECKING:
    import torch

FILE = "candidate.py"
_DRAWN = (
    "uniform_",
    "normal_",
    "trunc_normal_",
    "kaiming_uniform_",
    "kaiming_normal_",
    "xavier_uniform_",
    "xavier_normal_",
    "orthogonal_",
)
"""What modules fill their parameters with."""


class InterfaceError(Exception):
    """The candidate does not offer what the ABI asks for."""


def import_candidate(source: str, folder: Path) -> ModuleType:
    """Import the source from a file in `folder`, as Triton needs to read it again."""
    path = folder / FILE
    path.write_text(source)
    spec = importlib.util.spec_from_file_location("candidate", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["candidate"] = module
    spec.loader.exec_module(module)
    if not callable(getattr(module, "ModelNew", None)):
        raise InterfaceError("the source defines no class ModelNew")
    return module


def make_model(module: ModuleType, abi: ABI) -> torch.nn.Module:
    """Construct ModelNew as the reference was constructed, in the reference's mode, its parameters without values."""
    import torch

    with nothing_drawn():
        model = module.ModelNew(*ast.literal_eval(abi.init))
    if not isinstance(model, torch.nn.Module):
        raise InterfaceError("ModelNew is no torch.nn.Module")
    return model.train(abi.training)


@contextmanager
def nothing_drawn() -> Iterator[None]:
    """Leave parameters as they were allocated: all of them are loaded afterwards, and to draw a gigabyte of weights takes two seconds."""
    from torch.nn import init

    with ExitStack() as stack:
        for name in _DRAWN:
            stack.enter_context(patch.object(init, name, lambda tensor, *_, **__: tensor))
        yield


def packing_step(model: torch.nn.Module) -> Callable[[], object] | None:
    """Give the step by which a module packs its weights, once for all calls; None where it declares none."""
    step: object = getattr(model, PACKING, None)
    if step is None:
        return None
    if not callable(step):
        raise InterfaceError(f"{PACKING} of ModelNew is no method")
    return step


def check_parameters(model: torch.nn.Module, specs: tuple[TensorSpec, ...]) -> None:
    """Compare the state dict with the ABI by name, shape and dtype; raise InterfaceError with all differences."""
    state = model.state_dict()
    wanted = {spec.name: spec for spec in specs}
    wrong = [f"{name} is missing" for name in wanted if name not in state]
    wrong += [f"{name} is not in the reference" for name in state if name not in wanted]
    for name, spec in wanted.items():
        if name in state and tuple(state[name].shape) != spec.shape:
            wrong.append(f"{name} has shape {list(state[name].shape)}, the reference's has {list(spec.shape)}")
        elif name in state and str(state[name].dtype).removeprefix("torch.") != spec.dtype:
            wrong.append(f"{name} is {state[name].dtype}, the reference's is {spec.dtype}")
    if wrong:
        raise InterfaceError("parameters and buffers of ModelNew differ from the reference's: " + "; ".join(wrong))


def load_parameters(model: torch.nn.Module, values: Mapping[str, torch.Tensor], specs: tuple[TensorSpec, ...]) -> None:
    """Fill parameters and buffers by name, strictly."""
    check_parameters(model, specs)
    model.load_state_dict(dict(values), strict=True)


def flatten(outputs: Any) -> list[torch.Tensor]:
    """List the tensors of a forward call's result in order; whatever else is in it is left out."""
    return returned(outputs).tensors
