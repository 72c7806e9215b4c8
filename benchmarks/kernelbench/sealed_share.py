"""Counts of confirmed kernels how far their times can be trusted: what share is sealed, and why the others are not.

Usage: python -m benchmarks.kernelbench.sealed_share ROWS.jsonl …

ROWS are what `benchmarks.kernelbench.confirm_kernels` wrote; of each problem the last confirmation counts, a search's evaluations do not.
"""

from __future__ import annotations

import argparse
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

from benchmarks.kept_rows import KeptRows, Row
from tools.errors import UserError
from tools.records import Tier

TIERS = (Tier.SEALED, Tier.BRACKETED, Tier.IN_PROCESS)
NOT_SEALED = "Not sealed: "
"""How the evaluator's note begins that says why."""


def main() -> None:
    """Print the table of the rows that are named."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rows", type=Path, nargs="+", metavar="ROWS.jsonl")
    given = parser.parse_args()
    try:
        print(share(row for file in given.rows for row in rows_of(file)))
    except UserError as error:
        parser.error(str(error))


def rows_of(file: Path) -> list[Row]:
    """Read rows; raises UserError where there are none."""
    if not file.is_file():
        raise UserError(f"There is no {file}.", "Name rows of confirm_kernels, as in docs/results/kernelbench/confirmed.jsonl.")
    return KeptRows(file).rows


def share(rows: Iterable[Row]) -> str:
    """Sum up by level, then list the reasons with the problems they hold for, the most frequent first."""
    last = {row["problem"]: row for row in rows if row.get("stage", "confirm") == "confirm" and row.get("tier")}
    lines = ["| level | confirmed | sealed | bracketed | in-process | sealed share |", "|" + "---|" * 6]
    for level in [*sorted({name.split("/")[0] for name in last}), "all"]:
        mine = [row for name, row in last.items() if level in ("all", name.split("/")[0])]
        counts = [sum(row["tier"] == tier for row in mine) for tier in TIERS]
        lines.append(f"| {level} | {len(mine)} | {' | '.join(map(str, counts))} | {counts[0] / max(len(mine), 1):.0%} |")
    others = [row for row in last.values() if row["tier"] != Tier.SEALED]
    return "\n".join([*lines, "", *_reasons(others)])


def reason(row: Row) -> str:
    """Say why a kernel was not sealed, without the figures of its own; what no note says is said so."""
    told = [note.removeprefix(NOT_SEALED) for note in (row.get("unsealed"), *row["notes"]) if note and note.startswith(NOT_SEALED)]
    return re.sub(r"\d[\d.e+]*(?= µs)", "…", told[0]).strip(". ") if told else "its row keeps no note that says why"


def _reasons(rows: Sequence[Row]) -> list[str]:
    counted = Counter(reason(row) for row in rows)
    return [
        f"* {count}: {text} ({', '.join(sorted(row['problem'] for row in rows if reason(row) == text))})"
        for text, count in counted.most_common()
    ]


if __name__ == "__main__":
    main()
