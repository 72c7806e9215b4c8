"""Sums up rows of whole models: a table in Markdown, and the geometric mean over the best baseline.

python -m benchmarks.whole_models.report rows.jsonl
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from benchmarks.kept_rows import KeptRows, Row
from benchmarks.whole_models.run import ENDED, TUNED
from kernelwright.models.ways import PAIRS
from tools.models.jobs import EAGER

BASELINES, WITH_OURS = (tuple(pair[place] for pair in PAIRS) for place in (0, 1))


def main(words: Sequence[str] | None = None) -> None:
    """Print the table of a file of rows."""
    [file] = sys.argv[1:] if words is None else words
    print("\n".join(table(KeptRows(Path(file)).rows)))


def table(rows: Iterable[Row]) -> list[str]:
    """Write a line for each model that has come to an end: its last rows, whatever was tried before."""
    last: dict[str, dict[str, Row]] = {}
    for row in rows:
        if row["what"] in (ENDED, TUNED):
            last.setdefault(row["model"], {})[row["what"]] = row
    ways = (*BASELINES, *WITH_OURS)
    lines = [f"| model | eager, µs | {' | '.join(f'{way}' for way in ways[1:])} | best with ours over best without | operators |"]
    lines.append("|---" * (len(ways) + 3) + "|")
    gains = []
    for name, found in last.items():
        kept = found.get(ENDED, {}).get("kept", [])
        # what was timed last with operators that were all taken out again is not what the user has
        speed = {way: times for way, times in speeds(found.values()).items() if kept or way in BASELINES}
        eager = next((row["weighted_us"][EAGER] for row in found.values() if EAGER in row.get("weighted_us", {})), None)
        figures = " | ".join(f"{speed[way]:.2f}x" if way in speed else "–" for way in ways[1:])
        gain = gain_of(speed) if kept else 1.0 if speed else None
        gains += [gain] if gain else []
        better = f"{gain:.3f}x" if gain else "–"
        lines.append(f"| {name} | {f'{eager:,.0f}' if eager else '–'} | {figures} | {better} | {', '.join(kept) or 'none'} |")
    if gains:
        mean = math.exp(sum(map(math.log, gains)) / len(gains))
        said = f"Geometric mean {mean:.3f}x over {len(gains)} models; the least {min(gains):.3f}x."
        lines += ["", f"{said} All workloads, by their weights; each way over eager of its own session."]
    return lines


def speeds(rows: Iterable[Row]) -> dict[str, float]:
    """How many times as fast as eager, in the same session, each way of running a model is."""
    found: dict[str, float] = {}
    for row in rows:
        us = row.get("weighted_us", {})
        found |= {way: us[EAGER] / time for way, time in us.items() if way not in found and EAGER in us}
    return found


def gain_of(speed: dict[str, float]) -> float | None:
    """The best way with our operators over the best without; None where nothing was timed."""
    without = [speed[way] for way in BASELINES if way in speed]
    ours = [speed[way] for way in WITH_OURS if way in speed]
    return max(ours) / max(without) if without and ours else None


if __name__ == "__main__":
    main()
