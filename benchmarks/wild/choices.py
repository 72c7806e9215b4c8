"""Times the cost model's first choices for operators of data/suites/wild beside eager and torch.compile, many at once on one GPU.

Usage: python -m benchmarks.wild.choices OUT.jsonl --part development [--problems "norms/*"] [--most 4] [--jobs 14] [--seconds 240]

Each operator has a process of its own, which traces, writes and compiles beside the others; one at a time is timed, and the others stop
meanwhile. Nothing is judged: a choice counts where it is within `FAR` of eager or of float64 on one input, so a figure here says where
the model errs, not what would be delivered. Where torch.compile is not ready after two minutes, eager alone is the baseline, and the row
says so. OUT keeps what is done: the same command goes on. The table of all rows is printed at the end. `--suite KernelBench` takes any
other suite, in PyTorch's own flags. Needs an NVIDIA GPU.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from benchmarks.wild.choice_row import ChoicesRow, table
from benchmarks.wild.neighbours import resume_children
from benchmarks.wild.run import left_to_do, parser_of

LIMIT_S = 240.0
"""Of one operator, half of it for torch.compile."""
LEAST_S = 15.0
"""No operator is begun with less left."""


def main() -> None:
    """Time what is not in the file yet, and print the table."""
    parser = parser_of(__doc__)
    parser.add_argument("--most", type=int, default=4, help="choices of an operator (default: 4)")
    parser.add_argument("--jobs", type=int, default=14, help="operators that are prepared side by side (default: 14)")
    parser.add_argument("--seconds", type=float, default=0.0, help="begin nothing more after so long; 0: no limit")
    given = parser.parse_args()
    kept, left = left_to_do(parser, given)
    end = time.monotonic() + given.seconds if given.seconds else float("inf")

    def timed(name: str, file: Path) -> None:
        limit_s = min(LIMIT_S, end - time.monotonic())
        if limit_s >= LEAST_S:
            kept.add(_one(name, file, given.most, limit_s).model_dump(mode="json"))

    with ThreadPoolExecutor(given.jobs) as pool:
        list(pool.map(lambda item: timed(item.name, item.file), left))
    print("\n".join(table([ChoicesRow.model_validate(row) for row in kept.rows])))


def _one(name: str, file: Path, most: int, limit_s: float) -> ChoicesRow:
    """Time one operator in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.wild.choices_worker", name, str(file), str(most), f"{limit_s:.0f}"]
    few = os.environ | {"TORCHINDUCTOR_COMPILE_THREADS": "1", "OMP_NUM_THREADS": "2"}
    try:
        ended = subprocess.run(command, capture_output=True, text=True, timeout=limit_s, env=few, check=False)
    except subprocess.TimeoutExpired:
        return ChoicesRow(operator=name, why=f"not ready after {limit_s:.0f} s")
    finally:
        resume_children()
    last = ended.stdout.strip().rpartition("\n")[2]
    if ended.returncode or not last.startswith("{"):
        return ChoicesRow(operator=name, why=ended.stderr.strip()[-300:] or f"exit status {ended.returncode}")
    return ChoicesRow.model_validate(json.loads(last))


if __name__ == "__main__":
    main()
