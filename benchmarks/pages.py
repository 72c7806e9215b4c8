"""How long the pages take on a run of thousands of candidates: `python -m benchmarks.pages RUN_FOLDER [COUNT]`.

The run is made up from a recorded one: its candidates are repeated below one another, each with its plan, evaluations, profile and review
under ids of their own. Nothing of it was measured; only the time that the pages take is.
"""

from __future__ import annotations

import gc
import json
import random
import shutil
import sqlite3
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from functools import partial
from hashlib import sha256
from pathlib import Path

from starlette.testclient import TestClient

from kernelwright.ui.app import build_app
from tools.records import Candidate, Plan, content_hash
from tools.tracing import RunStore
from tools.tracing.store import Row

RUN = "thousands"
TIMES = 5
"""Of which the median counts."""
NODES = ("write", "evaluate", "profile", "review")
ROLES = ("coder", "reviewer")
PROMPT = "Write the fastest right kernel that you can. " * 200
"""Nine thousand characters, twice a call."""
NEAR = 200
"""A candidate's parent is one of so many before it."""


class Growing:
    """Repeats the candidates of a recorded run."""

    def __init__(self, folder: Path) -> None:
        """Read what there is to repeat in `folder`, which is written to."""
        self._folder = folder
        with closing(RunStore(folder)) as store:
            self._known = list(store.all("candidate", Candidate).values())
            self._plans = {content_hash(plan.parent, plan.action.id): plan for plan in store.all("plan", Plan).values()}
            self._about = {one.id: [row for row in store.rows() if one.id in (row.subject, row.id)] for one in self._known}
        self.made = [one.id for one in self._known]
        self._chance = random.Random(0)
        self._at = max(row.created for rows in self._about.values() for row in rows)

    def grow(self, count: int) -> None:
        """Add `count` candidates in one transaction."""
        with closing(sqlite3.connect(self._folder / "run.db")) as file, file:
            for _ in range(count):
                file.executemany("INSERT OR REPLACE INTO records VALUES (?, ?, ?, ?, ?)", list(self._next()))
                self._work(file)

    def _work(self, file: sqlite3.Connection) -> None:
        """Add the nodes and the model calls of the last candidate."""
        for node in NODES:
            values = (node, self.made[-1], self._at, self._at + 0.5, "{}", "{}")
            file.execute("INSERT INTO spans (node, subject, started, ended, input, output) VALUES (?, ?, ?, ?, ?, ?)", values)
        for role in ROLES:
            usage = {"input_tokens": 5000, "output_tokens": 500}
            messages = [{"role": "system", "content": PROMPT}, {"role": "user", "content": PROMPT}]
            told = {"role": role, "purpose": f"{role} {self.made[-1]}", "model": "made-up", "messages": messages, "text": PROMPT[:2000]}
            said = json.dumps({**told, "usage": usage, "seconds": 1.0, "cost_usd": 0.001, "source": "server"})
            file.execute("INSERT INTO calls VALUES (?, ?, ?)", (f"{role}-{len(self.made)}", self._at, said))

    def _next(self) -> Iterator[Row]:
        number = len(self.made)
        like, parent = self._known[number % len(self._known)], self._chance.choice(self.made[-NEAR:])
        name = sha256(f"{like.id} {number}".encode()).hexdigest()[: len(like.id)]
        (self._folder / "candidates" / f"{name}.py").write_text(f"{like.source}\n# {number}\n")
        (self._folder / "candidates" / f"{name}.diff").write_text(f"@@ -1 +1 @@\n+# {number}\n")
        self.made.append(name)
        self._at += 1.0
        if plan := self._plans.get(content_hash(like.parent, like.action.id)):
            plan = plan.model_copy(update={"parent": parent})
            yield Row("plan", plan.id, parent, self._at, plan.model_dump_json())
        for row in self._about[like.id]:
            if row.kind == "candidate":
                fields = json.loads(row.json) | {"id": name, "parent": parent}
                yield Row("candidate", name, parent, self._at, json.dumps(fields))
            elif row.subject == like.id or row.kind == "profile":
                key = name if row.id == like.id else f"{row.id}-{number}"
                yield Row(row.kind, key, name if row.subject else "", self._at, row.json.replace(like.id, name))


def main(recorded: Path, count: int) -> None:
    """Make the run, and print what each page takes."""
    with tempfile.TemporaryDirectory() as scratch:
        home = Path(scratch)
        shutil.copytree(recorded, home / "runs" / RUN)
        growing = Growing(home / "runs" / RUN)
        growing.grow(count - len(growing.made))
        size = (home / "runs" / RUN / "run.db").stat().st_size / 1e6
        print(f"{count:,} candidates, run.db {size:,.0f} MB; median of {TIMES}, processor ms")
        run = f"/runs/{RUN}"
        # as the server does when it begins
        gc.freeze()
        pages = TestClient(build_app(home, ["testserver"]))
        pages.get("/static/style.css")
        shutil.copytree(recorded, home / "runs" / "small")
        fresh: list[TestClient] = []
        print(f"{'its page, not read before':40} {_ms(lambda: fresh[-1].get(run), lambda: fresh.append(_begun(home))):8,.0f}")
        print(f"{'its page, again':40} {_ms(lambda: pages.get(run)):8,.0f}")
        print(f"{'its page, after one more candidate':40} {_ms(lambda: pages.get(run), lambda: growing.grow(1)):8,.0f}")
        one = growing.made[count // 2]
        for name, path in (
            ("a candidate", f"{run}/candidates/{one}"),
            ("the list of runs", "/"),
            ("its steps", f"{run}/steps"),
            ("two candidates side by side", f"/compare?left={RUN}:{one}&right={RUN}:{growing.made[-1]}"),
            ("its facts as JSON", f"/api/runs/{RUN}"),
        ):
            print(f"{name:40} {_ms(partial(pages.get, path)):8,.0f}")
        print(f"{'the list of runs, after one more':40} {_ms(partial(pages.get, '/'), partial(growing.grow, 1)):8,.0f}")


def _begun(home: Path) -> TestClient:
    """Pages that have shown another run."""
    pages = TestClient(build_app(home, ["testserver"]))
    pages.get("/runs/small")
    return pages


def _ms(asked: Callable[[], object], before: Callable[[], None] = lambda: None) -> float:
    taken = []
    for _ in range(TIMES):
        before()
        # what this process used: on a machine that others use too, the clock shows their work
        began = time.process_time()
        answer = asked()
        taken.append(1e3 * (time.process_time() - began))
        assert getattr(answer, "status_code", 0) == 200, answer
    return statistics.median(taken)


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 5000)
