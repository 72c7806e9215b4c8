"""A row of the table of what could be replaced in a model, and which groups of modules lie in one another."""

from __future__ import annotations

from tools.models.records import Group
from tools.records import Record

MODEL_ERROR = 2.0
"""Factor by which the cost model may be wrong of eager's operators and a compiler's kernels alike. What is further off did something else
than it knows of, such as waiting for the host: a compiler keeps that, and an operator does not. An assumption; `tools.cost.estimate` says
how far it was off where it was checked."""


UNTOLD = 0.1
"""Part of a time that the cost model does not tell: of what lies nearer, half of it is hoped for. An assumption. Layers of ViT-L were
modelled to take 0.05 longer than the library's calls, and took 0.06 less in a CUDA graph (an H200, 2026-11-26)."""


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
    """Speed-up of the whole model if its calls took that, over what torch.compile would leave of them where that is looked at."""
    budget: int
    """Evaluations; 0 where it is not chosen."""
    why_not: str
    """Empty for what is chosen."""
    apart: bool = False
    """Whether it is of one shape alone, as one kernel cannot be for all at which such modules are called."""
    instead: tuple[str, ...] = ()
    """Groups inside of it or around it that are worked on in its place where nothing is delivered for it."""
    compiled_us: float = 0.0
    """A call's time as torch.compile would leave it, microseconds, estimated: its time here by the ratio that the cost model sees between
    a compiler's kernels and eager's. 0 where torch.compile is not looked at."""
    judged: bool = True
    """Whether evaluations are made of it; else its kernel is the cost model's first choice, which the proof of the model judges."""
    scale: float = 1.0
    """A call's time here over the cost model's, at most MODEL_ERROR: what the model says of other kernels is as far off."""

    @property
    def now_us(self) -> float:
        """A call's time in eager mode, microseconds: estimated where it was not measured on the target."""
        return self.eager_us or self.us

    @property
    def baseline_us(self) -> float:
        """A call's time by the better of eager mode and torch.compile, where that is looked at."""
        return min(self.now_us, self.compiled_us) if self.compiled_us else self.now_us

    def saving(self, us: float) -> float:
        """Share of the model's eager time that calls of `us` microseconds, modelled, would save of what the better baseline takes."""
        saved = self.now_us - us
        if self.compiled_us:
            beyond = self.compiled_us - us * self.scale
            # a compiler has little to do there, and which product is faster is nearer than the model tells: a proof does
            untold = self.compiled_us >= (1.0 - UNTOLD) * self.now_us and beyond >= -UNTOLD * self.compiled_us
            saved = min(saved, max(beyond, UNTOLD / 2 * self.now_us if untold else 0.0))
        return self.share * max(0.0, saved / self.now_us) if self.now_us else 0.0

    @property
    def over(self) -> float:
        """Its time as a multiple of the roofline floor."""
        return self.now_us / self.floor_us if self.floor_us else float("inf")


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
    return any(inside(a, b) or inside(b, a) for a in one.nested for b in other.nested)


def inside(path: str, around: str) -> bool:
    """Whether a module lies in another."""
    return path != around and (not around or path.startswith(f"{around}."))
