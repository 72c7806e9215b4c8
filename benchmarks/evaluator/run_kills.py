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
import os
import random
import signal
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from threading import Thread
from typing import Any, NamedTuple

from benchmarks.evaluator.leftovers import alive, started_below
from benchmarks.forked_runs import ForkedRuns, process_of
from benchmarks.kept_rows import KeptRows, Row
from tests.support.scenarios import whole_team
from tests.support.scripted_rules import Scenario
from tests.support.scripted_server import ScriptedServer
from tools.records import Evaluation
from tools.tracing import RunStore

CHILD = "benchmarks.evaluator.run_kills_child"
RUN = "run"
LOOK_S = 0.1
GONE_S = 60.0
SETTLED_S = 2.0
"""After which nothing of a killed run may be alive."""
ANSWER_S = 0.5
Facts = dict[str, Any]


class Moment(NamedTuple):
    """When to kill."""

    events: int
    """Evaluations kept and questions received by then."""
    later_s: float


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


class Kill(NamedTuple):
    """What one kill led to."""

    moment: Moment
    early: bool
    """Whether the run had ended by then, so that nothing was killed."""
    asking: bool
    """Whether a model call was in flight."""
    left: list[int]
    """Processes that were alive two seconds afterwards."""
    gone_s: float
    """After how many seconds more none was; what has been killed needs a processor to go, which a busy machine gives late."""
    facts: Facts


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
        _kill_until_enough(kept, options)
    print(ending(kept.rows))
    sys.exit(any(complaints(row) for row in kept.rows))


def _kill_until_enough(kept: KeptRows, options: argparse.Namespace) -> None:
    with tempfile.TemporaryDirectory(prefix="kernelwright-kills-") as folder, ForkedRuns(CHILD) as runs:
        expected, span = _undisturbed(Path(folder) / "undisturbed", runs, options)
        print(f"undisturbed: {_counted(expected)}", flush=True)
        while kills_of(kept.rows) < options.kills:
            # what a kill draws depends on its number alone, so that a portion of kills goes on where the one before ended
            draw = random.Random(f"{options.seed} {len(kept.rows)}")
            moment = span.drawn(draw)
            kill = _killed(Path(folder) / "killed", runs, options, moment)
            kept.add(_row(kill, expected) | {"operator": options.operator.stem, "seed": options.seed})
            print(line(kept.rows[-1]), flush=True)


def _row(kill: Kill, expected: Facts) -> Row:
    return {
        "event": kill.moment.events,
        "later_s": round(kill.moment.later_s, 2),
        "early": kill.early,
        "asking": kill.asking,
        "left": len(kill.left),
        "gone_s": round(kill.gone_s, 1),
        "differs": [name for name in expected if kill.facts[name] != expected[name]],
        "load": round(os.getloadavg()[0], 1),
    }


def kills_of(rows: list[Row]) -> int:
    """How many runs were killed: one that had ended by then was not."""
    return sum(not row["early"] for row in rows)


def complaints(row: Row) -> list[str]:
    """Say what a kill changed, and whether it left something."""
    return [*row["differs"], *["processes left"] * bool(row["left"])]


def line(row: Row) -> str:
    """One kill in a line."""
    how = "had ended" if row["early"] else "killed"
    how += f" {row['later_s']:.1f} s after event {row['event']}" + ", a call in flight" * row["asking"]
    how += f", {row['left']} processes left for {row['gone_s']:.1f} s more" if row["left"] else ""
    return f"{how}, at a load of {row['load']:.0f}: {', '.join(complaints(row)) or 'the same'}"


def ending(rows: list[Row]) -> str:
    """All kills in a line."""
    wrong = Counter(name for row in rows for name in complaints(row))
    asking = sum(row["asking"] for row in rows if not row["early"])
    told = str(dict(wrong)) if wrong else "candidates, verdicts, delivery, calls and memory are the same, and nothing was left"
    return f"{kills_of(rows)} kills, {asking} of them with a call in flight: {told}"


def _undisturbed(home: Path, runs: ForkedRuns, options: argparse.Namespace) -> tuple[Facts, Span]:
    """See a run through; return also at which events it can be killed, and how long it takes from one to the next."""
    with _model() as server:
        _begin(runs, home, server.url, options)
        seen: dict[int, float] = {}
        ended: list[int] = []
        ending = Thread(target=lambda: ended.append(runs.ended()))
        ending.start()
        while ending.is_alive():
            kept, asked = _events(home, server)
            if kept:
                seen.setdefault(kept + asked, time.monotonic())
            time.sleep(LOOK_S)
        end = time.monotonic()
        assert ended == [0], home.with_suffix(".out").read_text()[-2000:]
        first, last = min(seen), max(seen)
        gap_s = (seen[last] - seen[first]) / max(1, last - first)
        return _facts(home), Span(first, last, gap_s, end - seen[last])


def _killed(home: Path, runs: ForkedRuns, options: argparse.Namespace, moment: Moment) -> Kill:
    with tempfile.TemporaryDirectory(dir=home.parent) as folder, _model() as server:
        home = Path(folder) / "home"
        _begin(runs, home, server.url, options)
        while sum(_events(home, server)) < moment.events:
            time.sleep(LOOK_S)
        # where the machine is less busy than it was, the next event comes first
        due = time.monotonic() + moment.later_s
        while time.monotonic() < due and sum(_events(home, server)) == moment.events:
            time.sleep(LOOK_S)
        family = started_below(process_of(home))
        asking = any(entry.state == "received" for entry in server.requests)
        if family:
            os.kill(process_of(home), signal.SIGKILL)
        early = runs.ended() == 0
        time.sleep(SETTLED_S)
        left, looked = alive(family), time.monotonic()
        while alive(family) and time.monotonic() < looked + GONE_S:
            time.sleep(LOOK_S)
        gone_s = time.monotonic() - looked
        _begin(runs, home, server.url, options)
        assert runs.ended() == 0, home.with_suffix(".out").read_text()[-2000:]
        return Kill(moment, early, asking, left, gone_s, _facts(home))


def _begin(runs: ForkedRuns, home: Path, url: str, options: argparse.Namespace) -> None:
    home.with_suffix(".pid").unlink(missing_ok=True)
    runs.begin(home, url, str(options.operator), str(options.budget))


def _events(home: Path, server: ScriptedServer) -> tuple[int, int]:
    """Count evaluations that a run has kept, and questions that it has asked."""
    folder = home / "runs" / RUN
    if not (folder / "run.db").is_file():
        return 0, 0
    store = RunStore(folder)
    kept = len(store.all("evaluation", Evaluation))
    store.close()
    return kept, len(server.requests)


def _facts(home: Path) -> Facts:
    """What must be the same, whatever happened on the way."""
    from graphs.run.records import Delivery
    from knowledge.store import KnowledgeBase
    from knowledge.vectors.embedding import open_embedder
    from tools.records import Candidate

    store = RunStore(home / "runs" / RUN)
    evaluations = store.all("evaluation", Evaluation)
    delivery = store.get("delivery", RUN, Delivery)
    base = KnowledgeBase(home / "knowledge", open_embedder("hashing"), seeds=None)
    facts = {
        "candidates": sorted(store.all("candidate", Candidate)),
        "verdicts": sorted((key, one.candidate, one.verdict.value) for key, one in evaluations.items()),
        "delivery": delivery and delivery.model_dump(),
        # a prompt has measured errors in it, which no two runs share; what was asked for it does not
        "calls": sorted((str(call["role"]), str(call["purpose"]), int(call["turns"])) for call in store.calls()),
        "memory": sorted((one.id, one.title, sorted(f"{t.candidate} {t.verdict} {t.gain}" for t in one.trials)) for one in base.all()),
    }
    base.close()
    store.close()
    return facts


def _counted(facts: Facts) -> str:
    return ", ".join(f"{len(found)} {name}" for name, found in facts.items() if isinstance(found, list))


def _model() -> ScriptedServer:
    rules = [rule.model_copy(update={"delay_s": ANSWER_S}) for rule in whole_team()]
    return ScriptedServer(Scenario(rules=rules))


if __name__ == "__main__":
    main()
