"""What is said to a model and what comes back."""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

from pydantic import BaseModel, Field, SerializeAsAny

from tools.records import Record

Finish: TypeAlias = Literal["stop", "length", "refusal"]


class ToolSpec(Record):
    """A tool that a model may call instead of answering."""

    name: str
    description: str
    parameters: dict[str, Any]
    """JSON schema of its arguments."""


class ToolCall(Record):
    """One call of a tool, as a model wrote it."""

    id: str
    name: str
    arguments: str
    """JSON, or what was meant to be."""


class Message(Record):
    """One turn of a conversation."""

    role: Literal["system", "user", "assistant", "tool"]
    content: str
    calls: tuple[ToolCall, ...] = ()
    """Tools that an assistant's turn calls."""
    answers: str = ""
    """Of a tool's turn: the id of the call that it answers."""

    @property
    def fields(self) -> dict[str, Any]:
        """As a chat endpoint wants it."""
        if self.role == "tool":
            return {"role": "tool", "content": self.content, "tool_call_id": self.answers}
        calls = [{"id": one.id, "type": "function", "function": {"name": one.name, "arguments": one.arguments}} for one in self.calls]
        return {"role": self.role, "content": self.content, **({"tool_calls": calls} if calls else {})}


class Usage(Record):
    """Tokens as the server counted them."""

    input_tokens: int = Field(default=0, ge=0)
    """Cached ones included."""
    output_tokens: int = Field(default=0, ge=0)
    """Reasoning ones included."""
    cached_tokens: int = Field(default=0, ge=0)
    """Input tokens the server had in its prompt cache."""
    reasoning_tokens: int = Field(default=0, ge=0)
    """Output tokens that were thinking, not answer."""
    counted: bool = True
    """False where the server gave no usage: input and output are then estimated from the text, on the side of too many, so that a
    budget of tokens holds all the same."""

    def __add__(self, other: Usage) -> Usage:
        """Add up two calls; the sum is counted only where both are."""
        return Usage(
            input_tokens=self.input_tokens + other.input_tokens,
            output_tokens=self.output_tokens + other.output_tokens,
            cached_tokens=self.cached_tokens + other.cached_tokens,
            reasoning_tokens=self.reasoning_tokens + other.reasoning_tokens,
            counted=self.counted and other.counted,
        )


class Answer(Record):
    """What one question led to, repairs of its form included."""

    text: str
    """The last reply as the model wrote it."""
    model: str = ""
    """Who wrote it."""
    parsed: SerializeAsAny[BaseModel] | None = None
    """The reply as the schema asked for; None without a schema, or where no reply fitted it."""
    complaint: str = ""
    """What is wrong with the last reply where it does not fit the schema."""
    finish: Finish = "stop"
    """`length`: cut off at the output limit; `refusal`: the model declined."""
    usage: Usage = Usage()
    cost_usd: float | None = None
    """None where the price of the model or the usage is unknown."""
    seconds: float = 0.0
    """Time spent waiting for the server, retries included; 0 where every reply came from the store."""
    cached: bool = False
    """Whether every reply came from the call store: nothing was sent and nothing paid."""
    odds: dict[str, float] = Field(default_factory=dict)
    """Log-probabilities of the first token and of its alternatives; empty where they were not asked for or not given."""
    calls: tuple[ToolCall, ...] = ()
    """Tools that it calls; an answer that calls some is none yet."""
    key: str = ""
    """Key of the last call in the store."""
    notes: tuple[str, ...] = ()
    """What was worked around, one sentence each."""
