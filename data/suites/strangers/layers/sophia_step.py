"""One step of a clipped second-order optimiser over several parameters at once.

Momentum, Hessian estimate, decay, and the share clipped.
"""

import torch

ROWS = 4096
COLUMNS = 2048
SMALL_SIZES = [{"ROWS": 5, "COLUMNS": 7}, {"ROWS": 16, "COLUMNS": 32}]


class Model(torch.nn.Module):
    def __init__(self, lr=1e-3, b1=0.965, rho=0.04, decay=0.1, batch=480):
        super().__init__()
        self.lr, self.b1, self.rho, self.decay, self.batch = lr, b1, rho, decay, batch

    def one(self, p, g, m, h):
        m = m.mul(self.b1).add(g.float(), alpha=1 - self.b1)
        ratio = (m.abs() / (self.rho * self.batch * h + 1e-15)).clamp(None, 1)
        new = p.float().mul(1 - self.lr * self.decay)
        new = new.addcmul(m.sign(), ratio, value=-self.lr)
        return new.to(p.dtype), m, (ratio == 1).sum()

    def forward(self, params, grads, moments, hessians):
        news, ms, clipped, total = [], [], 0, 0
        for p, g, m, h in zip(params.unbind(0), grads.unbind(0), moments.unbind(0), hessians.unbind(0), strict=True):
            new, m, c = self.one(p, g, m, h)
            news.append(new)
            ms.append(m)
            clipped = clipped + c
            total += p.numel()
        return torch.stack(news), torch.stack(ms), clipped.float() / total


def get_inputs():
    s = (3, ROWS, COLUMNS)
    return [torch.randn(s, dtype=torch.bfloat16), torch.randn(s, dtype=torch.bfloat16) * 1e-2, torch.randn(s) * 1e-2, torch.rand(s) * 1e-3]


def get_init_inputs():
    return []
