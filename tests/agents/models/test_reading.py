"""Reading JSON and fenced blocks out of replies."""

from __future__ import annotations

import pytest
from pydantic import BaseModel

from agents.models.reading import fenced_blocks, read_json


class Pick(BaseModel):
    """A schema."""

    number: int


@pytest.mark.parametrize(
    "reply",
    [
        '{"number": 1}',
        'Sure!\n```json\n{"number": 1}\n```\nAnything else?',
        'I choose {"number": 1}, as you asked.',
        '<think>{"number": 9}</think>{"number": 1}',
        '```json\n{"number": 5}\n```\nNo, rather:\n```json\n{"number": 1}\n```',
        '```json\n{"number": 1}',
    ],
)
def test_finds_the_object(reply: str) -> None:
    """Prose, fences, thinking and second thoughts around an object do not hide it."""
    assert read_json(reply, Pick) == (Pick(number=1), "")


@pytest.mark.parametrize(
    ("reply", "complaint"),
    [
        ("", "empty"),
        ("no", "no valid JSON"),
        ('{"number": "x"}', "number: Input should be a valid integer"),
        ("{}", "number: Field required"),
    ],
)
def test_says_what_is_wrong(reply: str, complaint: str) -> None:
    """An answer without a fitting object is described in words a model can act on."""
    parsed, said = read_json(reply, Pick)
    assert parsed is None
    assert complaint in said


def test_fence_ends_at_its_own_sign() -> None:
    """A block fenced by four signs may hold three."""
    (block,) = fenced_blocks("````md\n```python\nx\n```\n````")
    assert block.text == "```python\nx\n```\n"
    assert block.closed
