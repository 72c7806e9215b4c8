"""Renders prompts: Jinja files beside their agent, undefined variables are errors, foreign text is fenced as data.

A prompt has a length that it must not exceed. What may be cut is marked in its template (`data`, `most`); it is cut as far as
needed, and the prompt says at each place how much is missing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from jinja2 import Environment, FileSystemLoader, StrictUndefined, pass_context
from jinja2.runtime import Context

from agents.models import Message, ModelUnavailable
from agents.prompting.frame import Frame
from tools.records import content_hash

SHARED = Path(__file__).resolve().parent / "prompts"
"""Parts that several roles use: the rule about data, how a problem, a sheet and a profile are shown."""
CHARACTERS_A_TOKEN = 3
"""Low on purpose: English text and code have about four, so that a prompt is shorter than its count says."""
SHARES = (1.0, 0.7, 0.5, 0.35, 0.25, 0.15, 0.1, 0.05)
"""Of what a template shows at most: the first that fits is taken."""
LANGUAGES = {"triton": "Triton", "cuda": "CUDA C++"}
"""How a candidate's language is called in words."""


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
        self._environment.filters |= {"data": _data, "most": _most, "number": number, "counted": counted}

    def names(self) -> tuple[str, ...]:
        """List the templates."""
        return tuple(name for name in self._environment.list_templates() if name.endswith(".j2"))

    def render(self, name: str, **values: Any) -> str:
        """Fill in one template."""
        return self._environment.get_template(f"{name}.j2").render(**values).strip() + "\n"

    def opening(self, name: str, role: str, frame: Frame, **values: Any) -> tuple[Message, Message]:
        """Render `role`'s `system` template and the question in template `name`, cut to the frame's length for that role.

        Raises ModelUnavailable where what cannot be cut is too long already: then this question is not put.
        """
        limit, least = frame.context(role), 0
        given = {**values, "role": role, "language": frame.language, "title": LANGUAGES[frame.language]}
        for share in SHARES:
            messages = (
                Message(role="system", content=self.render("system", **given, share=share)),
                Message(role="user", content=self.render(name, **given, share=share)),
            )
            least = sum(tokens(message.content) for message in messages)
            if not limit or least <= limit:
                return messages
        raise ModelUnavailable(
            f"The {role}'s prompt has at least {least:,} tokens, where {limit:,} are allowed.",
            f"Allow it with --context {role}={least}; `kernelwright resume` takes that, too.",
        )


def tokens(text: str) -> int:
    """Estimate how many tokens a text has, from its characters: tokenizers differ, and none is asked."""
    return len(text) // CHARACTERS_A_TOKEN + 1


class Shown(NamedTuple):
    """Part of a list."""

    kept: tuple[Any, ...]
    left: int
    """How many are not shown."""


@pass_context
def _data(context: Context, text: str, name: str, limit: int = 0) -> str:
    """Fence a text; with a limit it may be cut, and is cut to the share of it that this rendering allows."""
    return fence(text, name, max(200, int(limit * context.get("share", 1.0))) if limit else 0)


@pass_context
def _most(context: Context, items: Iterable[Any], limit: int, last: bool = False) -> Shown:
    """Take the first of a list, or its last, as many as this rendering allows of `limit`."""
    given: Sequence[Any] = tuple(items)
    count = max(1, int(limit * context.get("share", 1.0)))
    kept = given[-count:] if last else given[:count]
    return Shown(tuple(kept), len(given) - len(kept))


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


def counted(names: Iterable[str]) -> str:
    """List names as they first come, each with how often it comes where that is more than once."""
    return ", ".join(f"{name} ({count} times)" if count > 1 else name for name, count in Counter(names).items())


def number(value: float) -> str:
    """Write a figure with four significant digits."""
    return f"{value:,.4g}" if abs(value) < 1e6 else f"{value:,.0f}"
