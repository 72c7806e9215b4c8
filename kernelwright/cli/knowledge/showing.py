"""One strategy as text to be read: where it applies, what it advises, and on what that rests."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from kernelwright.screen.words import counted

if TYPE_CHECKING:
    from knowledge.learning.replay import Worth
    from knowledge.recall.weighing import Weighed
    from knowledge.records import Strategy

WIDTH = 110
LABEL = 11
"""Columns of a label, and of the whole text."""


def strategy_lines(strategy: Strategy, weights: Sequence[Weighed], worth: Worth, history: Sequence[str]) -> Iterator[str]:
    """Say all that is known of a strategy, a label at the head of each part."""
    situation = strategy.situation
    yield f"{strategy.id}  {strategy.title}"
    families = ", ".join(situation.families) or "any family"
    yield from _part("for", f"{families}; limited by {situation.bottleneck or 'anything'}; {situation.backend}")
    yield from _part("seen", situation.summary)
    settings = ", ".join(f"{name}={value}" for name, value in strategy.parameters.items())
    yield from _part("step", f"{strategy.kind} {settings}".rstrip())
    yield from _part("lesson", strategy.lesson)
    changes = strategy.changes
    if changes.median:
        spread = f" in the median, from {changes.low:.2f}x to {changes.high:.2f}x" if len(strategy.trials) > 1 else ""
        yield from _part("gain", f"{changes.median:.2f}x{spread}, {changes.basis}")
    elif strategy.expected_gain:
        yield from _part("gain", f"{strategy.expected_gain:.2f}x, predicted")
    yield from _part("source", strategy.source)
    right = f", {changes.passes} right" if strategy.trials else ""
    yield from _part("state", f"{strategy.state}, {counted(len(strategy.trials), 'trial')}{right}")
    for trial, weight in zip(strategy.trials, weights, strict=True):
        gain = f", {trial.gain:.2f}x" if trial.gain else ""
        why = f" ({', '.join(weight.reasons)})" if weight.reasons else ""
        yield from _part("trial", f"{trial.run}/{trial.candidate[:6]}: {trial.verdict}{gain}; weighs {weight.weight:.2f}{why}")
    cited = f", which brought {worth.cited_gain:.2f}x in the median" if worth.cited_gain else ""
    yield from _part("worth", f"recalled {counted(worth.recalled, 'time')}, cited by {counted(worth.cited, 'plan')}{cited}")
    for line in history:
        at, kind, _ = line.split(" ", 2)
        yield from _part("history", f"{at[:19]} {kind}")
    if strategy.excerpt:
        yield from ("code:", textwrap.indent(strategy.excerpt.rstrip(), "  "))


def _part(label: str, text: str) -> Iterator[str]:
    if text:
        yield textwrap.fill(text, WIDTH, initial_indent=f"{label + ':':<{LABEL}}", subsequent_indent=" " * LABEL, break_long_words=False)
