"""Atoms are what they are now, whenever that is asked."""

from __future__ import annotations

from tools.codegen.ir.atoms import Atoms


def test_leaves_follow_what_was_split_and_united_since() -> None:
    """An atom whose leaves were asked for has other leaves once it is split, and once a part of it is another atom."""
    atoms = Atoms(2)
    whole, head, tail = atoms.new((12, 6)), atoms.new((4, 2)), atoms.new((3, 3))
    assert atoms.leaves((whole,)) == (whole,)
    atoms.unify((whole,), (head, tail))
    assert atoms.leaves((whole,)) == (head, tail)
    other = atoms.new((3, 3))
    atoms.unify((tail,), (other,))
    assert atoms.leaves((whole, tail)) == (head, other, other)


def test_asking_makes_no_other_atoms() -> None:
    """Two regions whose atoms are the same are alike, whatever was asked of those of one."""
    one, other = Atoms(1), Atoms(1)
    places = [atoms.new((8,)) for atoms in (one, other)]
    one.leaves(places[:1])
    assert one.relations == other.relations
