"""Opens the knowledge base that a command is about."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kernelwright.cli.shared.options import HALF_LIFE, SERVER_VARIABLE, home_folder

if TYPE_CHECKING:
    from knowledge.store import KnowledgeBase

LOG = "log.sqlite3"
"""What makes a folder a knowledge base."""
Embedder = Annotated[
    str,
    typer.Option(help="Finds strategies by meaning: `default`, `hashing`, or a sentence-transformers name or path."),
]
Server = Annotated[
    str,
    typer.Option(
        "--server",
        "--chroma-server",
        envvar=SERVER_VARIABLE,
        help="http://host:port of a Chroma server (`chroma run`) that holds the vectors.",
        show_default="the index in the knowledge's folder",
    ),
]


def open_base(
    home: Path | None, embedder: str = "default", server: str = "", half_life: float = HALF_LIFE, share: str = ""
) -> KnowledgeBase:
    """Open the knowledge base of a home folder, or the folder itself where that is one, as each arm of a bench leaves one."""
    from knowledge.store import KnowledgeBase
    from knowledge.vectors.embedding import open_embedder

    folder = base_folder(home)
    if not (folder / LOG).is_file():
        print(f"note: there was no memory in {folder}; one begins there, with the curated seeds.", file=sys.stderr)
    return KnowledgeBase(folder, open_embedder(embedder), server=server or None, half_life=half_life, share=share)


def base_folder(home: Path | None) -> Path:
    """The folder of a home's knowledge base, or the folder itself where that is one."""
    folder = home_folder(home)
    return folder if (folder / LOG).is_file() else folder / "knowledge"


def demand_readable(home: Path | None, *, memory: bool) -> None:
    """Raise UserError where the memory that a run would use is damaged: before the run, not in it."""
    from knowledge.log.event_log import EventLog

    log = EventLog(home_folder(home) / "knowledge" / LOG)
    if memory and log.path.is_file():
        log.counts()
        log.close()


def reached_server(server: str, *, memory: bool = True) -> str:
    """Return the server's address once it has answered; one that is down raises UserError before anything is begun.

    Without `memory` nobody asks it, and the address is empty.
    """
    if not server or not memory:
        return ""
    from knowledge.vectors.homes import ServerHome

    ServerHome(server).reach()
    return server


def reached_share(share: str, server: str, *, memory: bool = True) -> tuple[str, tuple[str, ...]]:
    """Return the share's name once its server has answered, and a note on who is there; what cannot be shared raises UserError.

    Without `memory` nobody asks, and the name is empty.
    """
    if not share or not memory:
        return "", ()
    from knowledge.sharing.board import Board, check_share
    from knowledge.vectors.homes import ServerHome

    check_share(share, server)
    home = ServerHome(server)
    try:
        heads, others = Board(home, share).look()
    finally:
        home.close()
    if heads is not None:
        machines = "1 machine has" if len(heads) == 1 else f"{len(heads)} machines have"
        return share, (f"memory is shared as {share}: {machines} put {sum(head.number for head in heads)} events there so far",)
    there = f"; shared there are: {', '.join(others)}" if others else ""
    return share, (f"memory is shared as {share}, which begins with this machine{there}",)


def ready_embedder(embedder: str, *, memory: bool = True) -> str:
    """Return the embedder's setting once it is known to name one; another raises UserError before anything is begun.

    Without `memory` nobody asks it.
    """
    from knowledge.vectors.embedding import demand

    if memory:
        demand(embedder)
    return embedder


def print_notes(base: KnowledgeBase) -> None:
    """Say on standard error what fell back or had to be rebuilt."""
    for note in base.notes:
        print(f"note: {note}", file=sys.stderr)


def print_json(value: Any) -> None:
    """Print one JSON value."""
    from json import dumps

    print(dumps(value, indent=1))
