"""How much a test run does: `make test` tries every value of each kind once, but for those like others, `make test-all` all of them."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from typing import TypeVar

VARIABLE = "KERNELWRIGHT_TESTS"
ALL = os.environ.get(VARIABLE) == "all"
"""Whether every combination is tried."""
GARBAGE = (100_000, 50, 100)
"""New objects after which garbage is looked for, and how often older ones are: at Python's 700 it takes a seventh of all tracing."""

Case = TypeVar("Case", bound=tuple[object, ...])
Each = TypeVar("Each")


def covering(cases: Sequence[Case], times: int = 1, also: Collection[Case] = (), *, everything: bool = ALL) -> list[Case]:
    """Choose cases so that each value stands in at least so many, by its place in a case, or in all that it has; and those named in `also`.

    A sample that is run in five ways, and each way with twenty samples, is then run in one of them: another sample's is another way.
    """
    if everything:
        return list(cases)
    chosen, seen = [case for case in cases if case in also], Counter(value for case in also for value in enumerate(case))
    left = [case for case in cases if case not in also]
    while left:
        # the case whose values are wanted most; of those that are alike the first
        best = max(left, key=lambda case: [sum(seen[value] < times for value in enumerate(case)), -sum(seen[v] for v in enumerate(case))])
        if all(seen[value] >= times for value in enumerate(best)):
            break
        left.remove(best)
        chosen.append(best)
        seen.update(enumerate(best))
    return [case for case in cases if case in chosen]


def unlike(cases: Iterable[Each], alike: Collection[object], *, everything: bool = ALL) -> list[Each]:
    """Leave out what `alike` names, as a whole or by its first value: cases that run no line of the program that no other case runs."""
    first = [(case, case[0] if isinstance(case, tuple) else case) for case in cases]
    unknown = set(alike) - {name for pair in first for name in pair}
    assert not unknown, f"no case is named {', '.join(map(str, unknown))}"
    return [case for case, name in first if everything or not {case, name} & set(alike)]
