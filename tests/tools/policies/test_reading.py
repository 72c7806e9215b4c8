"""Precision policies as users state them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools.errors import UserError
from tools.policies import load_policy, policy_names, stated_policy


def test_named_policies_are_the_five() -> None:
    """Each named policy is a file that gives the policy of that name."""
    assert policy_names() == ("bf16", "default", "exact", "fp16", "tf32")
    assert [load_policy(name).name for name in policy_names()] == list(policy_names())


def test_unknown_policy_lists_the_known_ones() -> None:
    """A name that is none gives the names there are."""
    with pytest.raises(UserError, match=r"bf16, default, exact, fp16, tf32|fp8"):
        load_policy("fp8")


def test_policy_may_be_a_file(tmp_path: Path) -> None:
    """A user's own file may set the factor; a wrong field is named."""
    file = tmp_path / "mine.json"
    file.write_text('{"title": "Twice the reference.", "policy": {"factor": 2}}')
    assert load_policy(str(file)).factor == 2

    file.write_text('{"title": "Wrong.", "policy": {"factor": -2}}')
    with pytest.raises(UserError, match=r"mine.json cannot be read"):
        load_policy(str(file))


def test_stated_tolerances_are_in_the_policys_words() -> None:
    """What was stated is printed with the policy, and the worst row follows the whole."""
    policy = stated_policy("tf32", 1e-3)

    assert str(policy) == "tf32, errors up to 0.001 allowed"
    assert policy.worst_row_tolerance == 4e-3
    assert str(stated_policy("exact")) == "exact"


def test_row_tolerance_alone_is_refused() -> None:
    """A tolerance of a row without one of the whole would never matter."""
    with pytest.raises(UserError, match="row tolerance"):
        stated_policy("exact", 0.0, 1e-3)
