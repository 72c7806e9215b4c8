"""Kill -9 of whole runs at random moments after their first evaluation, model calls among them: they must resume to the same end.

Usage: python -m benchmarks.evaluator.run_kills [--kills 5] [--seed 0] [--operator data/operators/row_mean.py] [--budget 6]

A run with the interpreter, memory, and a scripted model in every role but the coder's, whose answers take half a second. One ends
undisturbed; each other is killed at a moment drawn between its first evaluation and its end, looked at for two seconds, and resumed.
Candidates, verdicts, delivery, answered calls and memory must be those of the undisturbed one, and no process of it may be left.
"""

from __future__ import annotations

import argparse
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.evaluator.leftovers import alive, started_below
from tools.records import Evaluation
from tools.tracing import RunStore

RUN = "run"
SETTLED_S = 2.0
"""After which nothing of a killed run may be alive."""
ANSWER_S = 0.5
Facts = dict[str, Any]


class Kill(NamedTuple):
    """What one kill led to."""

    after_s: float
    """From the first evaluation on."""
    asking: bool
    """Whether a model call was in flight."""
    left: list[int]
    """Processes that were alive afterwards."""
    facts: Facts


def main() -> None:
    """Kill, resume, compare."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=5)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--operator", type=Path, default=Path("data/operators/row_mean.py"))
    parser.add_argument("--budget", type=int, default=6)
    options = parser.parse_args()
    draw = random.Random(options.seed)
    with tempfile.TemporaryDirectory(prefix="kernelwright-kills-") as folder:
        place = Path(folder)
        expected, lasts_s = _undisturbed(place / "undisturbed", options)
        print(f"undisturbed: {lasts_s:.1f} s after the first evaluation; {_counted(expected)}", flush=True)
        wrong = Counter[str]()
        for number in range(options.kills):
            kill = _killed(place / f"killed{number}", options, draw.uniform(0.0, lasts_s))
            found = [name for name in expected if kill.facts[name] != expected[name]] + ["processes left"] * bool(kill.left)
            wrong.update(found)
            asking = ", a call in flight" if kill.asking else ""
            print(f"kill {number} after {kill.after_s:.1f} s{asking}: {', '.join(found) or 'the same'}", flush=True)
    print(f"{options.kills} kills: {dict(wrong) or 'candidates, verdicts, delivery, calls and memory are the same, and nothing was left'}")
    sys.exit(bool(wrong))


def _undisturbed(home: Path, options: argparse.Namespace) -> tuple[Facts, float]:
    with _model() as server, _start(home, server.url, options) as process:
        _await_evaluation(home, process)
        began = time.monotonic()
        process.wait()
        return _facts(home), time.monotonic() - began


def _killed(home: Path, options: argparse.Namespace, after_s: float) -> Kill:
    with _model() as server:
        with _start(home, server.url, options) as process:
            _await_evaluation(home, process)
            time.sleep(after_s)
            family = started_below(process.pid)
            asking = any(entry.state == "received" for entry in server.requests)
            process.send_signal(signal.SIGKILL)
            process.wait()
        time.sleep(SETTLED_S)
        left = alive(family)
        with _start(home, server.url, options) as process:
            process.wait()
    return Kill(after_s, asking, left, _facts(home))


def _start(home: Path, url: str, options: argparse.Namespace) -> subprocess.Popen[bytes]:
    home.mkdir(exist_ok=True)
    command = [sys.executable, "-m", "benchmarks.evaluator.run_kills_child", str(home), url, str(options.operator), str(options.budget)]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=(home / "errors").open("ab"))


def _await_evaluation(home: Path, process: subprocess.Popen[bytes]) -> None:
    folder = home / "runs" / RUN
    while process.poll() is None:
        if (folder / "run.db").is_file():
            store = RunStore(folder)
            found = store.all("evaluation", Evaluation)
            store.close()
            if found:
                return
        time.sleep(0.05)
    raise SystemExit(f"The run ended before its first evaluation: {(home / 'errors').read_text()[-2000:]}")


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


def _model() -> Any:
    from tests.support.scenarios import whole_team
    from tests.support.scripted_rules import Scenario
    from tests.support.scripted_server import ScriptedServer

    rules = [rule.model_copy(update={"delay_s": ANSWER_S}) for rule in whole_team()]
    return ScriptedServer(Scenario(rules=rules))


if __name__ == "__main__":
    main()
