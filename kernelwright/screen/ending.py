"""What `optimize` ends with: what was delivered, how sure that is, and what to do next."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.text import Text

from kernelwright.screen.hanging import print_hanging
from kernelwright.screen.next_steps import next_commands
from kernelwright.screen.telling import WARNING
from kernelwright.screen.trace_views import calls_ended, calls_spent, evaluation_table, policy_lines
from kernelwright.screen.words import SURE, counted
from tools.records import Tier

Facts = dict[str, Any]
WIDTH = 11
"""Of the labels."""


def print_result(console: Console, facts: Facts, *, verbose: bool = False) -> None:
    """Print a run's end, with the evaluation's every figure where `verbose`."""
    console.rule(escape(f"{facts['problem']} on {facts['target']}"))
    for label, text, style in _lines(facts):
        print_hanging(console, Text(f"{label:<{WIDTH}}"), Text(text, style=style))
    if verbose and facts["evaluation"]:
        console.print(evaluation_table(facts["evaluation"]))
    console.print("next:")
    steps = next_commands(facts)
    widest = max(len(why) for why, _ in steps) + 2
    for why, command in steps:
        console.print(f"  {why + ':':<{widest}}{escape(command)}", soft_wrap=True)


def _lines(facts: Facts) -> Iterator[tuple[str, str, str]]:
    """Label, text and style of each line."""
    if facts["kernel"]:
        yield "delivered:", facts["what"], "bold green"
        yield "", facts["reason"], ""
        yield "how sure:", f"right: {_checked(facts['evaluation'])}", ""
        yield "", f"fast: {SURE[Tier(facts['tier'])]}", ""
    else:
        yield "delivered:", "nothing", "bold yellow"
        yield "", facts["reason"], ""
    for mark in facts["marks"]:
        yield "weak:", f"{mark} A result on this problem proves less than it seems to.", WARNING
    for note in facts["evaluation"]["notes"] if facts["evaluation"] else ():
        yield "note:", note, WARNING
    for line in policy_lines(facts):
        label, _, text = line.partition(":")
        yield f"{label}:", text.strip(), ""
    for label, name in (("kernel:", "kernel"), ("unconfirmed:", "unconfirmed"), ("evidence:", "bundle")):
        if facts[name]:
            yield label, facts[name], ""
    spent, calls = facts["spent"], facts["model_calls"]
    yield "spent:", f"{counted(spent['evaluations'], 'evaluation')} in {spent['wall_s']:.0f} s, {calls_spent(spent, calls)}", ""
    if calls["failed"] + calls["withheld"]:
        yield "model:", calls_ended(calls), WARNING
    yield "ended:", ended_in_words(facts["search_ended"]), ""


def _checked(evaluation: Facts) -> str:
    """Say by what and how often a kernel was checked."""
    checked = evaluation["correctness"]
    by = {"interpreter": "in Triton's interpreter", "gpu": "on the GPU"}.get(checked["executor"], checked["executor"])
    worst = max((one["relative_l2"] / one["limit_relative_l2"] for one in checked["outputs"] if one["limit_relative_l2"]), default=0.0)
    calls = f"{counted(checked['calls'], 'call')} {by} at {counted(len(checked['sizes']), 'size')}"
    return f"{calls}; its error is at most {worst:.0%} of the limit" if worst else f"{calls}, exactly"


def ended_in_words(ended: str) -> str:
    """Why the search ended; where a limit ended it, which."""
    limits = {
        "evaluations": "the evaluations of --budget are spent; those that confirm come on top",
        "tokens": "the tokens of --tokens are spent",
        "money_usd": "the money of --usd is spent",
        "wall_s": "the wall time of --minutes is over",
        "gpu_s": "the GPU time of --gpu-seconds is spent",
    }
    return limits.get(ended, ended)
