"""What `--help` says of a command: its docstring, in which examples keep their lines, so that they can be copied."""

from __future__ import annotations

from inspect import cleandoc


def examples_kept(text: str) -> str:
    """Mark the examples of a docstring as a paragraph that Click is not to wrap: one that begins with a backspace."""
    words, heading, examples = cleandoc(text).partition("Example")
    if not heading:
        return words
    lines = [line for line in examples.splitlines() if line.strip()]
    return f"{words}\b\n{heading}" + "\n".join(lines)
