"""Reads what a run has recorded since it was last looked at, as spans: run → rounds → nodes → model calls, tools, evaluations."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeVar

from agents.models import Trouble
from agents.models.calls import CallRecord
from agents.models.chat import TROUBLE
from graphs.run.records import Delivery
from graphs.run.settings import settings_of
from graphs.run.workbench import USE, ToolUse
from graphs.run.works import WORK
from kernelwright.viewers.evaluations import evaluation_attributes, evaluation_events, started_at
from kernelwright.viewers.facts import SpanFacts, Value, cleaned, span_id
from kernelwright.viewers.genai import call_attributes, tool_attributes, trouble_attributes
from kernelwright.viewers.nodes import Nodes
from tools.records import Evaluation, Problem, Record
from tools.tracing import RunStore, Span
from tools.tracing.store import Row
from tools.tracing.work import Work

R = TypeVar("R", bound=Record)
WORKFLOW = "kernelwright.optimize"


class SpanReader:
    """The spans of one run; looked at again it gives what is new, as far as it has ended."""

    def __init__(self, store: RunStore) -> None:
        """Read nothing yet."""
        self._store = store
        self._run = store.meta("run")
        self._root = span_id(store, "run", self._run)
        self._nodes = Nodes(store)

    def since(self, moment: float, *, stopped: bool = False) -> list[SpanFacts]:
        """Spans of what ended at `moment` or later; where nobody works on the run, of what was cut short, too."""
        new = self._nodes.look(moment)
        rows = self._store.rows(moment)
        found = [*self._ended(new), *self._calls(moment), *(span for row in rows for span in self._of(row))]
        last = max((node.ended or 0.0 for node in new if node.node == "confirm" and node.error is None), default=0.0)
        delivery = next(iter(self._store.all("delivery", Delivery).values()), None)
        return [*found, *self._closing(delivery, last, found)] if stopped or (last and delivery) else found

    def _of(self, row: Row) -> Iterator[SpanFacts]:
        if row.kind == "evaluation":
            yield self._evaluation(row, Evaluation.model_validate_json(row.json))
        elif row.kind == USE:
            use = ToolUse.model_validate_json(row.json)
            attributes = tool_attributes(use, self._run) | {"kernelwright.plan": row.subject}
            yield self._within(f"execute_tool {use.tool}", USE, row, row.created - use.seconds, attributes, row.subject)
        elif row.kind == TROUBLE:
            failed = Trouble.model_validate_json(row.json)
            yield self._within(
                f"chat {failed.model}", TROUBLE, row, row.created, trouble_attributes(failed, self._run), failed.purpose, error=failed.what
            )

    def _calls(self, moment: float) -> Iterator[SpanFacts]:
        for row in self._store.call_rows(moment):
            # older versions kept a note on the server among the calls
            if '"messages"' in row.json:
                call = CallRecord.model_validate_json(row.json)
                name = f"chat {call.model}"
                yield self._within(name, "call", row, row.created - call.seconds, call_attributes(call, self._run), call.purpose)

    def _within(
        self, name: str, kind: str, row: Row, started: float, attributes: dict[str, Value | None], about: str, error: str = ""
    ) -> SpanFacts:
        """A span in the node that was being executed when it ended, for a plan that `about` names."""
        node = self._nodes.around(row.created, about)
        return SpanFacts(
            name=name,
            id=span_id(self._store, kind, row.id),
            parent=span_id(self._store, "node", node.id) if node else self._root,
            started=max(started, node.started) if node else started,
            ended=row.created,
            attributes=cleaned({"kernelwright.run": self._run, "kernelwright.id": row.id, **attributes}),
            error=error,
            asks_server=kind in ("call", TROUBLE),
        )

    def _evaluation(self, row: Row, evaluation: Evaluation) -> SpanFacts:
        works = self._store.all(WORK, Work, subject=row.id).values()
        attributes = evaluation_attributes(evaluation)
        about = self._nodes.plan_of(evaluation.candidate)
        found = self._within(
            "evaluation", "evaluation", row, started_at(works, row.created), attributes | {"kernelwright.plan": about}, about
        )
        return SpanFacts(**{**vars(found), "events": evaluation_events(evaluation)})

    def _ended(self, new: list[Span]) -> Iterator[SpanFacts]:
        """Nodes that have ended, and rounds whose last node has."""
        for node in new:
            if node.ended is None:
                continue
            yield self._node(node, node.ended)
            if node.node == "learn" and node.error is None:
                yield self._round(self._nodes.round_of(node))

    def _node(self, node: Span, ended: float, error: str = "") -> SpanFacts:
        number = self._nodes.round_of(node)
        of_plan = not node.subject.startswith("round ")
        attributes: dict[str, Value | None] = {
            "kernelwright.run": self._run,
            "kernelwright.node": node.node,
            "kernelwright.round": number,
            "kernelwright.plan": node.subject if of_plan else None,
        }
        return SpanFacts(
            name=node.node,
            id=span_id(self._store, "node", node.id),
            parent=self._root if node.node in ("measure", "confirm") else span_id(self._store, "round", number),
            started=node.started,
            ended=ended,
            attributes=cleaned(attributes),
            error=node.error or error,
        )

    def _round(self, number: int) -> SpanFacts:
        started, ended = self._nodes.extent(number)
        attributes = cleaned({"kernelwright.run": self._run, "kernelwright.round": number})
        return SpanFacts(f"round {number}", span_id(self._store, "round", number), self._root, started, ended, attributes)

    def _closing(self, delivery: Delivery | None, last: float, found: list[SpanFacts]) -> Iterator[SpanFacts]:
        """What ends with the run, or with the last work on it: nodes and rounds that were cut short, and the run itself."""
        for node in self._nodes.cut_short():
            yield self._node(node, node.started, "cut short")
        for number in self._nodes.unlearnt():
            yield self._round(number)
        created = float(self._store.meta("created") or 0.0)
        begins = [self._nodes.first(), *(one.started for one in found), *([created] if created else [])]
        yield SpanFacts(
            name=f"invoke_workflow {WORKFLOW}",
            id=self._root,
            parent=0,
            started=min(begins),
            ended=last or max(self._nodes.last(), *(one.ended for one in found), created),
            attributes=cleaned(self._whole(delivery)),
        )

    def _whole(self, delivery: Delivery | None) -> dict[str, Value | None]:
        settings = settings_of(self._store)
        problem = next(iter(self._store.all("problem", Problem).values()))
        best = self._store.get("evaluation", delivery.evaluation, Evaluation) if delivery and delivery.evaluation else None
        spent = self._store.spent()
        return {
            "gen_ai.operation.name": "invoke_workflow",
            "gen_ai.workflow.name": WORKFLOW,
            "gen_ai.conversation.id": self._run,
            "kernelwright.run": self._run,
            "kernelwright.problem": problem.name,
            "kernelwright.target": settings.target,
            "kernelwright.search": settings.search,
            "kernelwright.delivered": delivery.candidate if delivery else None,
            "kernelwright.reason": delivery.reason if delivery else None,
            "kernelwright.ended": delivery.ended if delivery else None,
            "kernelwright.speedup": best.speedup if best else None,
            "kernelwright.tier": str(best.tier) if best and best.tier else None,
            "kernelwright.evaluations": spent.evaluations,
            "kernelwright.tokens": spent.tokens,
            "kernelwright.cost_usd": spent.money_usd,
        }
