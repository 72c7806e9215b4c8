"""References given as nn.Modules in Python: kept as torch.export archives, which need nothing of the user's code."""

from __future__ import annotations

import base64
import io
import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import nn

from tools.errors import UserError
from tools.problems.seeding import seeded
from tools.records import Scalar

_EXTRA = "arguments.json"


class ArchiveBlueprint:
    """The blueprint of an exported module: contents of inputs follow the ranges of the examples it was exported with."""

    init = "[]"

    def __init__(self, title: str, source: str) -> None:
        """Open the base64 archive `source`."""
        self.title = title
        extra = {_EXTRA: ""}
        try:
            self._program = torch.export.load(io.BytesIO(base64.b64decode(source)), extra_files=extra)
            self._arguments = json.loads(extra[_EXTRA])
        except Exception as error:
            what = f"The exported module of {title} cannot be opened by torch {torch.__version__}: {' '.join(str(error).split())[:200]}."
            raise UserError(what, "Open it with the version of torch that exported it, or export it again.") from error

    def build(self) -> nn.Module:
        """Make the module; its weights are those it was exported with."""
        return self._program.module()

    def inputs(self, seed: int, device: str = "cpu") -> list[torch.Tensor | Scalar]:
        """Draw the arguments of one call from the distributions noted at export."""
        with seeded(seed, device):
            return [_draw(argument, device) for argument in self._arguments]

    @contextmanager
    def blaming(self, doing: str) -> Iterator[None]:
        """Say which exported module failed."""
        try:
            yield
        except (UserError, KeyboardInterrupt):
            raise
        except Exception as error:
            what = f"{self.title}: {doing} raised {type(error).__name__}: {' '.join(str(error).split())[:300]}."
            raise UserError(what, "Check that the module runs on its example inputs.") from error


def pack(module: nn.Module, example_inputs: tuple[Any, ...], title: str) -> str:
    """Export `module` and return the archive as base64 text, with the distribution of each argument beside it."""
    try:
        # the examples decide shapes, dtypes and ranges; they are not kept, large inputs would swell every record
        with torch.no_grad():
            program = torch.export.export(module, example_inputs)
        program.example_inputs = None
        buffer = io.BytesIO()
        torch.export.save(program, buffer, extra_files={_EXTRA: json.dumps([_describe(value, title) for value in example_inputs])})
    except UserError:
        raise
    except Exception as error:
        what = f"{title} cannot be exported by torch.export: {type(error).__name__}: {' '.join(str(error).split())[:300]}."
        raise UserError(what, "Put the module into a file with `Model` and `get_inputs()` instead.") from error
    return base64.b64encode(buffer.getvalue()).decode()


def _describe(value: Any, title: str) -> dict[str, Any]:
    """Note the shape, the dtype and the range of an example: normal where it takes both signs, else uniform over its range."""
    if value is None or isinstance(value, bool | int | float | str):
        return {"kind": "scalar", "value": value}
    if not isinstance(value, torch.Tensor) or value.is_complex():
        what = f"{title}: an example input is {value.dtype if isinstance(value, torch.Tensor) else type(value).__name__}."
        raise UserError(what, "Arguments are real tensors, numbers, strings, booleans or None.")
    noted: dict[str, Any] = {"shape": list(value.shape), "dtype": str(value.dtype).removeprefix("torch.")}
    numbers = value.detach().double()
    if not value.numel():
        return {**noted, "kind": "uniform", "low": 0.0, "high": 1.0}
    low, high = float(numbers.min()), float(numbers.max())
    if not value.is_floating_point():
        return {**noted, "kind": "integer", "low": int(low), "high": int(high)}
    if low < 0.0 < high:
        return {**noted, "kind": "normal", "mean": float(numbers.mean()), "std": float(numbers.std(correction=0))}
    return {**noted, "kind": "uniform", "low": low, "high": high}


def _draw(noted: dict[str, Any], device: str) -> torch.Tensor | Scalar:
    if noted["kind"] == "scalar":
        value: Scalar = noted["value"]
        return value
    shape: list[int] = noted["shape"]
    dtype: torch.dtype = getattr(torch, noted["dtype"])
    if noted["kind"] == "integer":
        return torch.randint(noted["low"], noted["high"] + 1, shape, device=device).to(dtype)
    # drawn in float32: half types have no generator of their own on every device
    wide = torch.float64 if dtype is torch.float64 else torch.float32
    drawn: torch.Tensor
    if noted["kind"] == "normal":
        drawn = torch.randn(shape, device=device, dtype=wide) * noted["std"] + noted["mean"]
    else:
        drawn = torch.rand(shape, device=device, dtype=wide) * (noted["high"] - noted["low"]) + noted["low"]
    return drawn.to(dtype)
