"""Makes a run's folder of an exported run, so that it can be looked at where it was not made."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

from agents.models.chat import TROUBLE
from graphs.optimize.execute import IMPORTED
from graphs.run.assembly import MAKING
from graphs.run.records import LEARNT, OTHER_BASELINES, Learnt
from graphs.run.workbench import USE
from kernelwright.traces.records import Noted, Trace
from tools.errors import UserError
from tools.records import Candidate, Record
from tools.tracing import RunStore
from tools.tracing.store import Row

_NAME = re.compile(r"[\w][\w.+-]{0,199}")
"""What a run can be called: a folder's name, and no path."""


def import_run(trace: Trace, home: Path, origin: str) -> RunStore:
    """Make the run below `home`/runs; UserError where one of its name is there, or what it names could not be a file's name.

    Nothing of it is executed. `origin` says where it came from, which keeps it from being gone on with.
    """
    check_names(trace)
    folder = home / "runs" / trace.run.id
    if folder.exists():
        raise UserError(f"There is a run {trace.run.id} in {home} already.", "Import it into another --home, or move that run away.")
    making = home / "runs" / MAKING / trace.run.id
    shutil.rmtree(making, ignore_errors=True)
    try:
        store = RunStore.create(making, {"run": trace.run.id, **trace.run.facts, IMPORTED: origin})
        _fill(store, trace)
        store.close()
        making.rename(folder)
    finally:
        shutil.rmtree(making, ignore_errors=True)
    return RunStore(folder)


def check_names(trace: Trace) -> None:
    """Raise UserError where a name of the file would lead out of the run's folder."""
    for name in (trace.run.id, *(one.candidate.id for one in trace.candidates)):
        if not _NAME.fullmatch(name):
            raise UserError(f"The trace calls something {name[:60]!r}, which is no name of a run or a candidate.", "Do not use that file.")


def _fill(store: RunStore, trace: Trace) -> None:
    store.put_root(trace.problem.value.source)
    for one in trace.candidates:
        # its source and its difference from the parent become files; then its row is as it was
        _put_candidate(store, one.candidate)
    for kind, noted in _records(trace):
        store.put_row(_row(kind, noted))
    for kept in trace.others:
        store.put_row(Row(kept.kind, kept.id, kept.subject, kept.written, json.dumps(kept.value)))
    for call in trace.calls:
        store.put_call_row(_row("call", call.call))
    for span in trace.nodes:
        store.put_span(span)
    for session in trace.run.sessions:
        store.put_session(session.started, session.last_seen)


def _put_candidate(store: RunStore, noted: Noted[Candidate]) -> None:
    store.put_source(noted.id, noted.value.source, noted.value.parent)
    fields = noted.value.model_dump(mode="json", exclude={"source"}) | {"id": noted.id}
    store.put_row(Row("candidate", noted.id, noted.subject, noted.written, json.dumps(fields)))


def _records(trace: Trace) -> Iterator[tuple[str, Noted[Record]]]:
    """Every record that has a place in the trace, with its kind."""
    for kind, found in _whole_run(trace):
        if found is not None:
            yield kind, found
    yield from (("evaluation", one) for one in trace.evaluations)
    yield from (("profile", one.profile) for one in trace.candidates if one.profile)
    yield from (("recall", one) for round_ in trace.rounds for one in round_.recalls)
    for step in trace.plans:
        placed = {"plan": step.plan, "asked": step.asked, "tuning": step.tuning, "review": step.review}
        yield from ((kind, one) for kind, one in placed.items() if one is not None)
        yield from (("refusal", one) for one in step.refusals)
        yield from ((USE, one) for one in step.tools)
        if step.learnt:
            yield LEARNT, Noted(id=step.id, subject=step.id, written=step.plan.written, value=Learnt(strategies=step.learnt))


def _whole_run(trace: Trace) -> Iterator[tuple[str, Noted[Record] | None]]:
    yield "problem", trace.problem
    yield "baselines", trace.baselines
    yield "profile", trace.reference_profile
    yield "delivery", trace.delivery
    yield from ((OTHER_BASELINES, one) for one in trace.other_baselines)
    yield from ((TROUBLE, one) for one in trace.failed_calls)


def _row(kind: str, noted: Noted[Record]) -> Row:
    return Row(kind, noted.id, noted.subject, noted.written, noted.value.model_dump_json())
