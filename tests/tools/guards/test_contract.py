"""What a kernel was made for, read from a problem and its variants."""

from __future__ import annotations

from tests.tools.guards.cases import VARIANTS, problem
from tools.guards.contract import Contract, Size, TensorRule, Unfixed, ValueRule, contract_of
from tools.records import Problem, ProblemForm

X = "x.shape[1]"


def _sizes(contract: Contract) -> list[tuple[int | Size, ...]]:
    return [rule.sizes for rule in (*contract.inputs, *contract.parameters) if isinstance(rule, TensorRule)]


def test_sizes_that_vary_are_told_by_those_before_them() -> None:
    """A size that is the same in all variants is fixed; one that varies is any, or what an earlier one gives."""
    contract = contract_of(problem(), VARIANTS)
    assert _sizes(contract) == [(Size("any"), Size("any")), (5, Size(X)), (5,)]
    assert contract.constructor == (Size(X), 5)
    assert contract.inputs[1] == ValueRule("times", 2)


def test_without_variants_every_size_is_fixed() -> None:
    """A kernel that was tried at one size alone was made for that one."""
    assert _sizes(contract_of(problem(), ())) == [(8, 6), (5, 6), (5,)]


def test_mixed_sizes_show_what_hangs_together_by_chance() -> None:
    """Where rows are a third of the width at all sizes that are judged, a mixture with others says that they need not be."""
    judged = (problem(3, 9), problem(4, 12))
    assert _sizes(contract_of(problem(8, 24), judged))[0] == (Size("any"), Size("x.shape[0] * 3"))
    assert _sizes(contract_of(problem(8, 24), judged, (problem(3, 12),)))[0] == (Size("any"), Size("any * 3"))


def test_what_all_sizes_are_multiples_of_is_kept() -> None:
    """Where every width that was tried is even, an odd one is none that the kernel was made for."""
    assert _sizes(contract_of(problem(8, 6), (problem(3, 10),)))[0] == (Size("any"), Size("any * 2"))


def test_a_size_that_is_at_most_a_number_is_any() -> None:
    """Of 8 by 6, 3 by 3 and 6 by 6 the second is the first or six, which says nothing of other calls."""
    variants = (problem(3, 3), problem(6, 6))
    assert _sizes(contract_of(problem(8, 6), variants))[0] == (Size("any"), Size("any * 3"))


def test_values_that_vary_and_are_no_sizes_are_left_open() -> None:
    """A float of the constructor that differs between the variants may be anything."""
    other = problem(3, 7, 5)
    other = other.model_copy(update={"abi": other.abi.model_copy(update={"init": "[7, 5, 0.5]"})})
    first = problem()
    first = first.model_copy(update={"abi": first.abi.model_copy(update={"init": "[6, 5, 2.0]"})})
    assert contract_of(first, (other,)).constructor == (Size(X), 5, Unfixed())


def test_the_mode_counts_where_a_source_names_what_depends_on_it() -> None:
    """A batch norm binds a file to the mode it was made in; a word in a comment does not, nor is there a mode in an archive."""

    def mode(of: Problem) -> bool | None:
        return contract_of(of, ()).training

    norm = problem().source.replace("torch.nn.Linear(width, wide)", "torch.nn.BatchNorm1d(width)")
    assert mode(problem()) is None
    assert mode(problem(source=problem().source + "# for a transformer\n")) is None
    assert mode(problem(source=norm)) is False
    assert mode(problem(source=norm, form=ProblemForm.EXPORTED)) is None
