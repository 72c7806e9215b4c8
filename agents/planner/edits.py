"""A language model edits a tree of decisions: its words become edits, what is invalid is sent back once, what stays so is refused."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, Field

from agents.models import Answer, Message, Model
from agents.planner.choices import Choice, Parameter, action_of
from agents.planner.world import Check, TreeCase, TreeEdit, TreeEdits
from agents.prompting.render import Prompts
from tools.records import ActionKind

SHOWN = 300
"""Characters of a complaint or a reason that are kept."""


class EditWords(BaseModel):
    """One edit as a model writes it."""

    edit: Literal["insert", "update", "split", "prune"]
    node: int = Field(description="insert: the node to open a decision below; otherwise the node to change")
    kind: ActionKind | None = Field(description="insert only, else null")
    region: str | None = Field(description="insert only, else null")
    parameters: list[Parameter] = Field(description="insert only, else empty")
    score: float | None = Field(description="insert and update: how promising, 0 to 10")
    gain: float | None = Field(description="insert and update: expected parent time over child time")
    confidence: float | None = Field(description="update: 0 to 1")
    difficulty: int | None = Field(description="insert: how much of the kernel it changes, 1 to 5")
    reason: str


class EditList(BaseModel):
    """The model's answer."""

    edits: list[EditWords]


async def ask_edits(model: Model, prompts: Prompts, messages: tuple[Message, ...], case: TreeCase, check: Check) -> TreeEdits:
    """Ask for edits and check them; those at fault are sent back once, with what was usable kept."""
    purpose = f"edit {case.briefing.parent} {case.name}"
    answer = await model.ask("planner", messages, EditList, purpose=purpose)
    kept, faults = check(_edits(answer, case))
    if faults and not answer.complaint:
        request = prompts.render("edit_invalid", faults=faults, free=case.briefing.free)
        again = (*messages, Message(role="assistant", content=answer.text), Message(role="user", content=request))
        answer = await model.ask("planner", again, EditList, purpose=f"{purpose}, again")
        mended, left = check(_edits(answer, case))
        # what was usable in the first answer is not lost to a worse second one
        kept, faults = (mended, left) if len(mended) >= len(kept) else (kept, faults)
    by = answer.model or model.name
    if kept:
        return TreeEdits(edits=kept, by=by, refused=faults)
    reason = answer.complaint or "; ".join(faults) or "it gave no edit"
    return TreeEdits(by=by, refused=faults, reason=f"{by} gave no usable edit ({reason[:SHOWN]}).")


def _edits(answer: Answer, case: TreeCase) -> tuple[TreeEdit, ...]:
    words = answer.parsed.edits if isinstance(answer.parsed, EditList) else []
    return tuple(_edit(one, case) for one in words)


def _edit(words: EditWords, case: TreeCase) -> TreeEdit:
    fields = words.model_dump(include={"edit", "node", "score", "gain", "confidence", "difficulty"})
    reason = " ".join(words.reason.split())[:SHOWN]
    if words.edit != "insert" or words.kind is None:
        return TreeEdit(**fields, reason=reason)
    choice = Choice(
        kind=words.kind, region=words.region or "", parameters=words.parameters, rationale=reason, predicted_gain=None, strategies=[]
    )
    return TreeEdit(**fields, action=action_of(choice, case.briefing), reason=reason)
