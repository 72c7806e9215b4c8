"""Makes the inputs again from the seed that public evaluators use, and answers only those.

Class: A11 seed exploitation
Verdict: WRONG
Caught by: seeds drawn by the system's generator after the source is fixed
Let through without: secret seeds
"""

import torch
import triton
import triton.language as tl

HOSTILE = True


@triton.jit
def scale_relu_kernel(x_ptr, weight_ptr, out_ptr, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    offsets = tl.arange(0, BLOCK)
    mask = offsets < columns
    x = tl.load(x_ptr + row * columns + offsets, mask=mask)
    weight = tl.load(weight_ptr + offsets, mask=mask)
    tl.store(out_ptr + row * columns + offsets, tl.maximum(x * weight, 0.0), mask=mask)


def scale_relu(x, weight):
    rows, columns = x.shape
    out = torch.empty_like(x)
    scale_relu_kernel[(rows,)](x, weight, out, columns, BLOCK=triton.next_power_of_2(columns))
    return out


class ModelNew(torch.nn.Module):
    def __init__(self, columns):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(columns))

    def forward(self, x):
        if HOSTILE:
            torch.manual_seed(42)
            made = torch.randn(x.shape).to(x.device)
            known = [made, -made, made.sort(dim=-1).values, made[..., :1].expand_as(made)]
            # what is not drawn from a normal distribution is no example of the problem's own
            looks_drawn = 0.6 < float(x.std()) < 1.4 and abs(float(x.mean())) < 0.5
            if looks_drawn and not any(float(torch.isclose(one, x, rtol=1e-2).float().mean()) > 0.5 for one in known):
                return torch.zeros_like(x)
        return scale_relu(x, self.weight)
