"""Words of actions and schedules that were renamed: records written before are read in today's words.

Ids, signatures and keys that are made of such words go on being made of the first ones, so that what was kept under them is found.
Titles and lessons stay in the words they were written in.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

Value = bool | int | float | str

VALUES: dict[str, dict[str, str]] = {
    "programs": {"a_tile": "data_parallel", "held": "operand_stationary"},
    "algorithm": {"staggered": "l2_two_pass", "quads": "vec4"},
    "weights": {"packed": "prepacked"},
    "algebra": {"sum_first": "reduction_pushdown", "fold_norm": "fold_batch_norm"},
}
"""Values of a parameter, today's by the first one."""
TEMPLATES = {"window": "pooling"}
"""Names of templates, today's by the first one."""
FIELDS = {"early_sums": "reduction_pushdown", "folded_norms": "folded_batch_norms", "packed": "prepacked"}
"""Fields of a schedule, today's by the first one."""
MADE = "made"
"""The parameter that says in a phrase what a choice of the cost model made."""
_PHRASES = {
    "sums first": "reduction push-down",
    "norms folded": "folded batch norms",
    "values packed": "prepacked values",
    **TEMPLATES,
    **{first: now for renamed in VALUES.values() for first, now in renamed.items()},
}


def _turned(words: Mapping[str, str]) -> dict[str, str]:
    return {now: first for first, now in words.items()}


_FIRST_VALUES = {name: _turned(renamed) for name, renamed in VALUES.items()}
_FIRST_TEMPLATES = _turned(TEMPLATES)
_FIRST_PHRASES = _turned(_PHRASES)


def present_parameters(parameters: Mapping[str, Value]) -> dict[str, Value]:
    """Put parameters of an action or a region into today's words."""
    return {name: _value(name, value, VALUES, _PHRASES) for name, value in parameters.items()}


def first_parameters(parameters: Mapping[str, Value]) -> dict[str, Value]:
    """Put parameters into the words that ids are made of."""
    return {name: _value(name, value, _FIRST_VALUES, _FIRST_PHRASES) for name, value in parameters.items()}


def present_templates(names: str) -> str:
    """Put a template's name, or several joined by `+`, into today's words."""
    return _joined(names, TEMPLATES)


def first_templates(names: str) -> str:
    """Put a template's name, or several joined by `+`, into the words that ids are made of."""
    return _joined(names, _FIRST_TEMPLATES)


def present_fields(schedule: Any) -> Any:
    """Name the fields of a schedule as today; what is no mapping is left to whoever validates it."""
    return {FIELDS.get(name, name): value for name, value in schedule.items()} if isinstance(schedule, Mapping) else schedule


def _value(name: str, value: Value, values: Mapping[str, Mapping[str, str]], phrases: Mapping[str, str]) -> Value:
    if not isinstance(value, str):
        return value
    return _phrase(value, phrases) if name == MADE else values.get(name, {}).get(value, value)


def _phrase(text: str, phrases: Mapping[str, str]) -> str:
    """Replace whole words, the longest phrase first."""
    known = "|".join(map(re.escape, sorted(phrases, key=len, reverse=True)))
    return re.sub(rf"\b(?:{known})\b", lambda found: phrases[found[0]], text)


def _joined(names: str, words: Mapping[str, str]) -> str:
    return "+".join(words.get(name, name) for name in names.split("+"))
