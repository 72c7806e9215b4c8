"""Small references of the memory-bound families: reductions, norms, losses, pooling and scans, in shapes that are awkward."""

from __future__ import annotations

from tests.tools.codegen.samples import function

BATCH_NORM = """import torch
from torch import nn

BATCH = 5
WIDTH = 9


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.BatchNorm2d(3)
        self.flat = nn.BatchNorm1d(3, affine=False)
        self.bias = nn.Parameter(torch.randn(3, 1, 1))

    def forward(self, x):
        return torch.relu(self.norm(x) + self.bias) * 2, self.flat(x[:, :, 0, 0])


def get_inputs():
    return [torch.randn(BATCH, 3, 7, WIDTH) * 2 + 5]


def get_init_inputs():
    return []
"""

MEMORY_SAMPLES: dict[str, str] = {
    "batch_norm": BATCH_NORM,
    "in_pieces": function(
        "(x.mean((0, 2)), x.var((0, 2)), F.group_norm(x.transpose(0, 1), 3, w), torch.logsumexp(x, (0, 2)))",
        "torch.randn(4, 6, COLS) + 3, torch.randn(4)",
        "x, w",
    )
    .replace("F.group_norm(x.transpose(0, 1), 3, w)", "F.group_norm(x, 3, w)")
    .replace("torch.randn(4)", "torch.randn(6)"),
    "one_huge_row": function("(x / torch.norm(x), F.layer_norm(x, x.shape), x.abs().sum(), x.argmax())"),
    "sums_between": function(
        "(lambda s: torch.exp(s[:, :, None] - s[:, None, :]).tril() + torch.exp(s[:, -1:] - s)[:, None, :])"
        "((-4097.3 * x.relu().round()).cumsum(1))"
    ),
    "reversed_scans": function("(torch.cumsum(x.flip(1), dim=1).flip(1), x.flip(0).cumsum(0).flip(0) * 2, x.cumsum(1) * (x > 0))"),
    "each_with_each": function("((x[:, None] - y).abs().mean(), (x[:, None] - y).max())", "torch.randn(ROWS), torch.randn(COLS)", "x, y"),
    "hinge": function("torch.mean(torch.clamp(1 - x * y, min=0))", "torch.randn(ROWS, ROWS), torch.randn(ROWS)", "x, y"),
    "distances": function(
        "(F.triplet_margin_loss(x, y, z), F.triplet_margin_loss(x, y, z, margin=0.2, p=1, reduction='sum'), "
        "F.cosine_similarity(x, y, dim=1), F.cosine_similarity(x, z, dim=0, eps=30.0))",
        "torch.randn(ROWS, COLS), torch.randn(ROWS, COLS), torch.randn(ROWS, COLS)",
        "x, y, z",
    ),
    "classes": function(
        "(F.cross_entropy(x, t), F.nll_loss(x, t, reduction='sum'), F.cross_entropy(x * 2, t, ignore_index=3))",
        "torch.randn(ROWS, COLS), torch.randint(0, COLS, (ROWS,))",
        "x, t",
    ),
    "loss_and_gradient": function(
        "(*(lambda e: ((e * y).sum() / x.shape[0], e * (1 - y)))(x.exp()), *(lambda e: (e.logsumexp(1), e + 1))(x * y), "
        "*(lambda e: (e.amax(0), e * 2))(x - y))",
        "torch.randn(ROWS, COLS), torch.randn(ROWS, COLS)",
        "x, y",
    ),
    "pooled_view": function("(F.max_pool1d(x.unsqueeze(1), 3, padding=1).squeeze(1).sum(1), F.avg_pool2d(x[None, None], 3, 2, 1))"),
    "before_pooling": function(
        "(F.max_pool2d(torch.tanh(x * b + 1), 2) * 3, F.avg_pool2d(torch.exp(x) + b, 2, padding=1, count_include_pad=False), "
        "F.max_pool2d(x, 3, 2, 1, ceil_mode=True), F.avg_pool2d(x, 2, divisor_override=3), F.max_pool2d(x.permute(0, 2, 3, 1), 2), "
        "F.max_pool3d(x, 3, 1, padding=1))",
        "torch.randn(2, 4, ROWS, COLS), torch.randn(4, 1, 1)",
        "x, b",
    ),
    "pairs": function(
        "(F.max_pool2d(x, 3, 2, 1), F.max_pool2d(x, 2) * 2, F.avg_pool2d(x, 4, 2, 1), F.max_pool2d(x, 5, 2, 2, ceil_mode=True), "
        "F.avg_pool3d(x, 3, 2, 1), F.max_pool1d(x[0], 3, 2), F.avg_pool2d(x, 3, 2, 1, count_include_pad=False))",
        "torch.randn(1, 3, 18, 121).where(torch.rand(1, 3, 18, 121) > 0.01, float('nan'))",
    ),
    "vec4": function(
        "(F.avg_pool1d(x[0], 8, 1, 4) * b, torch.tanh(F.avg_pool2d(x, (3, 4), (2, 1), (1, 2))), F.avg_pool3d(x, 3, 1, 1), "
        "F.avg_pool2d(torch.exp(x) + b, (1, 3), 1, (0, 1)), F.avg_pool3d(x, 3, (1, 2, 1), 1, count_include_pad=False), "
        "F.avg_pool1d(x[0, :, :, 1:], 5, 1, 2), F.avg_pool1d(y, 3, 1, 1, count_include_pad=False))",
        "torch.randn(1, 4, 7, 144), torch.randn(4, 1, 1).abs(), torch.randn(3, 2, (ROWS - 4) * 5 - 2)",
        "x, b, y",
    ),
    "vec4_maxima": function(
        "(F.max_pool1d(x[0], 8, 1, 4, 3), F.max_pool2d(x, 4, 1, 1), F.max_pool2d(x, 5, (2, 1), 2, ceil_mode=True), "
        "F.max_pool3d(x, 2, 1, 1), F.max_pool2d(x[..., :-1], (2, 3), 1, 1, (1, 5)), F.max_pool1d(y, 4, 1, 2), F.max_pool1d(y, 2, 1, 1, 3))",
        "torch.randn(1, 3, 8, 144).where(torch.rand(1, 3, 8, 144) > 0.01, float('nan')), torch.randn(3, 2, (ROWS - 4) * 5 - 2)",
        "x, y",
    ),
    "adaptive_pooling": function(
        "(F.adaptive_avg_pool2d(torch.relu(x), (4, 6)) + 1, F.adaptive_avg_pool1d(x[0], 5), torch.tanh(F.adaptive_avg_pool2d(x, (9, 20))), "
        "F.adaptive_avg_pool3d(x, (2, 3, 10)))",
        "torch.randn(ROWS, 3, 9, 20)",
    ),
    "pooled_places": function(
        "(*F.max_pool2d(torch.tanh(x), 3, stride=2, padding=1, return_indices=True), F.max_pool3d(x, 2, return_indices=True)[1] + 1, "
        "F.max_pool1d(x[0], 4, stride=1, dilation=2, return_indices=True)[1], F.max_pool2d(x, 3, 2, 0, 1, True, return_indices=True)[0], "
        "F.max_pool2d(torch.where(x > 1, float('nan'), torch.floor(x)).masked_fill(x < -1, float('-inf')), 2, return_indices=True)[1])",
        "torch.randn(2, 4, ROWS, COLS)",
    ),
    "adaptive_maxima": function(
        "(F.adaptive_max_pool2d(x * 2, (4, 3)), F.adaptive_max_pool2d(x, (2, 3), return_indices=True)[1], F.adaptive_max_pool1d(x[0], 2), "
        "F.adaptive_max_pool2d(x, 1))",
        "torch.randn(ROWS, 2, 9, 20)",
    ),
    "triangles": function(
        "(torch.tril(x) + 1, torch.triu(y * 2, 1), torch.tril(y, -2) * x, torch.triu(x > 0), torch.tril(x.int(), 3), torch.tril(x[:1]), "
        "torch.triu(y.transpose(1, 2)))",
        "torch.randn(ROWS, COLS), torch.randn(3, ROWS, COLS)",
        "x, y",
    ),
    "triangles_along_rows": function(
        "(torch.softmax(y.masked_fill(torch.tril(x) == 0, float('-inf')), -1), torch.tril(y).sum(1), "
        "torch.triu(y.transpose(1, 2)).amax(1), torch.tril(x).argmax(1), torch.tril(y).cumsum(2), torch.tril(y).mean((1, 2)))",
        "torch.randn(ROWS, COLS), torch.randn(3, ROWS, COLS)",
        "x, y",
    ),
    "long_norms": function(
        "(torch.log_softmax(x * 3, -1) * w, torch.softmax(F.layer_norm(x, (x.shape[1],)), -1), F.group_norm(y, 3, v), "
        "x / torch.norm(x, dim=1, keepdim=True), torch.relu(F.instance_norm(y)), torch.softmax(x.masked_fill(x < 1, float('-inf')), 1))",
        "torch.randn(ROWS, COLS), torch.randn(COLS), torch.randn(4, 6, COLS) + 3, torch.randn(6)",
        "x, w, y, v",
    ),
    "fixed_norms": function(
        "(F.group_norm(y, 3, v), torch.relu(F.group_norm(z.permute(0, 3, 1, 2), 3, v)))",
        "torch.randn(4, 6, 50) + 3, torch.randn(4, 10, 5, 6), torch.randn(6)",
        "y, z, v",
    ),
    "extrema": function(
        "(torch.floor(x).argmax(1), x.masked_fill(x < 5, float('-inf')).argmax(1), *torch.min(torch.floor(x * 2), 0), y.argmin(1), "
        "torch.amin((y - y.mean(2, keepdim=True)).square(), 2), x.argmax())",
        "torch.randn(ROWS, COLS), torch.randn(3, ROWS, COLS)",
        "x, y",
    ),
    "minus_infinity": function("(torch.logsumexp(x.masked_fill(x < 5, float('-inf')), 1), torch.softmax(x * 50, 1))"),
}
"""By name: source text."""
