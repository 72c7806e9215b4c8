"""Advantages of a trajectory's steps, from its end to its beginning, and the returns made of them.

Occurs in PPO (generalised advantage estimation). Memory-bound and tiny; bound by the chain of steps as written.
"""

import torch

ENVIRONMENTS = 65536
STEPS = 128
SMALL_SIZES = [{"ENVIRONMENTS": 37, "STEPS": 7}, {"ENVIRONMENTS": 64, "STEPS": 16}]


def advantage_estimate(rewards, values, going_on):
    advantage = torch.zeros_like(rewards[0])
    results = []
    for step in reversed(range(rewards.shape[0])):
        error = rewards[step] + 0.99 * values[step + 1] * going_on[step] - values[step]
        advantage = error + 0.99 * 0.95 * going_on[step] * advantage
        results.append(advantage)
    advantages = torch.stack(results[::-1])
    return advantages, advantages + values[:-1]


def example_inputs():
    return (
        torch.randn(STEPS, ENVIRONMENTS),
        torch.randn(STEPS + 1, ENVIRONMENTS),
        (torch.rand(STEPS, ENVIRONMENTS) < 0.98).float(),
    )
