"""Looks for everything that can be wrong with a store, and says how each is mended."""

from __future__ import annotations

import shutil

from knowledge.log.event_log import EventKind, EventLog
from knowledge.log.finding import Finding
from knowledge.log.fold import Fold
from knowledge.vectors.index import StrategyIndex
from tools.errors import KernelwrightError

ROOM = 100 * 2**20
"""Free bytes below which a store may soon be unable to write."""


def diagnose(log: EventLog, fold: Fold, index: StrategyIndex, embedder: str) -> tuple[Finding, ...]:
    """Check a log that could be read, and everything that hangs on it."""
    return (
        Finding(name="log", state="fine", said=f"{log.path} is whole: {sum(log.counts().values())} events, {len(fold.entries)} strategies"),
        _strays(log, fold),
        _index(fold, index, embedder),
        _room(log),
    )


def _strays(log: EventLog, fold: Fold) -> Finding:
    events = log.read(kinds=(EventKind.TRIAL, EventKind.REWRITE, EventKind.RETIRE))
    stray = {event.subject for event in events if fold.named(event.subject) is None}
    if stray:
        mend = "Import the export, or install the release, that they come from; until then they count for nothing."
        return Finding(name="events", state="wrong", said=f"Events of {len(stray)} strategies that are not here", mend=mend)
    return Finding(name="events", state="fine", said="Every event is of a strategy that is here")


def _index(fold: Fold, index: StrategyIndex, embedder: str) -> Finding:
    known = len(index.notes)
    try:
        held = index.sync(fold)
    except KernelwrightError as error:
        return Finding(name="index", state="wrong", said=error.what, mend=error.mend)
    if held != len(fold.entries):
        held = index.rebuild(fold)
        return Finding(name="index", state="mended", said=f"The index held strategies that the log has not; made anew with {held}")
    if notes := index.notes[known:]:
        return Finding(name="index", state="mended", said=" ".join(notes))
    return Finding(name="index", state="fine", said=f"{held} vectors by {embedder}, as the log has them")


def _room(log: EventLog) -> Finding:
    free = shutil.disk_usage(log.path.parent).free
    if free < ROOM:
        return Finding(name="disk", state="wrong", said=f"{free / 2**20:.0f} MiB are free", mend="Free disk space, or move the store.")
    return Finding(name="disk", state="fine", said=f"{free / 2**30:.1f} GiB are free")
