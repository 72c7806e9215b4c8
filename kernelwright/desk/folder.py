"""The folder of a desk: a number for each question, a page to read it on, and what somebody put there as its answer."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from tools.errors import UserError
from tools.records import content_hash

SETTLED_S = 0.3
"""Age from which an answer's file counts as written: editors write in several steps."""
TEXT = ".answer.md"
CALLS = ".calls.json"
Body = dict[str, Any]


class Call(NamedTuple):
    """One call of a tool that an answer makes."""

    name: str
    arguments: str
    """JSON."""


class Given(NamedTuple):
    """What was put into the folder for a question."""

    text: str = ""
    calls: tuple[Call, ...] = ()


class Unreadable(Exception):  # noqa: N818 - caught next door and told to whoever answers
    """An answer's file is there and cannot be used."""


class DeskFolder:
    """Questions by number; the same request has the same number, so a client that asks again waits for the same answer."""

    def __init__(self, folder: Path) -> None:
        """Go on with the questions that the folder has; raises UserError where it cannot be one."""
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise UserError(f"The folder {folder} cannot be made ({error.strerror}).", "Give another --folder.") from error
        self.path = folder
        self._numbers = {_digest(json.loads(path.read_text("utf-8"))): number for number, path in _asked(folder)}
        self._last = max((number for number, _ in _asked(folder)), default=0)

    def number(self, request: Body) -> tuple[int, bool]:
        """Find the number of a request, and whether it is new; a new one is written down with its page."""
        digest = _digest(request)
        if digest in self._numbers:
            return self._numbers[digest], False
        self._last += 1
        self._numbers[digest] = self._last
        self.file(self._last, ".prompt.md").write_text(page(request), "utf-8")
        self.file(self._last, ".request.json").write_text(json.dumps(request), "utf-8")
        return self._last, True

    def file(self, number: int, ending: str) -> Path:
        """Name a file of a question."""
        return self.path / f"{number:04d}{ending}"

    def answer(self, number: int) -> Given | None:
        """Read the answer to a question; None where there is none yet, Unreadable where it cannot be used."""
        calls, text = self.file(number, CALLS), self.file(number, TEXT)
        if _settled(calls):
            return Given(text.read_text("utf-8") if _settled(text) else "", _read_calls(calls))
        return Given(text.read_text("utf-8")) if _settled(text) else None

    def put_aside(self, number: int) -> None:
        """Rename calls that cannot be used, so that others can be written."""
        calls = self.file(number, CALLS)
        calls.replace(calls.with_suffix(".wrong"))

    def waiting(self) -> tuple[int, ...]:
        """List the questions that nobody answered."""
        return tuple(n for n, _ in _asked(self.path) if not (self.file(n, TEXT).exists() or self.file(n, CALLS).exists()))


def page(request: Body) -> str:
    """Write a request for people: every turn, then all else that was asked for."""
    turns = "\n\n".join(f"# {turn.get('role', 'user')}\n\n{_words(turn)}" for turn in turns_of(request))
    rest = {name: value for name, value in request.items() if name not in {"messages", "input", "instructions"}}
    return f"{turns}\n\n# How it is asked\n\n```json\n{json.dumps(rest, indent=1)}\n```\n"


def turns_of(request: Body) -> list[Body]:
    """The turns of a request to either endpoint."""
    if "messages" in request:
        return list(request["messages"])
    given = request.get("input", "")
    turns = given if isinstance(given, list) else [{"role": "user", "content": given}]
    return [*([{"role": "system", "content": request["instructions"]}] if request.get("instructions") else []), *turns]


def _words(turn: Body) -> str:
    content = turn.get("content") or ""
    said = content if isinstance(content, str) else "\n".join(str(part.get("text", "")) for part in content)
    calls = [f"calls {one['function']['name']}({one['function']['arguments']})" for one in turn.get("tool_calls") or ()]
    return "\n".join([*([said] if said else []), *calls])


def _digest(request: Body) -> str:
    return content_hash(json.dumps(request, sort_keys=True))


def _asked(folder: Path) -> Iterator[tuple[int, Path]]:
    for path in sorted(folder.glob("*.request.json")):
        if found := re.fullmatch(r"(\d+)\.request\.json", path.name):
            yield int(found.group(1)), path


def _settled(path: Path) -> bool:
    """Whether a file is there, has something in it, and has not just been written."""
    try:
        facts = path.stat()
    except OSError:
        return False
    return bool(facts.st_size) and time.time() - facts.st_mtime >= SETTLED_S


def _read_calls(path: Path) -> tuple[Call, ...]:
    try:
        given = json.loads(path.read_text("utf-8"))
        found = [Call(str(one["name"]), json.dumps(one["arguments"])) for one in (given if isinstance(given, list) else [given])]
    except (ValueError, KeyError, TypeError) as error:
        raise Unreadable(f'{path.name} is no call: write {{"name": "TOOL", "arguments": {{…}}}}, or a list of such.') from error
    return tuple(found)
