"""Counts the tokens of a question and its answer, by an encoding of tiktoken's, for a desk that states usage."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kernelwright.desk.folder import Body, Given, turns_of
from tools.errors import UserError

Count = Callable[[str], int]
"""Tokens of a text."""
TURN_TOKENS = 4
"""Each turn's frame: who speaks, where it begins, and where it ends."""


def counter(encoding: str) -> Count:
    """Open an encoding by name; raises UserError where there is none, or its table can neither be found nor fetched."""
    try:
        import tiktoken

        found = tiktoken.get_encoding(encoding)
    except ImportError as error:
        raise UserError("Tokens are counted by tiktoken, which is not installed.", "pip install tiktoken") from error
    except ValueError as error:
        raise UserError(f"tiktoken has no encoding {encoding!r}.", "Give --count o200k_base or --count cl100k_base.") from error
    except Exception as error:
        what = f"tiktoken cannot fetch its table of {encoding} ({error})."
        raise UserError(what, "Name a folder that holds it in TIKTOKEN_CACHE_DIR, or leave --count out.") from error
    return lambda text: len(found.encode(text, disallowed_special=()))


def usage(asked: Body, given: Given, count: Count) -> dict[str, int]:
    """Count the tokens of a question, its tools and schema included, and of what was written as its answer."""
    turns = turns_of(asked)
    forms = [asked[name] for name in ("tools", "response_format", "text") if name in asked]
    question = sum(count(str(text)) for turn in turns for text in _texts(turn)) + sum(count(str(form)) for form in forms)
    answer = count(given.text) + sum(count(call.name) + count(call.arguments) for call in given.calls)
    return {"input": question + TURN_TOKENS * len(turns), "output": answer}


def _texts(turn: dict[str, Any]) -> list[object]:
    content = turn.get("content") or ""
    parts = [part.get("text", "") for part in content] if isinstance(content, list) else [content]
    return [*parts, *(turn.get("tool_calls") or ())]
