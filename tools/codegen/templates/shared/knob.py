"""A parameter of a template: its legal values, and which kind of action changes it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tools.records import ActionKind, PrecisionPolicy

Value = bool | int | float | str
Parameters = dict[str, Value]
"""Of a region, by name."""
Settings = Mapping[str, Value]
"""The same where they are only read."""


@dataclass(frozen=True)
class Knob:
    """One parameter of a template."""

    kind: ActionKind
    values: tuple[Value, ...]
    modelled: bool = True
    """Whether the cost model tells its values apart."""


ROUNDED = "tf32"
"""Precision that rounds the operands of float32 products to TF32."""
ROUGH = frozenset({ROUNDED, "bf16x3", "fp16x1"})
"""Precisions whose digits are fewer than float32's: offered only where the policy lets it."""
ROUNDING = 1e-3
"""Relative error from which on a tolerance covers that rounding: 10 bits of mantissa are 5e-4 an operand."""
WARPS = Knob(ActionKind.LAUNCH, (1, 2, 4, 8, 16, 32))


def may_round(policy: PrecisionPolicy) -> bool:
    """Whether float32 products may round their operands to TF32: the reference does, or the tolerance covers it."""
    return policy.name != "exact" or policy.tolerance >= ROUNDING
