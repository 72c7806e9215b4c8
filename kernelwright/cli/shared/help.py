"""What `--help` says of a command: its docstring, in which examples keep their lines, and its options, in groups where there are many."""

from __future__ import annotations

from collections.abc import Mapping
from inspect import cleandoc
from typing import Any

from typer.core import TyperCommand

GROUPS: Mapping[str, tuple[str, ...]] = {
    "Most used": ("target", "budget", "minutes", "model", "base_url", "out", "verbose", "json"),
    "What is judged, and how strictly": ("entry", "policy", "tolerance", "row_tolerance", "non_finite", "weights", "baselines"),
    "What is delivered": ("floor", "against", "fallback"),
    "Search": ("start", "parents", "language", "search", "search_set", "seed", "width", "batch", "tune", "repairs"),
    "Language models": ("team", "usd", "tokens", "key_file", "role", "coder_tools", "model_set", "context", "prices", "cache"),
    "Memory": ("no_memory", "embedder", "chroma_server", "share", "half_life"),
    "Machine": ("home", "devices", "evaluator", "wait", "counters", "gpu_seconds", "timeout", "trace_timeout", "compile_timeout"),
}
"""Headings of `optimize --help` with the parameters of its function below them, both in the order in which they are shown."""
OTHERS = "Other options"
WIDEST = 110
"""Columns that help fills at most."""


class GroupedCommand(TyperCommand):
    """A command whose options are listed under headings, as plain text that fits any terminal."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write the arguments, then the options group by group, and last what is in no group."""
        known = {one.name: record for one in self.get_params(ctx) if (record := one.get_help_record(ctx))}
        arguments = {one.name for one in self.get_params(ctx) if one.param_type_name == "argument"}
        grouped = {name for names in GROUPS.values() for name in names}
        listed = {"Arguments": arguments, **GROUPS, OTHERS: [name for name in known if name not in grouped | arguments]}
        for heading, names in listed.items():
            if records := [known[name] for name in names if name in known]:
                with formatter.section(heading):
                    formatter.write_dl(records)


def examples_kept(text: str) -> str:
    """Mark the examples of a docstring as a paragraph that Click is not to wrap: one that begins with a backspace."""
    words, heading, examples = cleandoc(text).partition("Example")
    if not heading:
        return words
    lines = [line for line in examples.splitlines() if line.strip()]
    return f"{words}\b\n{heading}" + "\n".join(lines)
