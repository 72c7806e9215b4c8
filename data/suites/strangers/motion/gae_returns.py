"""Generalised advantages of rollouts, run backwards, and made zero mean and unit variance."""

import torch

STEPS = 128
ENVS = 8192
SMALL_SIZES = [{"STEPS": 6, "ENVS": 5}, {"STEPS": 9, "ENVS": 32}]


class Model(torch.nn.Module):
    def __init__(self, gamma, lam):
        super().__init__()
        self.gamma = gamma
        self.lam = lam

    def forward(self, rewards, values, dones, last_value):
        T = rewards.shape[0]
        advantages = torch.zeros_like(rewards)
        running = torch.zeros_like(last_value)
        for t in reversed(range(T)):
            next_value = last_value if t == T - 1 else values[t + 1]
            alive = 1.0 - dones[t].float()
            delta = rewards[t] + self.gamma * next_value * alive - values[t]
            running = delta + self.gamma * self.lam * alive * running
            advantages[t] = running
        returns = advantages + values
        advantages = (advantages - advantages.mean()) / (advantages.std() + 1e-8)
        return advantages, returns


def get_inputs():
    return [torch.randn(STEPS, ENVS), torch.randn(STEPS, ENVS), torch.rand(STEPS, ENVS) < 0.05, torch.randn(ENVS)]


def get_init_inputs():
    return [0.99, 0.95]
