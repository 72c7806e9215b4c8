"""What a kernel was made for: the arguments, parameters and constructor of a problem, with the sizes that its variants share."""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from tools.codegen.ir.sizes import Fact, express
from tools.records import Problem, ProblemForm, ScalarSpec, TensorSpec
from tools.syntax import parsed

ANY = "any"
"""The size of a dimension that nothing else tells."""
MODES = re.compile(r"batch_?norm|instance_?norm|drop|training|rrelu|multihead|transformer|lstm|gru|rnn", re.IGNORECASE)
"""Parts of names in a source whose results may differ between training and evaluation."""


@dataclass(frozen=True)
class Size:
    """A number that varies between a problem's variants, as the guard writes it: `any`, or in terms of sizes before it."""

    text: str


@dataclass(frozen=True)
class Unfixed:
    """A value other than a whole number that differs between the variants: the file takes any."""


@dataclass(frozen=True)
class TensorRule:
    """What one tensor has to be."""

    name: str
    """Argument's name, or state-dict key."""
    dtype: str
    sizes: tuple[int | Size, ...]
    """A dimension of one size in all variants by its number."""


@dataclass(frozen=True)
class ValueRule:
    """What an argument that is no tensor has to be."""

    name: str
    value: Any
    """A literal; where the variants differ in it, a `Size` or `Unfixed`."""
    optional: bool = False
    """Whether a call may leave it out, and means that value."""


@dataclass(frozen=True)
class Contract:
    """What a file was made for."""

    inputs: tuple[TensorRule | ValueRule, ...]
    """Arguments of forward, in order."""
    parameters: tuple[TensorRule, ...]
    constructor: tuple[Any, ...]
    """Positional arguments of the constructor; what varies with the sizes is a `Size`, or `Unfixed`."""
    training: bool | None
    """The module's mode; None where the results do not depend on it."""
    written: tuple[str, ...] = ()
    """Names of the inputs that a call writes to."""


def contract_of(problem: Problem, variants: Sequence[Problem], mixed: Sequence[Problem] = ()) -> Contract:
    """Read what a kernel for `problem` may rely on: what is the same at all sizes, and how sizes hang together.

    In `mixed` sizes those do not that are alike in the variants by chance.
    """
    abis = [problem.abi, *(shape.abi for shape in problem.shapes), *(variant.abi for variant in (*variants, *mixed))]
    reader = _Reader()
    inputs = tuple(_argument(reader, [abi.arguments[place] for abi in abis]) for place in range(len(problem.abi.arguments)))
    parameters = tuple(reader.tensor([abi.parameters[place] for abi in abis]) for place in range(len(problem.abi.parameters)))
    given = reader.value([tuple(ast.literal_eval(abi.init)) for abi in abis], "init")
    return Contract(inputs, parameters, given, _mode(problem), problem.abi.written)


def _argument(reader: _Reader, specs: Sequence[TensorSpec | ScalarSpec]) -> TensorRule | ValueRule:
    scalars = [spec for spec in specs if isinstance(spec, ScalarSpec)]
    if scalars:
        values = [spec.value for spec in scalars]
        return ValueRule(specs[0].name, reader.value(values, specs[0].name), all(one.optional for one in scalars))
    return reader.tensor([spec for spec in specs if isinstance(spec, TensorSpec)])


def _mode(problem: Problem) -> bool | None:
    """Give the mode that a file is made for; an archive was exported in one and has no other."""
    if problem.form is ProblemForm.EXPORTED:
        return None
    names = (getattr(node, "attr", getattr(node, "id", "")) for node in ast.walk(parsed(problem.source)))
    return problem.abi.training if any(MODES.search(str(name)) for name in names) else None


COINCIDENCES = ("min(", "int(")
"""How numbers begin that are at most another, or a share of one: of an argument's own sizes that says nothing."""


@dataclass
class _Reader:
    """Writes sizes in terms of those it has seen."""

    facts: list[Fact] = field(default_factory=list)

    def tensor(self, specs: Sequence[TensorSpec]) -> TensorRule:
        """Read one tensor at all sizes."""
        first = specs[0]
        extents = zip(*(spec.shape for spec in specs), strict=True)
        sizes = tuple(self.size(values, f"{first.name}.shape[{place}]") for place, values in enumerate(extents))
        return TensorRule(first.name, first.dtype, sizes)

    def size(self, values: tuple[int, ...], name: str) -> int | Size:
        """Write one size; one that no other tells is known from here on."""
        if len(set(values)) == 1:
            return values[0]
        text = express(values, self.facts)
        if text is None or text.startswith(COINCIDENCES):
            # a kernel may well want a number that is at most another; of an input's own sizes that is a coincidence
            self.facts.append(Fact(name, values))
            # a kernel was tried with no other multiples
            divisor = math.gcd(*values)
            text = f"{ANY} * {divisor}" if divisor > 1 else ANY
        return Size(text)

    def value(self, values: Sequence[Any], name: str) -> Any:
        """Read a literal at all sizes: what is the same stays, a whole number that varies becomes a size, all else may be anything."""
        first = values[0]
        if all(repr(value) == repr(first) for value in values):
            return first
        if isinstance(first, tuple | list) and all(type(v) is type(first) and len(v) == len(first) for v in values):
            return type(first)(self.value(items, f"{name}[{place}]") for place, items in enumerate(zip(*values, strict=True)))
        return self.size(tuple(values), name) if all(type(value) is int for value in values) else Unfixed()
