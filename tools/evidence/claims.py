"""What `verify` says: a bundle's claims, and how each of them stands."""

from __future__ import annotations

from enum import StrEnum

from tools.records import Evaluation, Record


class Standing(StrEnum):
    """How a claim stands."""

    HOLDS = "holds"
    FAILS = "fails"
    UNCHECKED = "not checked"
    """It cannot be checked here, or was asked not to be; the words say why."""


class Claim(Record):
    """One thing a bundle says."""

    name: str
    standing: Standing
    words: str
    """What was compared with what, or why it could not be."""


class Report(Record):
    """Every claim of one bundle."""

    bundle: str
    """The folder."""
    digest: str
    """Names the bundle: whoever has it from another source knows that this is the same one."""
    claims: tuple[Claim, ...]
    evaluation: Evaluation | None = None
    """The new evaluation on this machine; None where none was made."""

    @property
    def failed(self) -> tuple[Claim, ...]:
        """The claims that do not hold."""
        return tuple(claim for claim in self.claims if claim.standing is Standing.FAILS)

    @property
    def unchecked(self) -> tuple[Claim, ...]:
        """The claims about which nothing was found out."""
        return tuple(claim for claim in self.claims if claim.standing is Standing.UNCHECKED)


def holds(name: str, words: str) -> Claim:
    """Say that a claim holds."""
    return Claim(name=name, standing=Standing.HOLDS, words=words)


def fails(name: str, words: str) -> Claim:
    """Say that a claim does not hold."""
    return Claim(name=name, standing=Standing.FAILS, words=words)


def unchecked(name: str, words: str) -> Claim:
    """Say that a claim was not checked."""
    return Claim(name=name, standing=Standing.UNCHECKED, words=words)


def either(name: str, good: bool, words: str) -> Claim:
    """Say that a claim holds where `good`, else that it fails."""
    return holds(name, words) if good else fails(name, words)
