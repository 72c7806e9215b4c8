"""Go on with a run that was killed or stopped.

Finished evaluations and paid model calls are never repeated. Evaluator, devices, Chroma server, share and lengths of
prompts stay as the run was begun, unless others are named. A run that has ended is only shown again.

Example: kernelwright resume softmax-20261121
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from kernelwright.cli.shared.options import Context, Devices, Evaluator, Home, Json, Verbose, Wait, home_folder


def command(
    run: Annotated[str, typer.Argument(metavar="RUN", help="Name of the run, or the start of it.")],
    out: Annotated[Path | None, typer.Option(help="Also write the kernel to this file.")] = None,
    evaluator: Evaluator = "",
    devices: Devices = "",
    wait: Wait = True,
    chroma_server: Annotated[
        str | None,
        typer.Option(
            metavar="http://HOST:PORT",
            help='Go on with another Chroma server; "" is the index in the knowledge\'s folder.',
            show_default="as the run was begun",
        ),
    ] = None,
    share: Annotated[
        str | None,
        typer.Option(metavar="NAME", help='Go on with memory shared as NAME; "": share nothing.', show_default="as the run was begun"),
    ] = None,
    context: Context = None,
    base_url: Annotated[str, typer.Option("--base-url", help="Where the models' server is now.", show_default="as the run was begun")] = "",
    model_set: Annotated[
        list[str] | None,
        typer.Option(
            "--model-set",
            metavar="[MODEL.]NAME=VALUE",
            help="How models are asked from now on: timeout_s, retries, concurrency, …; may be repeated.",
            show_default="as the run was begun",
        ),
    ] = None,
    home: Home = None,
    verbose: Verbose = False,
    json: Json = False,
) -> None:
    """Continue a run and see it through."""
    from kernelwright.cli.shared.early import check_run

    check_run(home, run)
    from agents import ready_models
    from agents.prompting.frame import read_contexts
    from graphs.run.assembly import change_contexts, change_models, change_server, open_run
    from graphs.run.evaluators import change_evaluator
    from graphs.run.records import Delivery
    from graphs.run.settings import settings_of
    from kernelwright.cli.shared.knowledge_store import reached_server, reached_share
    from kernelwright.cli.shared.live import see_through

    contexts = read_contexts(context or [])
    store = open_run(home_folder(home), run)
    change_evaluator(store, evaluator, devices, wait=wait)
    settings = settings_of(store)
    ended = bool(store.all("delivery", Delivery))
    notes: tuple[str, ...] = ()
    if not ended:
        server = settings.chroma_server if chroma_server is None else chroma_server
        # without a server there is nothing to share; what the run learns meanwhile is shared by the next that does
        name = (settings.share if server else "") if share is None else share
        shared, met = reached_share(name, server, memory=settings.memory)
        change_contexts(store, contexts)
        team = change_models(store, base_url, model_set or [])
        change_server(store, reached_server(server, memory=settings.memory), shared)
        notes = (*met, *ready_models(team, settings.budget).notes)
    see_through(store, as_json=json, out=out, notes=notes, verbose=verbose)
