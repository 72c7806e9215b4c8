"""Keeps keys out of what a run writes down and of what leaves it.

A run's own records lose the keys that this process used, by their very text. What leaves the machine loses whatever looks like a key, too.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator

HIDDEN = "[secret]"
"""What stands where a secret was."""
SHORTEST = 8
"""Characters of a secret: shorter ones would be found in the middle of words."""
_NAMES = re.compile(r"(?:KEY|TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIALS|HEADERS)$")
_TELLING = re.compile(r"(?=.*[A-Za-z])(?=.*\d)\S{12,}")
"""Values of such variables that no word or path-free setting has by chance."""
_SHAPES = {
    **dict.fromkeys(("sk-", "sk_", "pk-", "pk_", "rk-", "rk_", "lsv2_"), re.compile(r"\b(?:sk|pk|rk|lsv2)[-_][A-Za-z0-9_-]{16,}")),
    **dict.fromkeys(("gh", "glpat-", "hf_", "xox"), re.compile(r"\b(?:gh[pousr]|github_pat|glpat|hf|xox[abprs])[-_][A-Za-z0-9_-]{16,}")),
    "AKIA": re.compile(r"\bAKIA[0-9A-Z]{16}\b"),
    "AIza": re.compile(r"\bAIza[0-9A-Za-z_-]{35}"),
    "eyJ": re.compile(r"\beyJ[A-Za-z0-9_-]{10,}\.eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]+"),
    "earer ": re.compile(r"earer (?P<secret>[A-Za-z0-9._~+/-]{16,})"),
    "://": re.compile(r"://(?P<secret>[^/\s\"'@\\]+:[^/\s\"'@\\]+)@"),
    "-----BEGIN ": re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?-----END [A-Z ]*PRIVATE KEY-----", re.DOTALL),
}
"""Keys of well-known services, tokens in headers, passwords in addresses, private keys; by how each begins, which is looked for first."""
_used: set[str] = set()


def remember_secret(text: str) -> None:
    """Have a key that this process uses left out of all that it writes down from now on."""
    if len(text) >= SHORTEST:
        _used.add(text)


def without_used(text: str) -> str:
    """Leave out the keys that this process used."""
    for secret in _used:
        if secret in text:
            text = text.replace(secret, HIDDEN)
    return text


def without_secrets(text: str) -> str:
    """Leave out those, the values of environment variables that are called keys, and all that looks like a key."""
    text = without_used(text)
    for secret in _from_environment():
        text = text.replace(secret, HIDDEN)
    return _cut(text, sorted(_shaped(text)))


def _from_environment() -> list[str]:
    """Longest first: one may be a part of another."""
    named = (value for name, value in os.environ.items() if _NAMES.search(name.upper()))
    return sorted({value for value in named if _TELLING.fullmatch(value)}, key=len, reverse=True)


def _shaped(text: str) -> Iterator[tuple[int, int]]:
    """Where something has the shape of a secret."""
    for beginning, shape in _SHAPES.items():
        at = text.find(beginning)
        while at >= 0:
            if found := shape.match(text, at):
                yield found.span("secret" if shape.groups else 0)
            at = text.find(beginning, at + 1)


def _cut(text: str, places: Iterable[tuple[int, int]]) -> str:
    """Replace places, in order of their beginnings, some of which may overlap."""
    kept, done = [], 0
    for start, end in places:
        if start >= done:
            kept += [text[done:start], HIDDEN]
        done = max(done, end)
    return "".join((*kept, text[done:]))
