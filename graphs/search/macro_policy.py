"""What a macro policy sees and gives: the interface, the observation and the trajectory record that a trained policy will use too."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import Protocol

from graphs.search.archive import Offer
from tools.errors import UserError
from tools.records import Record, Verdict

STOP = "stop"
"""The terminal choice."""
MODEL = "model"
"""The policy that the planner's language model is: its scores come through a wish; where there are none, the ratings stand in."""


class MacroStep(Record):
    """One step of an episode, as a trajectory keeps it."""

    episode: int
    step: int
    parent: str
    """The kernel acted on, by id: its source is in the run's store."""
    group: str
    """Kind and region chosen."""
    candidate: str
    """What came of it; empty where the coder refused."""
    reward: float


class MacroChoice(Record):
    """One thing a policy may choose: a kind on a region, or to stop."""

    group: str
    """`tiling r0`, or `stop`."""
    best: Offer | None = None
    """The planner's best step of the group; None for stop."""


class Observation(Record):
    """What a policy knows when it chooses."""

    kernel: str
    """Candidate id of the current kernel, or ROOT."""
    step: int
    """Steps taken in this episode."""
    speedup: float
    """Of the current kernel over the best baseline."""
    signature: str
    """Strategy signature of the current kernel; empty for the reference."""
    history: tuple[MacroStep, ...]
    """The episode's last steps, the oldest first."""


class Policy(Protocol):
    """Scores choices; the method draws by them."""

    def scores(self, observation: Observation, choices: Sequence[MacroChoice]) -> Sequence[float]:
        """Give each choice a score: the logarithm of its unnormalised probability, before the temperature."""


class UniformPolicy:
    """Every choice alike."""

    def scores(self, observation: Observation, choices: Sequence[MacroChoice]) -> Sequence[float]:
        """All zero."""
        return [0.0] * len(choices)


class PlannerPolicy:
    """The planner's ratings: the built-in heuristic, or where a language model plans, its ranking."""

    def __init__(self, stop: float = 1.0) -> None:
        """`stop` is the score of ending an episode; steps have 0 to 10."""
        self._stop = stop

    def scores(self, observation: Observation, choices: Sequence[MacroChoice]) -> Sequence[float]:
        """A group is as good as its best step; stopping gains with every step taken."""
        return [one.best.score if one.best else self._stop + 0.5 * observation.step for one in choices]


def find_policy(name: str, stop: float) -> Policy:
    """Find `uniform`, `planner` (which stands in for `model` too), or a trained policy by its dotted path `module:factory`."""
    if name == "uniform":
        return UniformPolicy()
    if name in ("planner", MODEL):
        return PlannerPolicy(stop)
    module, _, attribute = name.partition(":")
    try:
        policy: Policy = getattr(import_module(module), attribute)()
    except (ImportError, AttributeError, ValueError, TypeError) as error:
        raise UserError(
            f"The macro policy {name!r} cannot be opened: {error}.", "Choose uniform, planner, model, or MODULE:FACTORY."
        ) from None
    return policy


def reward(verdict: Verdict | None, gain: float, step: int, penalty: float) -> float:
    """The paper's reward: built or not, ran or not, faster than the step before, less a penalty that grows with the step."""
    if verdict is None or verdict is Verdict.BUILD_FAILED:
        return -1.0 - penalty * step
    built = 0.1
    ran = 0.5 if verdict is Verdict.PASS else -0.5
    return round(built + ran + (1.0 if gain > 1.0 else 0.0) - penalty * step, 4)
