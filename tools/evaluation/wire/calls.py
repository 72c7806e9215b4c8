"""The calls that a runner is to make on one problem, and where their inputs come from."""

from __future__ import annotations

from typing import Literal

from tools.records import Record, SeededCall, Seeds


class CallSpec(Record):
    """One call to be made."""

    seed: int
    """Secret: drawn after the candidate's source was frozen."""
    distribution: str
    group: str
    """Calls of one group share their limits."""
    slots: int = 1
    """How many times it is run, each time with another poison."""
    follows: bool = False
    """Its inputs are those of the call before but for a few neighbouring elements, which `seed` chooses."""
    shifted: bool = False
    """Its inputs begin one element later in memory than PyTorch's allocator would have them."""

    @property
    def published(self) -> SeededCall:
        """Say where its inputs came from."""
        how = self.distribution + (", a few elements changed" if self.follows else "") + (", misaligned" if self.shifted else "")
        return SeededCall(seed=self.seed, distribution=how, runs=self.slots)


class CallPlan(Record):
    """One runner's calls on one problem, in order."""

    problem: str
    """JSON of the problem: sizes, ABI, policy, reference."""
    shake: int | None
    """Seed by which parameters that are all equal (zero biases, unit scales) are moved; None leaves them."""
    calls: tuple[CallSpec, ...]

    def published(self, purpose: Literal["check", "time"], size: str, patches: int | None = None) -> Seeds:
        """Write the seeds down, the evaluation being over."""
        calls = tuple(call.published for call in self.calls)
        return Seeds(purpose=purpose, size=size, shake=self.shake, calls=calls, patches=patches)
