"""Keeps keys out of what a run writes down and of what leaves it.

A run's own records lose the keys that this process used, by their very text. What leaves the machine loses whatever looks like a key, too.
"""

from __future__ import annotations

import os
import re

HIDDEN = "[secret]"
"""What stands where a secret was."""
SHORTEST = 8
"""Characters of a secret: shorter ones would be found in the middle of words."""
_NAMES = re.compile(r"(?:KEY|TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIALS|HEADERS)$")
_TELLING = re.compile(r"(?=.*[A-Za-z])(?=.*\d)\S{12,}")
"""Values of such variables that no word or path-free setting has by chance."""
_SHAPES = re.compile(
    r"\b(?:sk|pk|rk|lsv2)[-_][A-Za-z0-9_-]{16,}"
    r"|\b(?:gh[pousr]|github_pat|glpat|hf|xox[abprs])[-_][A-Za-z0-9_-]{16,}"
    r"|\bAKIA[0-9A-Z]{16}\b"
    r"|\bAIza[0-9A-Za-z_-]{35}"
    r"|\beyJ[A-Za-z0-9_-]{10,}\.eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]+"
    r"|(?<=[Bb]earer )[A-Za-z0-9._~+/-]{16,}"
    r"|(?<=://)[^/\s\"'@\\]+:[^/\s\"'@\\]+(?=@)"
    r"|-----BEGIN [A-Z ]*PRIVATE KEY-----.*?-----END [A-Z ]*PRIVATE KEY-----",
    re.DOTALL,
)
"""Keys of well-known services, tokens in headers, passwords in addresses, private keys."""
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
    return _SHAPES.sub(HIDDEN, text)


def _from_environment() -> list[str]:
    """Longest first: one may be a part of another."""
    named = (value for name, value in os.environ.items() if _NAMES.search(name.upper()))
    return sorted({value for value in named if _TELLING.fullmatch(value)}, key=len, reverse=True)
