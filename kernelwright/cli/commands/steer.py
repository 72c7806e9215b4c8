"""Steer a run while it works: pause it, give hints, keep it off a candidate or a step, or have it work on a candidate next.

What is asked counts from the beginning of the run's next round, and stays so after a kill and `resume`. Hints reach the
prompts of the models that plan and write; the built-in planner and coder read none. Without an option it is only shown
what was asked so far.

Examples:
  kernelwright steer softmax-20261121 --pause

  kernelwright steer softmax-20261121 --hint "The rows are mostly zeros: try skipping blocks." --continue

  kernelwright steer softmax-20261121 --pin 3f2a --veto 77b0
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from kernelwright.cli.shared.options import Home, Json, home_folder

if TYPE_CHECKING:
    from graphs.run.steering import Kind


def command(
    run: Annotated[str, typer.Argument(metavar="RUN", help="Name of the run, or the start of it.")],
    hint: Annotated[list[str] | None, typer.Option(metavar="TEXT", help="Words for planner and coder; may be repeated.")] = None,
    veto: Annotated[
        list[str] | None,
        typer.Option(
            metavar="ID",
            help="A candidate that is not to be worked on or delivered, `root` for the reference, or a plan whose step is not to be tried "
            "again; may be repeated.",
        ),
    ] = None,
    pin: Annotated[list[str] | None, typer.Option(metavar="ID", help="A candidate that the next round works on; may be repeated.")] = None,
    pause: Annotated[bool, typer.Option("--pause", help="Wait at the beginning of the next round; that time is not the run's.")] = False,
    go_on: Annotated[bool, typer.Option("--continue", help="Go on after a pause.")] = False,
    home: Home = None,
    json: Json = False,
) -> None:
    """Record what is asked, and show it."""
    from kernelwright.cli.shared.early import check_run
    from tools.errors import UserError

    check_run(home, run)
    if pause and go_on:
        raise UserError("--pause and --continue are opposites.", "Give one of them.")
    from graphs.run.assembly import open_run
    from graphs.run.steering import steer
    from kernelwright.screen.steering import steering_facts, steering_lines

    store = open_run(home_folder(home), run)
    given: dict[Kind, list[str]] = {
        "pause": [""] * pause,
        "hint": hint or [],
        "veto": veto or [],
        "pin": pin or [],
        "continue": [""] * go_on,
    }
    for kind, texts in given.items():
        for text in texts:
            steer(store, kind, text)
    if json:
        from json import dumps

        print(dumps(steering_facts(store), indent=1))
        return
    print("\n".join(steering_lines(store)))
