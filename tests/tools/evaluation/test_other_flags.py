"""The reference under the flags of other policies."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from tests.support.makers import problem
from tools.errors import UserError
from tools.evaluation.other_flags import other_baselines
from tools.policies import named_policies
from tools.records import Baselines, HardwareSheet, Problem, Tier


def test_each_other_policy_is_asked_for_once_as_a_problem_of_its_own(h200: HardwareSheet) -> None:
    """The problem's own flags are not timed twice, and what a pool keeps by problem is of one set of flags."""
    asked: list[Problem] = []

    async def baselines(one: Problem, target: HardwareSheet) -> Baselines:
        asked.append(one)
        return Baselines(tier=Tier.IN_PROCESS, device=target.title)

    pool: Any = SimpleNamespace(baselines=baselines)
    own = problem(policy="default")
    found = asyncio.run(other_baselines(pool, own, h200, ("default", "exact", "tf32", "exact")))

    assert list(found) == [one.policy.name for one in asked] == ["exact", "tf32"]
    assert len({own.id, *(one.id for one in asked)}) == 3


def test_a_list_of_policies_is_read_and_checked() -> None:
    """Names are separated by commas; what is none of them is refused, with the known ones."""
    assert named_policies("") == ()
    assert named_policies("default, exact,exact") == ("default", "exact")
    with pytest.raises(UserError, match="bf16, default, exact"):
        named_policies("exact,fast")
