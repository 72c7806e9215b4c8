"""Whether a machine times steadily by itself: what the baselines take with no process of the candidate alive, over one evaluation.

Where it does not, a baseline that is slower beside a candidate proves nothing against it, and more sessions are made. Nobody gains by them:

* What a candidate does while its process lives, on the device or on the host's cores, has ended before anybody looks. It slows a
  baseline beside the candidate alone, and refuses it as ever.
* What outlives it, as heat may, or what somebody else does for it, can be in a look and bring it further sessions. But then no session
  counts for it unless the baseline is within the ordinary limit of the fastest time of all, of which one was taken before its first
  process. Whoever slows a baseline down by less than that need not wait for a second session.
* Sessions are not compared: the first that counts is the answer, and what the oracle finds wrong in any of them outranks it.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping

from tools.evaluation.supervisor.timed.plausibility import Times, is_slower


class Steadiness:
    """The baselines' times by themselves, microseconds."""

    def __init__(self) -> None:
        """Know none."""
        self._fastest: dict[str, float] = {}
        self.unsteady = ""
        """What was seen last of a machine that is not steady, as a clause; empty while it is."""

    def add(self, times: Times) -> None:
        """Take in times of baselines with no process of the candidate alive; what is asked below is asked of those alone."""
        for name, median_us in _medians(times).items():
            self._fastest[name] = min(median_us, self._fastest.get(name, median_us))

    def wavering(self, looks: Iterable[Times]) -> frozenset[str]:
        """Name the baselines that took longer in one of the `looks` around a session than one beside a candidate may."""
        seen = [(name, median_us) for look in looks for name, median_us in _medians(look).items()]
        beyond = frozenset(name for name, median_us in seen if is_slower(median_us, self._fastest[name]))
        for name in sorted(beyond):
            slowest = max(median_us for other, median_us in seen if other == name)
            self.unsteady = f"with no candidate's process alive the {name} baseline took {self._fastest[name]:.4g} to {slowest:.4g} µs"
        return beyond

    def inflated(self, beside: Mapping[str, float]) -> str:
        """Say which median `beside` a candidate is more than it may be over that baseline's fastest time; empty where none is."""
        for name, median_us in beside.items():
            if is_slower(median_us, self._fastest[name]):
                return f"The {name} baseline took {median_us:.4g} µs beside the candidate, and {self._fastest[name]:.4g} µs at best alone."
        return ""


def _medians(times: Times) -> dict[str, float]:
    return {name: statistics.median(values) for name, values in times.items()}
