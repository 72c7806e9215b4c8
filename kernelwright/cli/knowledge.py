"""Look at and move the memory of past strategies."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kernelwright.cli.options import Home, Json, home_folder

if TYPE_CHECKING:
    from knowledge.records import Strategy
    from knowledge.store import KnowledgeBase

app = typer.Typer(help=__doc__, no_args_is_help=True)
Embedder = Annotated[str, typer.Option(help="`default`, `hashing`, or a sentence-transformers name or path.")]


def _open(home: Path | None, embedder: str = "default") -> KnowledgeBase:
    from knowledge.embedding import open_embedder
    from knowledge.store import KnowledgeBase

    return KnowledgeBase(home_folder(home) / "knowledge", open_embedder(embedder))


def _print(strategies: list[Strategy], as_json: bool) -> None:
    if as_json:
        from json import dumps

        print(dumps([{"id": s.id, **s.model_dump(mode="json")} for s in strategies], indent=1))
        return
    from rich.console import Console
    from rich.table import Table

    table = Table("id", "state", "tries", "kind", "families", "bottleneck", "title", box=None)
    for s in strategies:
        table.add_row(
            s.id[:8], s.state, str(len(s.trials)), s.kind, ", ".join(s.situation.families), s.situation.bottleneck or "any", s.title
        )
    Console().print(table)


@app.command("list")
def list_(
    home: Home = None,
    state: Annotated[str, typer.Option(help="Only strategies in this state: seeded, observed, confirmed, contradicted, retired.")] = "",
    json: Json = False,
) -> None:
    """List the strategies.

    Example: kernelwright knowledge list --state observed
    """
    from knowledge.records import StrategyState
    from tools.errors import UserError

    if state and state not in set(StrategyState):
        raise UserError(f"There is no state {state!r}.", f"Choose one of: {', '.join(StrategyState)}.")
    _print([s for s in _open(home).all() if not state or s.state == state], json)


@app.command()
def show(name: Annotated[str, typer.Argument(metavar="ID", help="Id of a strategy, or the start of it.")], home: Home = None) -> None:
    """Show one strategy whole, as JSON.

    Example: kernelwright knowledge show 3f2a
    """
    from json import dumps

    strategy = _open(home).get(name)
    print(dumps({"id": strategy.id, **strategy.model_dump(mode="json")}, indent=1))


@app.command()
def search(
    text: Annotated[str, typer.Argument(metavar="TEXT", help="Plain words.")],
    limit: Annotated[int, typer.Option(min=1, help="Strategies to show.")] = 8,
    embedder: Embedder = "default",
    home: Home = None,
    json: Json = False,
) -> None:
    """Find the strategies nearest in meaning.

    Example: kernelwright knowledge search "softmax over a very long row"
    """
    _print(_open(home, embedder).search(text, limit), json)


@app.command()
def stats(home: Home = None) -> None:
    """Count strategies by state and family, and the log's events, as JSON.

    Example: kernelwright knowledge stats
    """
    from json import dumps

    print(dumps(_open(home).stats(), indent=1))


@app.command()
def export(file: Annotated[Path, typer.Argument(metavar="FILE", help="JSON-lines file to write.")], home: Home = None) -> None:
    """Write every strategy as a line of JSON, to share and review.

    Example: kernelwright knowledge export memory.jsonl
    """
    print(f"{_open(home).export(file)} strategies written to {file}")


@app.command("import")
def import_(file: Annotated[Path, typer.Argument(metavar="FILE", help="JSON-lines file of `export`.")], home: Home = None) -> None:
    """Read strategies from a file; what is already known is never overwritten.

    Example: kernelwright knowledge import memory.jsonl
    """
    done = _open(home).import_(file)
    print(f"{done.added} strategies added, {done.known} known already, {done.credited} credited with new trials")
    for conflict in done.conflicts:
        print(f"  left as it was: {conflict}")


@app.command()
def rebuild(embedder: Embedder = "default", home: Home = None) -> None:
    """Make the vector index anew from the log, which is the source of truth.

    Example: kernelwright knowledge rebuild
    """
    print(f"{_open(home, embedder).rebuild()} strategies indexed")
