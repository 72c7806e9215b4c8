"""Sizes as the host function writes them: in terms of the shapes of the tensors that it takes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol

from tools.codegen.ir.expr import LoweringError
from tools.codegen.ir.kernel import Kernel
from tools.codegen.ir.sizes import Fact, Sizes, express, is_told, product, with_constants
from tools.codegen.templates.shared.access import Access


class Sized(Protocol):
    """What is asked of an iteration space, which asks for the sizes of a concatenation when it is made."""

    @property
    def kernel(self) -> Kernel:
        """Whose sizes they are."""

    @property
    def accesses(self) -> tuple[Access, ...]:
        """Tensors that the host function takes or makes."""

    @property
    def given(self) -> Mapping[tuple[int, ...], str]:
        """Sizes that the host function computes itself, by atoms."""


def host_size(space: Sized, wanted: tuple[int, ...], known: dict[str, tuple[int, ...]]) -> str:
    """Write the number of elements over `wanted` in terms of the shapes of the tensors the host function takes."""
    if wanted in space.given:
        return space.given[wanted]
    reads = [access for access in space.accesses if not access.is_output]
    whole = _whole_text(reads, tuple(sorted(wanted)), known)
    if whole is not None:
        return whole
    factors = [_run_text(space, run, reads) for run in _runs(wanted, reads)]
    if None in factors:
        by_value = _by_value(space, wanted, reads)
        if by_value is None:
            raise LoweringError("a size of the region cannot be told from the shapes of its inputs")
        return by_value
    if len(factors) == 1:
        return str(factors[0])
    return " * ".join(f"({text})" if text and any(sign in text for sign in ("//", " - ", " + ")) else str(text) for text in factors)


def _whole_text(reads: Sequence[Access], target: tuple[int, ...], known: dict[str, tuple[int, ...]]) -> str | None:
    """Write a size that is part of a tensor's shape as it stands, or what is left of its elements by a size already read."""
    for access in reads:
        for text, atoms in _shape_facts(access):
            if tuple(sorted(atoms)) == target:
                return text
    for access in reads:
        everything = sorted(atom for dim in access.dims for atom in dim)
        for name, atoms in known.items():
            if not set(atoms) & set(target) and everything == sorted((*atoms, *target)):
                return f"{access.name}.numel() // {name}"
    return None


def _by_value(space: Sized, atoms: tuple[int, ...], reads: Sequence[Access]) -> str | None:
    return express(_values(space, atoms), shape_values(reads, space.kernel))


def _is_told(space: Sized, atoms: tuple[int, ...], reads: Sequence[Access]) -> bool:
    values = _values(space, atoms)
    return len(set(values)) == 1 or is_told(values, shape_values(reads, space.kernel))


def _values(space: Sized, atoms: tuple[int, ...]) -> Sizes:
    known = space.kernel.builder.atoms
    return product((known.size(atom) for atom in atoms), known.traces)


def _runs(wanted: tuple[int, ...], reads: Sequence[Access]) -> list[tuple[int, ...]]:
    """Cut atoms into runs that make up whole dimensions, and single atoms."""
    runs, rest = [], list(wanted)
    for access in reads:
        for dim in access.dims:
            if dim and set(dim) <= set(rest):
                runs.append(dim)
                rest = [atom for atom in rest if atom not in dim]
    return [*((atom,) for atom in rest), *runs]


def _run_text(space: Sized, run: tuple[int, ...], reads: Sequence[Access]) -> str | None:
    """Write the size of a run: a dimension, a number, a dimension over the other parts it is split into, or what its values say."""
    if run in space.given:
        return space.given[run]
    if (values := _values(space, run)) in space.kernel.builder.given:
        return given_size(space.kernel.builder.given.index(values))
    for access in reads:
        for text, atoms in _shape_facts(access):
            if atoms == run:
                return text
    for access in reads:
        for place, dim in enumerate(access.dims):
            # where nothing varies, the first part of a split is the literal and the rest follow from it
            if len(dim) > 1 and set(run) <= set(dim) and run[0] != dim[0]:
                rest = tuple(atom for atom in dim if atom not in run)
                others = _by_value(space, rest, reads)
                # what fits the traces by chance is no better told than the run itself
                if others is not None and (_is_told(space, rest, reads) or not _is_told(space, run, reads)):
                    return f"{access.name}.shape[{place}] // {_factor(others)}"
    return _by_value(space, run, reads) or _what_is_left(space, run, reads)


def _what_is_left(space: Sized, run: tuple[int, ...], reads: Sequence[Access]) -> str | None:
    """Write the first part of a dimension by the others, each of which is told by itself."""
    for access in reads:
        for place, dim in enumerate(access.dims):
            if len(dim) > len(run) and dim[: len(run)] == run:
                others = [text for atom in dim[len(run) :] if (text := _by_value(space, (atom,), reads)) is not None]
                if len(others) == len(dim) - len(run):
                    return f"{access.name}.shape[{place}] // {_factor(' * '.join(map(_factor, others)))}"
    return None


def _factor(text: str) -> str:
    """Put what is no name and no number into parentheses."""
    return text if text.replace("_", "").isalnum() else f"({text})"


def _shape_facts(access: Access) -> Iterable[tuple[str, tuple[int, ...]]]:
    rank = len(access.dims)
    for place, dim in enumerate(access.dims):
        if dim:
            yield f"{access.name}.shape[{place - rank if place == rank - 1 else place}]", dim
    everything = tuple(atom for dim in access.dims for atom in dim)
    yield f"{access.name}.numel()", everything
    for start in range(rank):
        for stop in range(start + 2, rank + 1):
            if all(access.dims[start:stop]):
                yield (
                    " * ".join(f"{access.name}.shape[{place}]" for place in range(start, stop)),
                    tuple(atom for dim in access.dims[start:stop] for atom in dim),
                )


def shape_values(accesses: Sequence[Access], kernel: Kernel) -> list[Fact]:
    """List the sizes that run-time code can read off tensors or is given, and what constants of the file are at these."""
    facts: dict[Sizes, Fact] = {}
    for access in accesses:
        for place, sizes in enumerate(access.meta.shape):
            facts.setdefault(sizes, Fact(f"{access.name}.shape[{place}]", sizes))
    for place, sizes in enumerate(kernel.builder.given):
        facts.setdefault(sizes, Fact(given_size(place), sizes))
    return with_constants(list(facts.values()), kernel.builder.constants)


def given_size(place: int) -> str:
    """Name a size that a host function is given as a number."""
    return f"given_{place}"
