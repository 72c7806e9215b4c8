"""How much two actions have in common: what was learnt of one says as much of the other."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias, TypeGuard

from tools.records import Action

Values: TypeAlias = Mapping[str, bool | int | float | str]

OTHER_REGION = 0.15
"""Likeness of actions of one kind on different regions."""


def likeness(one: Action, other: Action) -> float:
    """Between 0 (another kind) and 1 (equal): half for the kind and region, half for the parameters."""
    if one.kind is not other.kind:
        return 0.0
    if one.region != other.region:
        return OTHER_REGION
    return 0.5 + 0.5 * closeness(one.parameters, other.parameters)


def closeness(one: Values, other: Values) -> float:
    """Mean over all names of how close the values are: the smaller over the larger number, or equal or not; 1 for no names."""
    names = one.keys() | other.keys()
    if not names:
        return 1.0
    return sum(_close(one.get(name), other.get(name)) for name in names) / len(names)


def shared_closeness(one: Values, other: Values) -> float:
    """Like `closeness`, over the names both have."""
    names = one.keys() & other.keys()
    return closeness({n: one[n] for n in names}, {n: other[n] for n in names})


def _close(one: object, other: object) -> float:
    if is_number(one) and is_number(other) and one > 0 and other > 0:
        return float(min(one, other) / max(one, other))
    return float(one == other)


def is_number(value: object) -> TypeGuard[int | float]:
    """Whether a parameter's value is a number; a flag is none."""
    return isinstance(value, int | float) and not isinstance(value, bool)
