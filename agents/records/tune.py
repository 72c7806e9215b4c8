"""The action `tune`: which one it is, whoever lists it."""

from __future__ import annotations

from tools.records import Action

TRIALS = "tune"
"""Parameter of a launch action that makes it a tuning; its value says how many trials it may take."""


def is_tuning(action: Action) -> bool:
    """Whether an action is carried out by the tuner, not by a coder."""
    return TRIALS in action.parameters
