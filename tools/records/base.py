"""The base of every record and the hash that names contents."""

from __future__ import annotations

import hashlib

from pydantic import BaseModel, ConfigDict


class Record(BaseModel):
    """A frozen, strictly typed value; unknown fields are errors; an infinite error survives its JSON form."""

    model_config = ConfigDict(frozen=True, extra="forbid", ser_json_inf_nan="strings")


def content_hash(*parts: str | bytes) -> str:
    """Name `parts` by the first 16 hexadecimal digits of their SHA-256; each part is length-prefixed."""
    digest = hashlib.sha256()
    for part in parts:
        data = part.encode() if isinstance(part, str) else part
        digest.update(len(data).to_bytes(8, "big"))
        digest.update(data)
    return digest.hexdigest()[:16]
