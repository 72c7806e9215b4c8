"""A schedule that the cost model names, the action that writes it, and the order in which choices are tried."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tools.codegen import Schedule
from tools.codegen.schedule.cuda_graph import WHOLE
from tools.records import Action, ActionKind

CHOICE, MODELLED_CHOICE = "choice", "modelled"
"""Parameter that numbers a choice from 1, and the word that says who chose."""
MADE = "made"
"""Parameter that says in memory what a choice made: its number means something else for every operator."""
AGAIN = 1.3
"""Factor by which a choice counts as slower for each before it with the same words in its heavy regions: if those fail, all do."""
FAMILY = 2.0
"""The same for each one before it that generates the same operators: whether the library is the better one is where the model errs most."""


@dataclass(frozen=True)
class Choice:
    """One schedule that the model names."""

    schedule: Schedule
    us: float
    """What the model expects of a whole call, microseconds: of what cannot be generated it counts launches or bytes."""
    unmodelled: tuple[str, ...] = ()
    """Generated regions of which the model knows nothing: they have the coder's own first values."""
    words: tuple[str | tuple[str, tuple[tuple[str, str], ...]], ...] = ()
    """Templates and words of the regions that take most of the time."""
    order_us: float = 0.0
    """What it is ordered by: `us` with the doubt in generated products and convolutions, and never less than that of a choice which
    the model cannot tell apart and which stands nearer to the coder's own first values."""
    device_us: float = 0.0
    """What the model expects of the kernels alone."""

    @property
    def made(self) -> str:
        """What it makes in words, e.g. `rows online`: templates and algorithms of the regions that take most of the time."""
        parts = dict.fromkeys(
            word if isinstance(word, str) else " ".join([word[0], *(value for _, value in word[1])]) for word in self.words
        )
        return "; ".join(parts) or "library"

    @property
    def family(self) -> tuple[frozenset[str], bool]:
        """Operators that are generated, and whether the forward is captured."""
        return frozenset(name for region in self.schedule.regions if region.is_generated for name in region.nodes), self.schedule.captured


def in_order(
    pool: list[Choice], most: int, first: tuple[Choice, ...] = (), fits: Callable[[Choice], bool] = lambda _: True
) -> tuple[Choice, ...]:
    """Choose from a pool: the fastest, and then again and again the fastest of those that differ most from all before, `first` included.

    `fits` is asked of the fastest alone, for it may take long; what does not fit is left out.
    """
    chosen = list(first)
    pool = [one for one in pool if all(one.schedule != other.schedule for other in first)]
    while pool and len(chosen) < most:
        best = min(pool, key=lambda one: one.order_us * _repeats(one, chosen))
        chosen += [best] if fits(best) else []
        pool = [one for one in pool if one.schedule != best.schedule]
    return tuple(chosen)


def choice_action(number: int) -> Action:
    """Make the action that writes the whole forward as the model's choice of that number."""
    return Action(kind=ActionKind.ALGORITHM, region=WHOLE, parameters={"implementation": MODELLED_CHOICE, CHOICE: number})


def chosen_number(action: Action) -> int:
    """Read the number of a choice; 0 of any other action."""
    return int(action.parameters.get(CHOICE, 0))


def _repeats(one: Choice, chosen: list[Choice]) -> float:
    words, family = (sum(getattr(one, name) == getattr(other, name) for other in chosen) for name in ("words", "family"))
    return float(AGAIN**words * FAMILY**family)
