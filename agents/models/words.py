"""Reads the command line's words about models: `NAME`, `NAME@URL`, several joined by commas, and `--model-set`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pydantic import ValidationError

from agents.models.settings import ModelSettings
from tools.errors import UserError

ROLES = ("planner", "coder", "repairer", "profiler", "reviewer")
"""Who asks; the repairer is the coder mending what failed."""
Overrides = Mapping[str, Mapping[str, str]]
"""Fields of ModelSettings by whom they are for: a role, a model, or the empty string for all."""


def read_overrides(words: Sequence[str]) -> Overrides:
    """Read `FIELD=VALUE`, `ROLE.FIELD=VALUE` and `MODEL.FIELD=VALUE`."""
    found: dict[str, dict[str, str]] = {}
    for word in words:
        left, equals, value = word.partition("=")
        owner, _, field = left.strip().rpartition(".")
        if not equals or field not in ModelSettings.model_fields or field in {"name", "role_temperatures"}:
            fields = ", ".join(f for f in ModelSettings.model_fields if f not in {"name", "role_temperatures"})
            raise UserError(
                f"{word!r} is no setting of a model.", f"Write FIELD=VALUE, ROLE.FIELD=VALUE or MODEL.FIELD=VALUE; fields: {fields}."
            )
        found.setdefault(owner, {})[field] = value.strip()
    return found


def read_models(word: str, base_url: str, key_file: str, overrides: Overrides, role: str = "") -> tuple[ModelSettings, ...]:
    """Read one or several models; where several are named, one is chosen for each question."""
    return tuple(_model(part.strip(), base_url, key_file, overrides, role) for part in word.split(",") if part.strip())


def _model(word: str, base_url: str, key_file: str, overrides: Overrides, role: str) -> ModelSettings:
    name, url = word, base_url
    for mark in ("@http://", "@https://"):
        if mark in word:
            name, _, rest = word.partition(mark)
            url = f"{mark[1:]}{rest}"
    given: dict[str, object] = {"name": name, "base_url": url or None, "key_file": key_file or None}
    for owner in dict.fromkeys(("", role, name)):
        # a role's temperature goes by role, so that one client can serve every role
        by_role = {"temperature"} if owner and owner == role else set()
        given |= {field: value for field, value in overrides.get(owner, {}).items() if field not in by_role}
    given["role_temperatures"] = {o: f["temperature"] for o, f in overrides.items() if o in ROLES and "temperature" in f}
    try:
        return ModelSettings.model_validate(given)
    except ValidationError as error:
        first = error.errors()[0]
        raise UserError(f"The setting {first['loc'][0]} of the model {name!r} is wrong: {first['msg']}.", "See docs/models.md.") from error
