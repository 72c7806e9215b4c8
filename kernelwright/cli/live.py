"""Sees a run through: progress while it works, its result at the end."""

from __future__ import annotations

import asyncio
import shutil
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import typer
from rich.console import Console
from rich.markup import escape

from agents.coder.protocol import Refusal
from agents.reviewer.protocol import Review
from graphs.optimize.execute import Listener, execute
from graphs.run.assembly import assemble
from graphs.run.context import Services
from graphs.run.records import Recall
from kernelwright.cli.early import check_out
from kernelwright.cli.guarded import STOPPED
from kernelwright.cli.options import UNJUDGED
from kernelwright.screen.facts import result_facts
from kernelwright.screen.trace_views import calls_ended, calls_spent, evaluation_table, policy_lines
from tools.records import ROOT, Evaluation, Plan, Profile
from tools.references.reading import read_again
from tools.spool import SpoolPool
from tools.tracing import RunStore

MENTIONED_S = 10.0
"""A model's call that takes longer is mentioned."""


def see_through(store: RunStore, as_json: bool, out: Path | None, notes: Sequence[str] = ()) -> None:
    """Run or continue the run of `store`, print `notes` on its beginning and its result, copy the kernel to `out`."""
    check_out(out)
    try:
        services = assemble(store)
        progress = Progress(services, Console(stderr=True, highlight=False, quiet=as_json))
        progress.open(notes)
    except KeyboardInterrupt:
        say_stopped(store.meta("run"))
        raise typer.Exit(STOPPED) from None
    try:
        asyncio.run(stoppable(services, progress))
    except KeyboardInterrupt:
        raise typer.Exit(STOPPED) from None
    facts = result_facts(store)
    if out is not None and facts["kernel"]:
        shutil.copyfile(facts["kernel"], out)
    if as_json:
        from json import dumps

        print(dumps(facts, indent=1))
    else:
        _print_result(facts)
    if not facts["judged"]:
        raise typer.Exit(UNJUDGED)


async def stoppable(services: Services, listener: Listener) -> None:
    """Execute; where Ctrl-C ends it, say how to go on, whatever else is quiet."""
    beat = asyncio.create_task(listener.watch()) if isinstance(listener, Progress) else None
    try:
        await execute(services, listener)
    except asyncio.CancelledError:
        say_stopped(services.run)
        raise
    finally:
        if beat is not None:
            beat.cancel()


def say_stopped(run: str) -> None:
    """Say on standard error how to go on."""
    said = f"kernelwright: stopped. What was finished is kept; go on with: kernelwright resume {run}"
    print(said, file=sys.stderr, flush=True)


def ended_in_words(ended: str) -> str:
    """Why the search ended; where a limit ended it, which."""
    limits = {
        "evaluations": "the evaluations of --budget are spent",
        "tokens": "the tokens of --tokens are spent",
        "money_usd": "the money of --usd is spent",
        "wall_s": "the wall time of --minutes is over",
        "gpu_s": "the GPU time of --gpu-seconds is spent",
    }
    return limits.get(ended, ended)


def _print_result(facts: dict[str, Any]) -> None:
    console = Console(highlight=False)
    console.rule(f"{facts['problem']} on {facts['target']}")
    console.print(escape(facts["reason"]))
    for mark in facts["marks"]:
        console.print(f"weak:    {escape(mark)} A result on this problem proves less than it seems to.")
    if facts["evaluation"]:
        console.print(evaluation_table(facts["evaluation"]))
    for line in policy_lines(facts):
        console.print(escape(line), soft_wrap=True)
    if facts["kernel"]:
        console.print(f"kernel:  {facts['kernel']}", soft_wrap=True)
    if facts["unconfirmed"]:
        console.print(f"not confirmed: {facts['unconfirmed']}", soft_wrap=True)
    if facts["bundle"]:
        console.print(f"bundle:  {facts['bundle']}", soft_wrap=True)
        console.print(f"check:   kernelwright verify {facts['bundle']}", soft_wrap=True)
    spent, calls = facts["spent"], facts["model_calls"]
    console.print(f"spent:   {spent['evaluations']} evaluations in {spent['wall_s']:.0f} s, {calls_spent(spent, calls)}")
    if calls["failed"]:
        console.print(f"model:   {calls_ended(calls)}", soft_wrap=True)
    console.print(f"ended:   {escape(ended_in_words(facts['search_ended']))}", soft_wrap=True)
    console.print(f"inspect: kernelwright trace {facts['run']}", soft_wrap=True)


class Progress:
    """Turns the graph's events into lines on standard error."""

    def __init__(self, services: Services, console: Console) -> None:
        """Print for `services`' run on `console`."""
        self._services = services
        self._store = services.store
        self._console = console
        self._began = time.monotonic()
        self._said: dict[float, float] = {}
        """By the beginning of a call in flight: after how many seconds it is mentioned next."""

    async def watch(self) -> None:
        """Say of calls that take long that they are in flight, until cancelled."""
        while True:
            self.mention(time.monotonic())
            await asyncio.sleep(1.0)

    def mention(self, now: float) -> None:
        """Print a line for each call that has been in flight for MENTIONED_S, and for twice as long each time after."""
        for call in self._services.team.in_flight():
            waited = now - call.began
            if waited >= self._said.setdefault(call.began, MENTIONED_S):
                self._said[call.began] = 2 * waited
                self._line("model", f"asking the model, {waited:.0f} s ({call.model} as {call.role}; at most {call.limit_s:.0f} s a reply)")

    def open(self, notes: Sequence[str] = ()) -> None:
        """Say what is about to be worked on, by whom, on what."""
        services, abi = self._services, self._services.problem.abi
        inputs = ", ".join(f"{t.name}{list(t.shape)} {t.dtype}" for t in abi.inputs)
        outputs = ", ".join(f"{list(t.shape)} {t.dtype}" for t in abi.outputs)
        self._line("run", services.run)
        self._line("problem", f"{services.problem.name}: {inputs} → {outputs}, policy {services.problem.policy}")
        for note in (*read_again(services.problem).notes, *notes):
            self._line("note", note)
        self._line("agents", services.team.describe())
        self._line("target", f"{services.sheet.title}; evaluator {services.pool.name}")
        self._line("memory", services.memory.name)
        if isinstance(services.pool, SpoolPool):
            services.pool.listener = lambda line: self._line("spool", line)

    def __call__(self, event: dict[str, Any]) -> None:
        """Print one event."""
        getattr(self, f"_on_{event['event']}")(event)

    def _line(self, label: str, text: str) -> None:
        self._console.print(f"[dim]{time.monotonic() - self._began:6.1f}s[/] {label:<9} {escape(text)}", soft_wrap=True)

    def _on_measured(self, event: dict[str, Any]) -> None:
        baselines = self._services.baselines()
        times = ", ".join(f"{name} {sample.median_us:,.1f} µs" for name, sample in baselines.samples.items())
        profile = self._store.get("profile", ROOT, Profile)
        self._line(
            "reference", f"{times or f'eager {baselines.best_us:,.1f} µs'} ({baselines.tier}); {profile.bottleneck if profile else ''}"
        )
        for note in baselines.notes:
            self._line("note", note)
        for mark in baselines.admission.marks:
            self._line("weak", mark)

    def _on_traced(self, event: dict[str, Any]) -> None:
        """Say nothing: what a trace lacks is said where something could not be written."""

    def _on_recalled(self, event: dict[str, Any]) -> None:
        recall = self._store.get("recall", event["recall"], Recall)
        if recall and recall.recalled:
            self._line("recall", "; ".join(f"{r.strategy.id[:6]} {r.strategy.title}" for r in recall.recalled[:3]))

    def _on_considered(self, event: dict[str, Any]) -> None:
        self._line("search", event["said"])

    def _on_planned(self, event: dict[str, Any]) -> None:
        plan = self._store.get("plan", event["plan"], Plan)
        assert plan is not None
        self._line("plan", f"{plan.action} on {plan.parent[:6]}: {plan.rationale}")

    def _on_refused(self, event: dict[str, Any]) -> None:
        self._line("refused", event["reason"])

    def _on_written(self, event: dict[str, Any]) -> None:
        repairs = f" (repair {event['repairs']})" if event["repairs"] else ""
        self._line("coder", f"{event['candidate'][:6]} written{repairs}")

    def _on_evaluated(self, event: dict[str, Any]) -> None:
        evaluation = self._store.get("evaluation", event["key"], Evaluation)
        assert evaluation is not None
        speed = ""
        if evaluation.time_us and evaluation.speedup:
            speed = f", {evaluation.time_us:,.1f} µs, {evaluation.speedup:.2f}x the best baseline ({evaluation.tier})"
        self._line("evaluate", f"{evaluation.candidate[:6]} {evaluation.verdict}{speed}")

    def _on_reviewed(self, event: dict[str, Any]) -> None:
        review = self._store.get("review", event["plan"], Review)
        if review:
            self._line("review", f"{event['candidate'][:6]} {'accepted' if review.accepted else 'not accepted'}: {review.reason}")
        elif refusal := self._store.get("refusal", event["plan"], Refusal):
            self._line("review", f"nothing to review: {refusal.reason}")

    def _on_learnt(self, event: dict[str, Any]) -> None:
        if event["strategies"]:
            self._line("learn", f"strategies changed: {', '.join(name[:6] for name in event['strategies'])}")

    def _on_lessons(self, event: dict[str, Any]) -> None:
        self._line("learn", event["said"])

    def _on_delivered(self, event: dict[str, Any]) -> None:
        self._line("confirm", "keep the reference" if event["candidate"] == ROOT else f"{event['candidate'][:6]} delivered")
