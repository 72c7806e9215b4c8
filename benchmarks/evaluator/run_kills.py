"""Kill -9 of whole runs at random moments after their first evaluation, model calls among them: they must resume to the same end.

Usage: python -m benchmarks.evaluator.run_kills [--kills 5] [--seed 0] [--operator data/operators/row_mean.py] [--budget 3]

A run with the interpreter, memory, and a scripted model in every role but the coder's, whose answers take half a second. One ends
undisturbed; each other is killed, looked at for two seconds, and resumed. The moment is drawn: one of the evaluations and questions
after the first evaluation, and a part of the time until the next. So it is the same whatever else the machine does. Candidates,
verdicts, delivery, answered calls and memory must be those of the undisturbed one, and no process of it may be left.
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
from typing import Any, NamedTuple

from benchmarks.evaluator.leftovers import alive, started_below
from benchmarks.forked_runs import ForkedRuns, process_of
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
    """Kill, resume, compare."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=5)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--operator", type=Path, default=Path("data/operators/row_mean.py"))
    parser.add_argument("--budget", type=int, default=3)
    options = parser.parse_args()
    draw = random.Random(options.seed)
    wrong, kills, asking = Counter[str](), 0, 0
    with tempfile.TemporaryDirectory(prefix="kernelwright-kills-") as folder, ForkedRuns(CHILD) as runs:
        expected, moments = _undisturbed(Path(folder) / "undisturbed", runs, options)
        print(f"undisturbed: {_counted(expected)}", flush=True)
        while kills < options.kills:
            first, last, gap_s = moments
            moment = Moment(draw.randint(first, last), draw.uniform(0.0, gap_s))
            kill = _killed(Path(folder) / "killed", runs, options, moment)
            found = [name for name in expected if kill.facts[name] != expected[name]] + ["processes left"] * bool(kill.left)
            wrong.update(found)
            kills += not kill.early
            asking += kill.asking
            how = "had ended" if kill.early else f"kill {kills}"
            how += f", {moment.later_s:.1f} s after event {moment.events}" + ", a call in flight" * kill.asking
            how += f", {len(kill.left)} processes left for {kill.gone_s:.1f} s more" if kill.left else ""
            print(f"{how}: {', '.join(found) or 'the same'}", flush=True)
    ended = str(dict(wrong)) if wrong else "candidates, verdicts, delivery, calls and memory are the same, and nothing was left"
    print(f"{kills} kills, {asking} of them with a call in flight: {ended}")
    sys.exit(bool(wrong))


def _undisturbed(home: Path, runs: ForkedRuns, options: argparse.Namespace) -> tuple[Facts, tuple[int, int, float]]:
    """See a run through; return also at which event its first evaluation came, how many there were, and the time between two."""
    with _model() as server:
        _begin(runs, home, server.url, options)
        while not _events(home, server)[0]:
            time.sleep(LOOK_S)
        began, first = time.monotonic(), sum(_events(home, server))
        assert runs.ended() == 0, home.with_suffix(".out").read_text()[-2000:]
        last = sum(_events(home, server))
        return _facts(home), (first, last, (time.monotonic() - began) / (last - first + 1))


def _killed(home: Path, runs: ForkedRuns, options: argparse.Namespace, moment: Moment) -> Kill:
    with tempfile.TemporaryDirectory(dir=home.parent) as folder, _model() as server:
        home = Path(folder) / "home"
        _begin(runs, home, server.url, options)
        while sum(_events(home, server)) < moment.events:
            time.sleep(LOOK_S)
        time.sleep(moment.later_s)
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
