"""Renders prompts: Jinja files beside their agent, undefined variables are errors, foreign text is fenced as data."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from agents.models import Message
from tools.records import content_hash

SHARED = Path(__file__).resolve().parent / "prompts"
"""Parts that several roles use: the rule about data, how a problem, a sheet and a profile are shown."""


class Prompts:
    """The prompts of one role."""

    def __init__(self, module_file: str) -> None:
        """Read the templates in `prompts/` beside the module `module_file`."""
        self._environment = Environment(
            loader=FileSystemLoader([Path(module_file).resolve().parent / "prompts", SHARED]),
            undefined=StrictUndefined,
            autoescape=False,  # noqa: S701 - a prompt is no page, and code must reach the model as it is
            trim_blocks=True,
            lstrip_blocks=True,
            keep_trailing_newline=True,
        )
        self._environment.filters |= {"data": fence, "number": number}

    def names(self) -> tuple[str, ...]:
        """List the templates."""
        return tuple(name for name in self._environment.list_templates() if name.endswith(".j2"))

    def render(self, name: str, **values: Any) -> str:
        """Fill in one template."""
        return self._environment.get_template(f"{name}.j2").render(**values).strip() + "\n"

    def opening(self, name: str, **values: Any) -> tuple[Message, Message]:
        """Render a role's `system` template and the question in template `name`."""
        return (
            Message(role="system", content=self.render("system", **values)),
            Message(role="user", content=self.render(name, **values)),
        )


def fence(text: str, name: str, limit: int = 0) -> str:
    """Mark `text` as data; over `limit` characters its middle is left out, and that is said. 0 sets no limit.

    The mark holds a hash of the text, so the text cannot contain its own closing mark.
    """
    shown = clip(text, limit)
    mark = content_hash(shown)[:8]
    return f"<<<DATA {mark} {name}\n{shown.rstrip()}\nDATA {mark}>>>"


def clip(text: str, limit: int) -> str:
    """Cut `text` to about `limit` characters: its beginning and its end."""
    if not limit or len(text) <= limit:
        return text
    head, tail = text[: limit * 2 // 3], text[-(limit // 3) :]
    return f"{head}\n[... {len(text) - len(head) - len(tail)} characters left out ...]\n{tail}"


def number(value: float) -> str:
    """Write a figure with four significant digits."""
    return f"{value:,.4g}" if abs(value) < 1e6 else f"{value:,.0f}"
