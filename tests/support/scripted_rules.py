"""What a scripted server answers to which request, as data."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

Fault = Literal["hang", "garbage", "html", "close", "length", "refusal", "no_usage", "trickle", "endless"]


class Rule(BaseModel):
    """What to answer to which request; the first rule that matches and has uses left is taken."""

    model_config = ConfigDict(extra="forbid")

    role: str = ""
    """`planner`, `coder`, `repairer`, `profiler`, `reviewer`: the word after "You are the" in the conversation; empty matches any."""
    match: str = ""
    """Regular expression searched in the last user message; its named groups fill `${name}` in the answer."""
    answer: str = ""
    status: int = 200
    message: str = "scripted error"
    """Error message for a status other than 200."""
    code: str | None = None
    """OpenAI's error code for a status other than 200."""
    retry_after: str | None = None
    delay_s: float = 0.0
    fault: Fault | None = None
    logprobs: dict[str, float] = Field(default_factory=dict)
    """Log-probabilities of the answer's first token and its alternatives, given where the request asks for them."""
    calls: list[tuple[str, str]] = Field(default_factory=list)
    """Tools that the answer calls, with the JSON of their arguments; left out where the request offers none."""
    uses: int = 0
    """How many requests it answers before later rules get their turn; 0 means any number."""


class Scenario(BaseModel):
    """A server's whole behaviour."""

    model_config = ConfigDict(extra="forbid")

    rules: list[Rule] = Field(default_factory=list)
    models: list[str] = Field(default_factory=lambda: ["scripted"])
    unsupported: list[
        Literal["json_schema", "temperature", "seed", "system_role", "max_tokens", "max_completion_tokens", "chat", "logprobs", "tools"]
    ] = Field(default_factory=list)
    """What it answers with 400."""
    vague: bool = False
    """Whether that 400 says what it does not support."""
    key: str | None = None
    """Required bearer token; None takes any."""
    entry: dict[str, object] = Field(default_factory=dict)
    """Further fields of each model in `/v1/models`."""
    lists_models: bool = True
    """False answers 404 to `/v1/models`."""
