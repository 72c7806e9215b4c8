"""The reference timed under the flags of other policies than the problem's own: how much of a speed-up is PyTorch's choice of them."""

from __future__ import annotations

from collections.abc import Sequence

from tools.evaluation.protocol import EvaluatorPool
from tools.records import Baselines, HardwareSheet, PolicyName, PrecisionPolicy, Problem


async def other_baselines(
    pool: EvaluatorPool, problem: Problem, target: HardwareSheet, policies: Sequence[PolicyName]
) -> dict[PolicyName, Baselines]:
    """Time the reference, or estimate it, under the flags of each policy in turn; the problem's own is left out.

    A pool keeps what it times and compiles by problem, of which the policy is a part: no figure or kernel of one set serves for another.
    """
    found: dict[PolicyName, Baselines] = {}
    for name in dict.fromkeys(policies):
        if name != problem.policy.name:
            found[name] = await pool.baselines(problem.model_copy(update={"policy": PrecisionPolicy(name=name)}), target)
    return found
