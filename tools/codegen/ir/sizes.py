"""Sizes as seen in every trace of a problem, and the search for the run-time expression behind a size.

A problem is traced at its sizes as written and at its small variants. A number that is the same in every trace is a
literal; one that varies must be written in terms of tensor shapes, or the operator that needs it is left to the reference.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations, combinations_with_replacement, permutations

from tools.codegen.ir.lines import FUNCTIONS, inverse_forms, is_close, line_forms, power_forms, root_forms, sizes_behind
from tools.codegen.ir.shares import FILLED, MULTIPLES, filled_forms, padded_forms, rest_forms, share_forms

Sizes = tuple[int, ...]
"""One size in every trace; the first is the problem as written."""

Number = int | float
MOST_TIMES = 4
"""Repetitions of windows that are looked for."""
MOST_LOOKED_AT = 4
"""Sizes that say which variant it is whose constants a call has, at most, where fewer tell."""
WIDEST = 17
"""Elements and one that windows may have more than they lie apart."""


@dataclass(frozen=True, eq=False)
class Varying:
    """A constant of the graph that differs between traces: it comes from a size. A whole number is never equal to a float."""

    values: tuple[Number, ...]

    def __eq__(self, other: object) -> bool:
        """Compare numbers and their types."""
        return isinstance(other, Varying) and self.values == other.values and [*map(type, self.values)] == [*map(type, other.values)]

    def __hash__(self) -> int:
        """Agree with `==`: equal numbers of two types have one hash, and are rare."""
        return hash(self.values)


@dataclass(frozen=True)
class Fact:
    """A size that run-time code can read: `x.shape[1]` and what it was in every trace."""

    text: str
    values: Sizes


@dataclass(frozen=True)
class Attribute:
    """A number that the reference's constructor keeps: its path, as `norm.scale`, and what it was in every trace."""

    text: str
    values: tuple[Number, ...]


@dataclass(frozen=True)
class Length:
    """A constant of the file that says how many steps a loop has, traced at other lengths than it has."""

    values: Sizes
    """In every trace."""
    own: tuple[int | None, ...]
    """What it is in the file at the sizes of a trace; None where the file has no such sizes."""


def as_number(sizes: Sizes) -> int | Varying:
    """Write a size as the argument of a call: a number, or what it was in every trace."""
    return sizes[0] if len(set(sizes)) == 1 else Varying(sizes)


def is_one(sizes: Sizes) -> bool:
    """Whether a dimension has size one in every trace: it broadcasts."""
    return all(size == 1 for size in sizes)


def power_of_two(number: int) -> int:
    """Round up to a power of two, at least one."""
    return 1 << max(0, (number - 1).bit_length())


def product(factors: Iterable[Sizes], traces: int) -> Sizes:
    """Multiply sizes trace by trace."""
    result = [1] * traces
    for sizes in factors:
        result = [a * b for a, b in zip(result, sizes, strict=True)]
    return tuple(result)


def express(values: Sequence[Number], facts: Sequence[Fact]) -> str | None:
    """Write `values` as Python: a literal, a size among `facts`, or a simple function of one to three sizes; None where none fits."""
    if all(value == values[0] and type(value) is type(values[0]) for value in values):
        return literal(values[0])
    if all(isinstance(value, int) for value in values):
        return next(_integer_forms(tuple(int(v) for v in values), facts), None)
    return next(_float_forms([float(v) for v in values], facts), None)


def express_by(values: Sequence[Number], facts: Sequence[Fact], attributes: Sequence[Attribute]) -> str | None:
    """Write `values` by sizes; where these do not tell them, as a number that the constructor kept, or by whole ones of these.

    One that is the number itself comes before what sizes make together. What fits the sizes of the traces by chance, as
    `x.shape[0] // 124 + 2` may, comes last: a number that was kept is no coincidence.
    """
    whole = [Fact(each.text, tuple(map(int, each.values))) for each in attributes if all(type(v) is int for v in each.values)]
    if whole and len(set(values)) > 1 and all(type(value) is int for value in values):
        sizes = tuple(map(int, values))
        if (same := next((each.text for each in (*facts, *whole) if each.values == sizes), None)) is not None:
            return same
        for known in (facts, whole, [*facts, *whole]):
            if (exact := next(_exact_forms(sizes, known), None)) is not None:
                return exact
    # where only whether it can be told is asked, sizes have no names, and the text of one is empty
    text = express(values, facts)
    if text is None:
        text = next((each.text for each in attributes if each.values == tuple(values)), None)
    return express(values, [*facts, *whole]) if text is None and whole else text


def with_constants(facts: Sequence[Fact], constants: Sequence[Sizes | Length]) -> list[Fact]:
    """Add constants of the file: as written, but at the variants' own sizes as far as up to three `facts` tell these apart.

    More of them are looked at, as a call of a variant's rows alone is none of the variant's. At a loop's other lengths sizes are others.
    """
    told = (
        (_by_case(each.own, facts), each.values) if isinstance(each, Length) else (_by_case(each, facts, MOST_LOOKED_AT), each)
        for each in constants
    )
    return [*facts, *(Fact(text, values) for text, values in told if text is not None)]


def is_told(values: Sizes, facts: Sequence[Fact]) -> bool:
    """Whether whole numbers are sizes, or follow from sizes in a way that is no coincidence."""
    return next(_exact_forms(values, facts), None) is not None


def _by_case(own: Sequence[int | None], facts: Sequence[Fact], looked_at: int = 0) -> str | None:
    """Write a number by the sizes at which it is another than as written: by as few as tell, and others up to so many."""
    places = [place for place, value in enumerate(own) if value is not None]
    values = [value for value in own if value is not None]
    if len(set(values)) == 1:
        return literal(values[0])
    varying = _varying(facts)
    for count in (1, 2, 3):
        for telling in combinations(varying, count):
            others = [fact for fact in varying if fact not in telling][: max(0, looked_at - count)]
            chosen = [fact for fact in varying if fact in telling or fact in others]
            keys = [tuple(fact.values[place] for fact in chosen) for place in places]
            cases = dict(zip(keys, values, strict=True))
            if all(cases[key] == value for key, value in zip(keys, values, strict=True)):
                return _cases(cases, values[0], [fact.text for fact in chosen])
    return None


def _cases(cases: Mapping[tuple[int, ...], int], otherwise: int, texts: Sequence[str]) -> str:
    each = [f"{key if len(key) > 1 else key[0]}: {value}" for key, value in cases.items() if value != otherwise]
    asked = texts[0] if len(texts) == 1 else f"({', '.join(texts)})"
    return f"{{{', '.join(each)}}}.get({asked}, {otherwise})"


def literal(value: Number) -> str:
    """Write a number as Python source; infinities and NaN by name."""
    if isinstance(value, float) and not math.isfinite(value):
        return f'float("{value}")'
    return repr(value)


def _integer_forms(values: Sizes, facts: Sequence[Fact]) -> Iterator[str]:
    yield from _exact_forms(values, facts)
    varying = [(fact.text, fact.values) for fact in _varying(facts)]
    yield from (*power_forms(values, varying), *root_forms(values, varying))
    for fact in facts:
        yield from filled_forms(values, fact.values, fact.text, [FILLED])
        yield from _shifted(values, fact)
        yield from _windows(values, fact)
    yield from _times_products(values, facts)
    yield from _shifted_sums(values, facts)
    for fact in _varying(facts):
        if all(size and value % size == 0 for value, size in zip(values, fact.values, strict=True)):
            parts = tuple(value // size for value, size in zip(values, fact.values, strict=True))
            simple = (text for other in _varying(facts) for text in _scaled(parts, other))
            yield from (f"{fact.text} * ({text})" for text in (*simple, *_shifted_sums(parts, facts)))
    for fact in facts:
        yield from share_forms(values, fact.values, fact.text)
    most = max(values)
    yield from (f"min({fact.text}, {most})" for fact in facts if all(v == min(a, most) for v, a in zip(values, fact.values, strict=True)))
    for fact in facts:
        yield from filled_forms(values, fact.values, fact.text, MULTIPLES)
    yield from _overlapped(values, facts)
    yield from (*padded_forms(values, varying), *rest_forms(values, varying))


def _exact_forms(values: Sizes, facts: Sequence[Fact]) -> Iterator[str]:
    yield from (fact.text for fact in facts if fact.values == values)
    for fact in facts:
        yield from _scaled(values, fact)
    for one in facts:
        for two in facts:
            if all(b and a == v * b for v, a, b in zip(values, one.values, two.values, strict=True)):
                yield f"{one.text} // {two.text}"
            if all(v == a - b for v, a, b in zip(values, one.values, two.values, strict=True)):
                yield f"{one.text} - {two.text}"
    for count in (2, 3):
        for chosen in combinations_with_replacement(facts, count):
            if product((fact.values for fact in chosen), len(values)) == values:
                yield " * ".join(fact.text for fact in chosen)
    yield from _sums(values, facts)
    yield from _bounded(values, facts)


def _bounded(values: Sizes, facts: Sequence[Fact]) -> Iterator[str]:
    """Write a size as the lesser of two, each of which it is in some trace, or as that of windows so many elements apart."""
    varying = _varying(facts) if len(values) > 2 else []
    for one, two in combinations(varying, 2):
        if values == tuple(map(min, one.values, two.values)):
            yield f"min({one.text}, {two.text})"
    for one, step in permutations(varying, 2):
        if min(step.values) > 1 and values == tuple(a // b + 1 for a, b in zip(one.values, step.values, strict=True)):
            yield f"{one.text} // {step.text} + 1"


def _sums(values: Sizes, facts: Sequence[Fact]) -> Iterator[str]:
    """Write a size as that of two tensors that are joined."""
    for one, two in combinations_with_replacement(facts, 2):
        if all(v == a + b for v, a, b in zip(values, one.values, two.values, strict=True)):
            yield f"{one.text} + {two.text}"


def _varying(facts: Sequence[Fact]) -> list[Fact]:
    """List the sizes that differ between traces, equal ones once."""
    return [*{fact.values: fact for fact in reversed(facts) if len(set(fact.values)) > 1}.values()][::-1]


def _shifted_sums(values: Sizes, facts: Sequence[Fact]) -> Iterator[str]:
    """Write the sum of two sizes less a number, as there are diagonals in a matrix."""
    for one, two in combinations_with_replacement(_varying(facts), 2):
        rest = {v - a - b for v, a, b in zip(values, one.values, two.values, strict=True)}
        if len(rest) == 1 and len(set(values)) > 2:
            by = rest.pop()
            yield f"{one.text} + {two.text} {'+' if by > 0 else '-'} {abs(by)}"


def _times_products(values: Sizes, facts: Sequence[Fact]) -> Iterator[str]:
    """Write a multiple, or a part, of a product of sizes, or that with a number added."""
    for count in (2, 3):
        for chosen in combinations_with_replacement(_varying(facts), count):
            made = Fact(" * ".join(fact.text for fact in chosen), product((fact.values for fact in chosen), len(values)))
            times = Fraction(values[0], made.values[0]) if made.values[0] else Fraction(0)
            if times and all(value == size * times for value, size in zip(values, made.values, strict=True)):
                yield f"{made.text} * {times}" if times.denominator == 1 else f"{made.text} * {times.numerator} // {times.denominator}"
            added = {value - size for value, size in zip(values, made.values, strict=True)}
            if len(added) == 1 and len(set(values)) > 2:
                # positions that are counted from one end where there are as many and one more
                yield f"{made.text} {'+' if min(added) > 0 else '-'} {abs(added.pop())}"


def _shifted(values: Sizes, fact: Fact) -> Iterator[str]:
    """Write a part or a multiple of a size with something added: one more than there are chunks, say."""
    low, high = min(fact.values), max(fact.values)
    least, most = (values[fact.values.index(end)] for end in (low, high))
    # two numbers are made of any size by a part and a sum of their own: a third one shows that these are no coincidence
    if high == low or most <= least or len(set(values)) < 3:
        return
    times, parts = (most - least) // (high - low), (high - low) // (most - least)
    for text, scaled in ((f"* {times}", [a * times for a in fact.values]), (f"// {parts}", [a // max(1, parts) for a in fact.values])):
        added = values[0] - scaled[0]
        # a part that hides how one size differs from another is a coincidence: most that have one part have nothing to do with it
        hidden = text[0] == "/" and len({*zip(values, fact.values, strict=True)}) > len(set(values))
        if added and not hidden and all(v - a == added for v, a in zip(values, scaled, strict=True)):
            yield f"{fact.text} {text} {'+' if added > 0 else '-'} {abs(added)}"


def _windows(values: Sizes, fact: Fact) -> Iterator[str]:
    """Write how many windows fit into a size, some steps apart, or a small multiple of that, as their repetitions are."""
    low, high = min(fact.values), max(fact.values)
    for times in range(1, MOST_TIMES + 1):
        counts = [value // times for value in values]
        grown = max(counts) - min(counts)
        if any(value % times for value in values) or not grown or len(set(values)) < 3:
            continue
        steps = round((high - low) / grown)
        for less in range(1, WIDEST) if steps > 1 else ():
            if all(count == (size - less) // steps for count, size in zip(counts, fact.values, strict=True)):
                yield f"({fact.text} - {less}) // {steps}" + (f" * {times}" if times > 1 else "")


def _overlapped(values: Sizes, facts: Sequence[Fact]) -> Iterator[str]:
    """Write how long so many windows are that lie some steps apart."""
    if len(set(values)) < 3:
        return
    for count, step in permutations(_varying(facts), 2):
        begins = [(a - 1) * b for a, b in zip(count.values, step.values, strict=True)]
        width = tuple(value - begin for value, begin in zip(values, begins, strict=True))
        end = literal(width[0]) if len(set(width)) == 1 else next((fact.text for fact in facts if fact.values == width), None)
        if end is not None:
            yield f"({count.text} - 1) * {step.text} + {end}"


def _scaled(values: Sizes, fact: Fact) -> Iterator[str]:
    if not all(fact.values):
        return
    first = fact.values[0]
    if (
        values[0]
        and all(a % v == 0 and a // v == first // values[0] for v, a in zip(values, fact.values, strict=True) if v)
        and all(values)
    ):
        yield f"{fact.text} // {first // values[0]}"
    if all(v % a == 0 and v // a == values[0] // first for v, a in zip(values, fact.values, strict=True)):
        yield f"{fact.text} * {values[0] // first}"
    if all(v - a == values[0] - first for v, a in zip(values, fact.values, strict=True)):
        yield f"{fact.text} {'+' if values[0] > first else '-'} {abs(values[0] - first)}"
    if all(v == a // 2 for v, a in zip(values, fact.values, strict=True)):
        yield f"{fact.text} // 2"
    if all(v == (a + 1) // 2 for v, a in zip(values, fact.values, strict=True)):
        yield f"({fact.text} + 1) // 2"


def _float_forms(values: Sequence[float], facts: Sequence[Fact]) -> Iterator[str]:
    for text, (function, _) in FUNCTIONS.items():
        for fact in facts:
            if all(fact.values) and is_close(values, [function(n) for n in fact.values]):
                yield text.format(fact.text)
    # the same of a size that is itself a quotient, a product or a difference of sizes
    for text in FUNCTIONS:
        sizes = sizes_behind(values, text)
        if sizes is not None:
            # what is more than 64 bits hold is no whole number to an operator
            inner = text.format("float({})" if max(sizes) >> 63 else "({})")
            yield from (inner.format(form) for form in _integer_forms(sizes, facts))
    for fact in facts:
        yield from line_forms(values, fact.values, fact.text)
    for fact in facts:
        yield from inverse_forms(values, fact.values, fact.text)
