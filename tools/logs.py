"""The shortest part of a log that tells what went wrong."""

from __future__ import annotations

import re

_EXCEPTION = re.compile(r"^(?:\w+\.)*\w*(?:Error|Exception|Interrupt|Exit|Warning|Fault|Timeout)(?::\s.*|:?\s*)$")
_COMPILER = re.compile(
    r"^\S[^:\n]*:\d+(?::\d+)?:\s+(?:fatal )?error:|^\s*(?:error|fatal)\s*:|^\S+\(\d+\): error|ptxas (?:fatal|error)", re.IGNORECASE
)
_OTHER = re.compile(
    r"out of memory|illegal memory access|segmentation fault|core dumped|killed|no space left|assertion|device-side assert|out of resource"
    r"|\berror\b|\bfailed\b|\bfatal\b|\bcannot\b",
    re.IGNORECASE,
)
_FRAME = re.compile(r'^  File "([^"\n]*)", line \d+', re.MULTILINE)
_ANSI = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")


def printable(text: str) -> str:
    """Make untrusted text safe to show: what could steer a terminal becomes a replacement character, lines and tabs stay."""
    return "".join(sign if sign.isprintable() or sign in "\n\t" else "\ufffd" for sign in text)


def own_frames(log: str, file: str) -> str:
    """Leave out of Python's traces the frames of other files than `file`, which is how a path ends; traces without it stay whole."""
    if not any(found[1].endswith(file) for found in _FRAME.finditer(log)):
        return log
    kept: list[str] = []
    own = True
    for line in log.splitlines(keepends=True):
        if found := _FRAME.match(line):
            own = found[1].endswith(file)
        elif not line.startswith("    "):
            own = True
        if own:
            kept.append(line)
    return "".join(kept)


def telling_part(log: str, limit: int = 600) -> str:
    """Return the part of `log` that best says what failed, at most `limit` characters; empty for an empty log.

    In this order: compiler error lines, each with the source line and marker under it; the last line that names an
    exception, with what follows it; the last line with a word of failure; the last line. Terminal colours are
    removed. What is longer is cut in the middle.
    """
    lines = [line.rstrip() for line in _ANSI.sub("", log).splitlines() if line.strip()]
    return _cut("\n".join(_telling(lines)).strip(), limit)


def _telling(lines: list[str]) -> list[str]:
    exception = _last(lines, _EXCEPTION)
    if found := [i for i, line in enumerate(lines) if _COMPILER.search(line)]:
        excerpt = [i for i in (found[0] + 1, found[0] + 2) if i < len(lines) and lines[i].lstrip() != lines[i]]
        chosen = {*found[:2], *excerpt, *([exception] if exception is not None else [])}
        return [lines[i] for i in sorted(chosen)]
    if exception is not None:
        return lines[exception : exception + 6]
    if (at := _last(lines, _OTHER)) is not None:
        return [lines[at]]
    return lines[-1:]


def _last(lines: list[str], pattern: re.Pattern[str]) -> int | None:
    return next((i for i in range(len(lines) - 1, -1, -1) if pattern.search(lines[i])), None)


def _cut(text: str, limit: int) -> str:
    if len(text) <= limit:
        return text
    mark = " … "
    if limit <= len(mark):
        return text[:limit]
    head = (limit - len(mark)) * 2 // 3
    return text[:head] + mark + text[len(text) - (limit - len(mark) - head) :]
