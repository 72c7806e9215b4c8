"""Kill -9 of whole runs while several model calls are in flight: they must resume to the same end, and pay nothing twice.

Usage: python -m benchmarks.evaluator.run_kills_asking [--kills 5] [--calls 4] [--seed 0] [--operator landscape] [--budget 8] [--out FILE]

A scripted model writes as many kernels at once as there are to be calls in flight, and profiles and reviews them. The operator is
`landscape`, where verdicts are read from a candidate's text, so that a run takes seconds, or `row_mean`, with the interpreter and memory.
One run ends undisturbed; each other is killed at a drawn moment of a drawn round while so many calls are in flight, looked at for two
seconds, and resumed. Candidates, verdicts, delivery, answered calls and memory must be those of the undisturbed one, no question that
was answered before the kill may be asked again, and no process may be left.

`--out` keeps each kill as a JSON line, with the machine's load. Killed itself, the same command goes on with the kills that are missing.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from benchmarks.evaluator.asking_runs import ANSWER_S, KINDS
from benchmarks.evaluator.killing import CHILD, complaints, counted, facts, is_working, killed, row, wrong_in
from benchmarks.forked_runs import ForkedRuns
from benchmarks.kept_rows import KeptRows, Row
from tests.support.scripted_server import ScriptedServer

LOOK_S = 0.02
ROUNDS = 2
"""Of which one is drawn."""


def main() -> None:
    """Kill, resume, compare, until as many are kept as were asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=5)
    parser.add_argument("--calls", type=int, default=4)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--operator", choices=KINDS, default="landscape")
    parser.add_argument("--budget", type=int, default=8)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    kept = KeptRows(options.out)
    if kills_of(kept.rows) < options.kills:
        _kill_until_enough(kept, options)
    print(ending(kept.rows))
    sys.exit(any(complaints(row) for row in kept.rows))


def _kill_until_enough(kept: KeptRows, options: argparse.Namespace) -> None:
    kind = KINDS[options.operator](options.budget, options.calls)
    with tempfile.TemporaryDirectory(prefix="kernelwright-kills-") as made, ForkedRuns(CHILD) as runs:
        folder = Path(made)
        with ScriptedServer(kind.scenario) as server:
            home = folder / "undisturbed"
            kind.begin(runs, home, server)
            assert runs.ended() == 0, home.with_suffix(".out").read_text()[-2000:]
            expected = facts(home, server.requests)
        print(f"undisturbed: {counted(expected)}", flush=True)
        while kills_of(kept.rows) < options.kills:
            draw = random.Random(f"{options.seed} {len(kept.rows)}")
            number, later_s = draw.randrange(ROUNDS), draw.uniform(0.0, 0.6 * ANSWER_S)
            kill = killed(folder, runs, kind, in_flight(options.calls, number, later_s))
            own = {"calls": options.calls, "round": number, "later_s": round(later_s, 2)}
            kept.add(own | row(kill, expected) | {"operator": options.operator, "seed": options.seed})
            print(line(kept.rows[-1]), flush=True)


def in_flight(calls: int, number: int, later_s: float) -> Callable[[Path, ScriptedServer], None]:
    """Make what waits until so many calls are in flight for the time after `number` others, and then for `later_s`."""

    def wait(home: Path, server: ScriptedServer) -> None:
        met, were, since = -1, False, time.monotonic()
        # or until the run has ended: on a busy machine they may not have been in flight at once
        while is_working(home):
            are = server.count(state="received") >= calls
            met += are and not were
            since = time.monotonic() if are and not were else since
            if are and met == number and time.monotonic() >= since + later_s:
                return
            were = are
            time.sleep(LOOK_S)

    return wait


def kills_of(rows: list[Row]) -> int:
    """How many runs were killed while so many calls were in flight."""
    return sum(not row["early"] and row["asking"] >= row["calls"] for row in rows)


def line(row: Row) -> str:
    """One kill in a line."""
    how = "had ended" if row["early"] else f"killed in round {row['round']}, {row['asking']} calls in flight for {row['later_s']:.1f} s"
    how += f", {row['left']} processes left for {row['gone_s']:.1f} s more" if row["left"] else ""
    return f"{how}, at a load of {row['load']:.0f}: {', '.join(complaints(row)) or 'the same'}"


def ending(rows: list[Row]) -> str:
    """All kills in a line."""
    told = wrong_in(rows) or "candidates, verdicts, delivery, calls and memory are the same, nothing was paid twice, and nothing was left"
    return f"{kills_of(rows)} kills with at least {min(row['calls'] for row in rows)} calls in flight: {told}"


if __name__ == "__main__":
    main()
