"""Whether an evaluator is what was asked for and like its siblings: figures of unlike machines are never mixed."""

from __future__ import annotations

from collections.abc import Iterable

from tools.cluster.records import Facts
from tools.cluster.station import code_hash
from tools.errors import UserError

_DECISIVE = ("torch", "triton", "driver")
"""Versions by which kernels' times differ."""


def demand_alike(facts: Facts, title: str, siblings: Iterable[Facts]) -> None:
    """Raise UserError for other code than here, another GPU than `title`, or other versions than a sibling has."""
    if facts.code != code_hash():
        raise UserError(
            f"kernelwright there is other code ({facts.code}) than here ({code_hash()}).", "Install the same version on every node."
        )
    if facts.device.casefold() != title.casefold():
        raise UserError(
            f"its GPU is {facts.device or 'none'}, and the target is {title}.", "Leave that node out, or name its device with --target."
        )
    for other in siblings:
        for name in _DECISIVE:
            if facts.versions.get(name) != other.versions.get(name):
                mine, theirs = facts.versions.get(name, "none"), other.versions.get(name, "none")
                raise UserError(f"it has {name} {mine}, and {other.host} {theirs}.", "Install the same on every node.")
