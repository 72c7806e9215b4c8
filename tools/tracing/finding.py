"""Where runs lie, and which of them a name means."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tools.errors import UserError
from tools.nearest import nearest

MOST_NAMED = 3
"""Runs that an error names where several could be meant."""


def default_home() -> Path:
    """The folder that holds runs and knowledge where neither `--home` nor KERNELWRIGHT_HOME names one."""
    return Path.home() / ".kernelwright"


def find_run(home: Path, run: str) -> Path:
    """Find the folder of a run by its name or a prefix that only it has; UserError where that is none or several."""
    runs = home / "runs"
    # not a pattern: what was typed may be a path, or hold a star
    known = sorted(path.parent for path in runs.glob("*/run.db"))
    matches = [path for path in known if path.name.startswith(run)] if run else []
    exact = [path for path in matches if path.name == run]
    if len(exact or matches) != 1:
        what = f"{len(matches)} runs start with {run!r}" if matches else f"There is no run {run!r} in {runs}"
        hint = f"{_named(matches)} " if matches else nearest(run, (path.name for path in known))
        raise UserError(f"{what}.", f"{hint}List the runs with `kernelwright runs`, and name one of them.")
    return (exact or matches)[0]


def _named(runs: Sequence[Path]) -> str:
    """Name what could be meant, the last of many: names end with when runs were begun."""
    more = f" and {len(runs) - MOST_NAMED} more" if len(runs) > MOST_NAMED else ""
    return f"They are {', '.join(path.name for path in reversed(runs[-MOST_NAMED:]))}{more}."
