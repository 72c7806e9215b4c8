"""Reads precision policies: by name, from a JSON file, and with what the command line states in their place."""

from __future__ import annotations

from pathlib import Path

from pydantic import ValidationError

import tools
from tools.errors import UserError
from tools.nearest import nearest
from tools.records import PolicyName, PrecisionPolicy, Record


class PolicySheet(Record):
    """One file."""

    title: str
    """What it allows, in a sentence."""
    policy: PrecisionPolicy


def policy_folder() -> Path:
    """Folder of the named policies: beside `tools` in a checkout and in the installed package alike."""
    return Path(tools.__file__).resolve().parents[1] / "data" / "policies"


def policy_names() -> tuple[str, ...]:
    """List the named policies."""
    return tuple(sorted(path.stem for path in policy_folder().glob("*.json")))


def load_policy(name: str) -> PrecisionPolicy:
    """Read a policy by its name or from a JSON file; what is neither raises UserError."""
    path = Path(name) if name.endswith(".json") else policy_folder() / f"{name}.json"
    if not path.is_file():
        mend = f"{nearest(name, policy_names())}Choose one of {', '.join(policy_names())}, or give a JSON file."
        raise UserError(f"There is no precision policy {name!r}.", mend)
    try:
        return PolicySheet.model_validate_json(path.read_text(encoding="utf-8")).policy
    except (ValidationError, UnicodeDecodeError) as error:
        last = str(error).splitlines()[-2:] if isinstance(error, ValidationError) else [str(error)]
        what = f"The policy {path} cannot be read: {' '.join(last).strip()[:200]}"
        raise UserError(what, "Write it as data/policies/exact.json is.") from error


def named_policies(words: str) -> tuple[PolicyName, ...]:
    """Read a comma list of named policies; what is none raises UserError."""
    return tuple(load_policy(word).name for word in dict.fromkeys(part.strip() for part in words.split(",")) if word)


def stated_policy(name: str, tolerance: float = 0.0, row_tolerance: float = 0.0, *, non_finite: bool = False) -> PrecisionPolicy:
    """Read a policy and put what the command line states in its place."""
    policy = load_policy(name)
    stated = {"tolerance": tolerance, "row_tolerance": row_tolerance, "non_finite": non_finite}
    if row_tolerance and not (tolerance or policy.tolerance):
        raise UserError("A row tolerance needs a tolerance of the whole.", "Add --tolerance.")
    return policy.model_copy(update={field: value for field, value in stated.items() if value})
