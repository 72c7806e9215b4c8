"""Compiles the cost model's first choices for the operators of a suite for a GPU that need not be there, and names what does not compile.

Usage: python -m benchmarks.wild.compiles OUT.jsonl --part development [--problems "image/*"] [--most 2] [--jobs 2] [--limit 300]

What it finds the interpreter cannot: passes of Triton that fail, and tiles that need more shared memory than a block has. Nothing is run.
OUT keeps what is done: the same command goes on. The table of all rows is printed at the end. The Triton that is imported compiles: with
`pip install --target FOLDER --no-deps triton==X` and FOLDER in PYTHONPATH it is another one.
"""

from __future__ import annotations

import multiprocessing
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from benchmarks.wild import compiles_worker
from benchmarks.wild.compiles_worker import CompiledRow
from benchmarks.wild.run import left_to_do, parser_of

LIMIT_S = 300.0
"""Of one operator: reading, tracing, choosing and compiling."""


def main() -> None:
    """Compile what is not in the file yet, and print the table."""
    parser = parser_of(__doc__)
    parser.add_argument("--device", default="h200", help="the hardware sheet to compile for")
    parser.add_argument("--most", type=int, default=2, help="choices of an operator (default: 2)")
    parser.add_argument("--jobs", type=int, default=2, help="operators side by side (default: 2)")
    parser.add_argument("--limit", type=float, default=LIMIT_S, help="seconds for an operator (default: 300)")
    given = parser.parse_args()
    kept, left = left_to_do(parser, given)

    def compiled(name: str, file: Path) -> None:
        row = compiled_apart(name, file, given.device, given.most, given.limit)
        kept.add(row.model_dump(mode="json"))
        print(row.line, flush=True)

    with ThreadPoolExecutor(given.jobs) as pool:
        list(pool.map(lambda item: compiled(item.name, item.file), left))
    print("\n".join(table([CompiledRow.model_validate(row) for row in kept.rows])))


def compiled_apart(name: str, file: Path, device: str, most: int, limit_s: float) -> CompiledRow:
    """Compile one operator's choices in a process that can be ended: a pass of a compiler hears no signal."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([compiles_worker.__name__])
    ours, theirs = context.Pipe(duplex=False)
    process = context.Process(target=compiles_worker.serve, args=(theirs, name, file, device, most))
    process.start()
    theirs.close()
    try:
        if not ours.poll(limit_s):
            return CompiledRow(operator=name, why=f"not ready after {limit_s:.0f} s")
        return CompiledRow.model_validate_json(ours.recv())
    except EOFError:
        process.join()
        return CompiledRow(operator=name, why=f"the process ended with status {process.exitcode}")
    finally:
        process.kill()
        process.join()


def table(rows: Sequence[CompiledRow]) -> Iterator[str]:
    """Yield a line for each operator with a choice that does not compile, then the sums."""
    yield from (row.line for row in sorted(rows, key=lambda row: row.operator) if row.failed)
    choices = [one for row in rows for one in row.choices]
    wrong = sum(bool(one.why) for one in choices)
    followed = sum(bool(one.unfollowed) for one in choices)
    yield f"{len(rows)} operators, {len(choices)} choices: {sum(one.kernels for one in choices)} kernels compile, {wrong} choices do not"
    if followed:
        yield f"{followed} choices whose host code needs a device were not compiled as far as they go"


if __name__ == "__main__":
    main()
