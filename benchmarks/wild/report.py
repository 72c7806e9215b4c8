"""Makes tables of the rows of `benchmarks.wild.run`: a line for each family, what stopped the others, and what is left to PyTorch.

Usage: python -m benchmarks.wild.report ROWS.jsonl … [--totals]

`--totals` prints one line for each part and names no operator: all that those who develop the generator may see of the part set apart.
"""

from __future__ import annotations

import argparse
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

from benchmarks.kept_rows import KeptRows
from benchmarks.wild.row import Ended, WildRow

TRACE_LIMIT_S, OPERATOR_LIMIT_S = 20.0, 90.0
"""What no trace and no operator should take, seconds."""
STOPPED = (Ended.UNREADABLE, Ended.NOT_TRACED, Ended.NOTHING, Ended.NOT_WRITTEN, Ended.NOT_RIGHT, Ended.UNKNOWN)
HEAD = (
    "operators",
    "right",
    "whole",
    "library chosen",
    "not traced",
    "nothing generated",
    "not written",
    "not right",
    "longest trace, s",
    "longest, s",
)


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rows", type=Path, nargs="+")
    parser.add_argument("--totals", action="store_true", help="a line for each part, nothing else")
    given = parser.parse_args()
    rows = [WildRow.model_validate(row) for file in given.rows for row in KeptRows(file).rows]
    print("\n".join(totals(rows) if given.totals else report(rows)))


def report(rows: Sequence[WildRow]) -> Iterator[str]:
    """Yield the lines of all tables."""
    own = [row for row in rows if not row.sizes]
    yield from table("family", own, lambda row: row.operator.split("/")[0])
    yield from ("", *stopped(own))
    yield from ("", *left(own))
    other = [row for row in rows if row.sizes]
    if other:
        ends = Counter(str(row.ended) for row in other if row.ended is not Ended.UNKNOWN)
        written = sum(row.ended is Ended.UNKNOWN for row in other)
        yield f"\nOther sizes: {len(other)}, {written} with a kernel" + "".join(f", {count} {end}" for end, count in ends.most_common())


def totals(rows: Sequence[WildRow]) -> Iterator[str]:
    """Yield a table with one line for each part."""
    return table("part", [row for row in rows if not row.sizes], lambda row: row.part)


def table(what: str, rows: Sequence[WildRow], key: Callable[[WildRow], str]) -> Iterator[str]:
    """Yield a table with a line for each value of `key`, and one for all."""
    groups: dict[str, list[WildRow]] = defaultdict(list)
    for row in rows:
        groups[key(row)].append(row)
    yield "| " + " | ".join((what, *HEAD)) + " |"
    yield "|---" * (1 + len(HEAD)) + "|"
    for name, members in sorted(groups.items()):
        yield _line(name, members)
    if len(groups) > 1:
        yield _line("all", rows)


def _line(name: str, rows: Sequence[WildRow]) -> str:
    ends = Counter(row.ended for row in rows)
    whole = sum(row.ended is Ended.RIGHT and not row.library for row in rows)
    cells = [len(rows), ends[Ended.RIGHT], whole, ends[Ended.LIBRARY], ends[Ended.NOT_TRACED] + ends[Ended.UNREADABLE]]
    cells += [ends[Ended.NOTHING], ends[Ended.NOT_WRITTEN], ends[Ended.NOT_RIGHT] + ends[Ended.UNKNOWN]]
    times = [max(row.trace_s for row in rows), max(row.total_s for row in rows)]
    return "| " + " | ".join([name, *(str(cell or "") for cell in cells), *(f"{seconds:.1f}" for seconds in times)]) + " |"


def stopped(rows: Iterable[WildRow]) -> Iterator[str]:
    """Yield what stopped operators, by stage and reason, the most frequent first."""
    found: dict[tuple[Ended, str], list[str]] = defaultdict(list)
    for row in rows:
        if row.ended in STOPPED:
            found[row.ended, _reason(row.why)].append(row.operator.split("/")[-1])
    yield from ("| stage | reason | operators |", "|---|---|---|")
    for (ended, why), names in sorted(found.items(), key=lambda one: (STOPPED.index(one[0][0]), -len(one[1]))):
        yield f"| {ended} | {why} | {len(names)}: {', '.join(names)} |"


def left(rows: Iterable[WildRow]) -> Iterator[str]:
    """Yield PyTorch's operators that nothing generates, by how many of ours have them."""
    found = Counter((one.operator.removeprefix("aten."), _reason(one.reason)) for row in rows for one in {*row.left})
    yield from ("| operator that is left to PyTorch | reason | in |", "|---|---|---|")
    for (operator, reason), count in found.most_common():
        yield f"| {operator} | {reason} | {count} |"


def _reason(said: str) -> str:
    """A reason without the names and numbers of one operator, so that equal ones can be counted."""
    first = said.split("\n", maxsplit=1)[0].split("; ", maxsplit=1)[0]
    return re.sub(r"\b[A-Z_a-z]+=\d+(, )?|'[^']*'", "…", re.sub(r"aten\.[\w.]+", "an operator", first))[:160].replace("|", "/")


if __name__ == "__main__":
    main()
