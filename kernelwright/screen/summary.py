"""A run at a glance: what came of it, what won it, what failed and why, and then one line a candidate."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table
from rich.text import Text
from rich.tree import Tree

from kernelwright.screen.chain import chain, champion, gain_in_words, winning_step
from kernelwright.screen.table import STYLES
from kernelwright.screen.telling import WARNING
from kernelwright.screen.trace_views import policy_lines, spent_in_words
from kernelwright.screen.words import VERDICTS, counted, shortened, time_in_words
from tools.records import ROOT, Tier, Verdict

Facts = dict[str, Any]
SHOWN = 6
"""Characters of an id that are shown; any beginning that is enough names a candidate."""
PIPED = 1000
"""Columns where there is no terminal: a line is not cut there."""


def show_summary(facts: Facts, *, console: Console | None = None) -> None:
    """Print what matters first, then the tree."""
    console = console or Console(highlight=False)
    if not console.is_terminal:
        console.width = PIPED
    console.print(f"[bold]{escape(facts['problem'])}[/] on {facts['target']}, {facts['state']}: {escape(facts['run'])}", soft_wrap=True)
    head = Table.grid(padding=(0, 2))
    for label, text, style in summary_lines(facts):
        head.add_row(label, Text(text, style=style))
    console.print(head)
    console.print()
    console.print(candidate_tree(facts), no_wrap=True, overflow="ellipsis")
    console.print(f"\nmore: kernelwright trace {facts['run']} --why (or --candidate ID, --verbose, --costs)", soft_wrap=True, markup=False)


def summary_lines(facts: Facts) -> Iterator[tuple[str, str, str]]:
    """Label, text and style of what matters: the champion, what won, what failed, what it cost."""
    best, delivery = champion(facts), facts["delivery"]
    if facts["fork"]:
        yield "forked", f"begins at {facts['fork']['words']}", ""
    if asked := facts["steering"]["asked"]:
        kinds = Counter(one["kind"] for one in asked)
        yield "steered", ", ".join(f"{count} {kind}" for kind, count in kinds.items()) + " (kernelwright steer RUN lists them)", ""
    title = "best so far" if delivery is None else "delivered" if delivery["candidate"] != ROOT else "kept the reference"
    if best is not None:
        label = title if title != "kept the reference" else "best, not delivered"
        # a delivered kernel is as fast as it was when it was confirmed
        best = best | {name: facts[name] for name in ("speedup", "time_us", "tier")} if title == "delivered" else best
        yield label, f"{best['id'][:SHOWN]}: {_figures(best)}{best['what']}", "bold green" if label == "delivered" else "bold"
    if delivery:
        yield "" if best is not None and title == "delivered" else "end", delivery["reason"], ""
    steps = chain(facts)
    if winner := winning_step(steps):
        yield "won by", f"{winner['did']}: {gain_in_words(winner)} (step {steps.index(winner) + 1} of {len(steps)})", ""
    yield from _failed(facts)
    if profile := facts["reference_profile"]:
        yield "reference", f"{_reference(facts)}limited by {profile['bottleneck']}", ""
    for line in policy_lines(facts):
        label, _, text = line.partition(":")
        yield label, text.strip(), ""
    yield "spent", spent_in_words(facts["spent"], facts["model_calls"]).removeprefix("spent: "), ""


def _reference(facts: Facts) -> str:
    baselines = facts["baselines"]
    if not baselines:
        return ""
    tier, samples = Tier(baselines["tier"]), baselines["samples"]
    times = {name: one["median_us"] for name, one in samples.items()} or {"eager": baselines["estimate"]["eager_us"]}
    return ", ".join(f"{name} {time_in_words(us, tier)}" for name, us in times.items()) + "; "


def _failed(facts: Facts) -> Iterator[tuple[str, str, str]]:
    """One line for each way to fail, with how often, and the first reason."""
    failed = [line for line in facts["candidates"] if line["verdict"] not in (None, Verdict.PASS)]
    label = "failed"
    for verdict, count in Counter(line["verdict"] for line in failed).items():
        first = next((line["why_not"] for line in failed if line["verdict"] == verdict and line["why_not"]), "")
        yield label, f"{count} {VERDICTS[Verdict(verdict)]}" + (f": {first}" if first else ""), WARNING
        label = ""
    if facts["refused"]:
        yield label, f"{len(facts['refused'])} not written: {shortened(facts['refused'][0]['reason'])}", WARNING


def candidate_tree(facts: Facts) -> Tree:
    """One line a candidate, below the one that it came from."""
    best = champion(facts)
    root = Tree(f"reference ({counted(len(facts['candidates']), 'candidate')})")
    branches = {ROOT: root}
    for line in facts["candidates"]:
        text = _line(line, best=best is not None and line["id"] == best["id"])
        branches[line["id"]] = branches.get(line["parent"], root).add(text)
    for line in facts["refused"]:
        said = f"{line.get('did', line['action'])}: {shortened(line['reason'])}"
        branches.get(line["parent"], root).add(Text.assemble(("not written ", WARNING), said))
    return root


def _line(line: Facts, *, best: bool) -> Text:
    verdict = Verdict(line["verdict"]) if line["verdict"] else None
    good = None if verdict in (None, Verdict.INFRASTRUCTURE, Verdict.BUILT) else verdict is Verdict.PASS
    said = VERDICTS[verdict] if verdict else "not judged"
    marks = ", best" if best else ""
    why = f" ({line['why_not']})" if line["why_not"] else ""
    name = (f"{line['id'][:SHOWN]} ", "bold" if best else "")
    return Text.assemble(name, (f"{said}{marks} ", STYLES[good]), f"{_figures(line)}{line['what']}", (why, WARNING))


def _figures(line: Facts) -> str:
    """Gain and time; an estimate says that it is one."""
    if not line["time_us"] or not line["speedup"]:
        return ""
    return f"{line['speedup']:.2f}x, {time_in_words(line['time_us'], Tier(line['tier']))}: "
