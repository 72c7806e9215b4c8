"""What the prompts of a run are made for: the language of its candidates, what is shown to start from, and how long a prompt may be."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TypeAlias, get_args

from pydantic import Field

from tools.errors import UserError
from tools.records import Record

Language: TypeAlias = Literal["triton", "cuda"]

CONTEXTS = {"planner": 16_000, "coder": 20_000, "repairer": 20_000, "profiler": 6_000, "reviewer": 12_000}
"""Tokens of a prompt by role: what the role needs for the sample operators, with room for a kernel of some hundred lines."""


class Frame(Record):
    """Settings of the prompts."""

    language: Language = "triton"
    """Candidates are Python with Triton kernels, or Python that builds CUDA C++."""
    scratch: bool = False
    """True: where there is no kernel yet, the built-in coder's is not shown."""
    tools: int = Field(default=0, ge=0)
    """Calls of tools that the coder's model may make for one kernel, before it hands that in; 0: it has no tools."""
    contexts: dict[str, int] = Field(default_factory=dict)
    """Tokens a prompt may have, by role, instead of `CONTEXTS`; 0 sets no limit."""

    def context(self, role: str) -> int:
        """Tokens that a prompt of `role` may have; 0 sets no limit."""
        return self.contexts.get(role, CONTEXTS[role])


def read_frame(language: str, scratch: bool, contexts: Sequence[str]) -> Frame:
    """Read the command line's words: a language, whether to begin from scratch, and `ROLE=TOKENS`."""
    if language not in get_args(Language):
        raise UserError(f"Candidates cannot be written in {language!r}.", f"Choose one of: {', '.join(get_args(Language))}.")
    return Frame.model_validate({"language": language, "scratch": scratch, "contexts": read_contexts(contexts)})


def read_contexts(words: Sequence[str]) -> dict[str, int]:
    """Read `ROLE=TOKENS`."""
    limits: dict[str, int] = {}
    for word in words:
        role, equals, tokens = word.partition("=")
        if not equals or role not in CONTEXTS or not tokens.isdecimal():
            roles = ", ".join(CONTEXTS)
            raise UserError(f"{word!r} is no length of a prompt.", f"Write ROLE=TOKENS, for example coder=12000; roles: {roles}.")
        limits[role] = int(tokens)
    return limits
