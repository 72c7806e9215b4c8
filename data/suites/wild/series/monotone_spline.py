"""Passes numbers through monotone rational splines, one of ten pieces to each number, with the logarithms of the slopes.

Occurs in normalising flows and in forecasts of whole distributions. Memory-bound: softmaxes, running sums and a search of eleven elements.
"""

import torch

NUMBERS = 131072
PIECES = 10
SMALL_SIZES = [{"NUMBERS": 37}, {"NUMBERS": 64}]


def monotone_spline(numbers, widths, heights, slopes):
    knots = []
    for share in (widths, heights):
        share = 1e-3 + (1 - 1e-3 * PIECES) * torch.softmax(share.float(), -1)
        knots.append(torch.nn.functional.pad(share.cumsum(-1), (1, 0)) * 6 - 3)
    slopes = 1e-3 + torch.nn.functional.softplus(slopes.float())
    x = numbers.clamp(-2.999, 2.999)
    piece = (x[:, None] >= knots[0][:, :-1]).sum(-1, keepdim=True) - 1
    left, right, low, high, first, second = (table.gather(1, piece + shift).squeeze(1) for table in (*knots, slopes) for shift in (0, 1))
    t, steep = (x - left) / (right - left), (high - low) / (right - left)
    below = steep + (first + second - 2 * steep) * t * (1 - t)
    y = low + (high - low) * (steep * t * t + first * t * (1 - t)) / below
    slope = steep * steep * (second * t * t + 2 * steep * t * (1 - t) + first * (1 - t) * (1 - t))
    inside = numbers.abs() < 3
    return torch.where(inside, y, numbers), torch.where(inside, torch.log(slope) - 2 * torch.log(below), 0.0)


def example_inputs():
    tables = (torch.randn(NUMBERS, size, dtype=torch.bfloat16) for size in (PIECES, PIECES, PIECES + 1))
    return torch.randn(NUMBERS) * 2, *tables
