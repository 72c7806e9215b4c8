"""What a timed session has measured of a candidate and of the baselines beside it."""

from __future__ import annotations

from dataclasses import dataclass, field
from statistics import median

from tools.evaluation.supervisor.timed.chains import Chains
from tools.evaluation.supervisor.timed.sealed_session import compare
from tools.records import RawTimes


@dataclass
class Measured:
    """Raw times in microseconds, in order."""

    event_us: list[float] = field(default_factory=list)
    """Of primed calls: the figure."""
    judged_us: list[float] = field(default_factory=list)
    """Those of them whose outputs are judged."""
    baselines: dict[str, list[float]] = field(default_factory=dict)
    """Of the baselines' primed calls."""
    chains: Chains = field(default_factory=Chains)
    """Calls in chains, by the clock outside of the candidate's process."""
    idle_us: list[float] = field(default_factory=list)
    """Events of calls on an idle device, less what the host took to issue them."""
    charged_us: float = 0.0
    """What that clock has beyond the events: added to each of the candidate's times."""
    is_late: bool = False
    """Whether calls in chains, which were issued ahead, are the figure."""
    packing_us: list[float] = field(default_factory=list)
    """Of packing the weights, by events."""
    before: dict[str, list[float]] = field(default_factory=dict)
    """Of the baselines alone, before the candidate's process was started."""
    after: dict[str, list[float]] = field(default_factory=dict)
    """The same after it had ended."""

    @property
    def candidate_us(self) -> list[float]:
        """The candidate's times as its caller has them, by whose host the device does not wait."""
        return list(self.chains.call_us) if self.is_late else self._charged_us

    def without_host(self) -> list[str]:
        """Take the time of calls in chains where the device waited for the host in those one by one, and say so."""
        if not self.chains.call_us:
            return []
        chained, single = median(self.chains.call_us), median(self.event_us)
        self.is_late = compare(chained, single) == "own is slower"
        said = f"Its host was late: calls one by one took {single:.4g} µs, and {chained:.4g} µs where they were issued ahead: its figure."
        return [said] if self.is_late else []

    @property
    def _charged_us(self) -> list[float]:
        return [time + self.charged_us for time in self.event_us]

    @property
    def raw(self) -> RawTimes:
        """All of them, as a record."""
        return RawTimes(
            candidate=tuple(self._charged_us),
            baselines={name: tuple(times) for name, times in self.baselines.items()},
            bracket=tuple(self.chains.call_us),
            bracket_warm=tuple(self.chains.warm_us),
            charged=self.charged_us,
            packing=tuple(self.packing_us),
            alone_before={name: tuple(times) for name, times in self.before.items()},
            alone_after={name: tuple(times) for name, times in self.after.items()},
        )
