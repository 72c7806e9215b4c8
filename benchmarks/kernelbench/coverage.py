"""Traces every problem of a folder without a GPU and prints what the built-in coder generates of it and what it leaves, with the reason.

Usage: python -m benchmarks.kernelbench.coverage SUITE_DIR [--one-in N --rest R] [--json FILE] [NAME …]

SUITE_DIR holds problem files, at any depth. `--one-in 3 --rest 1` takes files whose leading number is 1 modulo 3. The files
are run in this process: point it only at suites you trust.
"""

from __future__ import annotations

import argparse
import json
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tools.codegen import LoweringError, emit, initial_schedule, limits, trace
from tools.codegen.rewrite.pushdown.products import reduction_pushdowns
from tools.codegen.schedule.apply import apply
from tools.codegen.schedule.options import options
from tools.errors import UserError
from tools.hardware import load_sheet
from tools.problems import load_problem


def main() -> None:
    """Cover the files one after the other, then count the reasons."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("suite", type=Path)
    parser.add_argument("names", nargs="*", help="only files whose name contains one of these")
    parser.add_argument("--one-in", type=int, default=1)
    parser.add_argument("--rest", type=int, default=0)
    parser.add_argument("--json", type=Path, default=None)
    parser.add_argument("--device", default="h200", help="the hardware sheet that first values are chosen for")
    given = parser.parse_args()
    rows = []
    for path in _files(given.suite, given.names, given.one_in, given.rest):
        rows.append(cover(path, given.device) | {"file": str(path.relative_to(given.suite))})
        print(_line(rows[-1]), flush=True)
    print(_summary(rows))
    if given.json:
        given.json.write_text("".join(json.dumps(row) + "\n" for row in rows))


def cover(path: Path, device: str) -> dict[str, Any]:
    """Generate all that can be generated of one problem, and say what is left."""
    try:
        problem = load_problem(path)
        graph = trace(problem)
    except UserError as error:
        return {"refused": str(error)}
    if graph.blocked:
        return {"blocked": list(graph.blocked)}
    schedule = initial_schedule(graph)
    words = ({"scope": "each"}, {"implementation": "generated"})
    found = [a for a in options(graph, schedule, load_sheet(device)) if any(each.items() <= a.parameters.items() for each in words)]
    if found:
        # the widest: every region at once, or the only one
        schedule = apply(graph, schedule, max(found, key=lambda action: action.region.count("+")))
    row: dict[str, Any] = {
        "generated": [f"{r.template}: {_operators(graph, r.nodes)}" for r in schedule.regions if r.is_generated],
        "library": [_operators(graph, r.nodes) for r in schedule.regions if not r.is_generated],
        "reduction_pushdown": ["+".join(graph.by_name[name].op for name in found.nodes) for found in reduction_pushdowns(graph)],
        "limits": {limit.operator: limit.reason for limit in limits(graph)},
    }
    try:
        emit(problem, graph, schedule)
    except LoweringError as error:
        row["not_emitted"] = str(error)
    return row


def _files(suite: Path, names: list[str], one_in: int, rest: int) -> Iterator[Path]:
    def number(path: Path) -> int:
        found = re.match(r"\d+", path.name)
        return int(found[0]) if found else 0

    for path in sorted(suite.rglob("*.py"), key=lambda path: (str(path.parent), number(path), path.name)):
        wanted = not names or any(name in path.name for name in names)
        if wanted and not path.name.startswith("_") and number(path) % one_in == rest:
            yield path


def _operators(graph: Any, nodes: tuple[str, ...]) -> str:
    return "+".join(graph.by_name[name].op for name in nodes)


def _line(row: dict[str, Any]) -> str:
    if "refused" in row or "blocked" in row:
        return f"{row['file']}: {row.get('refused') or 'blocked: ' + '; '.join(row['blocked'])}"
    lines = [f"{row['file']}: {len(row['generated'])} generated, {len(row['library'])} left to the library"]
    lines += [f"    generated  {text}" for text in row["generated"]]
    lines += [f"    library    {text}" for text in row["library"]]
    lines += [f"    reduction push-down  {text}" for text in row["reduction_pushdown"]]
    lines += [f"    limit      {operator}: {reason}" for operator, reason in row["limits"].items()]
    lines += [f"    NOT EMITTED {row['not_emitted']}"] if "not_emitted" in row else []
    return "\n".join(lines)


def _summary(rows: list[dict[str, Any]]) -> str:
    whole = sum(1 for row in rows if row.get("generated") and not row["library"])
    some = sum(1 for row in rows if row.get("generated") and row["library"])
    pushed = sum(1 for row in rows if row.get("reduction_pushdown"))
    reasons = Counter(f"{operator}: {reason}" for row in rows for operator, reason in row.get("limits", {}).items())
    lines = [f"{len(rows)} problems: {whole} generated whole, {some} in part, {len(rows) - whole - some} not"]
    lines += [f"{pushed} where a sum can be pushed down below its product"]
    return "\n".join([*lines, *(f"{count:5d}  {reason}" for reason, count in reasons.most_common())])


if __name__ == "__main__":
    main()
