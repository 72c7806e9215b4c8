"""Telling a file of another version of kernelwright from a damaged one, so that one line can say which side to update."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pydantic import ValidationError

_NEWER = {"extra_forbidden": "it has {where}", "enum": "it says {said!r} of {where}", "literal_error": "it says {said!r} of {where}"}
"""What a record tells its reader by a kind of error: a word or a field that was not known when the reader was written."""


class OtherVersionError(ValueError):
    """A file is whole, and what it says is of another version of kernelwright."""

    def __init__(self, what: str, *, newer: bool) -> None:
        """Keep `what` it has or lacks; it is `newer` than its reader, or older."""
        super().__init__(f"it is of {'a newer' if newer else 'an older'} kernelwright: {what}")
        self.newer = newer


def unreadable(error: ValidationError) -> ValueError:
    """Say why a record cannot be read."""
    errors = error.errors(include_url=False)
    first = errors[0]
    where = ".".join(str(part) for part in first["loc"])
    if any(one["type"] == "missing" and len(one["loc"]) == 1 for one in errors):
        # not even the beginnings of such a record
        return ValueError(f"{where}: {first['msg']}")
    if first["type"] in _NEWER:
        return OtherVersionError(_NEWER[first["type"]].format(where=where, said=_short(first["input"])), newer=True)
    if first["type"] == "missing":
        return OtherVersionError(f"it lacks {where}", newer=False)
    return ValueError(f"{where + ': ' if where else ''}{first['msg']}")


def _short(said: Any) -> Any:
    return said[:40] if isinstance(said, str) else said
