"""How a run came to its best kernel: the steps from the reference to it, each with what it gained."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.text import Text

from kernelwright.screen.hanging import print_hanging
from kernelwright.screen.words import time_in_words
from tools.records import ROOT, Tier

Facts = dict[str, Any]


def champion(facts: Facts) -> Facts | None:
    """The candidate that a run delivered, else the one it could not confirm, else its fastest right one, measured before estimated."""
    lines: dict[str, Facts] = {line["id"]: line for line in facts["candidates"]}
    delivery = facts["delivery"] or {}
    for name in (delivery.get("candidate"), delivery.get("unconfirmed")):
        if name in lines:
            return lines[name]
    right = [line for line in lines.values() if line["speedup"]]
    return max(right, key=lambda line: (line["tier"] != Tier.ESTIMATED, line["speedup"]), default=None)


def chain(facts: Facts) -> tuple[Facts, ...]:
    """The steps from the reference to the champion, in order; none where nothing was right."""
    lines: dict[str, Facts] = {line["id"]: line for line in facts["candidates"]}
    steps: list[Facts] = []
    line = champion(facts)
    while line is not None and line not in steps:
        steps.append(line)
        line = None if line["parent"] == ROOT else lines.get(line["parent"])
    return tuple(reversed(steps))


def winning_step(steps: Sequence[Facts]) -> Facts | None:
    """The step that gained most on its parent."""
    return max((one for one in steps if one["gain"]), key=lambda one: float(one["gain"]["value"]), default=None)


def gain_in_words(step: Facts) -> str:
    """Say how much faster than what it came from a step is, with its interval where it was measured."""
    gain, whose = step["gain"], "the reference's" if step["parent"] == ROOT else "its parent's"
    if gain is None:
        return "no gain was judged"
    if gain["tier"] == Tier.ESTIMATED:
        return f"{gain['value']:.2f}x {whose} speed, estimated"
    return f"{gain['value']:.2f}x [{gain['low']:.2f}, {gain['high']:.2f}] {whose} speed, {gain['tier']}"


def why_facts(facts: Facts) -> Facts:
    """What `trace --why` shows."""
    best = champion(facts)
    return {
        "run": facts["run"],
        "problem": facts["problem"],
        "baselines": facts["baselines"],
        "champion": best["id"] if best else None,
        "delivery": facts["delivery"],
        "steps": list(chain(facts)),
    }


def show_why(facts: Facts) -> None:
    """Print the chain, each step with what it did, why it was chosen, on which knowledge it rests, and what the reviewer said."""
    console = Console(highlight=False)
    console.print(f"[bold]{escape(facts['run'])}[/]: {escape(facts['problem'])}, from the reference to its best kernel")
    if not facts["steps"]:
        console.print("No candidate was right.")
    for number, step in enumerate(facts["steps"], 1):
        console.print()
        print_hanging(console, Text(f"{number}. ", style="bold"), Text.assemble((step["what"], "bold"), f" ({step['id'][:6]})"))
        for label, text in _told(step):
            print_hanging(console, Text(f"   {label + ':':<10} "), text)
    if facts["delivery"]:
        console.print()
        print_hanging(console, Text(f"{'end:':<14}"), Text(facts["delivery"]["reason"]))


def _told(step: Facts) -> Iterator[tuple[str, Text]]:
    """What a step gained and did, and why, as far as that is known."""
    taken = f", {time_in_words(step['time_us'], Tier(step['tier']))}" if step["time_us"] else ""
    yield "gain", Text.assemble((gain_in_words(step), "green"), f"; {_against(step)}{taken}")
    yield "step", Text(f"{step['did']}, written by {step['coder']}")
    for label, text in (
        ("why", step["rationale"]),
        ("tools", "; ".join(step["tools"])),
        ("knowledge", ", ".join(step["strategies"])),
        ("review", step["review"]),
    ):
        if text:
            yield label, Text(text)


def _against(step: Facts) -> str:
    return f"{step['speedup']:.2f}x the best baseline's" if step["speedup"] else "no time"
