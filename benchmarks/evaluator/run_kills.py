"""Kill -9 of whole runs at random moments after their first evaluation, model calls among them: they must resume to the same end.

Usage: python -m benchmarks.evaluator.run_kills [--kills 5] [--seed 0] [--operator data/operators/row_mean.py] [--budget 3] [--out FILE]

A run with the interpreter, memory, and a scripted model in every role but the coder's, whose answers take half a second. One ends
undisturbed; each other is killed, looked at for two seconds, and resumed. The moment is drawn: one of the evaluations and questions
after the first evaluation, and a part of the time until the next, which ends it. So it is the same whatever else the machine does.
Candidates, verdicts, delivery, answered calls and memory must be those of the undisturbed one, and no process of it may be left.

`--out` keeps each kill as a JSON line, with the machine's load. Killed itself, the same command goes on with the kills that are missing.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import time
from pathlib import Path
from threading import Thread
from typing import NamedTuple

from benchmarks.evaluator.killing import CHILD, LOOK_S, Facts, Kind, complaints, counted, events, facts, killed, row, wrong_in
from benchmarks.forked_runs import ForkedRuns
from benchmarks.kept_rows import KeptRows, Row
from tests.support.scenarios import whole_team
from tests.support.scripted_rules import Scenario
from tests.support.scripted_server import ScriptedServer

ANSWER_S = 0.5


class Moment(NamedTuple):
    """When to kill."""

    events: int
    """Evaluations kept and questions received by then."""
    later_s: float

    def wait(self, home: Path, server: ScriptedServer) -> None:
        """Wait for it; where the machine is less busy than it was, the next event comes first."""
        while sum(events(home, server)) < self.events:
            time.sleep(LOOK_S)
        due = time.monotonic() + self.later_s
        while time.monotonic() < due and sum(events(home, server)) == self.events:
            time.sleep(LOOK_S)


class Span(NamedTuple):
    """Where a run can be killed."""

    first: int
    """Event at which its first evaluation was kept."""
    last: int
    gap_s: float
    """Between two of these events."""
    tail_s: float
    """From the last one to its end: not to be waited for longer than that, or nothing is left to kill."""

    def drawn(self, draw: random.Random) -> Moment:
        """Draw one of the events, and a part of the time until the next, or until the end."""
        event = draw.randint(self.first, self.last)
        return Moment(event, draw.uniform(0.0, self.tail_s if event == self.last else self.gap_s))


def main() -> None:
    """Kill, resume, compare, until as many are kept as were asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=5)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--operator", type=Path, default=Path("data/operators/row_mean.py"))
    parser.add_argument("--budget", type=int, default=3)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    kept = KeptRows(options.out)
    if kills_of(kept.rows) < options.kills:
        rules = [rule.model_copy(update={"delay_s": ANSWER_S}) for rule in whole_team()]
        _kill_until_enough(kept, Kind(options.operator, options.budget, Scenario(rules=rules), ("coder=builtin",)), options)
    print(ending(kept.rows))
    sys.exit(any(complaints(row) for row in kept.rows))


def _kill_until_enough(kept: KeptRows, kind: Kind, options: argparse.Namespace) -> None:
    with tempfile.TemporaryDirectory(prefix="kernelwright-kills-") as made, ForkedRuns(CHILD) as runs:
        folder = Path(made)
        expected, span = _undisturbed(folder / "undisturbed", runs, kind)
        print(f"undisturbed: {counted(expected)}", flush=True)
        while kills_of(kept.rows) < options.kills:
            # what a kill draws depends on its number alone, so that a portion of kills goes on where the one before ended
            moment = span.drawn(random.Random(f"{options.seed} {len(kept.rows)}"))
            kill = killed(folder, runs, kind, moment.wait)
            own = {"event": moment.events, "later_s": round(moment.later_s, 2)}
            kept.add(own | row(kill, expected) | {"operator": kind.operator.stem, "seed": options.seed})
            print(line(kept.rows[-1]), flush=True)


def kills_of(rows: list[Row]) -> int:
    """How many runs were killed: one that had ended by then was not."""
    return sum(not row["early"] for row in rows)


def line(row: Row) -> str:
    """One kill in a line."""
    how = "had ended" if row["early"] else "killed"
    how += f" {row['later_s']:.1f} s after event {row['event']}" + ", a call in flight" * bool(row["asking"])
    how += f", {row['left']} processes left for {row['gone_s']:.1f} s more" if row["left"] else ""
    return f"{how}, at a load of {row['load']:.0f}: {', '.join(complaints(row)) or 'the same'}"


def ending(rows: list[Row]) -> str:
    """All kills in a line."""
    asking = sum(bool(row["asking"]) for row in rows if not row["early"])
    told = wrong_in(rows) or "candidates, verdicts, delivery, calls and memory are the same, and nothing was left"
    return f"{kills_of(rows)} kills, {asking} of them with a call in flight: {told}"


def _undisturbed(home: Path, runs: ForkedRuns, kind: Kind) -> tuple[Facts, Span]:
    """See a run through; return also at which events it can be killed, and how long it takes from one to the next."""
    with ScriptedServer(kind.scenario) as server:
        kind.begin(runs, home, server)
        seen: dict[int, float] = {}
        ended: list[int] = []
        ending = Thread(target=lambda: ended.append(runs.ended()))
        ending.start()
        while ending.is_alive():
            kept, asked = events(home, server)
            if kept:
                seen.setdefault(kept + asked, time.monotonic())
            time.sleep(LOOK_S)
        end = time.monotonic()
        assert ended == [0], home.with_suffix(".out").read_text()[-2000:]
        first, last = min(seen), max(seen)
        gap_s = (seen[last] - seen[first]) / max(1, last - first)
        return facts(home, server.requests), Span(first, last, gap_s, end - seen[last])


if __name__ == "__main__":
    main()
