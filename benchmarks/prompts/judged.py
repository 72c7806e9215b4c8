"""Judges whole kernels that answer questions of desks' folders, each beside the baselines, as in a search.

Usage: python -m benchmarks.prompts.judged SUITE --arm whole=DESK --arm "no idioms=FOLDER" --out ROWS.jsonl [--stop-after S]
       python -m benchmarks.prompts.judged --out ROWS.jsonl --report whole

SUITE holds the operators that the questions are about. Each row says what an answer came to and how many tokens it took; the same command
goes on. `--report ARM` prints each arm of ROWS beside that one, over the questions that both have. Exit status 3 where time was up.
"""

from __future__ import annotations

import argparse
import asyncio
import re
import statistics
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from agents.coder.answers import Ground, source_of
from agents.models import Answer
from benchmarks.kept_rows import KeptRows, Row
from benchmarks.prompts.without import SUFFIX
from kernelwright.desk.counting import counter
from tools.evaluation import EvaluationRequest, EvaluatorPool
from tools.evaluation.several import open_local
from tools.hardware import load_sheet
from tools.problems import load_problem, small_variants
from tools.records import HardwareSheet, Verdict

ASKED = "# How it is asked"
"""Heading below which a question has the settings of its request, which no model reads."""
_PROBLEM = re.compile(r"^# Problem (\w+)$", re.MULTILINE)


class Answered(NamedTuple):
    """A question of a coder with its answer."""

    arm: str
    number: str
    operator: str
    question: str
    answer: str


def main() -> None:
    """Judge what has no row yet, or report."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("suite", type=Path, nargs="?")
    parser.add_argument("--arm", action="append", default=[], metavar="NAME=FOLDER")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--target", default="h100")
    parser.add_argument("--count", default="o200k_base", help="encoding of tiktoken's")
    parser.add_argument("--stop-after", type=float, default=0)
    parser.add_argument("--report", default="", metavar="ARM")
    given = parser.parse_args()
    kept = KeptRows(given.out)
    if given.report:
        if given.report not in {row["arm"] for row in kept.rows}:
            parser.error(f"{given.out} has no arm {given.report!r}: name one of {sorted({row['arm'] for row in kept.rows})}")
        print("\n".join(report(kept.rows, given.report)))
        return
    arms = [arm.partition("=") for arm in given.arm]
    if not given.suite or not arms or not all(Path(folder).is_dir() for _, _, folder in arms):
        parser.error("name SUITE and --arm NAME=FOLDER, each an existing folder, or give --report")
    known = {(row["arm"], row["number"]) for row in kept.rows}
    asked = [one for name, _, folder in arms for one in answered(name, Path(folder)) if (name, one.number) not in known]
    # one operator's answers one after the other: its baselines are started once
    asked.sort(key=lambda one: one.operator)
    if missing := sorted({one.operator for one in asked if not any(given.suite.rglob(f"{one.operator}.py"))}):
        parser.error(f"{given.suite} has no {missing[0]}.py, which a question is about: name the suite that was asked about")
    try:
        asyncio.run(asyncio.wait_for(_judge(asked, given, kept, load_sheet(given.target)), given.stop_after or None))
    except TimeoutError:
        print("Time is up: the same command goes on from here.")
        sys.exit(3)


def answered(arm: str, desk: Path) -> Iterator[Answered]:
    """Give the questions of an arm's folder that have answers."""
    for file in sorted(desk.glob(f"*{SUFFIX}")):
        number, question = file.name.removesuffix(SUFFIX), file.read_text(encoding="utf-8").split(ASKED)[0]
        answer, problem = file.with_name(f"{number}.answer.md"), _PROBLEM.search(question)
        if answer.exists() and problem:
            yield Answered(arm, number, problem[1], question, answer.read_text(encoding="utf-8"))


async def _judge(asked: list[Answered], given: argparse.Namespace, kept: KeptRows, sheet: HardwareSheet) -> None:
    count = counter(given.count)
    with tempfile.TemporaryDirectory() as scratch:
        pool = open_local(Path(scratch), title=sheet.title)
        try:
            for row in asyncio.as_completed([_row(pool, one, given.suite, sheet) for one in asked]):
                found, one = await row
                tokens = {"input": count(one.question), "output": count(one.answer)}
                kept.add({"arm": one.arm, "number": one.number, "operator": one.operator, **tokens, **found})
                print(f"{one.arm} {one.operator}: {found['verdict']} {found['us']} µs {found['gain']}x", flush=True)
        finally:
            await pool.close()


async def _row(pool: EvaluatorPool, one: Answered, suite: Path, sheet: HardwareSheet) -> tuple[Row, Answered]:
    """Judge an answer; one that is no whole file is a failure of its arm."""
    source, complaint = source_of(Answer(text=one.answer), Ground())
    if complaint:
        return {"verdict": "NONE", "us": None, "gain": None, "notes": [complaint]}, one
    problem = await asyncio.to_thread(lambda: load_problem(next(suite.rglob(f"{one.operator}.py"))))
    request = EvaluationRequest(problem=problem, variants=small_variants(problem), candidate=one.number, source=source, target=sheet)
    found = await pool.evaluate(request)
    device = found.timing.device if found.timing else sheet.title
    return {"verdict": found.verdict.value, "us": found.time_us, "gain": found.speedup, "device": device, "notes": list(found.notes)}, one


def report(rows: Sequence[Row], base: str) -> list[str]:
    """Write a table, a line an arm, `base` first: how many are right, tokens, and gains beside the base's, geometric means."""
    arms: dict[str, dict[str, Row]] = {base: {}}
    for row in rows:
        arms.setdefault(row["arm"], {})[row["number"]] = row
    lines = ["| arm | questions | right | tokens of a question | gain | over the first's, both right |", "|---|---|---|---|---|---|"]
    first = arms[base]
    for name, own in arms.items():
        right = [row for row in own.values() if row["verdict"] == Verdict.PASS]
        both = [row for row in right if first.get(row["number"], {}).get("verdict") == Verdict.PASS]
        tokens = sum(row["input"] for row in own.values()) / len(own)
        gain = _mean([row["gain"] for row in right])
        ratio = _mean([row["gain"] / first[row["number"]]["gain"] for row in both])
        lines.append(f"| {name} | {len(own)} | {len(right)} | {tokens:,.0f} | {gain} | {ratio} ({len(both)}) |")
    return lines


def _mean(values: Sequence[float]) -> str:
    return f"{statistics.geometric_mean(values):.2f}x" if values else "–"


if __name__ == "__main__":
    main()
