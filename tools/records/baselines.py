"""How fast the reference is by itself."""

from __future__ import annotations

from pydantic import Field

from tools.records.admission import Admission
from tools.records.base import Record
from tools.records.timing import Estimate, Sample, Tier


class Baselines(Record):
    """How fast the reference is by itself: measured on a GPU, or estimated for a target."""

    tier: Tier
    samples: dict[str, Sample] = Field(default_factory=dict)
    """`eager` and `compile`; empty where nothing was timed."""
    estimate: Estimate | None = None
    """With `candidate_us` equal to `eager_us`; None where the times were measured."""
    device: str
    """Name of the device that was timed, or of the target."""
    notes: tuple[str, ...] = ()
    """What fell back or failed, e.g. why torch.compile could not be timed."""
    place: str = ""
    """Host and device that was timed, in words; empty where that was the agents' own machine."""
    versions: dict[str, str] = Field(default_factory=dict)
    """Packages of whoever timed it elsewhere, where it said so: what candidates are built with there."""
    steps: dict[str, tuple[float, float]] = Field(default_factory=dict)
    """What was done for it, each step with its begin and end in seconds after it was asked for; some go on beside others."""
    admission: Admission = Admission()
    """Whether the problem can tell right from wrong: what trivial kernels pass on it, and which inputs do not matter."""

    configurations: dict[str, dict[str, int]] = Field(default_factory=dict)
    """What torch.compile's own kernels were given where it chose by timing, by a signature of their text."""

    @property
    def best_us(self) -> float:
        """Time of the fastest baseline, microseconds, of this record's tier."""
        if self.samples:
            return min(s.median_us for s in self.samples.values())
        assert self.estimate is not None
        return self.estimate.eager_us
