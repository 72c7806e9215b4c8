"""Progress with every reason: what `--verbose` prints. The same sentences are in the run's trace."""

from __future__ import annotations

from typing import Any

from agents.coder.protocol import Refusal
from agents.reviewer.protocol import Review
from graphs.run.records import Recall
from kernelwright.screen.telling import Teller
from kernelwright.screen.words import action_in_words, candidate_in_words
from tools.records import ROOT, Evaluation, Plan


class Reasons(Teller):
    """Turns each of a run's events into a line."""

    def _on_recalled(self, event: dict[str, Any]) -> None:
        recall = self.services.store.get("recall", event["recall"], Recall)
        if recall and recall.recalled:
            self.say("recall", "; ".join(f"{r.strategy.id[:6]} {r.strategy.title}" for r in recall.recalled[:3]))

    def _on_considered(self, event: dict[str, Any]) -> None:
        self.say("search", event["said"])

    def _on_planned(self, event: dict[str, Any]) -> None:
        plan = self.services.store.get("plan", event["plan"], Plan)
        assert plan is not None
        what = action_in_words(plan.action, self.services.store.candidate(plan.parent))
        self.say("plan", f"{what}, from {plan.parent[:6]} [{plan.action}]: {plan.rationale}")

    def _on_refused(self, event: dict[str, Any]) -> None:
        self.say("refused", event["reason"])

    def _on_written(self, event: dict[str, Any]) -> None:
        repairs = f" (repair {event['repairs']})" if event["repairs"] else ""
        what = candidate_in_words(self.services.candidate(event["candidate"]))
        self.say("coder", f"{event['candidate'][:6]} written{repairs}: {what}")

    def _on_evaluated(self, event: dict[str, Any]) -> None:
        evaluation = self.services.store.get("evaluation", event["key"], Evaluation)
        assert evaluation is not None
        speed = ""
        if evaluation.time_us and evaluation.speedup:
            speed = f", {evaluation.time_us:,.1f} µs, {evaluation.speedup:.2f}x the best baseline ({evaluation.tier})"
        self.say("evaluate", f"{evaluation.candidate[:6]} {evaluation.verdict}{speed}")

    def _on_reviewed(self, event: dict[str, Any]) -> None:
        review = self.services.store.get("review", event["plan"], Review)
        if review:
            self.say("review", f"{event['candidate'][:6]} {'accepted' if review.accepted else 'not accepted'}: {review.reason}")
        elif refusal := self.services.store.get("refusal", event["plan"], Refusal):
            self.say("review", f"nothing to review: {refusal.reason}")

    def _on_learnt(self, event: dict[str, Any]) -> None:
        if event["strategies"]:
            self.say("learn", f"strategies changed: {', '.join(name[:6] for name in event['strategies'])}")

    def _on_lessons(self, event: dict[str, Any]) -> None:
        self.say("learn", event["said"])

    def _on_confirming(self, event: dict[str, Any]) -> None:
        self.say("confirm", "the best are judged again, with new inputs in new processes")

    def _on_delivered(self, event: dict[str, Any]) -> None:
        self.say("confirm", "keep the reference" if event["candidate"] == ROOT else f"{event['candidate'][:6]} delivered")
