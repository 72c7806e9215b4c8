"""Takes every operator of data/suites/wild through the built-in coder without a GPU, and keeps a row of how far each came.

Usage: python -m benchmarks.wild.run OUT.jsonl --part development [--problems "norms/*"] [--no-judge] [--more-sizes] [--here]

One operator at a time: read and traced in a process of its own, the cost model's first choice written, and judged by the evaluator in
Triton's interpreter at the file's small sizes. OUT keeps what is done: the same command goes on. `--more-sizes` adds the operators' other
sizes, traced and written alone. Results of `held-out` are not for those who develop the generator.
"""

from __future__ import annotations

import argparse
import ast
import asyncio
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from benchmarks.kept_rows import KeptRows
from benchmarks.wild.row import WildRow
from benchmarks.wild.stages import Apart, Front, Here, Walk
from tools.errors import UserError
from tools.evaluation.several import open_local
from tools.hardware import load_sheet
from tools.hardware.devices import INTERPRETER
from tools.problems.suite import SuiteItem, open_suite, select
from tools.records import HardwareSheet

SUITE = Path(__file__).parents[2] / "data" / "suites" / "wild"
MORE_SIZES = "MORE_SIZES"
LIMIT_S = 60.0
"""Of reading and of tracing, each: what `kernelwright bench` gives them."""


def main() -> None:
    """Do what is not in the file of rows yet."""
    parser = parser_of(__doc__)
    parser.add_argument("--device", default="h200", help="the hardware sheet of the cost model")
    parser.add_argument("--limit", type=float, default=LIMIT_S, help="seconds for reading, and for tracing (default: 60)")
    parser.add_argument("--judge", action=argparse.BooleanOptionalAction, default=True, help="ask the evaluator")
    parser.add_argument("--more-sizes", action="store_true", help="the other sizes of the files, too; not judged")
    parser.add_argument("--here", action="store_true", help="read and trace in this process, without a limit, for a debugger")
    given = parser.parse_args()
    try:
        items = items_of(given.suite, given.part, given.problems)
        front = Here() if given.here else Apart(given.limit)
        sheet = load_sheet(given.device)
        asyncio.run(run(items, KeptRows(given.out), sheet, front, judge=given.judge, more_sizes=given.more_sizes))
    except UserError as error:
        parser.error(str(error))


def parser_of(description: str | None) -> argparse.ArgumentParser:
    """Make a parser that asks for a file of rows and for operators of one part of a suite."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path, help="file of rows as JSON lines")
    parser.add_argument("--part", choices=["development", "held-out"], default="", help="of a suite that has parts: always one of them")
    parser.add_argument("--suite", type=Path, default=SUITE)
    parser.add_argument("--problems", default="", help="numbers, ranges, names with *; default: all of the part")
    return parser


def items_of(suite: Path, part: str, problems: str) -> list[SuiteItem]:
    """List the operators of a part of a suite, or those of them that are asked for; raises UserError where there are none such."""
    items = select(open_suite(suite).items, problems)
    if not part and any(item.part for item in items):
        raise UserError(f"{suite} has a part that is set apart.", "Give --part development.")
    return [item for item in items if item.part == part.replace("-", " ")]


def left_to_do(parser: argparse.ArgumentParser, given: argparse.Namespace) -> tuple[KeptRows, list[SuiteItem]]:
    """Open the file of rows, and list the operators that it has no row of; a wrong input ends the program with a line."""
    try:
        items = items_of(given.suite, given.part, given.problems)
        kept = KeptRows(given.out)
    except UserError as error:
        parser.error(str(error))
    done = {row["operator"] for row in kept.rows}
    return kept, [item for item in items if item.name not in done]


async def run(items: Sequence[SuiteItem], kept: KeptRows, sheet: HardwareSheet, front: Front, *, judge: bool, more_sizes: bool) -> None:
    """Add a row for each operator that has none, with its other sizes if wanted, and say it."""
    done = {_key(WildRow.model_validate(row)) for row in kept.rows}
    with tempfile.TemporaryDirectory(prefix="wild-") as scratch:
        pool = open_local(Path(scratch), INTERPRETER, sheet.title) if judge else None
        try:
            for item in items:
                for sizes in ({}, *(more_of(item) if more_sizes else ())):
                    if (item.name, str(sizes)) not in done:
                        row = await Walk(item, sheet, front, sizes).row(None if sizes else pool)
                        kept.add(row.model_dump(mode="json", exclude_defaults=True))
                        print(line(row), flush=True)
        finally:
            if pool:
                await pool.close()


def more_of(item: SuiteItem) -> Iterator[dict[str, int]]:
    """Yield the other sizes that an operator's file names."""
    for node in ast.parse(item.file.read_text()).body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and node.targets[0].id == MORE_SIZES:
            yield from ast.literal_eval(node.value)


def line(row: WildRow) -> str:
    """One operator in a line."""
    ours = f"{len(row.generated)} ours, {len(row.library)} the library's" if row.choices else ""
    parts = [f"{row.operator}: {row.ended}", str(row.sizes or ""), ours, f"{row.trace_s:.1f} s traced, {row.total_s:.1f} s", row.why]
    return "; ".join(part for part in parts if part)


def _key(row: WildRow) -> tuple[str, str]:
    return row.operator, str(row.sizes)


if __name__ == "__main__":
    main()
