"""Watching a run that another process works on: a line for each candidate when it was reviewed, until the run ends."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

from filelock import FileLock, Timeout
from rich.console import Console

from agents.coder.protocol import Refusal
from graphs.run.records import Delivery
from kernelwright.screen.words import VERDICTS, candidate_in_words, shortened, time_in_words, why_in_words
from tools.records import Evaluation, Record, Tier
from tools.tracing import RunStore

R = TypeVar("R", bound=Record)
EVERY_S = 1.0
"""Between two looks."""


def follow(store: RunStore, console: Console, pause: Callable[[float], None] = time.sleep) -> bool:
    """Print what was done and what is done from now on; whether the run ended (else nobody works on it any more)."""
    told: set[str] = set()
    while True:
        worked_on = is_worked_on(store)
        ended = bool(store.all("delivery", Delivery))
        for line in _news(store, told):
            console.print(line, soft_wrap=True, markup=False)
        if ended or not worked_on:
            return ended
        pause(EVERY_S)


def is_worked_on(store: RunStore) -> bool:
    """Whether a process holds the run's lock."""
    try:
        with FileLock(store.folder / "lock", timeout=0):
            return False
    except Timeout:
        return True


def _news(store: RunStore, told: set[str]) -> list[str]:
    """Lines for every evaluation and refusal that was not told yet, in the order they were written."""
    found = [(store.written("refusal", name), f"not written: {shortened(one.reason)}") for name, one in _new(store, Refusal, told)]
    for name, evaluation in _new(store, Evaluation, told):
        again = "again: " if evaluation.candidate in told else ""
        told.add(evaluation.candidate)
        found.append((store.written("evaluation", name), again + _judged(store, evaluation)))
    return [line for _, line in sorted(found)]


def _new(store: RunStore, kind: type[R], told: set[str]) -> list[tuple[str, R]]:
    """Records of a kind that were not told, by name; they are from now on."""
    kept = kind.__name__.lower()
    found = [(name, one) for name, one in store.all(kept, kind).items() if f"{kept} {name}" not in told]
    told.update(f"{kept} {name}" for name, _ in found)
    return found


def _judged(store: RunStore, evaluation: Evaluation) -> str:
    candidate = store.candidate(evaluation.candidate)
    what = candidate_in_words(candidate, evaluation) if candidate else evaluation.candidate
    figures = ""
    if evaluation.time_us and evaluation.speedup:
        figures = f" {evaluation.speedup:.2f}x, {time_in_words(evaluation.time_us, evaluation.tier or Tier.ESTIMATED)}"
    why = why_in_words(evaluation)
    return f"{evaluation.candidate[:6]} {VERDICTS[evaluation.verdict]}{figures}: {what}" + (f" ({why})" if why else "")
