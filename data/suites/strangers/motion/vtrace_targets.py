"""V-trace targets of an off-policy actor-critic from the logits of both policies."""

import torch
import torch.nn.functional as F

T = 80
B = 1024
A = 18
SMALL_SIZES = [{"T": 5, "B": 3, "A": 4}, {"T": 8, "B": 16, "A": 6}]


class Model(torch.nn.Module):
    def forward(self, behaviour_logits, target_logits, actions, discounts, rewards, values, bootstrap):
        b = F.log_softmax(behaviour_logits.float(), -1).gather(-1, actions.unsqueeze(-1)).squeeze(-1)
        t = F.log_softmax(target_logits.float(), -1).gather(-1, actions.unsqueeze(-1)).squeeze(-1)
        rhos = torch.exp(t - b)
        clipped = torch.clamp(rhos, max=1.0)
        cs = torch.clamp(rhos, max=1.0) * 0.95
        next_values = torch.cat([values[1:], bootstrap.unsqueeze(0)], dim=0)
        deltas = clipped * (rewards + discounts * next_values - values)
        acc = torch.zeros_like(bootstrap)
        out = []
        for i in range(rewards.size(0) - 1, -1, -1):
            acc = deltas[i] + discounts[i] * cs[i] * acc
            out.append(acc)
        out.reverse()
        vs = torch.stack(out) + values
        vs_next = torch.cat([vs[1:], bootstrap.unsqueeze(0)], dim=0)
        pg = clipped * (rewards + discounts * vs_next - values)
        return vs, pg


def get_inputs():
    return [
        torch.randn(T, B, A, dtype=torch.float16),
        torch.randn(T, B, A, dtype=torch.float16),
        torch.randint(0, A, (T, B)),
        (torch.rand(T, B) > 0.02).float() * 0.99,
        torch.randn(T, B),
        torch.randn(T, B),
        torch.randn(B),
    ]


def get_init_inputs():
    return []
