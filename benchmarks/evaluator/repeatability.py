"""Repeats one evaluation on a GPU and says how far its medians spread, and whether equals are ever reported as a win.

Usage: python -m benchmarks.evaluator.repeatability [--repeats N] [--stage search|confirm] [--out FILE.json] [--markdown FILE.md] [NAME …]

Each sample operator is judged N times, in new processes with new seeds, with the built-in coder's first kernel and with the reference
itself as the candidate. A win would be a kernel that is no other than the reference and yet counts as faster than eager, or a
repetition that counts as faster than another of the same kernel. Exit status 1 where a candidate did not pass or the reference won.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import statistics
import tempfile
from pathlib import Path
from typing import Any

from agents.reviewer.gain import compare
from agents.reviewer.protocol import ReviewCase
from graphs.run.settings import RunSettings
from tests.honest.corpus import OPERATORS, generated
from tools.evaluation import Baselines, EvaluationRequest, LocalPool
from tools.hardware import detect_sheet
from tools.hardware.devices import first_device
from tools.problems import load_problem, small_variants
from tools.records import Evaluation, HardwareSheet, Problem, ProblemForm

FLOOR: float = RunSettings.model_fields["floor"].default
"""What a speed-up's lower end must exceed to be delivered."""

MODULE = "\n\nclass ModelNew({entry}):\n    pass\n"
FUNCTION = """

import torch


class ModelNew(torch.nn.Module):
    def forward(self, *arguments):
        return {entry}(*arguments)
"""


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", default=["softmax", "cross_entropy", "gelu_bias"])
    parser.add_argument("--repeats", type=int, default=10)
    parser.add_argument("--stage", choices=("search", "confirm"), default="search")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--markdown", type=Path)
    options = parser.parse_args()
    sheet = detect_sheet()
    assert sheet is not None, "this machine has no NVIDIA GPU"
    with tempfile.TemporaryDirectory() as folder:
        rows = asyncio.run(_measure(options, sheet, Path(folder)))
    if options.out:
        options.out.write_text(json.dumps(rows, indent=1) + "\n")
    if options.markdown:
        options.markdown.write_text(_table(rows))
    print(_table(rows))
    raise SystemExit(1 if any(row["verdicts"] != ["PASS"] or row["reference_won"] for row in rows) else 0)


async def _measure(options: argparse.Namespace, sheet: HardwareSheet, folder: Path) -> list[dict[str, Any]]:
    pool = LocalPool(folder / "scratch", first_device())
    rows = []
    try:
        for name in options.names:
            problem = load_problem(OPERATORS / f"{name}.py")
            baselines = await pool.baselines(problem, sheet)
            for kind, source in (("built-in coder", next(generated(1, (name,))).source), ("the reference itself", itself(problem))):
                found = [await pool.evaluate(_request(options.stage, problem, source, sheet, number)) for number in range(options.repeats)]
                rows.append(_row(name, kind, problem, found, baselines))
                print(json.dumps(rows[-1]), flush=True)
    finally:
        await pool.close()
    return rows


def itself(problem: Problem) -> str:
    """Write a candidate that is the reference under another name."""
    frame = FUNCTION if problem.form is ProblemForm.FUNCTION else MODULE
    return problem.source + frame.format(entry=problem.entry)


def _request(stage: Any, problem: Problem, source: str, sheet: HardwareSheet, number: int) -> EvaluationRequest:
    # a comment makes it another source: nothing that was built or judged before is answered again
    source = f"{source}\n# repetition {number}\n"
    variants = small_variants(problem)
    return EvaluationRequest(problem=problem, variants=variants, candidate=f"c{number}", source=source, target=sheet, stage=stage)


def _row(name: str, kind: str, problem: Problem, found: list[Evaluation], baselines: Baselines) -> dict[str, Any]:
    timings = [one.timing for one in found if one.timing is not None]
    medians = [timing.candidate.median_us for timing in timings]
    against_eager = [timing.speedups["eager"] for timing in timings]
    pairs = list(itertools.permutations(found, 2))
    faster = sum(_is_faster(problem, child, parent, baselines) for child, parent in pairs)
    return {
        "operator": name,
        "candidate": kind,
        "verdicts": sorted({str(one.verdict) for one in found}),
        "notes": sorted({note for one in found for note in one.notes})[:3],
        "tier": sorted({str(timing.tier) for timing in timings}),
        "medians_us": medians,
        "spread": (max(medians) - min(medians)) / statistics.median(medians) if medians else None,
        "speedups_against_eager": [list(one) for one in against_eager],
        "reference_won": sum(low > FLOOR for _, low, _ in against_eager) if kind.startswith("the reference") else 0,
        "pairs": len(pairs),
        "pairs_faster": faster,
        "device": timings[0].device if timings else "",
        "versions": found[0].versions,
    }


def _is_faster(problem: Problem, child: Evaluation, parent: Evaluation, baselines: Baselines) -> bool:
    """Whether a reviewer would take `child` for an improvement over `parent`."""
    # the gain is worked out of these fields alone
    known: dict[str, Any] = {"problem": problem, "evaluation": child, "parent_evaluation": parent, "baselines": baselines}
    case = ReviewCase.model_construct(None, **known)
    gain = compare(case).gain
    return gain is not None and gain.low > 1


def _table(rows: list[dict[str, Any]]) -> str:
    names = ("operator", "candidate", "verdicts", "medians µs", "spread", "against eager", "wins over eager", "pairs that count as faster")
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (names, ["---"] * len(names), *map(_cells, rows))) + "\n"


def _cells(row: dict[str, Any]) -> list[str]:
    medians, speedups = row["medians_us"], [one[0] for one in row["speedups_against_eager"]]
    start = [row["operator"], row["candidate"], ", ".join(row["verdicts"])]
    if not medians:
        return [*start, *["–"] * 5]
    won = f"{row['reference_won']} of {len(speedups)}" if row["candidate"].startswith("the reference") else "–"
    spread = [f"{min(medians):.2f}–{max(medians):.2f}", f"{row['spread']:.2%}", f"{min(speedups):.3f}–{max(speedups):.3f}x"]
    return [*start, *spread, won, f"{row['pairs_faster']} of {row['pairs']}"]


if __name__ == "__main__":
    main()
