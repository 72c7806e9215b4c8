"""What a soak's rows say: verdicts by kind, surprises, and whether anything was left behind."""

from __future__ import annotations

import collections
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from benchmarks.evaluator.leftovers import is_clean
from benchmarks.kept_rows import Row


def summary(rows: Sequence[Row], planned: Collection[str], settings: Mapping[str, object]) -> dict[str, Any]:
    """Add up the rows of every sitting: sound is what was judged to its end, as expected, with nothing left by a sitting that ended.

    `planned` are keys of rows; what has another key and was not judged beside them is of another plan, and left out.
    """
    judged = [row for row in rows if row.get("key") in planned or row.get("beside")]
    sittings = [row for row in rows if "sitting" in row]
    ended = [row for row in sittings if row["after"]]
    kinds: dict[str, collections.Counter[str]] = collections.defaultdict(collections.Counter)
    for row in judged:
        kinds[row["kind"]][row["verdict"]] += 1
    surprises = [{name: row[name] for name in ("kind", "verdict", "notes", "log")} for row in judged if not row["expected"]]
    seconds = sum(row["sitting"]["seconds"] for row in sittings)
    missing = set(planned) - {row["key"] for row in judged}
    clean = bool(ended) and all(is_clean(row["before"], row["after"]) for row in ended)
    return {
        "candidates": len(planned),
        "missing": len(missing),
        "sittings": len(sittings),
        "interrupted": len(sittings) - len(ended),
        "seconds": round(seconds, 1),
        "per_minute": round(60 * sum(row["sitting"]["judged"] for row in sittings) / seconds, 1) if seconds else 0.0,
        **settings,
        "verdicts_by_kind": {name: dict(counts) for name, counts in sorted(kinds.items())},
        "surprises": surprises,
        "before": ended[-1]["before"] if ended else {},
        "after": ended[-1]["after"] if ended else {},
        "peak_supervisor_mib": max((row["sitting"]["peak_supervisor_mib"] for row in sittings), default=0),
        "sound": not surprises and not missing and clean,
    }


def page(found: Mapping[str, Any]) -> str:
    """Write a summary as a page."""
    judged = found["candidates"] - found["missing"]
    lines = [
        "# Soak: many candidates, a fifth of them hostile",
        "",
        f"Written by `python -m benchmarks.evaluator.soak --candidates {found['candidates']} --parallel {found['parallel']}` on"
        f" {found['machine']}; static rules off, time limit {found['time_limit_s']:g} s.",
        "",
        f"{judged} candidates in {found['seconds']:g} s ({found['per_minute']:g} a minute).",
        f"Every verdict as expected: {'yes' if not found['surprises'] else 'no'}. All well: {'yes' if found['sound'] else 'no'}.",
    ]
    if found["missing"]:
        lines += [f"Not yet judged: {found['missing']}; the same command goes on."]
    if found["interrupted"]:
        lines += [f"Sittings that were interrupted: {found['interrupted']} of {found['sittings']}; what those left was not looked at."]
    lines += [
        "",
        "| kind | verdicts |",
        "|---|---|",
        *(f"| {kind} | {', '.join(f'{n} {v}' for v, n in counts.items())} |" for kind, counts in found["verdicts_by_kind"].items()),
    ]
    if found["before"]:
        lines += [
            "",
            "| what | before | after |",
            "|---|---|---|",
            *(f"| {key.replace('_', ' ')} | {found['before'][key]} | {found['after'][key]} |" for key in found["before"]),
            "",
            "Before: after a first evaluation, with the processes that stay. Resident memory counts shared pages once for each process.",
        ]
    lines += [f"* surprise: {item}" for item in found["surprises"]]
    return "\n".join(lines) + "\n"
