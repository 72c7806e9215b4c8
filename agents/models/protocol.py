"""Whoever an agent can ask: one model, or several of which one is chosen for each question."""

from __future__ import annotations

from typing import Protocol

from pydantic import BaseModel

from agents.models.messages import Answer, Message, ToolSpec


class Model(Protocol):
    """Answers questions of the roles."""

    name: str

    async def ask(
        self, role: str, messages: list[Message] | tuple[Message, ...], schema: type[BaseModel] | None = None, *, purpose: str = ""
    ) -> Answer:
        """Put a question, with a schema for a structured answer; `purpose` says what for, and keeps equal questions apart."""

    async def ask_with_tools(
        self, role: str, messages: tuple[Message, ...], tools: tuple[ToolSpec, ...], *, may_call: bool = True, purpose: str = ""
    ) -> Answer:
        """Put a question that may be answered with calls of `tools` first (`Answer.calls`), unless none `may_call` is left."""

    async def ask_odds(self, role: str, messages: tuple[Message, ...], *, purpose: str = "") -> Answer:
        """Put a question that one token answers; `Answer.odds` has the token and its alternatives, or is empty where none are given."""

    async def close(self) -> None:
        """Close the connections."""
