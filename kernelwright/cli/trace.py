"""Show what the agents of a run did and why: the tree of candidates, or one candidate whole.

The tree shows each candidate's action, verdict, time, speed-up and the strategies its plan rests on.
With --candidate: plan, difference from its parent, evaluation and profile.

Examples:
  kernelwright trace softmax-20261121

  kernelwright trace softmax-20261121 --candidate 3f2a

  kernelwright trace softmax-20261121 --nodes

  kernelwright trace softmax-20261121 --costs
"""

from __future__ import annotations

from typing import Annotated

import typer

from kernelwright.cli.options import Home, Json, home_folder


def command(
    run: Annotated[str, typer.Argument(metavar="RUN", help="Name of the run, or the start of it.")],
    candidate: Annotated[str, typer.Option(help="Show one candidate whole: its id, or the start of it.")] = "",
    nodes: Annotated[bool, typer.Option("--nodes", help="Show every execution of a node with its time, and every model call.")] = False,
    costs: Annotated[bool, typer.Option("--costs", help="Show where the wall time went, and what model calls cost.")] = False,
    home: Home = None,
    json: Json = False,
) -> None:
    """Print a trace."""
    from kernelwright.cli.early import check_run
    from tools.errors import UserError

    if sum((bool(candidate), costs, nodes)) > 1:
        raise UserError("--candidate, --nodes and --costs are three views of a run.", "Give one of them.")
    check_run(home, run)
    from graphs.run.assembly import open_run
    from kernelwright.cli.costs import cost_facts, show_costs
    from kernelwright.screen import facts, trace_views

    store = open_run(home_folder(home), run)
    if candidate:
        view = facts.candidate_facts(store, candidate)
        show = trace_views.show_candidate
    elif costs:
        view = cost_facts(store)
        show = show_costs
    elif nodes:
        view = facts.node_facts(store)
        show = trace_views.show_nodes
    else:
        view = facts.tree_facts(store)
        show = trace_views.show_tree
    if json:
        from json import dumps

        print(dumps(view, indent=1))
    else:
        show(view)
