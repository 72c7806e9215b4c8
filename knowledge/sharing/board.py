"""The board: a collection on a Chroma server where machines that share a memory put copies of their events.

Each machine numbers its events 1, 2, 3, …; an event lies under `STORE:NUMBER`, and `STORE:head` says how far its machine has come.
A head is written after its events, so that a reader finds all that the head promises. Nothing here is searched: the vectors are dummies.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from knowledge.vectors.homes import ServerHome, UnreachableError
from tools.errors import KernelwrightError, UserError
from tools.records import Record

FORM = 1
"""Of what lies on a board; another one is refused."""

PREFIX = "kernelwright-share-"

PAGE = 1000
"""Events put or fetched at once; Chroma takes at most 5,461."""

_NAME = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]{0,62}[A-Za-z0-9])?")

T = TypeVar("T")


class Head(Record):
    """How far a machine has put its events on the board."""

    store: str
    """Random name of the machine's log."""
    number: int = 0
    """Of its last event here."""
    seq: int = 0
    """Of the same event in the machine's log."""
    key: str = ""
    """Of the same event: a log that has another one there has another history."""


def check_share(share: str, server: str) -> None:
    """Refuse a name that cannot be one, and a memory that would be shared nowhere; both raise UserError."""
    if not share:
        return
    if not _NAME.fullmatch(share):
        what = f"{share!r} is no name for a shared memory."
        raise UserError(what, "Use up to 64 letters, digits, '.', '_' and '-', such as --share team.")
    if not server:
        what = f"Memory cannot be shared as {share} without a Chroma server."
        raise UserError(what, "Name the one that the machines share: --chroma-server http://HOST:PORT.")


class Board:
    """One shared memory on one server; `open` it before each exchange."""

    def __init__(self, home: ServerHome, name: str) -> None:
        """Connect to nothing yet."""
        self.name = name
        self._home = home
        self._collection: Any = None

    def open(self) -> str:
        """Find the board, or make it; return its id, which no other board ever has."""

        def find() -> Any:
            client = self._home.client()
            metadata = {"kernelwright_share": FORM}
            return client.get_or_create_collection(PREFIX + self.name, metadata=metadata, embedding_function=None)

        self._collection = self._asked(find)
        self._check(self._collection)
        return str(self._collection.id)

    def look(self) -> tuple[list[Head] | None, list[str]]:
        """Heads of the board, None where there is none yet, and the names of the server's other boards; makes nothing."""

        def names() -> list[str]:
            client = self._home.client()
            found: list[str] = []
            while page := client.list_collections(limit=PAGE, offset=len(found)):
                found += [collection.name for collection in page]
            return found

        known = {name.removeprefix(PREFIX) for name in self._asked(names) if name.startswith(PREFIX)}
        if self.name not in known:
            return None, sorted(known)
        self.open()
        return self.heads(), sorted(known - {self.name})

    def heads(self) -> list[Head]:
        """How far each machine has come, as of one moment."""
        found = self._asked(lambda: self._collection.get(where={"what": "head"}, include=["documents"]))
        try:
            return [Head.model_validate_json(text) for text in found["documents"]]
        except (ValueError, TypeError) as error:
            raise UnreachableError(f"The shared memory {self.name} is damaged: a head cannot be read.", _anew(self.name)) from error

    def put(self, head: Head, texts: Sequence[str]) -> None:
        """Put the events that end with `head`, then the head; repeating it changes nothing."""
        first = head.number - len(texts) + 1
        ids = [f"{head.store}:{number}" for number in range(first, head.number + 1)]
        self._put(ids, texts, {"what": "event", "store": head.store})
        self._put([f"{head.store}:head"], [head.model_dump_json()], {"what": "head", "store": head.store})

    def fetch(self, store: str, after: int, through: int) -> list[str]:
        """Fetch the events of a machine with these numbers, in order, up to the first that is not there."""
        texts: list[str] = []
        for start in range(after + 1, through + 1, PAGE):
            ids = [f"{store}:{number}" for number in range(start, min(start + PAGE, through + 1))]
            by_id = self._get(ids)
            for name in ids:
                if by_id.get(name) is None:
                    return texts
                texts.append(by_id[name])
        return texts

    def _get(self, ids: list[str]) -> dict[str, str]:
        found = self._asked(lambda: self._collection.get(ids=ids, include=["documents"]))
        return dict(zip(found["ids"], found["documents"], strict=True))

    def _put(self, ids: Sequence[str], texts: Sequence[str], metadata: dict[str, str]) -> None:
        vectors = [[0.0]] * len(ids)
        metadatas = [metadata] * len(ids)
        self._asked(lambda: self._collection.upsert(ids=list(ids), documents=list(texts), metadatas=metadatas, embeddings=vectors))

    def _check(self, collection: Any) -> None:
        form = (collection.metadata or {}).get("kernelwright_share")
        if form != FORM:
            what = f"The shared memory {self.name} is of form {form}; this release reads form {FORM}."
            raise UnreachableError(what, "Use one release on all machines, or share under another name.")

    def _asked(self, question: Callable[[], T]) -> T:
        """Ask the server; whatever goes wrong is UnreachableError."""
        import httpx  # comes with chromadb

        with self._home.held():
            try:
                return question()
            except (httpx.HTTPError, ConnectionError, KernelwrightError):
                raise
            except Exception as error:
                # Chroma's client raises bare exceptions for answers that it does not know
                reason = " ".join(str(error).split())[:200] or type(error).__name__
                raise UnreachableError(
                    f"The Chroma server refuses the shared memory {self.name}: {reason}",
                    "Look at the server's own output; it is asked without credentials.",
                ) from error


def _anew(name: str) -> str:
    return f"Delete the collection {PREFIX}{name} on the server: every machine puts its events there again."
