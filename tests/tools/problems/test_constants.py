"""Integer constants of a source: found, reached, overridden."""

import ast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tools.errors import UserError
from tools.problems.constants import constants, override, reachable

SOURCE = """\
A = 1024 * 2  # größe
B, (C, D) = 3, (4, 5)
E = F = 7
shape = (A, 16, 9)
G = A // 2
H = 2.5
I: int = 11
J = (
    2
    + 3
)
K = 1
K += 1
TRUE = True

def get_inputs():
    return make(A, 128, [64])

def make(n, m, k):
    return n + G
"""


def test_constants_are_found_with_their_values() -> None:
    """Expressions of literals count, whatever depends on a name or changes later does not."""
    found = {c.key: c.value for c in constants(ast.parse(SOURCE), ("get_inputs",))}
    assert found == {
        "A": 2048, "B": 3, "C": 4, "D": 5, "E": 7, "shape[1]": 16, "shape[2]": 9, "I": 11, "J": 5, "get_inputs#0": 128, "get_inputs#1": 64,
    }  # fmt: skip


def test_override_changes_values_and_keeps_lines() -> None:
    """Other values, the same line numbers, the rest of the text untouched."""
    sizes = {"A": 6, "C": 70, "shape[1]": 5, "J": 9, "get_inputs#1": 2}
    changed = override(SOURCE, sizes, ("get_inputs",), "file")
    names: dict[str, object] = {}
    exec(changed, names)
    assert (names["A"], names["C"], names["shape"], names["G"], names["J"]) == (6, 70, (6, 5, 9), 3, 9)
    assert "# größe" in changed
    assert len(changed.splitlines()) == len(SOURCE.splitlines())
    assert changed.splitlines()[-1] == SOURCE.splitlines()[-1]


@settings(deadline=None)
@given(st.dictionaries(st.sampled_from(["A", "B", "C", "D", "E", "I", "J", "shape[2]", "get_inputs#0"]), st.integers(0, 10**9)))
def test_override_and_constants_agree(sizes: dict[str, int]) -> None:
    """What was put in is what is found, for any choice of constants."""
    changed = override(SOURCE, sizes, ("get_inputs",), "file")
    found = {c.key: c.value for c in constants(ast.parse(changed), ("get_inputs",))}
    assert all(found[key] == value for key, value in sizes.items())


def test_unknown_constant_is_refused() -> None:
    """Overriding what is not there names what is."""
    with pytest.raises(UserError, match="'Z'"):
        override(SOURCE, {"Z": 1}, ("get_inputs",), "file")


def test_reachable_follows_calls_and_respects_scopes() -> None:
    """Names are followed through functions and derived constants; a parameter hides a constant of its name."""
    assert {"A", "G", "make"} <= reachable(SOURCE, ["get_inputs"])
    source = "n = 1\nm = 2\ndef f(n, k=m):\n    return n\nclass C:\n    def g(self):\n        return [n for n in range(3)]\n"
    assert "n" not in reachable(source, ["f"])
    assert "m" in reachable(source, ["f"])
    assert "n" not in reachable(source, ["C"])
