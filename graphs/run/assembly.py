"""Puts a run together: starts its folder, opens its problem, agents, memory and evaluator."""

from __future__ import annotations

import secrets
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from agents import TeamSettings, build_team
from agents.models import budget_guard
from agents.models.check import SHARED_MODELS
from agents.team.moving import moved
from agents.team.ready import check_prices
from graphs.run.context import Context, Services
from graphs.run.evaluators import announced_target, checked, open_evaluator
from graphs.run.noted_memory import NotedMemory
from graphs.run.settings import RunSettings, settings_of
from graphs.run.starting import check_judgeable, check_language
from graphs.search import open_search
from knowledge.protocol import FrozenMemory, Memory, NoMemory
from knowledge.sharing.board import check_share
from tools.errors import MachineError, UserError
from tools.evaluation.protocol import EvaluatorPool
from tools.guards import embeddable
from tools.hardware import detect_sheet, load_sheet
from tools.problems import with_changing_weights
from tools.records import HardwareSheet, Problem
from tools.references.reading import read_again, read_problem
from tools.tracing import RunStore
from tools.tracing.finding import default_home, find_run

MAKING = ".making"
"""Folder beside the runs, of those that are not whole yet."""
ESTIMATE_TARGET = "h200"
"""Sheet that estimates are made for where this machine has no GPU and the user names none."""


@dataclass(frozen=True)
class Shared:
    """What several runs of one process have in common; what is None each run opens for itself."""

    pool: EvaluatorPool | None = None
    """Whoever shares it closes it: the run's own `close` must then be without effect."""
    memory: Memory | None = None
    variants: tuple[Problem, ...] | None = None
    """The problem's small variants, where they are known already."""


def start_run(
    problem: Problem, settings: RunSettings, home: Path, run: str = "", taken: Callable[[RunStore], None] = lambda store: None
) -> RunStore:
    """Make a new run's folder below `home`/runs; every wrong setting is refused before anything is made.

    Where no name is given for the run, it is called after its problem and the time. `taken` puts into it what it takes along.
    """
    open_search(settings.search, settings.search_settings)
    settings = checked(settings)
    if settings.weights == "changing":
        problem = with_changing_weights(problem)
    check_share(settings.share, settings.chroma_server)
    check_language(settings)
    check_fallback(problem, settings)
    check_judgeable(settings, problem)
    sheet = resolve_target(settings.target or announced_target(settings))
    run = run or f"{problem.name}-{time.strftime('%Y%m%d-%H%M%S')}-{secrets.token_hex(2)}"
    check_prices(settings.team, settings.budget)
    team = settings.team.model_copy(
        update={"shared": settings.team.shared or str(home / SHARED_MODELS), "seed": settings.team.seed or settings.search_settings.seed}
    )
    knowledge = settings.knowledge or str(home / "knowledge")
    # beside the knowledge it belongs to, so that arms of a bench learn nothing from one another
    folders = {"knowledge": knowledge, "tuned": settings.tuned or str(Path(knowledge) / "tuning")}
    settings = settings.model_copy(update={"target": sheet.name, "team": team, **folders})
    return _made(home / "runs" / run, {"run": run, "settings": settings.model_dump_json(), "created": str(time.time())}, problem, taken)


def _made(folder: Path, meta: Mapping[str, str], problem: Problem, taken: Callable[[RunStore], None]) -> RunStore:
    """Make a run's folder out of sight, and put it in its place when all is in it: what can be resumed has begun."""
    if folder.exists():
        raise UserError(f"The run folder {folder} exists already.", "Resume that run, or give another name.")
    making = folder.parent / MAKING / folder.name
    try:
        store = RunStore.create(making, meta)
        store.put("problem", problem.id, problem)
        store.put_root(problem.source)
        taken(store)
        store.close()
        making.rename(folder)
    except MachineError as error:
        raise MachineError(error.what, "Mend that and start the run again: none was begun.") from error
    finally:
        shutil.rmtree(making, ignore_errors=True)
    return RunStore(folder)


def check_fallback(problem: Problem, settings: RunSettings) -> None:
    """Raise UserError where a delivered file could not carry the reference that it is to fall back to."""
    reason = embeddable(problem) if settings.fallback == "reference" else ""
    if reason:
        raise UserError(f"A file for {problem.name} cannot carry its reference: {reason}.", "Leave --fallback reference away.")


def open_run(home: Path, run: str) -> RunStore:
    """Open a run by its name or a prefix that only it has."""
    return RunStore(find_run(home, run))


def open_for(context: Context, run: str) -> None:
    """Open `run`, or a new run on the context's problem where `run` is empty; nothing to do where services are open."""
    if context.opened is None:
        folder = Path(context.home) if context.home else default_home()
        store = (
            open_run(folder, run)
            if run
            else start_run(read_problem(Path(context.problem_file), RunSettings().policy).problem, RunSettings(), folder)
        )
        context.opened = assemble(store)


def assemble(store: RunStore, shared: Shared | None = None) -> Services:
    """Open everything a run works with; nothing is started until it is used."""
    shared = shared or Shared()
    settings = settings_of(store)
    problem = next(iter(store.all("problem", Problem).values()), None)
    if problem is None:
        what = f"The run in {store.folder} has no problem in it: there is nothing to resume."
        raise UserError(what, "Delete that folder and start the run again.")
    return Services(
        run=store.meta("run"),
        settings=settings,
        problem=problem,
        variants=read_again(problem).variants if shared.variants is None else shared.variants,
        sheet=load_sheet(settings.target),
        store=store,
        pool=shared.pool or open_evaluator(settings, store),
        team=build_team(settings.team, store, guard=budget_guard(settings.budget, store.spent)),
        memory=NotedMemory(shared.memory or open_memory(settings), store),
    )


def open_memory(settings: RunSettings) -> Memory:
    """Open the knowledge base, frozen where the run only recalls, or the null memory of `--no-memory`."""
    if not settings.memory:
        return NoMemory()
    from knowledge.store import KnowledgeBase
    from knowledge.vectors.embedding import open_embedder

    known = KnowledgeBase(
        Path(settings.knowledge),
        open_embedder(settings.embedder),
        server=settings.chroma_server or None,
        tokens=settings.recall_tokens,
        update_every=settings.update_every,
        half_life=settings.half_life,
        # what only recalls is a comparison's, and stays as it is
        share=settings.share if settings.learns else "",
    )
    return known if settings.learns else FrozenMemory(known)


def change_server(store: RunStore, server: str, share: str) -> None:
    """Have a run go on with the index on this Chroma server (empty: in the knowledge's folder), sharing memory there as `share`."""
    settings = settings_of(store)
    store.set_meta("settings", settings.model_copy(update={"chroma_server": server, "share": share}).model_dump_json())


def change_contexts(store: RunStore, contexts: dict[str, int]) -> None:
    """Have a run go on with these lengths of prompts, in tokens by role; the others stay."""
    settings = settings_of(store)
    frame = settings.team.frame.model_copy(update={"contexts": {**settings.team.frame.contexts, **contexts}})
    team = settings.team.model_copy(update={"frame": frame})
    store.set_meta("settings", settings.model_copy(update={"team": team}).model_dump_json())


def change_models(store: RunStore, base_url: str, words: Sequence[str]) -> TeamSettings:
    """Have a run go on with its models' server elsewhere, or asked in another way; return who plays its roles."""
    settings = settings_of(store)
    team = moved(settings.team, base_url, words)
    store.set_meta("settings", settings.model_copy(update={"team": team}).model_dump_json())
    return team


def resolve_target(name: str) -> HardwareSheet:
    """Sheet called `name`, else this machine's GPU, else the one that estimates are made for."""
    if name:
        return load_sheet(name)
    return detect_sheet() or load_sheet(ESTIMATE_TARGET)
