"""A row of the table of what could be replaced in a model, and which groups of modules lie in one another."""

from __future__ import annotations

from tools.models.records import Group
from tools.records import Record


class Chosen(Record):
    """One row of the table: a group that could be replaced, with what that might bring."""

    group: str
    title: str
    modules: int
    calls: int
    """Of all workloads in one run each."""
    share: float
    us: float
    """A call's time, microseconds, measured in the capture."""
    eager_us: float
    """A call's time on the target as the cost model expects it, microseconds; 0 where the capture measured on the target itself."""
    floor_us: float
    """Roofline floor on the target, microseconds."""
    reach_us: float
    """What few launches would take at the rates that copies and libraries reach, microseconds, estimated: what can be hoped for."""
    gain: float
    """Speed-up of the whole model if its calls took that."""
    budget: int
    """Evaluations; 0 where it is not chosen."""
    why_not: str
    """Empty for what is chosen."""
    apart: bool = False
    """Whether it is of one shape alone, as one kernel cannot be for all at which such modules are called."""
    instead: tuple[str, ...] = ()
    """Groups inside of it or around it that are worked on in its place where nothing is delivered for it."""

    @property
    def over(self) -> float:
        """Its time as a multiple of the roofline floor."""
        return (self.eager_us or self.us) / self.floor_us if self.floor_us else float("inf")


def saved(row: Chosen) -> float:
    """Share of the whole time that it could save."""
    return 1.0 - 1.0 / row.gain


def gain_of(share: float) -> float:
    """Speed-up of the whole model by what saves that share of its time."""
    return 1.0 / max(1e-3, 1.0 - share)


def overlap(one: Group, other: Group) -> bool:
    """Whether, in one workload, a module of one lies in a module of the other; other shapes of one module are other calls."""
    if one.calls.keys().isdisjoint(other.calls):
        return False
    return any(inside(a, b) or inside(b, a) for a in one.paths for b in other.paths)


def inside(path: str, around: str) -> bool:
    """Whether a module lies in another."""
    return path != around and (not around or path.startswith(f"{around}."))
