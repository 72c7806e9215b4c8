"""Results are taken apart and described by what they are, not by what their classes say of them."""

from __future__ import annotations

import collections
import keyword
from collections import OrderedDict
from typing import Any, NamedTuple

import pytest
import torch

from tools.returned import places, result_text, returned

A, B, C = torch.zeros(1), torch.zeros(2), torch.zeros(3)


class Pair(NamedTuple):
    """A NamedTuple."""

    one: Any
    other: Any


class Older(collections.namedtuple("Older", "one")):
    """A class made of one."""

    __slots__ = ()


class Liar(Pair):
    """Gives other tensors than it holds where it is asked."""

    def __iter__(self) -> Any:
        """Give others."""
        return iter((C, C))

    def __getitem__(self, _: Any) -> Any:
        """Give another."""
        return C


RESULTS: dict[str, tuple[Any, list[torch.Tensor]]] = {
    "tensor": (A, [A]),
    "(tensor,)": ((A,), [A]),
    "()": ((), []),
    "[tensor, None]": ([A, None], [A]),
    "(tensor, (tensor, tensor))": ((A, (B, C)), [A, B, C]),
    "{'b': tensor, 'a': tensor}": ({"b": B, "a": A}, [B, A]),
    "{0: tensor, -1: tensor}": ({0: A, -1: B}, [A, B]),
    '{"it\'s": tensor}': ({"it's": A}, [A]),
    "{'\\u2211': tensor}": ({"\u2211": A}, [A]),
    "collections.OrderedDict({'out': tensor})": (OrderedDict(out=A), [A]),
    "Pair(one=[tensor], other=None)": (Pair([A], None), [A]),
    "Older(one=tensor)": (Older(A), [A]),
    "Liar(one=tensor, other=tensor)": (Liar(A, B), [A, B]),
    "torch.return_types.max((tensor, tensor))": (torch.return_types.max((A, B)), [A, B]),
}


@pytest.mark.parametrize("structure", RESULTS)
def test_a_result_is_described_and_its_tensors_listed(structure: str) -> None:
    """Containers, keys, fields and None stand in the description, in order."""
    result, tensors = RESULTS[structure]
    found = returned(result)
    assert (found.structure, found.strange) == (structure, "")
    assert list(map(id, found.tensors)) == list(map(id, tensors))


@pytest.mark.parametrize("structure", RESULTS)
def test_what_is_written_from_a_description_has_it(structure: str) -> None:
    """The expression makes a result that is described alike, of the same tensors."""
    tensors = RESULTS[structure][1]
    text, lines = result_text(structure, [f"held[{place}]" for place in range(len(tensors))], lambda name: f"{name}_2")
    space: dict[str, Any] = {"torch": torch, "collections": collections, "held": tensors}
    exec("\n".join(lines), space)
    made = returned(eval(text, space))
    assert made.structure == structure
    assert list(map(id, made.tensors)) == list(map(id, tensors))


@pytest.mark.parametrize(
    ("result", "strange", "where"),
    [
        ((A, 1), "int", "[1]"),
        ({"x": [A, "s"]}, "str", "['x'][1]"),
        (Pair(A, {1.5: A}), "dict", ".other"),
        ({True: A}, "dict", ""),
        (collections.defaultdict(list, x=A), "defaultdict", ""),
        (type("Lazy", (dict,), {})(x=A), "Lazy", ""),
        (type("tensor", (Pair,), {})(A, B), "tensor", ""),
        (type("(tensor, tensor)", (Pair,), {})(A, B), "(tensor, tensor)", ""),
        (type(keyword.kwlist[0], (Pair,), {})(A, B), keyword.kwlist[0], ""),
        (type("Named", (tuple,), {"_fields": ("x=tensor), Other(y",)})((A,)), "Named", ""),
        (type("Short", (tuple,), {"_fields": ("x",)})((A, B)), "Short", ""),
        ((Pair(A, B), type("Pair", (tuple,), {"_fields": ("x",)})((C,))), "Pair", "[1]"),
    ],
)
def test_what_is_not_allowed_is_named_with_its_place(result: Any, strange: str, where: str) -> None:
    """Other leaves, other containers, and names that are none cannot be taken for anything that is allowed."""
    found = returned(result)
    assert (found.strange, found.where) == (strange, where)
    assert "<" in found.structure


def test_places_count_what_is_none() -> None:
    """What torch.export lists has a place for each None."""
    assert places("{'a': tensor, 'b': (None, [tensor]), 'c': P(x=None, y=tensor)}") == [0, 2, 4]
