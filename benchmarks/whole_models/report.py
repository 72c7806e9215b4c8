"""Sums up rows of whole models: a table in Markdown, and the geometric mean over the best baseline.

python -m benchmarks.whole_models.report rows.jsonl
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from benchmarks.kept_rows import KeptRows, Row
from tools.models.proof import AUTOTUNED, AUTOTUNED_OURS, COMPILED, COMPILED_OURS, EAGER, OURS

BASELINES, WITH_OURS = (EAGER, COMPILED, AUTOTUNED), (OURS, COMPILED_OURS, AUTOTUNED_OURS)


def main(words: Sequence[str] | None = None) -> None:
    """Print the table of a file of rows."""
    [file] = sys.argv[1:] if words is None else words
    print("\n".join(table(KeptRows(Path(file)).rows)))


def table(rows: Iterable[Row]) -> list[str]:
    """Write a line for each model that has come to an end: its last, whatever was tried before."""
    last = {row["model"]: row for row in rows if row["what"] == "ended"}
    lines = [f"| model | {' | '.join(f'{way}, µs' for way in (*BASELINES, *WITH_OURS))} | best with ours over best without | operators |"]
    lines.append("|---" * 9 + "|")
    for name, row in last.items():
        us = row.get("weighted_us", {})
        figures = " | ".join(f"{us[way]:,.0f}" if way in us else "–" for way in (*BASELINES, *WITH_OURS))
        gain = gain_of(row)
        lines.append(
            f"| {name} | {figures} | {f'{gain:.3f}x' if gain else '–'} | {', '.join(row.get('kept', [])) or row['summary'][:60]} |"
        )
    gains = [gain for row in last.values() if (gain := gain_of(row))]
    if gains:
        mean = math.exp(sum(map(math.log, gains)) / len(gains))
        lines += [
            "",
            f"Geometric mean {mean:.3f}x over {len(gains)} models; the least {min(gains):.3f}x. µs: all workloads, by their weights.",
        ]
    return lines


def gain_of(row: Row) -> float | None:
    """Time of the best way without our operators over that of the best way with them; None where nothing was timed."""
    us = row.get("weighted_us", {})
    without = [us[way] for way in BASELINES if way in us]
    ours = [us[way] for way in WITH_OURS if way in us]
    return min(without) / min(ours) if without and ours else None


if __name__ == "__main__":
    main()
