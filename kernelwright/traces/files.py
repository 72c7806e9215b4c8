"""A trace as a file: written without secrets, read with a clear word on what is wrong with it, and its JSON schema."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from pydantic import ValidationError

import tools
from kernelwright.traces.records import FORMAT, VERSION, Trace
from tools.errors import UserError
from tools.logs import printable
from tools.tracing.secrets import without_secrets

SCHEMA = Path(tools.__file__).resolve().parents[1] / "data" / "schemas" / "trace.json"
"""The schema as it was published with this version."""

_ESCAPED = re.compile(r"\\u00(?:0[0-8bcef]|1[0-9a-f]|7f|[89][0-9a-f])", re.IGNORECASE)
"""Control characters as JSON inside of a string has them."""


def as_text(trace: Trace) -> str:
    """Write a trace as JSON, without keys and what looks like one."""
    return without_secrets(trace.model_dump_json(indent=1)) + "\n"


def schema_text() -> str:
    """The JSON schema of a trace."""
    schema = Trace.model_json_schema(mode="serialization")
    return json.dumps({"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}, indent=1) + "\n"


def read_trace(file: Path) -> Trace:
    """Read an exported run; UserError for what is none, is damaged, or is of a newer version."""
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is no text"
        raise UserError(f"{file} cannot be read ({why}).", "Give a file that `kernelwright trace RUN --export FILE` wrote.") from error
    found = demand_form(file, text)
    try:
        return Trace.model_validate(harmless(found))
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"]))
        raise UserError(f"{file} is damaged at {place}: {first['msg']}.", "Export the run again where it was made.") from error


def harmless(value: Any) -> Any:
    """Take out of a stranger's text what could steer a terminal."""
    if isinstance(value, str):
        return _ESCAPED.sub("\\\\ufffd", printable(value))
    if isinstance(value, list):
        return [harmless(one) for one in value]
    return {harmless(name): harmless(one) for name, one in value.items()} if isinstance(value, dict) else value


def demand_form(file: Path, text: str) -> dict[str, Any]:
    """Parse a text; UserError where it is no trace, or one of a version that this one does not know."""
    try:
        found: Any = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise UserError(f"{file} is damaged: it is no whole JSON ({error}).", "Export the run again where it was made.") from error
    if not isinstance(found, dict) or found.get("format") != FORMAT:
        raise UserError(f"{file} is no exported run.", "Give a file that `kernelwright trace RUN --export FILE` wrote.")
    version = found.get("version")
    if version != VERSION:
        by = found.get("kernelwright", "another version")
        raise UserError(
            f"{file} has version {version} of the form of traces, and this kernelwright reads version {VERSION}.",
            f"Read it with the version that wrote it ({by}), or a newer one.",
        )
    return found
