"""Small variants of a problem: the same reference at sizes that an interpreter can run and block sizes do not divide."""

from __future__ import annotations

import contextlib
import functools
import math
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from tools.errors import UserError
from tools.native import in_turn
from tools.problems.archive_sizes import archive_sizes, are_chosen
from tools.problems.constants import Constant, constants, small_sizes
from tools.problems.dynamic import other_sizes
from tools.problems.elsewhere import Elsewhere
from tools.problems.opening import blueprint_of
from tools.problems.proposals import EVEN, ODD, SINGLE_ROW, TINY, Adjustable, Tier, adjustable, proposals
from tools.problems.source import Recognised
from tools.problems.uneven_steps import grown
from tools.records import ABI, Problem, ProblemForm, ScalarSpec, TensorSpec
from tools.syntax import parsed

if TYPE_CHECKING:
    from tools.problems.blueprint import Blueprint

MAX_ELEMENTS = 100_000
"""Elements of all tensors of a variant together: an interpreted kernel takes about a millisecond a program."""

MAX_FLOPS = 10_000_000
"""Operations of a variant's products."""

MAX_TOUCHED = 10_000_000
"""Elements that a variant's other operators touch: of all pairs of a thousand points there are a million, and more of their coordinates."""

KINDS = (ODD, EVEN, SINGLE_ROW, TINY)

_TRIES = 96
"""Proposals that are run for one kind of size before it is given up; networks of many operators get fewer."""

_LONG = 100
"""Operators from which on a reference counts as a network."""

_KEPT = 256
_found: dict[tuple[str, tuple[Tier, ...], bool], Problem | None] = {}
"""What was looked for last, up to so many searches: each runs the reference at several sizes."""
_alike: dict[str, tuple[Problem, ...]] = {}
"""Variants of declared sizes of which some would run other operators, by the record of their problem: a trace asks for them four times."""

VARIANTS = Elsewhere()
"""Variants that another process sought."""


def small_variants(problem: Problem, kinds: Sequence[Sequence[Tier]] = KINDS) -> tuple[Problem, ...]:
    """Derive up to four variants, one of each kind: odd sizes, powers of two, a single row, and odd sizes of the smallest tiers.

    `SMALL_SIZES` in the file replaces the choice, but for sizes that change what runs. Empty where nothing can be varied: a file without
    size constants, an exported module that leaves no size free, a reference that is too large at any size.
    """
    known = VARIANTS.of(problem) if kinds == KINDS else None
    return _sought(problem, kinds) if known is None else known


@in_turn
def _sought(problem: Problem, kinds: Sequence[Sequence[Tier]]) -> tuple[Problem, ...]:
    if problem.form is ProblemForm.EXPORTED and are_chosen(problem.source):
        return tuple(_dynamic(problem))
    declared = _declared_sizes(problem)
    if declared is not None:
        return _running_alike(problem, declared, tuple(_declared(problem, sizes, index) for index, sizes in enumerate(declared)))
    if problem.form is ProblemForm.EXPORTED and first_variant(problem) is None:
        # its sizes may be free by themselves, and tied to one another by what is out of sight
        return ()
    for meaningful in (True, False):
        found: dict[str, Problem] = {}
        for tiers in kinds:
            variant = _first(problem, tiers, meaningful=meaningful)
            if variant is not None:
                found.setdefault(variant.id, variant)
        if found:
            return _alike_where_some_are(problem, tuple(found.values()))
    return ()


def _alike_where_some_are(problem: Problem, variants: tuple[Problem, ...]) -> tuple[Problem, ...]:
    """Leave out those at which other operators run, unless they do at all: as many steps as a size has digits are none of a kernel's."""
    alike = tuple(variant for variant in variants if len(variant.work.operators) == len(problem.work.operators))
    return alike or variants


@in_turn
def first_variant(problem: Problem) -> Problem | None:
    """Return one odd variant that runs, keeps the ABI's ranks and dtypes, and fits the limits; None where there is none."""
    if problem.form is ProblemForm.EXPORTED and are_chosen(problem.source):
        return next(_dynamic(problem), None)
    declared = _declared_sizes(problem)
    if declared is not None:
        return _declared(problem, declared[0], 0) if declared else None
    return _first(problem, ODD, meaningful=True) or _first(problem, ODD, meaningful=False)


def _dynamic(problem: Problem) -> Iterator[Problem]:
    """Variants at other values of the sizes that the user chose, as far as the module runs at them; however large the rest is."""
    written = {constant.key: constant.value for constant in archive_sizes(problem.source)}
    resized = _resizing(problem)
    for sizes in other_sizes(written):
        with contextlib.suppress(UserError):
            variant = resized(sizes)
            if _outputs_follow(variant) is not None:
                yield variant


def _declared_sizes(problem: Problem) -> list[dict[str, int]] | None:
    return None if problem.form is ProblemForm.EXPORTED else small_sizes(parsed(problem.source), problem.name)


def _first(problem: Problem, tiers: Sequence[Tier], *, meaningful: bool) -> Problem | None:
    """Return the first variant that runs; loading a problem, tracing it and evaluating it look for the same one."""
    key = (problem.model_dump_json(), tuple(tiers), meaningful)
    if key not in _found:
        if len(_found) >= _KEPT:
            _found.clear()
        _found[key] = next(_running(problem, tiers, meaningful=meaningful), None)
    return _found[key]


def _running(problem: Problem, tiers: Sequence[Tier], *, meaningful: bool) -> Iterator[Problem]:
    """Variants that run; with `meaningful` only those whose outputs follow their inputs, as some references never do."""
    for variant in _candidates(problem, tiers, adjustable(problem)):
        follows = _outputs_follow(variant)
        if follows or (follows is not None and not meaningful):
            yield variant


def describe_sizes(variant: Problem) -> str:
    """Read as `rows=37, columns=129`, or `as written`."""
    return ", ".join(f"{key}={size}" for key, size in variant.sizes.items()) or "as written"


@in_turn
def sizes_to_declare(problem: Problem) -> tuple[dict[str, int], ...]:
    """Find small sizes at which `problem` runs if those that its reference uses may change; several, to show forms of numbers."""
    if problem.form is ProblemForm.EXPORTED:
        return ()
    found = (next(_candidates(problem, tiers, adjustable(problem, held_too=True)), None) for tiers in (ODD, EVEN, TINY))
    return tuple({variant.id: variant.sizes for variant in found if variant is not None}.values())


def _candidates(problem: Problem, tiers: Sequence[Tier], found: Adjustable) -> Iterator[Problem]:
    if not found.sizes:
        return
    tried = _tried(problem.model_dump_json())
    tries = _TRIES // 16 if len(problem.work.operators) > _LONG else _TRIES
    resized = _resizing(problem)
    for sizes in proposals(found, tiers):
        if _least_elements(problem.abi, found.sizes, sizes) > MAX_ELEMENTS:
            continue
        tries -= 1
        if tries < 0:
            return
        key = tuple(sorted(sizes.items()))
        if key not in tried:
            tried[key] = _usable(problem, resized, sizes)
        variant = tried[key]
        if variant is not None:
            yield variant


@functools.lru_cache(maxsize=16)
def _tried(problem: str) -> dict[tuple[tuple[str, int], ...], Problem | None]:
    """What became of a problem's proposals, by its record: many are made for one kind of sizes and again for another."""
    return {}


def _usable(problem: Problem, resized: Callable[[dict[str, int]], Problem], sizes: dict[str, int]) -> Problem | None:
    try:
        variant = resized(sizes)
    except UserError:
        # these sizes do not fit together: the next proposal may
        return None
    return variant if fits(variant) and _same_kind(problem.abi, variant.abi) else None


@in_turn
def with_sizes(problem: Problem, sizes: dict[str, int]) -> Problem:
    """Return `problem` at other sizes, its ABI and work read afresh; sizes that do not run raise UserError."""
    merged = {**problem.sizes, **sizes}
    kept, key = _resized(problem.model_dump_json()), tuple(sorted(merged.items()))
    if key not in kept:
        kept[key] = _analysed(problem, merged, blueprint_of(problem.form, problem.entry, problem.source, merged, problem.name))
    return kept[key]


@functools.lru_cache(maxsize=16)
def _resized(problem: str) -> dict[tuple[tuple[str, int], ...], Problem]:
    """A problem at other sizes, by its record: declared sizes are asked for by who loads it, compares what runs, and shortens its loops."""
    return {}


def _resizing(problem: Problem) -> Callable[[dict[str, int]], Problem]:
    """Give what makes variants of `problem`; an exported module is opened once for all of them."""
    if problem.form is not ProblemForm.EXPORTED:
        return functools.partial(with_sizes, problem)
    from tools.problems.archive import ArchiveBlueprint

    opened = ArchiveBlueprint(problem.name, problem.source, problem.sizes)
    return lambda sizes: _analysed(problem, sizes, opened.resized(sizes))


def _analysed(problem: Problem, merged: dict[str, int], blueprint: Blueprint) -> Problem:
    from tools.problems.analysis import analyse

    # most proposals do not fit; their errors are not reported, so they need no real run to confirm them
    facts = analyse(blueprint, confirm=False)
    abi = facts.abi
    if problem.form is ProblemForm.EXPORTED:
        # an exported graph no longer knows its mode
        abi = abi.model_copy(update={"training": problem.abi.training})
    return problem.model_copy(update={"sizes": merged, "abi": abi, "work": facts.work, "shapes": ()})


def _declared(problem: Problem, sizes: dict[str, int], index: int) -> Problem:
    makers = Recognised(problem.form, problem.entry).makers
    known = {constant.key for constant in constants(parsed(problem.source), makers)}
    if unknown := sorted(set(sizes) - known):
        what = f"SMALL_SIZES[{index}] of {problem.name} names {unknown[0]!r}, which is no integer constant of the file."
        raise UserError(what, f"It has: {', '.join(sorted(known)) or 'none'}.")
    try:
        variant = with_sizes(problem, sizes)
    except UserError as error:
        raise UserError(f"SMALL_SIZES[{index}] of {problem.name} does not run. {error.what}", "Give sizes that fit together.") from error
    shapes = [[tensor.shape for tensor in each.abi.parameters] for each in (problem, variant)]
    if variant.abi.init == problem.abi.init and shapes[0] != shapes[1]:
        what = f"SMALL_SIZES[{index}] of {problem.name} changes the shapes of parameters and not what its constructor is given."
        raise UserError(f"{what} A kernel's module is built by the same arguments.", "Hand those sizes over by get_init_inputs().")
    return variant


def _running_alike(problem: Problem, declared: Sequence[dict[str, int]], variants: tuple[Problem, ...]) -> tuple[Problem, ...]:
    """Leave out of declared sizes those with which other operators run, where the rest runs by itself."""
    from tools.problems.structure import structure

    if all(len(variant.work.operators) == len(problem.work.operators) for variant in variants):
        return variants
    key = problem.model_dump_json()
    if key not in _alike:
        if len(_alike) >= _KEPT:
            _alike.clear()
        kept = structure(problem, declared, functools.partial(with_sizes, problem))
        found = [_without(problem, sizes, kept) or variant for sizes, variant in zip(declared, variants, strict=True)]
        _alike[key] = tuple({variant.id: variant for variant in found}.values())
    return _alike[key]


def _without(problem: Problem, declared: dict[str, int], kept: frozenset[str]) -> Problem | None:
    """Make a variant of declared sizes without some of them; where more steps find no room in the others, in a larger one of those."""
    written = {
        constant.key: constant.value for constant in constants(parsed(problem.source), Recognised(problem.form, problem.entry).makers)
    }
    own = [(written[key], size) for key, size in declared.items() if key in kept]
    if not own:
        return None
    rest = {key: size for key, size in declared.items() if key not in kept}
    larger = grown(rest, max(one - size for one, size in own), max(-(-one // size) for one, size in own))
    for place, sizes in enumerate((rest, *larger)):
        with contextlib.suppress(UserError):
            variant = with_sizes(problem, sizes)
            if place == 0 or fits(variant):
                return variant
    return None


def _least_elements(abi: ABI, changed: Sequence[Constant], sizes: dict[str, int]) -> int:
    """Elements of the arguments and parameters if every extent that is a multiple of a constant changed with it.

    Of several such constants the largest counts, of equal ones that with the smallest new value: an estimate on the low
    side that saves hopeless runs; the run itself decides.
    """
    new: dict[int, int] = {}
    for constant in changed:
        new[constant.value] = min(sizes[constant.key], new.get(constant.value, sizes[constant.key]))

    def resized(extent: int) -> int:
        divisor = max((value for value in new if extent % value == 0), default=1)
        return extent // divisor * new.get(divisor, 1)

    return sum(math.prod(map(resized, spec.shape)) for spec in (*abi.inputs, *abi.parameters))


def fits(variant: Problem) -> bool:
    """Whether an interpreter can run a variant."""
    abi = variant.abi
    elements = sum(spec.numel for spec in (*abi.inputs, *abi.parameters, *abi.outputs))
    return elements <= MAX_ELEMENTS and variant.work.matmul_flops <= MAX_FLOPS and variant.work.pointwise_flops <= MAX_TOUCHED


def _same_kind(one: ABI, other: ABI) -> bool:
    return _kinds(one) == _kinds(other)


def _kinds(abi: ABI) -> list[tuple[object, ...]]:
    specs: list[TensorSpec | ScalarSpec] = [*abi.arguments, *abi.parameters, *abi.outputs]
    return [(s.name, len(s.shape), s.dtype) if isinstance(s, TensorSpec) else (s.name, s.value) for s in specs]


def _outputs_follow(variant: Problem) -> bool | None:
    """Whether the outputs depend on the inputs; None where the variant does not really run."""
    from tools.problems.trial import outputs_follow_inputs

    try:
        return outputs_follow_inputs(variant)
    except UserError:
        return None
