"""References given as nn.Modules in Python: kept as torch.export archives, which need nothing of the user's code."""

from __future__ import annotations

import base64
import copy
import io
import json
import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any

import torch
from torch import nn
from torch.export import Dim, ExportedProgram
from torch.export.graph_signature import InputKind

from tools.errors import UserError
from tools.problems.analysis import quiet
from tools.problems.archive_sizes import ARGUMENTS, archive_sizes
from tools.problems.calls import names_of, optional, refuse_call
from tools.problems.dynamic import Dynamic, chosen_dims
from tools.problems.seeding import seeded
from tools.records import Scalar


class ArchiveBlueprint:
    """The blueprint of an exported module: contents of inputs follow the ranges of the examples it was exported with.

    `sizes` replaces sizes that the export left free (`archive_sizes`); an index stays within the sizes that it stayed within.
    """

    init = "[]"

    def __init__(self, title: str, source: str, sizes: Mapping[str, int]) -> None:
        """Open the base64 archive `source`; `sizes` that it does not have raise UserError."""
        self.title = title
        self._free = {constant.key: constant.value for constant in archive_sizes(source)}
        self._sizes: Mapping[str, int] = {}
        self._resize(sizes)
        extra = {ARGUMENTS: ""}
        try:
            self._program = torch.export.load(io.BytesIO(base64.b64decode(source)), extra_files=extra)
            self._arguments = json.loads(extra[ARGUMENTS])
            self.optional = frozenset(place for place, one in enumerate(self._arguments) if one.get("optional"))
        except Exception as error:
            what = f"The exported module of {title} cannot be opened by torch {torch.__version__}: {' '.join(str(error).split())[:200]}."
            raise UserError(what, "Open it with the version of torch that exported it, or export it again.") from error

    def resized(self, sizes: Mapping[str, int]) -> ArchiveBlueprint:
        """Give the same module at other sizes, without opening it again; weights are shared, so nothing may be computed with both."""
        twin = copy.copy(self)
        twin._resize(sizes)
        return twin

    def _resize(self, sizes: Mapping[str, int]) -> None:
        if unknown := sorted(set(sizes) - set(self._free)):
            raise UserError(f"{self.title} has no free size {unknown[0]!r}.", f"It has: {', '.join(self._free) or 'none'}.")
        self._sizes = sizes

    def build(self) -> nn.Module:
        """Make the module; its weights are those it was exported with."""
        return self._program.module()

    def inputs(self, seed: int, device: str = "cpu") -> list[torch.Tensor | Scalar]:
        """Draw the arguments of one call from the distributions noted at export."""
        with seeded(seed, device):
            return [_draw(self._resized(argument), device) for argument in self._arguments]

    def _resized(self, noted: dict[str, Any]) -> dict[str, Any]:
        if not self._sizes or noted["kind"] == "scalar":
            return noted
        labels = noted.get("sizes", [None] * len(noted["shape"]))
        made = {**noted, "shape": [self._sizes.get(label, size) for label, size in zip(labels, noted["shape"], strict=True)]}
        reached = noted["high"] if _counts(noted) else math.inf
        within = min(((size, label) for label, size in self._free.items() if size > reached), default=None)
        if within is not None:
            # the least free size that no value of an index reached is taken for what it counts within
            made["high"] = min(noted["high"], self._sizes.get(within[1], within[0]) - 1)
            made["low"] = min(noted["low"], made["high"])
        return made

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


def pack(module: nn.Module, example_inputs: tuple[Any, ...], title: str, dynamic: Dynamic = None) -> str:
    """Export `module` and return the archive as base64 text, with the distribution of each argument beside it.

    Where the user says what is `dynamic`, those sizes are left free and no others; one that the module fixes raises UserError.
    """
    given = dict(zip(names_of(module, len(example_inputs)), example_inputs, strict=False))
    chosen = chosen_dims(dynamic, {name: tuple(value.shape) for name, value in given.items() if isinstance(value, torch.Tensor)})
    left = optional(module, given)
    try:
        # the examples decide shapes, dtypes and ranges; they are not kept, large inputs would swell every record
        with torch.no_grad(), quiet():
            program, labels = _export_chosen(module, given, chosen, title) if chosen else _export(module, example_inputs)
        program.example_inputs = None
        arguments = [
            _describe(value, title) | {key: one for key, one in noted.items() if one}
            for value, noted in zip(
                example_inputs,
                ({"sizes": sizes, "chosen": name in chosen, "optional": name in left} for name, sizes in zip(given, labels, strict=True)),
                strict=True,
            )
        ]
        buffer = io.BytesIO()
        torch.export.save(program, buffer, extra_files={ARGUMENTS: json.dumps(arguments)})
    except UserError:
        raise
    except Exception as error:
        refuse_call(module, example_inputs, title)
        what = f"{title} cannot be exported by torch.export: {type(error).__name__}: {' '.join(str(error).split())[:300].rstrip('.')}."
        raise UserError(what, "Put the module into a file with `Model` and `get_inputs()` instead.") from error
    return base64.b64encode(buffer.getvalue()).decode()


def _export(module: nn.Module, inputs: tuple[Any, ...]) -> tuple[ExportedProgram, list[list[str | None]]]:
    """Export with every size of the inputs left free that the module leaves free, labelled; as they are, where that does not work."""
    free = [[True] * value.dim() if isinstance(value, torch.Tensor) else [] for value in inputs]
    with suppress(Exception):
        for _ in range(2):
            shapes = [{dim: Dim.AUTO if one else Dim.STATIC for dim, one in enumerate(dims)} or None for dims in free]
            program = torch.export.export(module, inputs, dynamic_shapes=tuple(shapes))
            found = _expressions(program)
            if all(one is None or one.isidentifier() for dims in found for one in dims):
                return program, _labels(program, found)
            # a size that others determine, such as twice another, cannot be chosen
            free = [[one is not None and one.isidentifier() for one in dims] for dims in found]
    return torch.export.export(module, inputs), [[] for _ in inputs]


def _export_chosen(
    module: nn.Module, given: Mapping[str, Any], chosen: Mapping[str, tuple[int, ...]], title: str
) -> tuple[ExportedProgram, list[list[str | None]]]:
    """Export with the chosen sizes left free and no others, labelled; UserError for one that the module fixes or that others determine."""
    shapes = [
        {dim: Dim.AUTO if dim in chosen.get(name, ()) else Dim.STATIC for dim in range(value.dim())} or None
        if isinstance(value, torch.Tensor)
        else None
        for name, value in given.items()
    ]
    program = torch.export.export(module, tuple(given.values()), dynamic_shapes=tuple(shapes))
    found = dict(zip(given, _expressions(program), strict=True))
    for name, dims in chosen.items():
        for dim in dims:
            size = found[name][dim]
            if size is None or not size.isidentifier():
                what = f"{title} fixes dimension {dim} of {name}, which is to be dynamic, at {given[name].shape[dim]}."
                raise UserError(what, "Have its code take that size from a shape, or leave it out of `dynamic`.")
    return program, _labels(program, list(found.values()))


def _user_inputs(program: ExportedProgram) -> list[torch.fx.Node]:
    names = {spec.arg.name for spec in program.graph_signature.input_specs if spec.kind is InputKind.USER_INPUT}
    return [node for node in program.graph.nodes if node.op == "placeholder" and node.name in names]


def _expressions(program: ExportedProgram) -> list[list[str | None]]:
    """Give the symbolic expression of each size of each input; None where it is a number."""
    shapes = [node.meta["val"].shape if isinstance(node.meta.get("val"), torch.Tensor) else () for node in _user_inputs(program)]
    return [[_expression(size) for size in shape] for shape in shapes]


def _expression(size: int | torch.SymInt) -> str | None:
    return str(size.node.expr) if isinstance(size, torch.SymInt) and size.node.maybe_as_int() is None else None


def _labels(program: ExportedProgram, expressions: list[list[str | None]]) -> list[list[str | None]]:
    """Name each symbol by the first place it stands in."""
    places: dict[str, str] = {}
    for node, symbols in zip(_user_inputs(program), expressions, strict=True):
        for dim, symbol in enumerate(symbols):
            if symbol is not None:
                places.setdefault(symbol, f"{node.name}[{dim}]")
    return [[places[symbol] if symbol is not None else None for symbol in symbols] for symbols in expressions]


def _counts(noted: dict[str, Any]) -> bool:
    """Whether an argument holds integers that may be indices."""
    return bool(noted["kind"] == "integer" and noted["dtype"] != "bool")


def _describe(value: Any, title: str) -> dict[str, Any]:
    """Note the shape, the dtype and the range of an example: normal where it takes both signs, else uniform over its range."""
    if value is None or isinstance(value, bool | int | float | str):
        return {"kind": "scalar", "value": value}
    if not isinstance(value, torch.Tensor) or value.dtype is torch.complex128:
        what = f"{title}: an example input is {value.dtype if isinstance(value, torch.Tensor) else type(value).__name__}."
        raise UserError(what, "Arguments are real or complex64 tensors, numbers, strings, booleans or None.")
    noted: dict[str, Any] = {"shape": list(value.shape), "dtype": str(value.dtype).removeprefix("torch.")}
    if value.is_complex():
        return {**noted, "kind": "complex", "parts": [_describe(part, title) for part in (value.real, value.imag)]}
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
    if noted["kind"] == "complex":
        parts = [torch.as_tensor(_draw({**part, "shape": shape}, device)) for part in noted["parts"]]
        return torch.complex(*parts)
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
