"""Begin a new run at a candidate of another run, finished or not, which stays as it is.

The problem, its target, its policy and its memory are taken along, and the candidate with its evaluation, so that nothing is
measured a second time. What is not named here is as RUN was begun. The search never goes back to the reference.

Examples:
  kernelwright fork softmax-20261121

  kernelwright fork softmax-20261121 --candidate 3f2a --search tree --budget 32

  kernelwright fork softmax-20261121 --candidate 3f2a --model gpt-5 --usd 2
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kernelwright.cli.shared.options import (
    SEARCHES,
    BaseUrl,
    Devices,
    Evaluator,
    Home,
    Json,
    KeyFile,
    ModelSet,
    Role,
    SearchSet,
    Verbose,
    Wait,
    home_folder,
    search_options,
)

if TYPE_CHECKING:
    from graphs.run.settings import RunSettings

SAME = "as RUN was begun"


def command(
    run: Annotated[str, typer.Argument(metavar="RUN", help="Name of the run, or the start of it.")],
    candidate: Annotated[
        str,
        typer.Option(metavar="ID", help="Candidate to begin at: its id, or the start of it.", show_default="the delivered, or the fastest"),
    ] = "",
    search: Annotated[str, typer.Option(help=f"Search method: {SEARCHES}.", show_default=SAME)] = "",
    search_set: SearchSet = None,
    seed: Annotated[int | None, typer.Option(help="Seed of search methods that draw at random.", show_default=SAME)] = None,
    width: Annotated[int | None, typer.Option(min=1, help="Candidates that greedy search keeps as parents.", show_default=SAME)] = None,
    batch: Annotated[int | None, typer.Option(min=1, help="Plans in flight in one round.", show_default=SAME)] = None,
    tune: Annotated[int | None, typer.Option(min=0, help="Trials of one tuning; 0 never tunes.", show_default=SAME)] = None,
    repairs: Annotated[int | None, typer.Option(min=0, help="Repairs of a failing draft.", show_default=SAME)] = None,
    budget: Annotated[
        int | None,
        typer.Option(
            "--budget", "--evaluations", min=0, help="Evaluations to spend, beside the one taken along. 0: no limit.", show_default=SAME
        ),
    ] = None,
    minutes: Annotated[float | None, typer.Option(min=0, help="Minutes the run may take; 0: no limit.", show_default=SAME)] = None,
    gpu_seconds: Annotated[float | None, typer.Option(min=0, help="GPU time to spend; 0: no limit.", show_default=SAME)] = None,
    usd: Annotated[float | None, typer.Option(min=0, help="Money for model calls; 0: no limit.", show_default=SAME)] = None,
    tokens: Annotated[int | None, typer.Option(min=0, help="Tokens for model calls; 0: no limit.", show_default=SAME)] = None,
    model: Annotated[
        str,
        typer.Option(metavar="NAME[@URL][,…]", help="Language model, as on `optimize`, in the place of RUN's agents.", show_default=SAME),
    ] = "",
    team: Annotated[str, typer.Option(metavar="solo|pair|full", help="How a named model works.", show_default="solo")] = "",
    base_url: BaseUrl = "",
    key_file: KeyFile = "",
    role: Role = None,
    model_set: ModelSet = None,
    built_in: Annotated[bool, typer.Option("--built-in", help="Ask no language model, whatever RUN asked.")] = False,
    evaluator: Evaluator = "",
    devices: Devices = "",
    wait: Wait = True,
    out: Annotated[Path | None, typer.Option(help="Also write the kernel to this file.")] = None,
    home: Home = None,
    verbose: Verbose = False,
    json: Json = False,
) -> None:
    """Make the new run and see it through."""
    from kernelwright.cli.shared.early import check_out, check_run, check_search

    check_run(home, run)
    if search:
        check_search(search)
    check_out(out)
    from agents import ready_models
    from graphs.run.assembly import open_run
    from graphs.run.fork import fork_of
    from graphs.run.forking import chosen_candidate, fork_run
    from graphs.run.settings import settings_of
    from kernelwright.cli.shared.live import see_through

    folder = home_folder(home)
    record = open_run(folder, run)
    chosen = chosen_candidate(record, candidate)
    settings = settings_of(record)
    settings = _searching(settings, search, search_set, seed=seed, width=width, batch=batch)
    settings = _agents(settings, model, team, base_url, role, key_file, model_set, built_in=built_in)
    limits = {"evaluations": budget, "wall_s": minutes if minutes is None else minutes * 60, "gpu_s": gpu_seconds}
    spending = _given({**limits, "money_usd": usd, "tokens": tokens})
    given = _given({"tune": tune, "repairs": repairs, "evaluator": evaluator or None, "devices": devices or None})
    settings = settings.model_copy(update={**given, "wait": wait, "budget": settings.budget.model_copy(update=spending)})
    ready = ready_models(settings.team, settings.budget)
    store = fork_run(record, chosen, settings.model_copy(update={"team": ready.settings}), folder)
    fork = fork_of(store)
    assert fork is not None
    taken = "" if fork.judged else " It is judged anew: its evaluation there is of another kind, or there is none."
    see_through(store, as_json=json, out=out, notes=(*ready.notes, f"begins at {fork.words}.{taken}"), verbose=verbose)


def _given(values: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}


def _searching(settings: RunSettings, search: str, search_set: list[str] | None, **numbers: int | None) -> RunSettings:
    """Another search method has none of the old one's own settings."""
    old = settings.search_settings
    options = search_options(search_set) or ({} if search not in ("", settings.search) else old.options)
    changed = old.model_copy(update={**_given(dict(numbers)), "options": options})
    return settings.model_copy(update={"search": search or settings.search, "search_settings": changed})


def _agents(
    settings: RunSettings,
    model: str,
    team: str,
    base_url: str,
    role: list[str] | None,
    key_file: str,
    model_set: list[str] | None,
    *,
    built_in: bool,
) -> RunSettings:
    """Keep the agents, unless others are named: these get the same prompts' frame, prices and cache."""
    from agents import TeamSettings, team_settings
    from tools.errors import UserError

    named = any((model, team, base_url, role, key_file, model_set))
    if built_in and named:
        raise UserError("--built-in asks no language model, and settings of one are named beside it.", "Leave one of both away.")
    if not (named or built_in):
        return settings
    old = settings.team
    if built_in:
        made = TeamSettings()
    elif not (model or role):
        raise UserError("Settings of a model are named, and no model.", "Name it with --model.")
    else:
        made = team_settings(model, base_url, role or [], key_file, old.prices, model_set or [], team or "solo")
    kept = {"frame": old.frame, "prices": old.prices, "shared": old.shared, "cache": old.cache, "seed": old.seed}
    return settings.model_copy(update={"team": made.model_copy(update=kept)})
