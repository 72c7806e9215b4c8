"""Opens the knowledge base that a command is about."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kernelwright.cli.options import home_folder

if TYPE_CHECKING:
    from knowledge.store import KnowledgeBase

Embedder = Annotated[
    str,
    typer.Option(help="Finds strategies by meaning: `default`, `hashing`, or a sentence-transformers name or path."),
]
Server = Annotated[
    str,
    typer.Option(
        envvar="KERNELWRIGHT_CHROMA_SERVER",
        help="http://host:port of a Chroma server (`chroma run`) that holds the vectors.",
        show_default="the index in the knowledge's folder",
    ),
]


def open_base(home: Path | None, embedder: str = "default", server: str = "") -> KnowledgeBase:
    """Open the knowledge base of a home folder."""
    from knowledge.embedding import open_embedder
    from knowledge.store import KnowledgeBase

    return KnowledgeBase(home_folder(home) / "knowledge", open_embedder(embedder), server=server or None)


def print_json(value: Any) -> None:
    """Print one JSON value."""
    from json import dumps

    print(dumps(value, indent=1))
