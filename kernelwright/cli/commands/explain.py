"""Show how the built-in coder gets from an operator to kernels, stage by stage, without running or timing anything.

Stages: graph (what was traced), rewrites (what the graph was turned into), regions (which operators share a kernel), schedule
(each region's parameters), launches (what the cost model expects of them), kernels (the emitted functions), library (what is
not generated, and why). Times are estimated.

Examples:
  kernelwright explain data/operators/softmax.py

  kernelwright explain my_operator.py --stage regions --stage library --target a100

  kernelwright explain my_operator.py --stage kernels --source

  kernelwright explain my_operator.py --compiled
"""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kernelwright.cli.shared.options import Json, Policy

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from kernelwright.api.explanation import Explanation


class Stage(StrEnum):
    """What can be shown by itself."""

    GRAPH = "graph"
    REWRITES = "rewrites"
    REGIONS = "regions"
    SCHEDULE = "schedule"
    LAUNCHES = "launches"
    KERNELS = "kernels"
    LIBRARY = "library"


def command(
    problem: Annotated[Path, typer.Argument(metavar="FILE", help="The PyTorch reference.")],
    entry: Annotated[str | None, typer.Option(help="Function to explain, where FILE has several.")] = None,
    target: Annotated[str, typer.Option(help="Device; see `kernelwright hardware`.", show_default="this machine's GPU, else h200")] = "",
    policy: Policy = "default",
    stage: Annotated[list[Stage] | None, typer.Option(help="Show this stage alone; may be repeated.", show_default="all")] = None,
    choice: Annotated[int, typer.Option(min=1, help="Which of the cost model's choices, the best first.")] = 1,
    initial: Annotated[bool, typer.Option("--initial", help="The schedule a search starts from: all is the library's.")] = False,
    source: Annotated[bool, typer.Option("--source", help="Print the emitted file, too.")] = False,
    compiled: Annotated[
        bool,
        typer.Option("--compiled", help="Instead, print the file made of torch.compile's own kernels: a parent where times are measured."),
    ] = False,
    json: Json = False,
) -> None:
    """Explain and print."""
    from kernelwright.cli.shared.early import check_device, check_policies, check_problem

    check_problem(problem, entry)
    check_device(target)
    check_policies(policy)
    from kernelwright.cli.shared.waiting import printing_aside, waiting
    from tools.policies import load_policy

    if compiled:
        from kernelwright.api.compiling import compiled_source

        with printing_aside(), waiting(f"having Inductor write for {problem.name}"):
            text = compiled_source(problem, target=target, policy=load_policy(policy), entry=entry)
        print(text, end="")
        return
    from kernelwright.api.explaining import explain

    with printing_aside(), waiting(f"tracing {problem.name}"):
        found = explain(problem, target=target, policy=load_policy(policy), entry=entry, choice=0 if initial else choice)
    if json:
        print(
            found.model_dump_json(
                indent=1, include=None if not stage else {"problem", "target", "policy", "explained", "us", *_fields(stage)}
            )
        )
        return
    _print(found, stage or list(VIEWS))
    if source:
        print(f"\n{found.source}", end="")


def _fields(stages: list[Stage]) -> set[str]:
    """Name the fields in which stages are."""
    return {"regions" if stage is Stage.SCHEDULE else stage for stage in stages}


def _print(found: Explanation, stages: list[Stage]) -> None:
    from rich.console import Console
    from rich.markup import escape

    console = Console(highlight=False)
    console.rule(escape(f"{found.problem} on {found.target}, policy {found.policy}"))
    console.print(escape(f"This is {found.explained}."))
    if found.us is not None:
        replayed = ", replayed as a CUDA graph" if found.captured else ""
        console.print(f"A call takes about {found.us:,.0f} µs (estimated, before it is compiled){replayed}.")
    for stage in stages:
        title, view = VIEWS[stage]
        console.print(f"\n[bold]{stage.value}[/bold]: {title}")
        view(console, found)
    for note in found.notes if len(stages) == len(VIEWS) else ():
        # the last table has these
        if "left to the " not in note.lower():
            console.print(f"note: {escape(note)}")


def _table(*columns: str) -> Table:
    from rich.table import Table

    table = Table(box=None, pad_edge=False)
    for column in columns:
        number = column.startswith(("µs", "programs", "warps", "MB", "GFLOP", "line"))
        table.add_column(column, justify="right" if number else "left", overflow="fold")
    return table


def _add(table: Table, *cells: str) -> None:
    from rich.markup import escape

    table.add_row(*(escape(cell) for cell in cells))


def _graph(console: Console, found: Explanation) -> None:
    table = _table("name", "operator", "reads", "result")
    for one in found.graph:
        result = ", ".join(one.results)
        _add(table, one.name, one.operator, ", ".join(one.reads), f"{result} (a view)" if one.is_view else result)
    console.print(table if found.graph else "  nothing that can be generated")


def _rewrites(console: Console, found: Explanation) -> None:
    table = _table("node", "was", "became", "by")
    for one in found.rewrites:
        _add(table, one.node, one.operator, ", ".join(one.became) or "nothing: its readers read its input", one.by)
    console.print(table if found.rewrites else "  none: the traced operators are used as they are")


def _regions(console: Console, found: Explanation) -> None:
    table = _table("region", "run by", "operators", "µs (estimated)")
    for one in found.regions:
        _add(table, one.id, one.template, ", ".join(one.operators), _us(one.us))
    console.print(table if found.regions else "  none")


def _schedule(console: Console, found: Explanation) -> None:
    table = _table("region", "template", "parameters")
    for one in found.regions:
        if one.parameters:
            _add(table, one.id, one.template, ", ".join(f"{name}={value}" for name, value in one.parameters.items()))
    console.print(table if table.row_count else "  none: the library has no parameters")


def _launches(console: Console, found: Explanation) -> None:
    table = _table("region", "programs", "warps", "MB moved", "GFLOP", "µs (estimated)")
    for one in found.launches:
        flops = f"{one.flops / 1e9:,.2f}" if one.flops else "–"
        _add(table, one.region, f"{one.programs:,}", str(one.warps), f"{one.dram_bytes / 1e6:,.2f}", flops, _us(one.us))
    console.print(table if found.launches else "  none: no region is generated")


def _kernels(console: Console, found: Explanation) -> None:
    table = _table("name", "what", "region", "line", "lines")
    for one in found.kernels:
        _add(table, one.name, one.kind, one.region or "–", str(one.line), str(one.lines))
    console.print(table)


def _library(console: Console, found: Explanation) -> None:
    table = _table("region", "operators", "why")
    for one in found.library:
        _add(table, one.region or "–", ", ".join(one.operators), one.reason)
    console.print(table if found.library else "  nothing: every operator is generated")


def _us(us: float | None) -> str:
    return "–" if us is None else f"{us:,.1f}"


VIEWS: dict[Stage, tuple[str, Callable[[Console, Explanation], None]]] = {
    Stage.GRAPH: ("the traced operators, in canonical form", _graph),
    Stage.REWRITES: ("what was turned into something else, and on whose behalf", _rewrites),
    Stage.REGIONS: ("operators that share a kernel, in order", _regions),
    Stage.SCHEDULE: ("the parameters of each region; `kernelwright actions` explains them", _schedule),
    Stage.LAUNCHES: ("what the cost model expects of the generated regions", _launches),
    Stage.KERNELS: ("functions of the emitted file", _kernels),
    Stage.LIBRARY: ("what is left to PyTorch's own operators, and why", _library),
}
"""By stage: what its table holds, and who prints it."""
