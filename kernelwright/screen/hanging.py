"""Sentences beside their labels: on a terminal they are broken between words, below themselves."""

from __future__ import annotations

from rich.console import Console
from rich.text import Text


def print_hanging(console: Console, label: Text, text: Text) -> None:
    """Print a label and what it names; on one line where nobody watches, and where a word, such as a path to be copied, is too long."""
    room = console.width - label.cell_len
    longest = max((len(word) for word in text.plain.split()), default=0)
    if not console.is_terminal or longest > room:
        console.print(Text.assemble(label, text), soft_wrap=True)
        return
    for number, line in enumerate(text.wrap(console, room) or [Text()]):
        line.rstrip()
        console.print(Text.assemble(" " * label.cell_len if number else label, line))
