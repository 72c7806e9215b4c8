"""Settings of one region: their names, how far they lie apart, and which of many are worth a trial."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import islice

from tools.codegen.ir.schedule import FORMAT
from tools.codegen.templates.shared.knob import Knob, Parameters, Value
from tools.codegen.templates.shared.prepack import WEIGHTS

ALIKE = frozenset({FORMAT, "GROUP_M", "accumulate"})
"""What sets no two settings apart, since the model says nothing about it; `accumulate` follows from the precision."""
SAME_DIGITS = frozenset({"programs", "loads"})
"""Words that leave the digits and the work of a product as they are: two settings that differ in them alone are tried as one precision."""
CHOSEN = frozenset({"loads"})
"""Words in which the model is followed, not the coder's own first values: an operator whose product came by pointers took 112.4 µs, by
descriptors 107.0, modelled 117.6 and 117.0 (an H100, 2026-11-26; protein/outer_product_mean of the wild suite)."""
_write = json.JSONEncoder().encode
WORD = 2.0
"""Distance between two words of one parameter, in powers of two."""
SURE = 1.05
"""Settings within this factor of the modelled best are alike to the model; the one nearest to the coder's own first values is taken.

Times at the bandwidth differ by less than the model's error there, and the extremes are where it is least known.
"""
TRUSTED = 1.15
"""Factor of the modelled best up to which the coder's own first values come first: they rest on measurements, the ranking on a model."""
UNTRIED = 1.0
"""The same of tiles, whose first values rest on nothing: of three kernels of the wild suite whose best settings the model put 3 to 9 %
before them, those took 0.69, 0.69 and 0.90 of their time (an H100, 2026-11-26; flow_warp, upsample_and_join, pixel_shuffle_clamp)."""
PER_WORDS = 2
"""Settings of a region with the same words: further numbers are the tuner's work, which learns from each."""
FAR = 2.0
"""Powers of two, over all numbers, from which on a setting is another one."""
HOPELESS = 2.5
"""Factor of the modelled best beyond which no setting is worth a trial: tables of the H200 have errors up to 2."""


@dataclass(frozen=True)
class Setting:
    """One region's parameters with their modelled time."""

    us: float
    parameters: Parameters

    @cached_property
    def name(self) -> str:
        """The parameters as text."""
        return key(self.parameters)

    @cached_property
    def words(self) -> tuple[tuple[str, str], ...]:
        """Those of them that are words."""
        return words_of(self.parameters)

    @cached_property
    def telling(self) -> frozenset[tuple[str, str]]:
        """Words that set it apart from settings with others."""
        return frozenset(
            (name, value) for name, value in self.parameters.items() if isinstance(value, str) and name.rpartition(".")[2] not in ALIKE
        )


def numbers(knobs: Mapping[str, Knob]) -> tuple[str, ...]:
    """Name the parameters that are numbers."""
    return tuple(name for name, knob in knobs.items() if all(isinstance(v, int) and not isinstance(v, bool) for v in knob.values))


def modelled_names(knobs: Mapping[str, Knob]) -> tuple[str, ...]:
    """Name the parameters that the model tells apart, words included; packing is weighed by itself."""
    return tuple(name for name, knob in knobs.items() if knob.modelled and name != WEIGHTS)


def spread(found: list[Setting], start: Parameters, most: int, trusted: float = TRUSTED) -> tuple[Setting, ...]:
    """Choose the best of ranked settings, and then the best of those that differ much from all chosen before.

    `start`, the coder's own first values, is taken first up to a factor of `trusted` of the best; among settings that the model cannot
    tell apart, the one nearest to `start` is taken. At most `PER_WORDS` are chosen with the same words.
    """
    limit = HOPELESS * found[0].us if found[0].us < math.inf else math.inf
    left = [one for one in found if one.us <= limit]
    sure = [one for one in left if one.us <= trusted * found[0].us]
    near = (one for one in sure if not distance(one.parameters, start, ALIKE | CHOSEN))
    chosen = latest = list(islice(near, 1)) if any(one.parameters == start for one in sure) else []
    while len(chosen) < most:
        known = Counter(one.words for one in chosen)
        # all that is left is far from those chosen before the latest
        left = [one for one in left if known[one.words] < PER_WORDS and all(_far(one, other) for other in latest)]
        if not left:
            break
        alike = [one for one in left if one.us <= SURE * left[0].us]
        latest = [min(alike, key=lambda one: (distance(one.parameters, start, ALIKE | CHOSEN), one.us, one.name))]
        chosen = [*chosen, *latest]
    return tuple(chosen)


def _far(one: Setting, other: Setting) -> bool:
    # one word that differs is far enough, and most settings differ in one
    return (WORD >= FAR and one.telling != other.telling) or distance(one.parameters, other.parameters) >= FAR


def words_of(parameters: Parameters) -> tuple[tuple[str, str], ...]:
    """List the parameters that are words, without those that leave digits and work alike."""
    return tuple(sorted((name, value) for name, value in parameters.items() if isinstance(value, str) and name not in SAME_DIGITS))


def distance(one: Parameters, other: Parameters, alike: frozenset[str] = ALIKE) -> float:
    """Powers of two between the numbers of two settings, each other word counting as `WORD`; names may begin with a region's."""
    if one.keys() == other.keys():
        pairs = [(name, mine, other[name]) for name, mine in one.items() if mine != other[name]]
    else:
        every = [(name, one.get(name, 1), other.get(name, 1)) for name in one.keys() | other.keys()]
        pairs = [pair for pair in every if pair[1] != pair[2]]
    # exact, so that the order of a set, which is another in every process, leaves no trace
    return math.fsum([_step(mine, its) for name, mine, its in pairs if name.rpartition(".")[2] not in alike])


@lru_cache(maxsize=4096, typed=True)
def _step(mine: Value, its: Value) -> float:
    if isinstance(mine, int) and isinstance(its, int):
        return abs(math.log2(max(1, mine) / max(1, its)))
    return WORD


def key(parameters: Parameters) -> str:
    """Write parameters as JSON, so that equal ones read alike."""
    return "{" + ", ".join([_written(name, value) for name, value in sorted(parameters.items())]) + "}"


@lru_cache(maxsize=4096, typed=True)
def _written(name: str, value: Value) -> str:
    return f"{_write(name)}: {_write(value)}"
