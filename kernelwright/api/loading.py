"""A delivered kernel in the user's own process: its file loaded, its module made and given the reference's weights."""

from __future__ import annotations

import ast
import importlib.util
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tools.errors import UserError
from tools.records import content_hash

if TYPE_CHECKING:
    from torch import nn


def load_module(kernel: Path, init: str, like: nn.Module | None) -> nn.Module:
    """Make the `ModelNew` of a kernel's file with the literal arguments `init`; UserError where the file holds none.

    With `like` it gets that module's weights, its device and its mode. Calls like earlier ones are played again (`playing.py`).
    """
    # which imports torch
    from kernelwright.api.playing import play_calls

    file = _loaded(kernel)
    play_calls(file.ModelNew, kernel.read_text())
    module: nn.Module = file.ModelNew(*ast.literal_eval(init))
    if like is None:
        return module
    tensors = [*like.parameters(), *like.buffers()]
    if tensors:
        module.to(tensors[0].device)
    module.load_state_dict(like.state_dict())
    return module.train(like.training)


def _loaded(kernel: Path) -> Any:
    """Import a file under a name of its own, which stays in `sys.modules`: Triton reads the source of its functions."""
    name = f"kernelwright_kernel_{content_hash(str(kernel.resolve()))}"
    spec = importlib.util.spec_from_file_location(name, kernel)
    if spec is None or spec.loader is None or not kernel.is_file():
        raise UserError(f"There is no kernel {kernel}.", "Give the file that a run delivered.")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    if not hasattr(module, "ModelNew"):
        raise UserError(f"{kernel} defines no ModelNew.", "Give the file that a run delivered.")
    return module
