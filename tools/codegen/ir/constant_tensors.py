"""Tensors that hold one number everywhere, and read nothing: a kernel writes the number where one is read."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tools.codegen.ir.dtypes import is_signed
from tools.codegen.ir.graph import Node, OperatorGraph, Ref, TensorMeta
from tools.codegen.ir.sizes import Fact, Varying, is_told


@dataclass(frozen=True)
class Tables:
    """Numbers that a forward lists by its sizes, as the pairs below a diagonal: more of them at some sizes than at others."""

    values: tuple[Any, ...]
    """Nested lists, one in every trace."""


FILLS: dict[str, Any] = {
    "zeros_like": 0, "new_zeros": 0, "zeros": 0, "ones_like": 1, "new_ones": 1, "ones": 1,
    # what is there before anything is written may be anything
    "empty_like": 0, "new_empty": 0, "empty": 0,
    "full_like": ("fill_value", 1), "full": ("fill_value", 1), "new_full": ("fill_value", 2),
}  # fmt: skip
"""By operator: the number, or the name and the place of the argument that is the number."""
MOST_NUMBERS = 4096
"""Elements of a constant tensor that is written into an emitted file."""
MOST_INLINE = 64
"""Elements of one that a kernel has among its own instructions."""
EXACT_IN_HALF = 256
"""Whole numbers up to which every floating dtype has each of them."""
WRITTEN = frozenset(("bool", "uint8", "int8", "int16", "int32", "int64", "float16", "bfloat16", "float32", "float64"))
"""Dtypes of numbers that a kernel writes to the device where somebody reads them there."""
CONSTANT = "kernelwright.constant.default"
"""What makes a tensor of more numbers than a kernel writes itself."""
MAKES_NUMBERS = ("kernelwright.numbers.", "kernelwright.constant.")
"""Operators that make a tensor of numbers which are written in a forward."""


def fill_number(node: Node | None) -> bool | int | float | None:
    """Read the number that a node fills its result with, as its dtype has it; None where it does something else, or cannot be told here."""
    given = FILLS.get(node.op) if node else None
    if node is None or given is None or len(node.outputs) != 1:
        return None
    if isinstance(given, tuple):
        name, place = given
        given = node.args[place] if len(node.args) > place else node.kwargs.get(name)
    return as_dtype(given, node.outputs[0].dtype)


def as_dtype(number: Any, dtype: str) -> bool | int | float | None:
    """Convert a number as a tensor of a dtype would hold it; None where that needs a rounding that is not made here."""
    if not isinstance(number, bool | int | float):
        return None
    if dtype == "bool":
        return bool(number)
    if is_signed(dtype):
        return int(number) if math.isfinite(number) else None
    whole = not math.isfinite(number) or (number == int(number) and abs(number) <= EXACT_IN_HALF)
    return float(number) if whole or dtype in ("float32", "float64") else None


def is_fill(graph: OperatorGraph, ref: Ref) -> bool:
    """Whether a value is such a tensor."""
    return fill_number(graph.by_name.get(ref.name)) is not None


def constant_target(meta: TensorMeta) -> str:
    """Name what makes a tensor of given numbers: one number, a few that a kernel writes itself, or more."""
    if not meta.shape:
        return "aten.scalar_tensor.default"
    return f"kernelwright.{'numbers' if meta.numel <= MOST_INLINE else 'constant'}.default"


def flat_numbers(numbers: Any) -> list[Any]:
    """List the numbers of such a tensor in order."""
    return [each for item in numbers for each in flat_numbers(item)] if isinstance(numbers, list | tuple) else [numbers]


def table_text(tables: Tables, facts: Sequence[Fact]) -> str | None:
    """Write the table of each size by a size that tells its greatest number, as positions have one; None where none does.

    At any other size there is no table, and asking for it is an error; all positions of a size are counted at any.
    """
    numbers = [flat_numbers(table) for table in tables.values]
    if not all(type(number) is int for table in numbers for number in table) or not all(numbers):
        return None
    for fact in facts:
        if all(table == [*range(size)] for size, table in zip(fact.values, tables.values, strict=True)):
            return f"[*range({fact.text})]"
    greatest = tuple(map(max, numbers))
    for fact in facts:
        cases = dict(zip(fact.values, tables.values, strict=True))
        known = all(cases[size] == table for size, table in zip(fact.values, tables.values, strict=True))
        if known and is_told(greatest, [fact]):
            return f"{{{', '.join(f'{size}: {table}' for size, table in cases.items())}}}[{fact.text}]"
    return None


def is_written(node: Node) -> bool:
    """Whether a kernel can write the numbers of such a tensor to the device, all of them by itself."""
    if node.target != "kernelwright.numbers.default" or only_number(node) is not None or not node.outputs[0].numel:
        return False
    return not any(isinstance(each, Varying) for each in flat_numbers(node.args[0])) and node.outputs[0].dtype in WRITTEN


def only_number(node: Node) -> tuple[bool | int | float | Varying, tuple[int, ...]] | None:
    """Return the number that all elements of such a tensor are, and the tensor's shape; None where they differ or are none."""
    numbers, shape = node.args[0], list[int]()
    if isinstance(numbers, Tables):
        return None
    while isinstance(numbers, list):
        if not numbers or any(repr(each) != repr(numbers[0]) for each in numbers):
            return None
        shape.append(len(numbers))
        numbers = numbers[0]
    return numbers, tuple(shape)
