"""Reading replies: JSON with or without prose around it, and code in fenced blocks."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass

from pydantic import BaseModel, ValidationError

_THOUGHT = re.compile(r"\A\s*<think(?:ing)?>.*?(?:</think(?:ing)?>|\Z)", re.DOTALL)
_FENCE = re.compile(r"^[ \t]*(`{3,}|~{3,})[ \t]*([\w+-]*)[^\n]*$", re.MULTILINE)


@dataclass(frozen=True)
class Block:
    """One fenced block of a reply."""

    language: str
    """In lower case; empty where none was named."""
    text: str
    closed: bool
    """False where the reply ended inside the block."""


def without_thoughts(reply: str) -> str:
    """Leave out the thinking that some local models write before their answer."""
    return _THOUGHT.sub("", reply, count=1)


def fenced_blocks(reply: str) -> tuple[Block, ...]:
    """Find the fenced blocks of a reply, in order; a fence ends at the next line of the same sign alone."""
    blocks: list[Block] = []
    position = 0
    while opening := _FENCE.search(reply, position):
        mark, language = opening.group(1), opening.group(2).lower()
        closing = re.compile(rf"^[ \t]*{re.escape(mark)}[ \t]*$", re.MULTILINE).search(reply, opening.end())
        end = closing.start() if closing else len(reply)
        blocks.append(Block(language, reply[opening.end() + 1 : end], closing is not None))
        position = closing.end() if closing else len(reply)
    return tuple(blocks)


def read_json(reply: str, schema: type[BaseModel]) -> tuple[BaseModel | None, str]:
    """Find and validate the JSON object of a reply: the value, or None and what is wrong."""
    reply = without_thoughts(reply)
    if not reply.strip():
        return None, "The answer is empty."
    try:
        return schema.model_validate(json.loads(_object_text(reply))), ""
    except ValidationError as error:
        faults = [f"{'.'.join(str(p) for p in e['loc']) or 'the object'}: {e['msg']}" for e in error.errors()[:6]]
        return None, "The JSON does not fit the schema: " + "; ".join(faults) + "."
    except ValueError as error:
        return None, f"There is no valid JSON object in the answer ({error})."


def _object_text(reply: str) -> str:
    """Take the last fenced block that starts an object, or else what lies between the first and the last brace."""
    fenced = [b.text for b in fenced_blocks(reply) if b.text.lstrip().startswith("{")]
    if fenced:
        return fenced[-1]
    start, end = reply.find("{"), reply.rfind("}")
    return reply[start : end + 1] if 0 <= start < end else reply
