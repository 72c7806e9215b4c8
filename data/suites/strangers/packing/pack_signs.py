"""Signs of a gradient packed eight to a byte with one scale a row, and what the rounding left over (1-bit communication)."""

import torch

ROWS = 4096
COLUMNS = 8192
SMALL_SIZES = [{"ROWS": 3, "COLUMNS": 16}, {"ROWS": 8, "COLUMNS": 64}]


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("bits", torch.tensor([1, 2, 4, 8, 16, 32, 64, 128], dtype=torch.uint8))

    def forward(self, gradient, left_over):
        whole = gradient.float() + left_over.float()
        scale = whole.abs().mean(dim=1, keepdim=True)
        positive = whole >= 0
        packed = (positive.view(whole.shape[0], -1, 8).to(torch.uint8) * self.bits).sum(dim=-1, dtype=torch.uint8)
        rounded = torch.where(positive, scale, -scale)
        return packed, scale.squeeze(1).bfloat16(), (whole - rounded).to(left_over.dtype)


def get_inputs():
    return [torch.randn(ROWS, COLUMNS, dtype=torch.bfloat16), torch.randn(ROWS, COLUMNS, dtype=torch.bfloat16) * 0.3]


def get_init_inputs():
    return []
