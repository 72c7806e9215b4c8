"""What killing whole runs takes: beginning one, killing it at some moment, resuming it, and what must be the same afterwards."""

from __future__ import annotations

import json
import os
import signal
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.evaluator.leftovers import alive, started_below
from benchmarks.forked_runs import ForkedRuns, process_of
from benchmarks.kept_rows import Row
from tests.support.scripted_rules import Scenario
from tests.support.scripted_server import Entry, ScriptedServer
from tools.records import Evaluation
from tools.tracing import RunStore

CHILD = "benchmarks.evaluator.run_kills_child"
RUN = "run"
LOOK_S = 0.1
GONE_S = 60.0
SETTLED_S = 2.0
"""After which nothing of a killed run may be alive."""
Facts = dict[str, Any]


class Kind(NamedTuple):
    """Which runs are killed."""

    operator: Path
    evaluations: int
    scenario: Scenario
    """Of their model."""
    roles: tuple[str, ...]
    """Who plays which role."""
    batch: int = 2
    """Plans that a round has at once."""

    def begin(self, runs: ForkedRuns, home: Path, server: ScriptedServer) -> None:
        """Start or resume one."""
        home.with_suffix(".pid").unlink(missing_ok=True)
        runs.begin(home, server.url, str(self.operator), str(self.evaluations), json.dumps(self.roles), str(self.batch))


class Kill(NamedTuple):
    """What one kill led to."""

    early: bool
    """Whether the run had ended by then, so that nothing was killed."""
    asking: int
    """How many model calls were in flight."""
    left: list[int]
    """Processes that were alive two seconds afterwards."""
    gone_s: float
    """After how many seconds more none was; what has been killed needs a processor to go, which a busy machine gives late."""
    facts: Facts


def killed(folder: Path, runs: ForkedRuns, kind: Kind, wait: Callable[[Path, ScriptedServer], None]) -> Kill:
    """Start a run, `wait` for the moment, kill it, look what is left, and resume it."""
    with tempfile.TemporaryDirectory(dir=folder) as own, ScriptedServer(kind.scenario) as server:
        home = Path(own) / "home"
        kind.begin(runs, home, server)
        wait(home, server)
        family = started_below(process_of(home))
        flying = [entry.number for entry in server.requests if entry.state == "received"]
        if family:
            os.kill(process_of(home), signal.SIGKILL)
        early = runs.ended() == 0
        time.sleep(SETTLED_S)
        left, looked = alive(family), time.monotonic()
        while alive(family) and time.monotonic() < looked + GONE_S:
            time.sleep(LOOK_S)
        gone_s = time.monotonic() - looked
        kind.begin(runs, home, server)
        assert runs.ended() == 0, home.with_suffix(".out").read_text()[-2000:]
        # the server may answer one that nobody waits for any more, before it sees that
        heard = [entry for entry in server.requests if entry.number not in flying]
        return Kill(early, len(flying), left, gone_s, facts(home, heard))


def is_working(home: Path) -> bool:
    """Whether a run's process is alive, or has not said yet which it is."""
    file = home.with_suffix(".pid")
    said = file.read_text() if file.is_file() else ""
    return not said or bool(started_below(int(said)))


def events(home: Path, server: ScriptedServer) -> tuple[int, int]:
    """Count evaluations that a run has kept, and questions that it has asked."""
    folder = home / "runs" / RUN
    if not (folder / "run.db").is_file():
        return 0, 0
    store = RunStore(folder)
    kept = len(store.all("evaluation", Evaluation))
    store.close()
    return kept, len(server.requests)


def facts(home: Path, requests: Sequence[Entry]) -> Facts:
    """What must be the same, whatever happened on the way; of the model's `requests` those that were not in flight when it was killed."""
    from graphs.run.records import Delivery
    from knowledge.store import KnowledgeBase
    from knowledge.vectors.embedding import open_embedder
    from tools.records import Candidate

    store = RunStore(home / "runs" / RUN)
    evaluations = store.all("evaluation", Evaluation)
    delivery = store.get("delivery", RUN, Delivery)
    base = KnowledgeBase(home / "knowledge", open_embedder("hashing"), seeds=None)
    found = {
        "candidates": sorted(store.all("candidate", Candidate)),
        "verdicts": sorted((key, one.candidate, one.verdict.value) for key, one in evaluations.items()),
        "delivery": delivery and delivery.model_dump(),
        # a prompt has measured errors in it, which no two runs share; what was asked for it does not
        "calls": sorted((str(call["role"]), str(call["purpose"]), int(call["turns"])) for call in store.calls()),
        "memory": sorted((one.id, one.title, sorted(f"{t.candidate} {t.verdict} {t.gain}" for t in one.trials)) for one in base.all()),
        "answers": sorted(Counter(one.role for one in requests if one.state == "answered").items()),
        "paid twice": paid_twice(requests),
    }
    base.close()
    store.close()
    return found


def paid_twice(requests: Iterable[Entry]) -> int:
    """Count questions that were answered more than once; one whose asker was killed before the answer is asked again."""
    answered = Counter(one.body_hash for one in requests if one.state == "answered")
    return sum(count - 1 for count in answered.values())


def row(kill: Kill, expected: Facts) -> Row:
    """Write down what a kill led to."""
    return {
        "early": kill.early,
        "asking": kill.asking,
        "left": len(kill.left),
        "gone_s": round(kill.gone_s, 1),
        "differs": [name for name in expected if kill.facts[name] != expected[name]],
        "load": round(os.getloadavg()[0], 1),
    }


def complaints(row: Row) -> list[str]:
    """Say what a kill changed, and whether it left something."""
    return [*row["differs"], *["processes left"] * bool(row["left"])]


def wrong_in(rows: list[Row]) -> str:
    """What all kills changed or left, counted; empty where that is nothing."""
    wrong = Counter(name for row in rows for name in complaints(row))
    return str(dict(wrong)) if wrong else ""


def counted(facts: Facts) -> str:
    """Say how much there is to be the same."""
    return ", ".join(f"{len(found)} {name}" for name, found in facts.items() if isinstance(found, list))
