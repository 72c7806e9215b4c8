"""What pages show of runs, read again only where a run has written something since."""

from __future__ import annotations

import re
import threading
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from hashlib import sha256
from pathlib import Path
from typing import Any

from kernelwright.screen.facts import candidate_facts, candidate_line, named_candidate, rounds_of, run_facts, tree_facts
from kernelwright.screen.follow import is_worked_on
from kernelwright.ui.benches import Benches
from kernelwright.ui.overview import Overview
from tools.errors import KernelwrightError
from tools.records import ROOT, Profile
from tools.tracing import RunStore
from tools.tracing.finding import find_run

Facts = dict[str, Any]
Marks = tuple[float, ...]
"""What a run's store says of itself; other marks: something was written."""
KEPT = 32
"""Runs whose facts are held."""
IN_BENCH = "~"
"""Between the names of a bench and of a run of it."""


class Runs:
    """The runs of a home folder, and those of its benches."""

    def __init__(self, home: Path) -> None:
        """Read what is in `home`/runs."""
        self.home = home
        self._benches = Benches(home)
        self._lines: dict[Path, tuple[Marks, Facts]] = {}
        self._trees: OrderedDict[Path, tuple[Marks, Facts, Overview]] = OrderedDict()
        self._turn = threading.Lock()

    def all(self) -> list[Facts]:
        """One line a run, the newest first; a run that cannot be read says why in `damage`."""
        found = [self._line(path.parent) for path in (self.home / "runs").glob("*/run.db")]
        return sorted(found, key=lambda line: -float(line["created"]))

    def find(self, run: str) -> Path:
        """The folder of a run, `BENCH~RUN` for one of a bench; raises UserError where there is none of that name."""
        bench, _, inside = run.partition(IN_BENCH)
        return find_run(self._benches.home_of(bench), inside) if inside else find_run(self.home, run)

    def warm(self, most: int) -> None:
        """Read the newest runs, so that their pages need not."""
        for line in self.all()[:most]:
            with suppress(KernelwrightError):
                self.overview(line["run"])

    def overview(self, run: str) -> Facts:
        """A run with a point for each candidate and words of the best; raises UserError where there is none of that name."""
        folder = self.find(run)
        with self._turn, opened(folder) as store:
            marks = (*store.marks(), float(is_worked_on(store)))
            known = self._trees.pop(folder, None)
            if known is None or known[0] != marks:
                reader = known[2] if known else Overview()
                known = (marks, {**reader.read(store), "run": self._named(run, folder)}, reader)
            self._trees[folder] = known
            if len(self._trees) > KEPT:
                self._trees.popitem(last=False)
            return known[1]

    def whole(self, run: str) -> Facts:
        """A run with every candidate in words."""
        with opened(self.find(run)) as store:
            return tree_facts(store)

    def stamp(self, run: str) -> str:
        """A word that changes with whatever its page shows; empty where there is no such run."""
        with suppress(KernelwrightError), opened(self.find(run)) as store:
            return sha256(repr((store.marks(), is_worked_on(store))).encode()).hexdigest()[:16]
        return ""

    def candidate(self, run: str, name: str) -> Facts:
        """One candidate whole, with its source and the profiles it is compared with; raises UserError where there is none."""
        folder = self.find(run)
        with opened(folder) as store:
            facts = candidate_facts(store, name)
            profiles = {"reference": store.get("profile", ROOT, Profile)}
            if facts["parent"] != ROOT:
                profiles["parent"] = store.get("profile", facts["parent"], Profile)
            return {
                **facts,
                "run": self._named(run, folder),
                "source": store.source(facts["id"]),
                "calls": _calls_for(store, facts),
                "profiles": {name: one.model_dump(mode="json") if one else None for name, one in profiles.items()},
            }

    def line(self, run: str, name: str) -> Facts:
        """One candidate in a line; raises UserError where there is none."""
        with opened(self.find(run)) as store:
            name = named_candidate(store, name)
            candidate = store.candidate(name)
            assert candidate is not None
            return candidate_line(store, name, candidate)

    def nodes(self, run: str, most: int) -> Facts:
        """The last executions of nodes and model calls of a run, and how many there are of each."""
        folder = self.find(run)
        with opened(folder) as store:
            outline = store.outline
            spans, calls = outline.counts()
            found = {"spans": outline.last_spans(most), "calls": outline.last_calls(most), "all_spans": spans, "all_calls": calls}
            return {**found, "run": self._named(run, folder)}

    def source(self, run: str, name: str) -> str:
        """The source of a candidate, or of the reference for `root`."""
        with opened(self.find(run)) as store:
            return store.source(ROOT if name == ROOT else named_candidate(store, name))

    def _named(self, run: str, folder: Path) -> str:
        """Its whole name, where the beginning of it was given."""
        bench, mark, _ = run.rpartition(IN_BENCH)
        return f"{bench}{mark}{folder.name}"

    def _line(self, folder: Path) -> Facts:
        try:
            with opened(folder) as store:
                marks = (*store.marks(), float(is_worked_on(store)))
                kept = self._lines.get(folder)
                if kept is None or kept[0] != marks:
                    facts = run_facts(store)
                    state = facts["state"] if facts["state"] == "ended" else "running" if marks[-1] else "stopped"
                    self._lines[folder] = kept = (marks, {**facts, "state": state, "damage": ""})
                return kept[1]
        except KernelwrightError as error:
            damage = f"{error.what} {error.mend}"
            return {"run": folder.name, "created": folder.stat().st_mtime, "damage": damage, "state": "unreadable"}


@contextmanager
def opened(folder: Path) -> Iterator[RunStore]:
    """Open a run to read it, and close it."""
    store = RunStore(folder)
    try:
        yield store
    finally:
        store.close()


def _calls_for(store: RunStore, facts: Facts) -> list[Facts]:
    """The model calls about a candidate, or about the plan that led to it, the planner's own among them."""
    begin, end = rounds_of(store, facts["id"], facts["parent"])
    found = store.outline.calls_between(begin, end, [facts["id"], facts["plan"] or facts["id"], facts["parent"]])
    planned = store.written("plan", facts["plan"] or "")
    asked = [call for call in found if call["role"] == "planner" and store.called(call["key"]) <= planned]
    mine = {facts["id"], facts["plan"]}
    base = str(asked[-1]["purpose"]).removesuffix(", again") if asked else ""
    return [
        call
        for call in found
        if (call in asked and str(call["purpose"]).startswith(base)) or mine.intersection(re.split(r"[\s,/]+", str(call["purpose"])))
    ]
