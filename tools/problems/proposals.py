"""Other values for a file's size constants: proposals, to be tried in order. No reference runs here."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from tools.problems.archive_sizes import archive_sizes
from tools.problems.constants import Constant, constants, override, reachable
from tools.problems.source import Recognised
from tools.records import ABI, Problem, ProblemForm
from tools.syntax import parsed

_SMALL = 16
"""Constants below this are taken for structure (kernel sizes, strides, heads) unless their name says batch."""

_ROWS = re.compile(r"^(b|bs|n|m|batch|batch_?size|num_?(rows|tokens|samples)|rows|tokens)$", re.IGNORECASE)

_MAX_ALIGNMENT = 1024

_POWERS = (2, 4, 8, 16, 32)
"""What sizes of an exported module may have to be multiples of: its own numbers are out of sight."""


@dataclass(frozen=True)
class Tier:
    """Target sizes: of rows, and of the other dimensions, largest first."""

    rows: int
    dims: tuple[int, ...]


ODD = (
    Tier(7, (1021, 509, 257, 127, 61, 31)),
    Tier(5, (257, 127, 67, 37, 19, 13)),
    Tier(3, (67, 53, 41, 37, 31, 29)),
    Tier(3, (37, 29, 23, 19, 17, 13)),
    Tier(3, (19, 17, 13, 11, 7, 5)),
    Tier(2, (11, 7, 5, 5, 3, 3)),
    Tier(2, (5, 3, 3, 3, 3, 3)),
)
"""Odd and mostly prime, so that no block size divides them."""

EVEN = (
    Tier(8, (512, 256, 128, 64, 64, 64)),
    Tier(4, (128, 64, 64, 64, 32, 32)),
    Tier(4, (64, 32, 32, 32, 16, 16)),
    Tier(2, (32, 32, 16, 16, 16, 16)),
    Tier(2, (16, 16, 16, 8, 8, 8)),
    Tier(2, (8, 8, 8, 8, 8, 8)),
)
"""Powers of two."""

SINGLE_ROW = tuple(Tier(1, tier.dims[1:] + tier.dims[-1:]) for tier in ODD)
"""One row of odd length."""

TINY = (*ODD[-2::-1], ODD[-1])
"""The smallest odd sizes that run; the very smallest only where nothing else does."""


@dataclass(frozen=True)
class Adjustable:
    """The constants of a problem that only say how large its tensors are."""

    sizes: tuple[Constant, ...]
    """Rows first."""
    has_rows: bool
    """Whether the first of them counts rows."""
    structure: tuple[int, ...]
    """Values of the other constants that sizes may have to be multiples of."""
    readable: bool = True
    """Whether that is known of a source; of an archive it is guessed, so each tier is tried with every relation before the next."""


def adjustable(problem: Problem, *, held_too: bool = False) -> Adjustable:
    """Find the size constants of `problem`; with `held_too` also those that the reference itself uses.

    A size is reachable from the input makers, unused by the reference itself (a candidate may hold it fixed), and the
    extent of some dimension of an argument or a parameter; or a divisor of one, if the arguments are made with it. Of an
    exported module they are the sizes that its export left free.
    """
    if problem.form is ProblemForm.EXPORTED:
        sizes = [size for size in archive_sizes(problem.source) if size.value > 1]
        return replace(_ordered(sizes, problem.abi, _POWERS), readable=False)
    recognised = Recognised(problem.form, problem.entry)
    source = override(problem.source, problem.sizes, recognised.makers, problem.name)
    tree = parsed(source)
    held = set() if held_too else reachable(source, [problem.entry])
    used = reachable(source, recognised.makers)
    direct = reachable(source, recognised.makers[:1])
    extents = {size for spec in (*problem.abi.inputs, *problem.abi.parameters) for size in spec.shape}
    sizes = []
    others: list[int] = []
    for choice in constants(tree, recognised.makers):
        constant = _chosen(choice, extents)
        if constant.name not in used or constant.value < 2:
            continue
        large = constant.value >= _SMALL or _ROWS.match(constant.name) is not None
        divides = constant.name in direct and any(size % constant.value == 0 for size in extents)
        if large and (constant.value in extents or divides) and constant.name not in held:
            sizes.append(constant)
        else:
            others.append(constant.value)
    return _ordered(sizes, problem.abi, tuple(others))


def _ordered(sizes: list[Constant], abi: ABI, structure: tuple[int, ...]) -> Adjustable:
    rows = _rows(sizes, abi)
    ordered = ([rows] if rows else []) + [constant for constant in sizes if constant is not rows]
    return Adjustable(tuple(ordered), rows is not None, structure)


def _chosen(constant: Constant, extents: set[int]) -> Constant:
    """Give a constant the value that the file's conditions chose: one that is the extent of some dimension."""
    value = next((value for value in constant.values if value in extents), constant.value)
    return replace(constant, value=value)


def proposals(found: Adjustable, tiers: Sequence[Tier]) -> Iterator[dict[str, int]]:
    """Yield values for the size constants: free ones through all tiers first, then those that keep relations between sizes."""
    seen: set[tuple[tuple[str, int], ...]] = set()
    if tiers is SINGLE_ROW and not found.has_rows:
        yield {constant.key: 1 for constant in found.sizes}
    passes = _PASSES if found.readable else (tuple(relate for relations in _PASSES for relate in relations),)
    for relations in passes:
        for sizes in (sizes for tier in tiers for relate in relations for sizes in relate(found, tier)):
            key = tuple(sorted(sizes.items()))
            if key not in seen:
                seen.add(key)
                yield sizes


def _rows(sizes: list[Constant], abi: ABI) -> Constant | None:
    if len(sizes) < 2:
        return None
    named = [constant for constant in sizes if _ROWS.match(constant.name)]
    first = abi.inputs[0].shape[:1] if abi.inputs else ()
    leading = [constant for constant in sizes if (constant.value,) == first]
    return next(iter(named + leading), None)


def _split(found: Adjustable) -> tuple[dict[str, int], tuple[Constant, ...]]:
    rows = {found.sizes[0].key: 0} if found.has_rows else {}
    return rows, found.sizes[len(rows) :]


def _by_name(found: Adjustable, tier: Tier) -> Iterator[dict[str, int]]:
    """Every constant its own value: nothing is square by chance."""
    rows, rest = _split(found)
    ranked = sorted(rest, key=lambda constant: -constant.value)
    yield {**dict.fromkeys(rows, tier.rows), **{c.key: _at(tier, index) for index, c in enumerate(ranked)}}


def _by_value(found: Adjustable, tier: Tier) -> Iterator[dict[str, int]]:
    """Equal constants stay equal, as residuals and square shapes need."""
    rows, rest = _split(found)
    values = sorted({constant.value for constant in rest}, reverse=True)
    new = {value: _at(tier, index) for index, value in enumerate(values)}
    if rows and (tier.rows == 1 or found.sizes[0].value not in new):
        new[found.sizes[0].value] = tier.rows
    yield {constant.key: new[constant.value] for constant in found.sizes}


def _one_aligned(found: Adjustable, tier: Tier) -> Iterator[dict[str, int]]:
    """Free but for one constant, which stays a multiple of what divided it: groups, heads, factors of up- and downsampling."""
    free = next(_by_name(found, tier))
    for constant in _split(found)[1]:
        step = _alignment(constant.value, found.structure)
        if step > 1:
            yield {**free, constant.key: _multiple(step, free[constant.key], tier)}


def _one_value_aligned(found: Adjustable, tier: Tier) -> Iterator[dict[str, int]]:
    """As before, but all constants of one value together: the channels on both sides of a grouped convolution."""
    free = next(_by_value(found, tier))
    rest = _split(found)[1]
    for value in dict.fromkeys(constant.value for constant in rest):
        step = _alignment(value, found.structure)
        if step > 1:
            yield {**free, **{c.key: _multiple(step, free[c.key], tier) for c in rest if c.value == value}}


def _all_aligned(found: Adjustable, tier: Tier) -> Iterator[dict[str, int]]:
    """Every constant a multiple of what divided it, equal ones equal."""
    rows, rest = _split(found)
    values = sorted({constant.value for constant in rest}, reverse=True)
    new = {v: _multiple(_alignment(v, found.structure), _at(tier, index), tier) for index, v in enumerate(values)}
    yield {**dict.fromkeys(rows, tier.rows), **{constant.key: new[constant.value] for constant in rest}}


def _in_ratio(found: Adjustable, tier: Tier) -> Iterator[dict[str, int]]:
    """All sizes divided by one factor, so that every ratio between them is kept."""
    rows, rest = _split(found)
    common = math.gcd(*(constant.value for constant in rest))
    step = _alignment(common, found.structure)
    unit = max(1, tier.dims[-1] // step) * step
    if common > unit:
        yield {**dict.fromkeys(rows, tier.rows), **{constant.key: constant.value // common * unit for constant in rest}}


def _one_value_held(found: Adjustable, tier: Tier) -> Iterator[dict[str, int]]:
    """Free but for the constants of one value, which stay as written: the reference has numbers that fit no other width."""
    free = next(_by_value(found, tier))
    for value in dict.fromkeys(constant.value for constant in _split(found)[1]):
        yield {**free, **{constant.key: value for constant in found.sizes if constant.value == value}}


_Relation = Callable[[Adjustable, Tier], Iterator[dict[str, int]]]
_PASSES: tuple[tuple[_Relation, ...], ...] = (
    (_by_name, _by_value),
    (_one_aligned,),
    (_one_value_aligned,),
    (_all_aligned, _in_ratio),
    (_one_value_held,),
)


def _multiple(step: int, target: int, tier: Tier) -> int:
    """The multiple of `step` nearest below `target`, at least twice it; an odd multiple, so thrice, where the tier is odd."""
    if step == 1:
        return target
    count = max(2, target // step)
    return step * (count if tier in EVEN else count | 1)


def _alignment(value: int, structure: tuple[int, ...]) -> int:
    step = 1
    for divisor in structure:
        joint = math.lcm(step, divisor)
        if divisor < value and value % joint == 0 and joint <= _MAX_ALIGNMENT:
            step = joint
    return step


def _at(tier: Tier, index: int) -> int:
    return tier.dims[min(index, len(tier.dims) - 1)]
