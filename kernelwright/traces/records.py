"""The form of an exported run: run → rounds → plans → candidates → calls, evaluations, profiles, strategies, cost, joined by ids.

Every id that one part names of another is the `id` of exactly one part. Times are seconds since the epoch.
"""

from __future__ import annotations

from typing import Any, Generic, Literal, TypeVar

from pydantic import ConfigDict, Field

from agents.coder.protocol import Refusal
from agents.models import Trouble
from agents.models.calls import CallRecord
from agents.reviewer.protocol import Review
from graphs.run.records import Delivery, Recall, Tuning
from graphs.run.workbench import ToolUse
from graphs.search.protocol import Ask
from tools.records import Baselines, Candidate, Evaluation, Plan, Problem, Profile, Record, Spent
from tools.tracing import Span

FORMAT: Literal["kernelwright-trace"] = "kernelwright-trace"
VERSION: Literal[1] = 1
"""Raised with every change of the form that a reader of the one before could not read."""
V_co = TypeVar("V_co", bound=Record, covariant=True)


class Part(Record):
    """A part of a trace; what is said below its fields is in the schema."""

    model_config = ConfigDict(use_attribute_docstrings=True)


class Noted(Part, Generic[V_co]):
    """One record of the run as it was written down."""

    # what is said below a field pydantic looks for in every frame above, once more for each kind of value: seconds in a large process
    model_config = ConfigDict(use_attribute_docstrings=False)

    id: str
    subject: str = Field(description="Id of what it is about; empty where it is about the run.")
    written: float
    value: V_co


class Round(Part):
    """One pass through the loop."""

    number: int
    """Counted from 1; 0 is the measuring of the reference."""
    started: float | None
    """None where the run's record has no nodes."""
    ended: float | None
    recalls: tuple[Noted[Recall], ...]
    """What memory brought up, a record for each parent that was worked on."""
    plans: tuple[str, ...]
    """Ids of the plans made in it."""


class PlanStep(Part):
    """One plan and what came of it."""

    id: str
    round: int
    plan: Noted[Plan]
    """Its strategies are ids of those that its round recalled."""
    asked: Noted[Ask] | None
    """What the search method had asked for."""
    calls: tuple[str, ...]
    """Ids of the model calls made for it; one that asked for several plans is named by each."""
    tools: tuple[Noted[ToolUse], ...]
    """What its writer looked at while it wrote."""
    refusals: tuple[Noted[Refusal], ...]
    tuning: Noted[Tuning] | None
    """Where its action was to tune: every point that was tried."""
    candidates: tuple[str, ...]
    """Ids of what was written for it, drafts that were repaired among them, oldest first."""
    candidate: str
    """Id of the one it ended with; empty where none was reviewed."""
    review: Noted[Review] | None
    learnt: tuple[str, ...]
    """Ids of the strategies that memory made or changed by its outcome."""


class CandidateStep(Part):
    """One source with all that was found out about it."""

    id: str
    plan: str
    """Id of the plan it was written for."""
    candidate: Noted[Candidate]
    evaluations: tuple[str, ...]
    """Ids of its evaluations, the search's first, then confirmations."""
    profile: Noted[Profile] | None


class Call(Part):
    """One model call that was answered."""

    id: str
    plans: tuple[str, ...]
    """Ids of the plans it was made for; none where it was about the reference or the whole run."""
    call: Noted[CallRecord]
    """Written when it had ended; it began `seconds` earlier."""


class CostLine(Part):
    """What the calls of one role to one model came to."""

    role: str
    model: str
    calls: int
    input_tokens: int
    output_tokens: int
    cost_usd: float | None
    """None where a price or a count is unknown."""


class Cost(Part):
    """What the run has used."""

    spent: Spent
    lines: tuple[CostLine, ...]


class Session(Part):
    """A stretch in which a process worked on the run."""

    started: float
    last_seen: float


class RunHead(Part):
    """What is known of the run as a whole."""

    id: str
    """Its name."""
    state: Literal["ended", "unfinished"]
    facts: dict[str, str]
    """As the run has them: `settings` (JSON), `created`, and others."""
    sessions: tuple[Session, ...]


class Kept(Part):
    """A record of a kind that has no place above; its form may change between versions."""

    kind: str
    id: str
    subject: str
    written: float
    value: dict[str, Any]


class Trace(Part):
    """A whole run. An infinite figure is written as the string "Infinity"."""

    format: Literal["kernelwright-trace"] = FORMAT
    version: Literal[1] = VERSION
    kernelwright: str
    """Version that exported it."""
    exported: float
    run: RunHead
    problem: Noted[Problem]
    baselines: Noted[Baselines] | None
    """The reference's own times."""
    other_baselines: tuple[Noted[Baselines], ...] = ()
    """Its times under other policies, by the policy's name."""
    reference_profile: Noted[Profile] | None
    rounds: tuple[Round, ...]
    plans: tuple[PlanStep, ...]
    candidates: tuple[CandidateStep, ...]
    evaluations: tuple[Noted[Evaluation], ...]
    """About the candidate that `subject` names."""
    calls: tuple[Call, ...]
    failed_calls: tuple[Noted[Trouble], ...] = ()
    delivery: Noted[Delivery] | None
    cost: Cost
    nodes: tuple[Span, ...]
    """Every execution of a node of the graph, in order of start; `subject` is a plan's id, or `round N`."""
    others: tuple[Kept, ...] = Field(default=())
    """What else the run wrote down."""
