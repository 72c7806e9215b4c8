"""Two runs side by side: what each came to, what it cost, and where they were set up differently."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from graphs.run.settings import RunSettings, settings_of
from kernelwright.screen.chain import chain, champion
from kernelwright.screen.facts import tree_facts
from kernelwright.screen.trace_views import calls_spent
from kernelwright.screen.words import SURE, VERDICTS, time_in_words
from tools.records import Tier, Verdict
from tools.tracing import RunStore

Facts = dict[str, Any]


def versus_facts(stores: Sequence[RunStore]) -> Facts:
    """Both runs' facts, the settings that differ, and whether their figures compare."""
    runs = [tree_facts(store) for store in stores]
    return {
        "runs": runs,
        "differ": differing([settings_of(store) for store in stores]),
        "incomparable": incomparable(runs, same_problem=runs[0]["problem_id"] == runs[1]["problem_id"]),
        "shared": len({line["id"] for line in runs[0]["candidates"]} & {line["id"] for line in runs[1]["candidates"]}),
    }


def differing(settings: Sequence[RunSettings]) -> dict[str, list[Any]]:
    """Settings that two runs do not share, by their names, with both values."""
    first, second = (_flat(one.model_dump(mode="json")) for one in settings)
    names = sorted({*first, *second})
    return {name: [first.get(name), second.get(name)] for name in names if first.get(name) != second.get(name)}


def incomparable(runs: Sequence[Facts], *, same_problem: bool) -> str:
    """Say why the two runs' times must not be compared; empty where they may be."""
    if not same_problem:
        return "they are about different problems, or about one under different policies"
    if runs[0]["target"] != runs[1]["target"]:
        return f"they are for different devices, {runs[0]['target']} and {runs[1]['target']}"
    tiers = [best["tier"] if (best := champion(one)) else None for one in runs]
    if None in tiers:
        return "one of them has no right candidate"
    if (tiers[0] == Tier.ESTIMATED) != (tiers[1] == Tier.ESTIMATED):
        return "one was measured and the other estimated"
    return ""


def show_versus(facts: Facts) -> None:
    """Print a table of two columns, what differs, and a verdict where there can be one."""
    console = Console(highlight=False)
    table = Table("", *(escape(one["run"]) for one in facts["runs"]), box=None, pad_edge=False)
    for label, cells in run_rows(facts["runs"]):
        table.add_row(label, *(Text(cell) for cell in cells))
    console.print(table)
    if facts["differ"]:
        console.print("\nset up differently:")
        for name, values in facts["differ"].items():
            console.print(f"  {name}: {values[0]} | {values[1]}", markup=False, soft_wrap=True)
    console.print(f"\ncandidates in both: {facts['shared']}")
    console.print(verdict_of(facts["runs"], facts["incomparable"]), soft_wrap=True)


def run_rows(runs: Sequence[Facts]) -> Iterator[tuple[str, list[str]]]:
    """What both came to, a label and two cells a row."""
    bests = [champion(one) for one in runs]
    yield "problem", [f"{one['problem']} on {one['target']}, {one['state']}" for one in runs]
    yield "delivered", [_delivered(one) for one in runs]
    yield "best", [best["what"] if best else "nothing right" for best in bests]
    yield "gain", [f"{best['speedup']:.2f}x" if best and best["speedup"] else "–" for best in bests]
    yield "time", [time_in_words(best["time_us"], Tier(best["tier"])) if best and best["time_us"] else "–" for best in bests]
    yield "how sure", [SURE[Tier(best["tier"])] if best and best["tier"] else "–" for best in bests]
    yield "steps", [str(len(chain(one))) for one in runs]
    yield "candidates", [_verdicts(one) for one in runs]
    yield "spent", [f"{one['spent']['evaluations']} evaluations, {one['spent']['wall_s']:.0f} s" for one in runs]
    yield "models", [calls_spent(one["spent"], one["model_calls"]) for one in runs]


def _delivered(run: Facts) -> str:
    if not run["delivery"]:
        return "not yet"
    return "the reference stays" if run["delivery"]["candidate"] == "root" else run["delivery"]["candidate"][:6]


def _verdicts(run: Facts) -> str:
    counts = Counter(VERDICTS[Verdict(line["verdict"])] if line["verdict"] else "not judged" for line in run["candidates"])
    return ", ".join(f"{count} {word}" for word, count in counts.items()) or "none"


def verdict_of(runs: Sequence[Facts], unlike: str) -> str:
    """Say in a sentence whose best is faster, or why that cannot be said."""
    if unlike:
        return f"Their times do not compare: {unlike}."
    first, second = (champion(one) for one in runs)
    assert first is not None
    assert second is not None
    ratio = first["time_us"] / second["time_us"]
    said = f"{max(ratio, 1 / ratio):.2f}x as fast as the other's"
    if 0.995 < ratio < 1.005:
        return "Their best kernels are equally fast."
    sessions = "by the cost model" if first["tier"] == Tier.ESTIMATED else "in sessions of their own, which differ by some percent"
    return f"The best of {runs[ratio > 1]['run']} is {said}, {sessions}."


def _flat(settings: Facts, before: str = "") -> Facts:
    found: Facts = {}
    for name, value in settings.items():
        found |= _flat(value, f"{before}{name}.") if isinstance(value, dict) else {f"{before}{name}": value}
    return found
