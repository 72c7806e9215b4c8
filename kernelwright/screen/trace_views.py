"""The facts of a trace as trees and tables for a terminal."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.syntax import Syntax
from rich.table import Table
from rich.text import Text
from rich.tree import Tree

from kernelwright.screen.words import counted
from tools.logs import own_frames, printable
from tools.records import ROOT, PrecisionPolicy

Facts = dict[str, Any]
CANDIDATE = "/candidate.py"
"""How the path of a kernel ends in its own traces."""


def show_tree(facts: Facts) -> None:
    """Print the candidates below the parents they came from, each with every reason there is."""
    console = Console()
    top = Tree(f"[bold]{escape(facts['run'])}[/] {escape(facts['problem'])} on {facts['target']} ({facts['state']})")
    for line in policy_lines(facts):
        top.add(escape(line))
    profile = facts["reference_profile"]
    root = top.add(f"reference: {profile['bottleneck']}; {escape(profile['evidence'])}" if profile else "reference")
    branches = {ROOT: root}
    for line in facts["candidates"]:
        branches[line["id"]] = branches.get(line["parent"], root).add(escape(_headline(line)))
        branches[line["id"]].add(f"[dim]why: {escape(line['rationale'])}[/]")
        if line["strategies"]:
            branches[line["id"]].add(f"[dim]knowledge: {', '.join(line['strategies'])}[/]")
        if line["tools"]:
            branches[line["id"]].add(f"[dim]tools of its writer: {escape('; '.join(line['tools']))}[/]")
        if line["trials"]:
            branches[line["id"]].add(f"[dim]{escape(_trials(line['trials']))}[/]")
        if line["review"]:
            branches[line["id"]].add(f"[dim]review: {escape(line['review'])}[/]")
    for line in facts["refused"]:
        branches.get(line["parent"], root).add(escape(f"refused: {line['action']}: {line['reason']}"))
    console.print(top)
    for said in _beside(facts):
        console.print(f"[dim]{escape(said)}[/]", highlight=False)
    if facts["delivery"]:
        console.print(f"delivered: {facts['delivery']['candidate']}. {escape(facts['delivery']['reason'])}")
    console.print(escape(spent_in_words(facts["spent"], facts["model_calls"])))
    console.print(f"One candidate whole: kernelwright trace {facts['run']} --candidate ID", markup=False)


def _beside(facts: Facts) -> Iterator[str]:
    """What a person asked of the run, and what its search method considered."""
    for one in facts["steering"]["asked"]:
        yield f"asked by a person: {one['kind']} {one['text']} ({one['force'] or 'not yet in force'})"
    for said in facts["considered"]:
        yield f"search: {said}"


def _trials(trials: list[Facts]) -> str:
    """How many trials a tuning had, and their times in the order they were tried, the model's in brackets."""
    times = ((f"{t['time_us']:,.1f}" if t["time_us"] else t["verdict"] or "not written", f"{t['predicted_us']:,.1f}") for t in trials)
    count = "1 trial" if len(trials) == 1 else f"{len(trials)} trials"
    return f"{count}: {', '.join(f'{time} [{model}]' for time, model in times)} µs [by the cost model]"


def _headline(line: Facts) -> str:
    time = f"{line['time_us']:,.1f} µs" if line["time_us"] else "no time"
    speed = f"{line['speedup']:.2f}x" if line["speedup"] else ""
    marks = " ".join(mark for mark in (f"({line['tier']})" if line["tier"] else "", "accepted" if line["accepted"] else "") if mark)
    repairs = f" after {line['repairs']} repairs" if line["repairs"] else ""
    return f"{line['id']} {line['action']} by {line['coder']}{repairs}: {line['verdict'] or 'not evaluated'} {time} {speed} {marks}".strip()


def spent_in_words(spent: Facts, calls: Facts) -> str:
    """Say in a line what a run used, and what its model's calls came to."""
    failed = f"; model: {calls_ended(calls)}" if calls["failed"] + calls["withheld"] else ""
    used = f"{spent['evaluations']} evaluations, {spent['wall_s']:.0f} s, {spent['gpu_s']:.1f} GPU s"
    return f"spent: {used}, {calls_spent(spent, calls)}{failed}"


def calls_ended(calls: Facts) -> str:
    """How many of the model's calls came to nothing, and why the last did."""
    withheld = f", {counted(calls['withheld'], 'call')} cut off or not begun at a limit" if calls["withheld"] else ""
    return f"{counted(calls['failed'], 'call')} failed{withheld}, {calls['used']} used. {calls['last_failure']}"


def calls_spent(spent: Facts, calls: Facts | None = None) -> str:
    """Tokens and money; calls whose model has no known price cost nothing that could be added up, and that is said."""
    if not spent["tokens"]:
        return "no tokens counted" if calls and calls["failed"] + calls["withheld"] + calls["used"] else "no model calls"
    money = f"{spent['money_usd']:.4f} USD" if spent["money_usd"] else "price unknown"
    return f"{spent['tokens']:,} tokens, {money}"


def show_candidate(facts: Facts) -> None:
    """Print one candidate: plan, knowledge, evaluation, profile, difference."""
    console = Console()
    console.print(f"[bold]{escape(_headline(facts))}[/]")
    console.print(f"does: {escape(facts['what'])}", highlight=False)
    if facts["why_not"]:
        console.print(f"failed: {escape(facts['why_not'])}", highlight=False)
    console.print(f"plan ({facts['planner']}): {escape(facts['rationale'])}")
    for one in facts["recalled"]:
        used = "used" if one["id"] in facts["strategies"] else "warning" if one["warning"] else "recalled"
        console.print(f"  {used} {one['id']} {escape(one['title'])}: {escape(one['why'])}", highlight=False)
        console.print(f"      later: {escape(one['worth'])}", highlight=False)
    for evaluation in facts["evaluations"]:
        console.print(evaluation_table(evaluation))
    if facts["profile"]:
        console.print(_profile_table(facts["profile"]))
        for note in facts["profile"]["notes"]:
            console.print(f"  note: {escape(note)}", highlight=False)
    if facts["review"]:
        console.print(f"review: {escape(facts['review'])}\nlesson: {escape(facts['lesson'])}", highlight=False)
    if console.is_terminal:
        console.print(Syntax(facts["diff"], "diff", background_color="default", word_wrap=True))
    else:
        # a file or a program wants every line whole
        console.print(Text(facts["diff"]), soft_wrap=True)
    console.print(f"source: {facts['source_file']}", highlight=False, soft_wrap=True, markup=False)


def policy_lines(facts: Facts) -> list[str]:
    """Say under which policy and flags figures came about, and what the reference takes under other policies' flags."""
    time_us = facts["time_us"]
    lines = [f"policy:  {PrecisionPolicy.model_validate(facts['policy'])}; kernel and baselines with {facts['flags']}"]
    for name, found in facts["other_baselines"].items():
        times = {one: sample["median_us"] for one, sample in found["samples"].items()} or {"eager": found["estimate"]["eager_us"]}
        words = ", ".join(f"{one} {us:,.1f} µs" for one, us in times.items())
        gain = f"; the kernel is {min(times.values()) / time_us:.2f}x as fast as the fastest of them" if time_us else ""
        lines.append(f"flags of {name}: {words}, the reference by itself ({found['tier']}){gain}")
    return lines


def evaluation_table(evaluation: Facts) -> Table:
    """Verdict, errors, and each time with whether it was measured or estimated."""
    table = Table(box=None, show_header=False)
    for name, value in evaluation_rows(evaluation):
        table.add_row(name, escape(value))
    return table


def evaluation_rows(evaluation: Facts) -> Iterator[tuple[str, str]]:
    """The same as labels and plain text."""
    rule = f" ({evaluation['rule']})" if evaluation["rule"] else ""
    yield "verdict", f"{evaluation['verdict']}{rule}"
    if evaluation["correctness"]:
        yield from _errors(evaluation["correctness"])
    yield from _times(evaluation)
    for shape in evaluation.get("shapes", ()):
        yield from ((f"at {printable(shape['name'])}", said) for label, said in _times(shape["evaluation"]) if label.startswith("against"))
    if names := ", ".join(dict.fromkeys(one["name"] for one in evaluation["launches"])):
        yield "kernels", f"{evaluation['provenance']}: {printable(names)}"
    yield "isolation", printable(evaluation["sandbox"])
    for note in evaluation["notes"]:
        yield "note", printable(note)
    if evaluation["log"] and evaluation["verdict"] != "PASS" and evaluation["log"].strip() not in evaluation["notes"]:
        yield "log", printable(own_frames(evaluation["log"], CANDIDATE)[-1500:])


def _errors(checked: Facts) -> Iterator[tuple[str, str]]:
    emulated = " and ".join(checked.get("emulated", ()))
    said = f", {emulated} emulated in float32," if emulated else ""
    yield "checked", f"{checked['calls']} calls by the {checked['executor']}{said} at {'; '.join(checked['sizes'])}"
    for error in checked["outputs"]:
        limits = f"limit {error['limit_relative_l2']:.1e}; the reference's own {error['reference_relative_l2']:.1e}"
        yield f"error of {error['output']}", f"{error['relative_l2']:.1e} relative L2 against float64 ({limits})"
        worst = f"limit {error['limit_worst_row']:.1e}; the reference's own {error['reference_worst_row']:.1e}"
        yield "", f"{error['worst_row']:.1e} in the worst row ({worst})"


def _times(evaluation: Facts) -> list[tuple[str, str]]:
    timing, estimate = evaluation["timing"], evaluation["estimate"]
    kernels = f"{evaluation['provenance']} kernels"
    if timing:
        trust = f"{timing['tier']}, {kernels}"
        rows = [("kernel time", f"{_sample(timing['candidate'])}, measured ({trust}) on {timing['device']}")]
        for name, sample in timing["baselines"].items():
            value, low, high = timing["speedups"][name]
            rows.append((f"against {name}", f"{value:.2f}x [{low:.2f}, {high:.2f}] ({trust}); {name} takes {_sample(sample)}"))
        if packing := timing.get("packing"):
            held = f", {packing['nbytes'] / 1e6:,.0f} MB" if packing["nbytes"] else ""
            rows.append(("packing weights", f"{_sample(packing['time'])}, measured ({packing['tier']}){held}; once, and in no call's time"))
        return rows
    if estimate:
        ratio, packing = estimate["eager_us"] / estimate["candidate_us"], estimate.get("packing_us")
        return [
            (
                "kernel time",
                f"{estimate['candidate_us']:,.1f} µs on {estimate['target']} ({kernels}), "
                f"ESTIMATED by the cost model {estimate['model']}; nothing was timed",
            ),
            ("against eager", f"{ratio:.2f}x ({kernels}), ESTIMATED; eager takes {estimate['eager_us']:,.1f} µs by the same model"),
            ("roofline floor", f"{estimate['floor_us']:,.1f} µs, computed from bytes and operations"),
            *([("packing weights", f"{packing:,.1f} µs, ESTIMATED; once, and in no call's time")] if packing else []),
        ]
    return []


def _sample(sample: Facts) -> str:
    return f"{sample['median_us']:,.1f} µs (quartiles {sample['low_us']:,.1f}–{sample['high_us']:,.1f}, {sample['count']} calls)"


def _profile_table(profile: Facts) -> Table:
    table = Table(
        "figure",
        "value",
        "unit",
        "source",
        box=None,
        title=f"profile: {profile['bottleneck']}. {profile['evidence']}",
        title_justify="left",
    )
    for figure in profile["figures"]:
        table.add_row(figure["name"], f"{figure['value']:,.4g}", figure["unit"], figure["source"])
    return table


def show_nodes(facts: Facts) -> None:
    """Print every node's time, then every model call."""
    console = Console()
    table = Table("node", "about", "seconds", "error", box=None)
    for span in facts["spans"]:
        seconds = f"{span['seconds']:.2f}" if span["seconds"] is not None else "cut short"
        about = f"candidate {span['candidate'][:6]}" if span["candidate"] else span["subject"]
        table.add_row(span["node"], about, seconds, escape(span["error"] or ""))
    console.print(table)
    if facts["calls"]:
        calls = Table("role", "model", "input tokens", "output tokens", "USD", "seconds", box=None)
        for call in facts["calls"]:
            usage, cost = call.get("usage", {}), call.get("cost_usd")
            tokens = (str(usage.get("input_tokens", "")), str(usage.get("output_tokens", "")))
            calls.add_row(
                call.get("role", ""),
                call.get("model", ""),
                *tokens,
                f"{cost:.4f}" if cost is not None else "unknown",
                f"{call.get('seconds', 0):.1f}",
            )
        console.print(calls)
    console.print(escape(spent_in_words(facts["spent"], facts["model_calls"])))
