"""Which sizes of a module given in Python its user calls dynamic, and at which others a kernel for it is judged then."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from tools.errors import UserError

Dynamic = int | Mapping[str, int | Sequence[int]] | None
"""A dimension of all tensors that share its size; or dimensions by argument; None: whatever the module leaves free."""

_TRIED = (
    (7, 11, 13, 17, 5, 19, 9, 23),
    (16, 32, 64, 128, 8, 4, 2, 256),
    (1, 1, 1, 1, 1, 1, 1, 1),
    (5, 3, 9, 2, 7, 4, 6, 8),
)
"""Odd sizes, powers of two, a single one, small ones: the n-th dynamic size gets the n-th of each, beginning anew after eight.

No two are alike at all of them, or a kernel could take one for the other."""


def chosen_dims(dynamic: Dynamic, shapes: Mapping[str, tuple[int, ...]]) -> dict[str, tuple[int, ...]]:
    """List the dynamic dimensions by argument; UserError for what is not there, or is 1 or less in the example."""
    if dynamic is None:
        return {}
    if isinstance(dynamic, int):
        size = next((shape[dynamic] for shape in shapes.values() if 0 <= dynamic < len(shape)), None)
        dynamic = {name: dynamic for name, shape in shapes.items() if 0 <= dynamic < len(shape) and shape[dynamic] == size}
    found = {argument: (dims,) if isinstance(dims, int) else tuple(dims) for argument, dims in dynamic.items()}
    if not any(found.values()):
        raise UserError("No tensor among the example inputs has that dimension.", "Name the argument: dynamic={'x': 0}.")
    for argument, dims in found.items():
        _demand(argument, dims, shapes)
    return found


def _demand(argument: str, dims: Sequence[int], shapes: Mapping[str, tuple[int, ...]]) -> None:
    if argument not in shapes:
        raise UserError(f"No tensor argument is called {argument!r}.", f"There are: {', '.join(shapes) or 'none'}.")
    shape = shapes[argument]
    for dim in dims:
        if not 0 <= dim < len(shape):
            raise UserError(f"{argument} has no dimension {dim}: its shape is {list(shape)}.", f"Give one from 0 to {len(shape) - 1}.")
        if shape[dim] < 2:
            raise UserError(f"Dimension {dim} of {argument} is dynamic and {shape[dim]} in the example.", "Give an example of 2 or more.")


def other_sizes(written: Mapping[str, int]) -> Iterator[dict[str, int]]:
    """Yield the sizes that a module is judged at besides those of the example, by their labels."""
    for values in _TRIED:
        sizes = {label: values[place % len(values)] for place, label in enumerate(written)}
        if sizes != written:
            yield sizes
