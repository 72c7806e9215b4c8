"""A user's source that has been run: it can make the reference and its inputs, for real or under a fake mode."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator
from itertools import islice
from typing import Any, Protocol

import torch
from torch import nn

from tools.errors import UserError
from tools.problems.constants import override
from tools.problems.execution import blaming, forget, run_source
from tools.problems.patience import limited
from tools.problems.seeding import seeded
from tools.problems.source import Recognised
from tools.records import ProblemForm, Scalar

WEIGHT_SEED = 20261120
"""Seed of every reference's weights: part of what a problem is, so it never changes."""


MAX_ARGUMENTS = 256
"""Arguments of a call; a generator that yields more of them is taken to have no end."""


class Blueprint(Protocol):
    """Whatever can make a reference and its inputs."""

    title: str
    optional: frozenset[int]
    """Places of the arguments that a call may leave out, as far as that is known."""

    def build(self) -> nn.Module:
        """Make the reference; its weights are the same every time."""

    def inputs(self, seed: int, device: str = "cpu") -> list[torch.Tensor | Scalar]:
        """Make the positional arguments of one call; they depend on the seed and the kind of device alone."""

    @property
    def init(self) -> str:
        """Positional arguments of the constructor, as a Python literal."""

    def blaming(self, doing: str) -> Any:
        """Turn what the user's code raises in the body into a UserError."""


class FunctionModule(nn.Module):
    """A plain function as a module without parameters, in evaluation mode."""

    def __init__(self, function: Any) -> None:
        super().__init__()
        self.function = function
        self.eval()

    def forward(self, *args: Any) -> Any:
        """Call the function."""
        return self.function(*args)


class SourceBlueprint:
    """The blueprint of a file in KernelBench's form or in function form."""

    optional: frozenset[int] = frozenset()

    def __init__(self, title: str, recognised: Recognised, source: str, sizes: dict[str, int]) -> None:
        """Run `source` with `sizes` in place of its own constants; errors in it raise UserError."""
        self.title = title
        self._form = recognised.form
        self._entry = recognised.entry
        dtype = torch.get_default_dtype()
        try:
            self._python = run_source(override(source, sizes, recognised.makers, title), title)
            # a file that sets a default dtype means it for its own weights and inputs, not for the next file's
            self._dtype = torch.get_default_dtype()
        finally:
            torch.set_default_dtype(dtype)

    def close(self) -> None:
        """Forget the module that the source made."""
        forget(self._python.__name__)

    @property
    def python_module(self) -> str:
        """Name of the module in `sys.modules`."""
        return self._python.__name__

    def blaming(self, doing: str) -> Any:
        """Turn what the user's code raises in the body into a UserError with its line."""
        return blaming(self.title, self._python, doing)

    def build(self) -> nn.Module:
        """Make the reference under `WEIGHT_SEED`."""
        target = getattr(self._python, self._entry)
        if self._form is ProblemForm.FUNCTION:
            return FunctionModule(target)
        if not (inspect.isclass(target) and issubclass(target, nn.Module)):
            raise UserError(f"{self.title}: {self._entry} is not a torch.nn.Module.", "Derive it from nn.Module.")
        arguments = self._init_arguments()
        with self.blaming(f"{self._entry}(…)"), seeded(WEIGHT_SEED), self._default_dtype():
            module: nn.Module = target(*arguments)
        return module

    @property
    def init(self) -> str:
        """Repr of what get_init_inputs() returns, checked to be a literal."""
        arguments = self._init_arguments()
        text = repr(arguments)
        try:
            same = ast.literal_eval(text) == arguments
        except (ValueError, SyntaxError):
            same = False
        if not same:
            what = f"{self.title}: get_init_inputs() returns more than numbers, strings, tuples, lists and dictionaries: {text[:120]}."
            raise UserError(what, "Return plain values, and make modules and tensors in the constructor.")
        return text

    def inputs(self, seed: int, device: str = "cpu") -> list[torch.Tensor | Scalar]:
        """Make the arguments of one call on `device`; where the file pins another one, they are made there and moved."""
        if torch.device(device).type == "cpu":
            return self._checked(self._generate(seed, device), device)
        try:
            raw = self._generate(seed, device)
        except UserError:
            raw = self._generate(seed, "cpu")
        return self._checked(raw, device)

    def _generate(self, seed: int, device: str) -> Any:
        name = "example_inputs" if self._form is ProblemForm.FUNCTION else "get_inputs"
        with self.blaming(f"{name}()"), seeded(seed, device), self._default_dtype(), torch.device(device), torch.no_grad(), limited():
            made = getattr(self._python, name)()
            return list(islice(made, MAX_ARGUMENTS + 1)) if isinstance(made, Iterator) else made

    def _checked(self, raw: Any, device: str) -> list[torch.Tensor | Scalar]:
        name = "example_inputs" if self._form is ProblemForm.FUNCTION else "get_inputs"
        if isinstance(raw, torch.Tensor):
            raw = [raw]
        if not isinstance(raw, list | tuple):
            mend = "Return a tuple or list of the positional arguments."
            raise UserError(f"{self.title}: {name}() returns {type(raw).__name__}, not the arguments of a call.", mend)
        if len(raw) > MAX_ARGUMENTS:
            what = f"{self.title}: {name}() gives more than {MAX_ARGUMENTS} values for one call."
            raise UserError(what, "Have it return, or yield, the positional arguments of one call and end.")
        return [self._argument(name, index, value, device) for index, value in enumerate(raw)]

    def _argument(self, name: str, index: int, value: Any, device: str) -> torch.Tensor | Scalar:
        if isinstance(value, torch.Tensor):
            if value.layout is not torch.strided:
                raise UserError(f"{self.title}: argument {index} of {name}() is a {value.layout} tensor.", "Give dense tensors.")
            return value.detach().to(device).contiguous()
        if value is None or isinstance(value, bool | int | float | str):
            return value
        what = f"{self.title}: argument {index} of {name}() is a {type(value).__name__}."
        raise UserError(what, "Arguments are tensors, numbers, strings, booleans or None; give the tensors of a list one by one.")

    def _init_arguments(self) -> list[Any]:
        make = getattr(self._python, "get_init_inputs", None)
        if self._form is ProblemForm.FUNCTION or make is None:
            return []
        with self.blaming("get_init_inputs()"), limited():
            arguments = make()
        if not isinstance(arguments, list | tuple):
            what = f"{self.title}: get_init_inputs() returns {type(arguments).__name__}, not the arguments of the constructor."
            raise UserError(what, "Return a list of the positional arguments.")
        return list(arguments)

    def _default_dtype(self) -> Any:
        return _DefaultDtype(self._dtype)


class _DefaultDtype:
    """Set torch's default dtype for a body."""

    def __init__(self, dtype: torch.dtype) -> None:
        self._dtype = dtype

    def __enter__(self) -> None:
        self._before = torch.get_default_dtype()
        torch.set_default_dtype(self._dtype)

    def __exit__(self, *_: object) -> None:
        torch.set_default_dtype(self._before)
