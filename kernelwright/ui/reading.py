"""What pages show of runs, read again only where a run has written something since."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from kernelwright.screen.facts import candidate_facts, node_facts, run_facts, tree_facts
from tools.errors import KernelwrightError
from tools.tracing import RunStore
from tools.tracing.finding import find_run

Facts = dict[str, Any]
Marks = tuple[float, ...]
"""What a run's store says of itself; other marks: something was written."""
KEPT = 32
"""Runs whose facts are held."""


class Runs:
    """The runs of a home folder."""

    def __init__(self, home: Path) -> None:
        """Read what is in `home`/runs."""
        self.home = home
        self._lines: dict[Path, tuple[Marks, Facts]] = {}
        self._trees: dict[Path, tuple[Marks, Facts]] = {}
        self._turn = threading.Lock()

    def all(self) -> list[Facts]:
        """One line a run, the newest first; a run that cannot be read says why in `damage`."""
        found = [self._line(path.parent) for path in (self.home / "runs").glob("*/run.db")]
        return sorted(found, key=lambda line: -float(line["created"]))

    def tree(self, run: str) -> Facts:
        """A run with all its candidates, each with a `number`; raises UserError where there is none of that name."""
        folder = find_run(self.home, run)
        with self._turn, opened(folder) as store:
            marks = store.marks()
            if (kept := self._trees.get(folder)) and kept[0] == marks:
                return kept[1]
            facts = _tree(store)
            self._trees.pop(folder, None)
            self._trees[folder] = (marks, facts)
            for old in list(self._trees)[:-KEPT]:
                del self._trees[old]
            return facts

    def candidate(self, run: str, name: str) -> Facts:
        """One candidate whole, with its source; raises UserError where there is none."""
        with opened(find_run(self.home, run)) as store:
            facts = candidate_facts(store, name)
            return {**facts, "run": store.meta("run"), "source": store.source(facts["id"]), "calls": _calls_for(store, facts)}

    def nodes(self, run: str) -> Facts:
        """Every execution of a node and every model call of a run."""
        with opened(find_run(self.home, run)) as store:
            return node_facts(store)

    def source(self, run: str, name: str) -> str:
        """The source of a candidate, or of the reference for `root`."""
        with opened(find_run(self.home, run)) as store:
            return store.source("root" if name == "root" else candidate_facts(store, name)["id"])

    def _line(self, folder: Path) -> Facts:
        try:
            with opened(folder) as store:
                marks = store.marks()
                kept = self._lines.get(folder)
                if kept is None or kept[0] != marks:
                    self._lines[folder] = kept = (marks, {**run_facts(store), "damage": ""})
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


def _tree(store: RunStore) -> Facts:
    facts = tree_facts(store)
    for number, line in enumerate(facts["candidates"], 1):
        line["number"] = number
    return facts


def _calls_for(store: RunStore, facts: Facts) -> list[Facts]:
    """The model calls about a candidate or about the plan that led to it."""
    names = {facts["id"], facts["plan"]}
    return [call for call in store.calls() if names.intersection(str(call["purpose"]).replace(",", " ").split())]
