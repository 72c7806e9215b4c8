"""How many calls a candidate gets at a size without a GPU: small sizes all of them, the size as written as many as there is time for."""

from __future__ import annotations

from tools.evaluation.processes.allowance import Allowance
from tools.evaluation.supervisor.checking.call_plan import Stage

CONFIRM_FACTOR = 3.0
"""A confirmation makes about twice the calls of a search at each size: what was quick enough there is not too slow here."""
FULL_SIZE_SHARE = {"search": 1 / 24, "confirm": 1 / 4}
"""Of the limit, for the size as written beside small ones: an interpreted call there can take minutes and finds little that they do not."""


class Pace:
    """The own time of a candidate at one size."""

    def __init__(self, timeout_s: float, stage: Stage, *, cut: bool) -> None:
        """Give one size its share of `timeout_s`; one that may be `cut` is the size as written, where there are small ones too."""
        self._all_s = timeout_s * (CONFIRM_FACTOR if stage == "confirm" else 1.0)
        self._cut_s = timeout_s * FULL_SIZE_SHARE[stage] if cut else 0.0
        self.allowance = Allowance(self._cut_s or self._all_s)
        self._timeout_s = timeout_s
        self._made = 0
        self._before_s = self._longest_s = 0.0

    def has_room(self) -> bool:
        """Whether the next call fits, by the longest so far; the first always does, and every one of a size that is not cut."""
        return not self._cut_s or not self._made or self._before_s + self._longest_s <= self._cut_s

    def made(self) -> None:
        """Take down that a call was made; from now on one that hangs is the candidate's own."""
        spent = self.allowance.charge()
        self._longest_s = max(self._longest_s, spent - self._before_s)
        self._before_s = spent
        self._made += 1
        self.allowance.limit_s = self._all_s

    @property
    def slept(self) -> bool:
        """Whether most of its time was slept through: no interpreter is that slow."""
        return self.allowance.asleep_s > self.allowance.spent_s / 2

    @property
    def was_cut(self) -> bool:
        """Whether the time ran out before the first call had ended, at a size that is judged as far as there is time."""
        return bool(self._cut_s) and not self._made

    def note(self, planned: int) -> str:
        """Say what was not judged at the size as written, and why; empty where all `planned` calls were made."""
        if self._made == planned:
            return ""
        leaves = f"--timeout {self._timeout_s:g} leaves {self._cut_s:.3g} s for this size"
        if not self._made:
            return f"Not judged at full size: an interpreted call takes more of the processor's time than there is ({leaves})."
        took = f"one takes up to {self._longest_s:.1f} s of the processor's time, and {leaves}"
        return f"At full size {self._made} of {planned} calls were made: {took}."
