"""Show what the agents of a run did and why: what came of it first, then one line a candidate.

With --export: the whole run as one JSON file, for other programs and other machines (docs/traces.md).

With --why: the steps from the reference to the best kernel, each with its gain and its reasons. With --candidate: plan,
difference from its parent, evaluation and profile. With --verbose: every candidate with every reason. A second RUN puts
both side by side.

Examples:
  kernelwright trace softmax-20261121

  kernelwright trace softmax-20261121 --why

  kernelwright trace softmax-20261121 --candidate 3f2a

  kernelwright trace softmax-20261121 softmax-20261122

  kernelwright trace softmax-20261121 --follow

  kernelwright trace softmax-20261121 --nodes

  kernelwright trace softmax-20261121 --costs

  kernelwright trace softmax-20261121 --export softmax.json

  kernelwright trace softmax-20261121 --send
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from kernelwright.cli.shared.options import Home, Json, home_folder


def command(
    run: Annotated[str, typer.Argument(metavar="RUN", help="Name of the run, or the start of it.")],
    other: Annotated[str, typer.Argument(metavar="RUN", help="Another run, to be shown beside it.")] = "",
    candidate: Annotated[str, typer.Option(help="Show one candidate whole: its id, or the start of it.")] = "",
    why: Annotated[bool, typer.Option("--why", help="Show how the run came to its best kernel, step by step.")] = False,
    follow: Annotated[bool, typer.Option("--follow", help="Print a line for each candidate while a process works on the run.")] = False,
    nodes: Annotated[bool, typer.Option("--nodes", help="Show every execution of a node with its time, and every model call.")] = False,
    costs: Annotated[bool, typer.Option("--costs", help="Show where the wall time went, and what model calls cost.")] = False,
    export: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the whole run as JSON, also while it goes on; - is standard output.")
    ] = None,
    send: Annotated[
        bool,
        typer.Option("--send", help="Send it where OTEL_EXPORTER_OTLP_ENDPOINT and MLFLOW_TRACKING_URI say."),
    ] = False,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Show every candidate with every reason.")] = False,
    home: Home = None,
    json: Json = False,
) -> None:
    """Print a trace."""
    from kernelwright.cli.shared.early import check_run
    from tools.errors import UserError

    views = {"RUN RUN": other, "--candidate": candidate, "--why": why, "--follow": follow, "--nodes": nodes, "--costs": costs}
    views |= {"--export": export, "--send": send}
    if sum(map(bool, views.values())) > 1:
        raise UserError(f"{', '.join(views)} are different views of a run.", "Give one of them.")
    for name in filter(None, (run, other)):
        check_run(home, name)
    if export:
        _export(home_folder(home), run, export)
        return
    if send:
        _send(home_folder(home), run)
        return
    if follow:
        _follow(home_folder(home), run)
        return
    view, show = _view(home_folder(home), run, other, candidate, why=why, nodes=nodes, costs=costs, verbose=verbose)
    if json:
        from json import dumps

        print(dumps(view, indent=1))
    else:
        show(view)


def _view(
    home: Path, run: str, other: str, candidate: str, *, why: bool, nodes: bool, costs: bool, verbose: bool
) -> tuple[dict[str, Any], Callable[[dict[str, Any]], None]]:
    """The facts that were asked for, and what prints them."""
    from graphs.run.assembly import open_run
    from kernelwright.screen import chain, facts, summary, trace_views, versus
    from kernelwright.screen.costs import cost_facts, show_costs

    store = open_run(home, run)
    if other:
        return versus.versus_facts((store, open_run(home, other))), versus.show_versus
    if candidate:
        return facts.candidate_facts(store, candidate), trace_views.show_candidate
    if costs:
        return cost_facts(store), show_costs
    if nodes:
        return facts.node_facts(store), trace_views.show_nodes
    tree = facts.tree_facts(store)
    if why:
        return chain.why_facts(tree), chain.show_why
    return tree, trace_views.show_tree if verbose else summary.show_summary


def _export(home: Path, run: str, file: Path) -> None:
    """Write the run, and say where it is."""
    from kernelwright.cli.shared.early import check_out

    to_screen = str(file) == "-"
    if not to_screen:
        check_out(file)
    from graphs.run.assembly import open_run
    from kernelwright.traces.exporting import trace_of
    from kernelwright.traces.files import as_text

    text = as_text(trace_of(open_run(home, run)))
    if to_screen:
        print(text, end="")
        return
    file.write_text(text, encoding="utf-8")
    print(f"{file.absolute()} (look at it elsewhere: kernelwright runs --import {file.name})")


def _send(home: Path, run: str) -> None:
    """Show the run to the viewers that the environment names, and say what they took."""
    from graphs.run.assembly import open_run
    from kernelwright.screen.follow import is_worked_on
    from kernelwright.viewers.settings import open_viewers
    from tools.errors import UserError

    store = open_run(home, run)
    viewers, notes = open_viewers(store, anew=True)
    if not viewers:
        mend = "Set OTEL_EXPORTER_OTLP_ENDPOINT, e.g. to http://localhost:4318, or MLFLOW_TRACKING_URI."
        raise UserError(" ".join(notes) or "Nothing says where the run is to be sent.", mend)
    for viewer in viewers:
        count = viewer.look(stopped=not is_worked_on(store))
        print(f"{viewer.name}: {f'{count} {viewer.things} sent' if count else 'has all of it'}")
    for note in notes:
        print(note)


def _follow(home: Path, run: str) -> None:
    """Print lines until the run ends; where it does not, how to go on with it."""
    from rich.console import Console

    from graphs.run.assembly import open_run
    from kernelwright.screen.facts import tree_facts
    from kernelwright.screen.follow import follow
    from kernelwright.screen.summary import show_summary

    store = open_run(home, run)
    if follow(store, Console(highlight=False)):
        show_summary(tree_facts(store))
    else:
        print(f"Nobody works on this run now. Go on with: kernelwright resume {store.meta('run')}")
