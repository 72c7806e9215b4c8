"""Finds the candidate's source in a model's reply, or says in words what keeps the reply from being one."""

from __future__ import annotations

import ast

from agents.models.reading import Block, fenced_blocks, without_thoughts
from tools.syntax import parsed

PYTHON = ("python", "py", "python3", "triton", "")
"""Fence languages that may hold a candidate."""
NATIVE = ("cpp", "c++", "cuda", "cu", "c")
"""Fence languages of parts that lie inside of a candidate's strings."""


def read_source(reply: str) -> tuple[str, str]:
    """Return the source and an empty complaint, or an empty source and the complaint.

    Of several blocks it takes the last complete one that defines ModelNew: models show fragments first and the whole at the end.
    """
    text = without_thoughts(reply)
    blocks = fenced_blocks(text)
    if not text.strip():
        return "", "The answer is empty."
    if not blocks:
        return _bare(text)
    python = [b for b in blocks if b.language in PYTHON]
    if not python:
        languages = ", ".join(dict.fromkeys(b.language for b in blocks))
        return "", f"The answer holds {languages} and no Python; the candidate is one Python file."
    whole = [b for b in python if b.closed and not _fault(b.text)]
    if whole:
        return whole[-1].text.strip() + "\n", ""
    return "", _complaint(python[-1])


def python_blocks(reply: str) -> tuple[str, ...]:
    """The complete blocks of a reply that may hold code of a candidate, parts of one too."""
    return tuple(b.text for b in fenced_blocks(without_thoughts(reply)) if b.closed and b.language in (*PYTHON, *NATIVE))


def _bare(text: str) -> tuple[str, str]:
    """A reply that is all code needs no fence."""
    if not _fault(text):
        return text.strip() + "\n", ""
    return "", "There is no fenced block of Python in the answer."


def _complaint(block: Block) -> str:
    if not block.closed:
        return "The answer was cut off inside the code; write the whole file, more briefly."
    return _fault(block.text)


def _fault(source: str) -> str:
    """What keeps a text from being a candidate's source; empty where nothing does."""
    try:
        tree = parsed(source)
    except SyntaxError as error:
        return f"The code is no valid Python: {error.msg} in line {error.lineno}."
    except ValueError as error:
        return f"The code is no valid Python: {error}."
    if not any(isinstance(node, ast.ClassDef) and node.name == "ModelNew" for node in tree.body):
        return "The code defines no class ModelNew; write the whole file, not a part of it."
    return ""
