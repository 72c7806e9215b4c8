"""Where the vector index lives: in a folder of this machine, or in a `chroma run` server.

Chroma's embedded form is not safe across processes. So the folder has a lock file that is held while the index is used,
a client is closed before the lock is let go after any write, and a stamp tells a process that keeps a client open for
reading whether another one wrote since.
"""

from __future__ import annotations

import contextlib
import json
import shutil
import threading
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import urlsplit

from tools.errors import MachineError, UserError

LOCK_S = 300.0
"""How long to wait for another process that uses the index; re-embedding 10,000 entries takes about half a minute."""

_OPEN: dict[Path, tuple[Any, str]] = {}
"""Client and stamp by folder. Chroma shares one core among all clients of a path in a process, so we share the client too."""

_GUARD = threading.RLock()
"""Held while this process uses any embedded index: no thread closes the client that another one reads."""


class UnreachableError(UserError):
    """A Chroma server that does not answer, or not as one; nothing on this machine is wrong."""


class Home(Protocol):
    """Gives access to a Chroma client."""

    def held(self) -> contextlib.AbstractContextManager[None]:
        """Keep other processes away from the index where it cannot bear them."""

    def client(self) -> Any:
        """Give a client that sees all that was written; only while held."""

    def writing(self) -> contextlib.AbstractContextManager[Any]:
        """Give a client to write with; its writes are flushed at the end. Only while held."""

    def renew(self, collection: str) -> None:
        """Drop the index, so that the next client finds nothing of `collection`; only while held."""

    def close(self) -> None:
        """Let go of the client."""


class FolderHome:
    """The embedded form, in `folder`."""

    def __init__(self, folder: Path) -> None:
        """Touch nothing before the first use."""
        self._folder = folder.absolute()

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """Hold the folder's lock file."""
        from filelock import FileLock, Timeout

        with _GUARD:
            try:
                self._folder.mkdir(parents=True, exist_ok=True)
                lock = FileLock(self._folder / "lock", timeout=LOCK_S, thread_local=False)
                lock.acquire()
            except Timeout as error:
                what = f"Another process has held the index {self._folder} for over {LOCK_S:.0f} s."
                raise MachineError(what, "Wait for it to end, or end it, and repeat.") from error
            except OSError as error:
                what = f"The index folder {self._folder} cannot be used: {error.strerror or error}."
                raise UserError(what, "Name a folder that you may write, or correct its permissions.") from error
            try:
                yield
            finally:
                lock.release()

    def client(self) -> Any:
        """Reuse the open client where nobody wrote since, else open one."""
        current = self._current()
        client, stamp = _OPEN.get(self._folder, (None, ""))
        if client is None or current["stamp"] != stamp:
            self.close()
            client = _embedded(self._folder / current["folder"])
            _OPEN[self._folder] = client, current["stamp"]
        return client

    @contextlib.contextmanager
    def writing(self) -> Iterator[Any]:
        """Change the stamp first: after a kill in the middle of a write no other process trusts its open client."""
        client = self.client()
        self._point(self._current()["folder"])
        _OPEN[self._folder] = client, self._current()["stamp"]
        yield client

    def renew(self, collection: str) -> None:
        """Point to a fresh folder; one process cannot open again a path whose folder was deleted."""
        self.close()
        self._point(f"chroma-{uuid.uuid4().hex[:12]}")
        current = self._current()["folder"]
        for old in self._folder.glob("chroma-*"):
            if old.name != current:
                shutil.rmtree(old, ignore_errors=True)

    def close(self) -> None:
        """Close the process's client of this folder, if one is open; another store on it opens it again."""
        with _GUARD:
            client, _ = _OPEN.pop(self._folder, (None, ""))
            if client is not None:
                # a damaged store may refuse even this; it is dropped in any case
                with contextlib.suppress(Exception):
                    client.close()

    def _current(self) -> dict[str, str]:
        try:
            current = json.loads((self._folder / "current.json").read_text())
            if {"folder", "stamp"} <= current.keys() and str(current["folder"]).startswith("chroma-"):
                return {"folder": Path(current["folder"]).name, "stamp": str(current["stamp"])}
        except (OSError, ValueError, AttributeError):
            # missing at first, or damaged: the index is rebuildable, so a new one is begun
            pass
        self._point(f"chroma-{uuid.uuid4().hex[:12]}")
        return self._current()

    def _point(self, folder: str) -> None:
        path = self._folder / "current.json"
        fresh = path.with_suffix(f".{uuid.uuid4().hex[:8]}")
        try:
            fresh.write_text(json.dumps({"folder": folder, "stamp": uuid.uuid4().hex}))
            fresh.replace(path)
        except OSError as error:
            fresh.unlink(missing_ok=True)
            what = f"The index folder {self._folder} cannot be written: {error.strerror or error}."
            raise MachineError(what, "Free disk space or correct its permissions, and repeat; the log has lost nothing.") from error


class ServerHome:
    """A server started with `chroma run`; it keeps its own order among many clients."""

    def __init__(self, url: str) -> None:
        """Take `http://host:port` or `https://host:port`; nothing is connected before the first use."""
        try:
            parts = urlsplit(url)
            port = parts.port
        except ValueError:
            parts, port = urlsplit(""), None
        if parts.scheme not in {"http", "https"} or not parts.hostname:
            raise UserError(f"{url!r} is not the address of a Chroma server.", "Give it as http://host:port.")
        self._url = url
        self._tls = parts.scheme == "https"
        self._host = parts.hostname
        self._port = port or (443 if self._tls else 8000)
        self._client: Any = None

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """Hold nothing; turn a lost connection into a clear error."""
        import httpx

        try:
            yield
        except (httpx.HTTPError, ConnectionError) as error:
            self.close()
            raise self._down(error) from error

    def reach(self) -> None:
        """Connect and let go again; a server that is down, or none of Chroma's, raises UserError."""
        with self.held():
            self.client()
            self.close()

    def client(self) -> Any:
        """Connect once."""
        if self._client is None:
            import chromadb
            import httpx

            try:
                self._client = chromadb.HttpClient(host=self._host, port=self._port, ssl=self._tls, settings=_settings())
            except (ValueError, httpx.HTTPError, ConnectionError) as error:
                raise self._down(error) from error
        return self._client

    @contextlib.contextmanager
    def writing(self) -> Iterator[Any]:
        """Write with the same client."""
        yield self.client()

    def renew(self, collection: str) -> None:
        """Delete the collection; another process may have been first."""
        from chromadb.errors import NotFoundError

        with contextlib.suppress(NotFoundError, ValueError):
            self.client().delete_collection(collection)

    def close(self) -> None:
        """Close the connections, if there are any."""
        if self._client is not None:
            self._client.close()
            self._client = None

    def _down(self, error: Exception) -> UnreachableError:
        if _is_refused(error):
            return UnreachableError(
                f"The Chroma server at {self._url} asks for credentials, and kernelwright has none to give.",
                'Let it answer without, in a network that you trust, or do without: `--chroma-server ""` uses the index in the '
                "knowledge's folder.",
            )
        words = " ".join(str(error).split())
        # a page of HTML is no reason
        reason = "another program answers there." if words.startswith("<") else words[:200]
        return UnreachableError(
            f"The Chroma server at {self._url} does not answer: {reason}",
            f"Start it with `chroma run --host {self._host} --port {self._port}`, or do without: "
            '`--chroma-server ""` uses the index in the knowledge\'s folder.',
        )


def _is_refused(error: BaseException | None) -> bool:
    """Whether a server's answer stands behind an error that says: not to you."""
    while error is not None:
        if getattr(getattr(error, "response", None), "status_code", None) in {401, 403, 407}:
            return True
        error = error.__cause__ or error.__context__
    return False


def _settings() -> Any:
    from chromadb.config import Settings

    return Settings(anonymized_telemetry=False)


def _embedded(folder: Path) -> Any:
    import chromadb

    return chromadb.PersistentClient(path=str(folder), settings=_settings())
