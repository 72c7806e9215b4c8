"""How often Python looks for garbage: seldom where most of what is made stays, as imports, traces and graphs do."""

from __future__ import annotations

import gc

SELDOM = (50_000, 10, 10)
"""New objects after which garbage is looked for, and how often older ones are; at Python's 700 it is a sixth of importing torch."""
USUAL = gc.get_threshold()


def look_seldom() -> None:
    """Look for garbage seldom from here on, in this process and in those it forks."""
    gc.set_threshold(*SELDOM)


def look_as_usual() -> None:
    """Look for garbage as often as Python does: where tensors with contents are made, a cycle of few objects may hold much memory."""
    gc.set_threshold(*USUAL)
