"""Runs the loop under a SQLite checkpointer, from the start or from wherever it was cut short."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any, cast

from filelock import FileLock, Timeout
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver

from graphs.optimize.ahead import begin_ahead
from graphs.optimize.graph import build
from graphs.optimize.state import STATE_VERSION
from graphs.run.context import Context, Services
from graphs.run.evaluators import spool_folder
from graphs.run.records import Delivery
from graphs.run.workbench import RunBench
from tools.errors import Postponed, UserError
from tools.tracing import RunStore
from tools.tracing.database import readable

STEPS = 100
"""Of the graph for one evaluation, at most: twelve rounds may pass without one, and asks that cannot be met take rounds too."""
IMPORTED = "imported"
"""Fact about a run: the file it was imported from; such a run is looked at, and not gone on with."""
LOCKED_S = 0.5
"""How long another process may hold a run before that counts as work on it."""
Listener = Callable[[dict[str, Any]], None]


async def execute(services: Services, listener: Listener) -> Delivery:
    """Run or continue `services`' run to its end; `listener` gets every event as it happens."""
    folder = services.store.folder
    try:
        # not at once: whoever only looks whether the run is worked on holds it for a moment
        with FileLock(folder / "lock", timeout=LOCKED_S):
            return await _execute(services, listener)
    except Timeout:
        raise UserError(f"The run {services.run} is being worked on by another process.", "Wait for it, or stop it first.") from None
    except sqlite3.Error as error:
        found = readable(error, folder / "checkpoints.db")
        if "damaged" in found.what:
            mend = (
                f"Delete {folder / 'checkpoints.db'} and resume: finished evaluations and model calls are kept in run.db and not repeated."
            )
            raise UserError(found.what, mend) from error
        raise found from error
    finally:
        await services.pool.close()
        await services.team.close()


def check_begun_here(store: RunStore) -> None:
    """Raise UserError for a run that was imported before it had ended: its state is where it was begun."""
    if store.meta(IMPORTED) and not store.all("delivery", Delivery):
        what = f"The run {store.meta('run')} was imported from {store.meta(IMPORTED)}, and had not ended there."
        raise UserError(what, "Go on with it where it was begun.")


@asynccontextmanager
async def _checkpoints(file: Path) -> AsyncIterator[AsyncSqliteSaver]:
    """Open the checkpoints; a cancel waits until they are open: the thread that opens them would report to a loop that is gone."""
    async with AsyncExitStack() as stack:
        opening = asyncio.ensure_future(stack.enter_async_context(AsyncSqliteSaver.from_conn_string(str(file))))
        try:
            saver = await asyncio.shield(opening)
        except asyncio.CancelledError:
            await asyncio.wait([opening])
            raise
        # as in run.db: a kill loses nothing, and a power failure at most the last steps, which are then done again
        await saver.conn.execute("PRAGMA synchronous=NORMAL")
        yield saver


async def _execute(services: Services, listener: Listener) -> Delivery:
    check_begun_here(services.store)
    services.store.open_session()
    services.team.equip(RunBench(services))
    async with _checkpoints(services.store.folder / "checkpoints.db") as saver:
        graph = build(saver)
        config = _config(services)
        snapshot = await graph.aget_state(config)
        version = snapshot.values.get("version", STATE_VERSION) if snapshot.values else STATE_VERSION
        if version != STATE_VERSION:
            raise UserError(
                f"The run {services.run} was begun by a version with state {version}; this one continues state {STATE_VERSION}.",
                "Resume it with the version that began it, or start a new run.",
            )
        # not by the snapshot's next nodes: there are none where it was cut short between a node's end and its checkpoint
        if services.store.get("delivery", services.run, Delivery) is None or snapshot.next:
            ahead = begin_ahead(services, listener)
            given = None if snapshot.next or snapshot.values else {"run": services.run}
            stream = graph.astream(given, config, context=Context(opened=services), stream_mode="custom", subgraphs=True, durability="sync")
            try:
                async for _, event in cast("AsyncIterator[tuple[Any, dict[str, Any]]]", stream):
                    listener(event)
            finally:
                for task in ahead:
                    task.cancel()
                await asyncio.wait(ahead)
    delivery = services.store.get("delivery", services.run, Delivery)
    if delivery is None:
        raise Postponed(
            f"The run {services.run} waits for answers: evaluator {services.pool.name}.",
            f"Have them evaluated (kernelwright worker --spool {spool_folder(services.settings.evaluator)} --drain), "
            f"then: kernelwright resume {services.run}",
        )
    return delivery


def _config(services: Services) -> RunnableConfig:
    """Name the thread, and what LangSmith and other tracers show of the run."""
    evaluations = services.settings.budget.evaluations or 10_000
    return {
        "configurable": {"thread_id": services.run},
        "recursion_limit": 20 + STEPS * evaluations,
        "run_name": f"kernelwright optimize {services.problem.name}",
        "tags": ["kernelwright", services.settings.search],
        "metadata": {"run": services.run, "problem": services.problem.name, "target": services.sheet.name},
    }
