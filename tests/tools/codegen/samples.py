"""Small references of every family, in both file forms."""

from __future__ import annotations

FUNCTION_HEAD = "import torch\nimport torch.nn.functional as F\n\nROWS = 33\nCOLS = 70\n\n"
FUNCTION_TAIL = "\n\ndef example_inputs():\n    return ({inputs},)\n"
XY = "torch.randn(ROWS, COLS), torch.randn(ROWS, COLS)"


def function(body: str, inputs: str = "torch.randn(ROWS, COLS)", arguments: str = "x") -> str:
    """Write a reference of the plain form that returns `body`."""
    return f"{FUNCTION_HEAD}def sample({arguments}):\n    return {body}\n{FUNCTION_TAIL.format(inputs=inputs)}"


MODULES = '''import torch
from torch import nn
import torch.nn.functional as F

BATCH = 3
STEPS = 12
DIM = 24
WIDE = 40


class Model(nn.Module):
    """A transformer's feed-forward block."""

    def __init__(self, dim, wide):
        super(Model, self).__init__()
        self.norm = nn.LayerNorm(dim)
        self.net = nn.Sequential(nn.Linear(dim, wide), nn.GELU(), nn.Linear(wide, dim, bias=False))
        self.scale = nn.Parameter(torch.randn(dim))

    def forward(self, x):
        return x + self.net(self.norm(x)) * self.scale


def get_inputs():
    return [torch.randn(BATCH, STEPS, DIM)]


def get_init_inputs():
    return [DIM, WIDE]
'''

CHANNELS = """import torch
from torch import nn
import torch.nn.functional as F

BATCH = 3
CHANNELS = 8
HEIGHT = 9
WIDTH = 10


class Model(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.conv = nn.Conv2d(channels, channels, 3, padding=1)
        self.norm = nn.GroupNorm(4, channels)
        self.slope = nn.PReLU(channels)

    def forward(self, x):
        y = self.norm(self.slope(self.conv(x)))
        return torch.sigmoid(y), y.mean(dim=(2, 3)), F.instance_norm(x), torch.softmax(x, dim=1)


def get_inputs():
    return [torch.randn(BATCH, CHANNELS, HEIGHT, WIDTH)]


def get_init_inputs():
    return [CHANNELS]
"""

SAMPLES: dict[str, str] = {
    "activations": function(
        "(torch.tanh(x), F.elu(x), F.selu(x), F.softplus(x * 10), F.mish(x * 8), F.hardswish(x), F.leaky_relu(x), F.logsigmoid(x), "
        "F.gelu(x), F.gelu(x, approximate='tanh'), F.softshrink(x), F.hardtanh(x), F.softsign(x), F.silu(x), F.hardsigmoid(x))"
    ),
    "arithmetic": function(
        "(x**3, x.abs() ** 0.5, x.abs() ** 1.7, 2.0**x, 1 / x, "
        "torch.exp(x * 5), torch.log1p(x.abs()), torch.expm1(x * 0.1), "
        "torch.rsqrt(x.abs() + 1), torch.maximum(x, y), torch.lerp(x, y, 0.3), torch.addcmul(x, x, y, value=0.5), torch.sign(x), "
        "2 - x, torch.sin(x), torch.logaddexp(x * 5, y), torch.logaddexp(x / 0, x / 0))",
        XY,
        "x, y",
    ),
    "angles": function(
        "(torch.atan(3 * x), torch.atan2(x, y), torch.hypot(x, y), torch.asin(torch.tanh(x)), torch.acos(torch.tanh(x)), torch.asinh(x), "
        "torch.atanh(0.9 * torch.tanh(x)), torch.tan(torch.tanh(x)), torch.log10(x.abs() + 0.1))",
        XY,
        "x, y",
    ),
    "angles_of_zeros": function(
        "(torch.atan2(x * 0.0, y), torch.atan2(x, y * 0.0), torch.atan2(x * 0.0, y * 0.0), torch.asin(x.clamp(-1, 1)))", XY, "x, y"
    ),
    "quotients": function(
        "(torch.trunc(3 * x), torch.frac(3 * x), torch.fmod(5 * x, 1.5), torch.remainder(5 * x, 1.5), x % y, x // 0.7, "
        "torch.div(x, y, rounding_mode='trunc'), torch.fmax(x, y), i << 2, torch.fmod(i, 3), torch.div(i, 3, rounding_mode='trunc'))",
        f"{XY}, torch.randint(-20, 20, (ROWS, COLS))",
        "x, y, i",
    ),
    "written_out": function(
        "((x > 2).any(1), (x > -3).all(0), torch.diff(x, dim=1), torch.linalg.norm(x, dim=-1), torch.xlogy(x.abs(), y.abs()), "
        "torch.nansum(x, 1), torch.sinc(x), torch.nan_to_num(x.bfloat16()).roll(1, 0), "
        "F.binary_cross_entropy(torch.sigmoid(x), torch.sigmoid(y)), *torch.var_mean(x, 1))",
        XY,
        "x, y",
    ),
    "short_numbers": function(
        "((i + j).float() / 255, i - j < 7, (i << 3 >> 2).int(), ~i, (-i).float() + (~k).float(), (k * k).int() + 1, k.abs().int())",
        "torch.randint(0, 256, (ROWS, COLS)).byte(), torch.randint(0, 256, (ROWS, COLS)).byte(), "
        "torch.randint(-(2**15), 2**15, (ROWS, COLS)).short()",
        "i, j, k",
    ),
    "wrapped_numbers": function(
        "(((i & 0x7FFFFFFF) + 1500000000) % 7, ((i & 0x7FFFFFFF) + 1500000000) // 5, "
        "((i.long() & 0xFFFFFFFF) * 2654435761) % 2**32, (i.long() & 0xFFFFFFFF).int() % 7)",
        "torch.randint(-(2**31), 2**31 - 1, (ROWS, COLS), dtype=torch.int32)",
        "i",
    ),
    "numbers_compared": function(
        "(u > -1, k < 200, h == 0.1, h < 0.7)",
        "torch.randint(0, 256, (ROWS, COLS)).byte(), torch.randint(-128, 128, (ROWS, COLS)).to(torch.int8), "
        "(torch.randint(-10, 10, (ROWS, COLS)) / 10).bfloat16()",
        "u, k, h",
    ),
    "truths_added": function(
        "((x > 0) + (y > 0), ((x > 0) + (y > 0)).sum(1), (x > 0).add(y > 0, alpha=False), (x > 0) + True)", XY, "x, y"
    ),
    "infinite_divisors": function(
        "(torch.fmod(x, torch.where(y > 0, torch.inf, 2.0)), torch.remainder(x, torch.where(y > 0, torch.inf, -2.0)), x // torch.inf, "
        "x.masked_fill(y > 0, torch.inf) % torch.inf)",
        XY,
        "x, y",
    ),
    "cut_sums_and_borders": function(
        "(((y > 0).view(len(y), 2, 7).to(torch.int32) << torch.arange(7, device=x.device, dtype=torch.int32)).sum(-1).to(torch.uint8), "
        "(x * 1e8).to(torch.int32).sum(1).to(torch.int32), F.pad(x, (2, 2))[:, 1:-3] - F.pad(x, (2, 2), mode='reflect')[:, 4:], "
        "F.pad(x, (1, 1, 1, 1))[1:-1, 1:-1] * F.pad(x, (1, 1, 1, 1))[:-2, 2:])",
        "torch.randn(ROWS, COLS), torch.randn(ROWS, 14)",
        "x, y",
    ),
    "small_products": function(
        "(torch.cross(p, p.flip(-1), dim=-1), p @ q, F.linear(p, q, p[0]), torch.bmm(p[:, None] * q, q.expand(len(p), 3, 3)), p.prod(-1))",
        "torch.randn(ROWS, 3), torch.randn(3, 3)",
        "p, q",
    ),
    "scanned_pieces": function(
        "(torch.cumprod(torch.cat((torch.ones_like(x[:, :1]), 1 - x * x), 1), 1)[:, :-1] * x, "
        "F.pad(torch.softmax(x[:, :20], -1).cumsum(-1), (1, 0)).gather(1, i))",
        "torch.randn(ROWS, COLS), torch.randint(0, 20, (ROWS, 3))",
        "x, i",
    ),
    "running_extremes": function(
        "(*torch.cummax(x, 1), torch.cummin(x, 0)[0], torch.cummax(i, 1)[0].roll(1, 1))",
        "torch.randn(ROWS, COLS), torch.randint(0, 9, (ROWS, COLS))",
        "x, i",
    ),
    "running_logs": function(
        "(torch.logcumsumexp(x * 9, 1), torch.logcumsumexp(torch.where(x > 1, x, -torch.inf), 0), torch.logcumsumexp(x[:, :5].half(), 1))",
        "torch.randn(ROWS, COLS)",
    ),
    "one_tensor": function(
        "(torch.einsum('nii->n', x), torch.einsum('nij,nkj->nki', x, y), torch.einsum('nij->j', y))",
        "torch.randn(ROWS, 3, 3), torch.randn(ROWS, 5, 3)",
        "x, y",
    ),
    "whole_powers": function("((2 ** torch.arange(6)) * (x[:, :6] > 0), x * 2 ** (x[:, :1] > 0).long())"),
    "split_again": function("torch.softmax(x.flatten(1), -1).view(x.shape).sum(1)", "torch.randn(4, ROWS, COLS)"),
    "formulas": function(
        "((x.unfold(1, 3, 1) * torch.tensor([0.25, 0.5, 0.25])).sum(-1), torch.eye(len(x))[:, :5] + x[:, :1], "
        "torch.linspace(-1, 1, 11) * x[:, :1], x * 2.0 ** -torch.arange(x.shape[1]), "
        "x[:, torch.tensor([0, 2, 5, 4])] - torch.tensor([[0.5, 1.0, -2.0, 3.0]]))",
    ),
    "dtypes": function(
        "(x.to(torch.float16), (x > 0) & (y > 0), (x > 0).float() * y, x.half() + y.half(), x - y.int(), torch.where(x > y, x, 0.0), "
        "x.masked_fill(x < 0, float('-inf')), torch.clamp(x, -0.3, 0.7), x.half().float() * y)",
        XY,
        "x, y",
    ),
    "broadcast": function(
        "(torch.relu(x * row + col) * scalar, x.transpose(0, 1) * 2 + 1)",
        "torch.randn(ROWS, COLS), torch.randn(ROWS, 1), torch.randn(COLS), torch.randn(())",
        "x, row, col, scalar",
    ),
    "shifted": function("F.relu(x[:, 1:]) * x[:, :-1]"),
    "gated": function("F.silu(x.chunk(2, dim=-1)[0]) * x.chunk(2, dim=-1)[1]", "torch.randn(5, ROWS, 2 * COLS)"),
    "permuted": function("torch.tanh(y.transpose(1, 2)) + x", "torch.randn(4, ROWS, COLS), torch.randn(4, COLS, ROWS)", "x, y"),
    "softmax": function("(torch.softmax(x * 3, -1), torch.log_softmax(x, -1), torch.logsumexp(x, 1))"),
    "strided_softmax": function("torch.softmax(x, dim=1)", "torch.randn(3, ROWS, COLS)"),
    "reductions": function(
        "(x.sum(-1), x.mean(-1, keepdim=True), x.amax(1), x.min(dim=1)[0], x.var(1), x.std(dim=1), torch.norm(x, dim=1))"
    ),
    "outer_reductions": function(
        "(x.sum(1), x.mean((0, 2)), x.var(dim=0), x.amax((0, 1)), x.sum(dim=(0, 1)))", "torch.randn(4, ROWS, COLS)"
    ),
    "whole": function("(x.sum(), x.mean(), x.std(), torch.norm(x), x.max())"),
    "arguments": function("(x.argmax(1), x.argmin(dim=0), x.max(1)[1])"),
    "rms": function(
        "x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * w + x", "torch.randn(ROWS, COLS), torch.randn(COLS)", "x, w"
    ),
    "centred": function("(x - x.mean(-1, keepdim=True)) / x.std(-1, keepdim=True)", "torch.randn(ROWS, COLS) + 100"),
    "normalised": function("x / torch.norm(x, p=2, dim=1, keepdim=True)"),
    "cross_entropy": function(
        "(F.cross_entropy(x, t), F.nll_loss(torch.log_softmax(x, 1), t))",
        "torch.randn(ROWS, COLS), torch.randint(0, COLS, (ROWS,))",
        "x, t",
    ),
    "weighted_losses": function(
        "(F.cross_entropy(x, t, w, ignore_index=3, label_smoothing=0.2), F.cross_entropy(x, t, label_smoothing=0.1, reduction='none'))",
        "torch.randn(ROWS, COLS), torch.randint(0, COLS, (ROWS,)), torch.rand(COLS)",
        "x, t, w",
    ),
    "losses": function(
        "(F.mse_loss(x, y), F.smooth_l1_loss(x, y), F.huber_loss(x, y), F.l1_loss(x, y, reduction='sum'), "
        "F.kl_div(torch.log_softmax(x, -1), torch.softmax(y, -1), reduction='batchmean'))",
        XY,
        "x, y",
    ),
    "half_softmax": function("torch.softmax(x, -1)", "torch.randn(ROWS, COLS, dtype=torch.float16)"),
    "products": function(
        "(F.relu(x @ y - 1), torch.addmm(b, x, y), x + F.linear(x, x[0:1].expand(x.shape[1], -1)), torch.bmm(z, z.transpose(1, 2)) * 0.3)",
        "torch.randn(ROWS, COLS), torch.randn(COLS, ROWS), torch.randn(ROWS, ROWS), torch.randn(3, ROWS, COLS)",
        "x, y, b, z",
    ),
    "half_product": function(
        "torch.tanh(x @ y)", "torch.randn(ROWS, COLS, dtype=torch.float16), torch.randn(COLS, ROWS, dtype=torch.float16)", "x, y"
    ),
    "scans": function(
        "(torch.cumsum(x, 1), torch.cumsum(y * 2, dim=1) + 1, torch.cumprod(x * 0.1 + 1, -1), x.cumsum(0))",
        "torch.randn(ROWS, COLS), torch.randn(3, ROWS, COLS)",
        "x, y",
    ),
    "left_out": function(
        "torch.min(F.dropout(x, 0.0, True), torch.tensor(0.5)) * torch.tensor(3) + "
        "F.avg_pool1d(x[None, :, :9], 9)[0] * (0 * x.cumsum(0) + 1)"
    ),
    "pooling": function(
        "(torch.relu(F.max_pool2d(x, 3, stride=2, padding=1) * b), F.avg_pool2d(x, 2), F.max_pool1d(s, 4, stride=1, dilation=2), "
        "F.avg_pool2d(x, (3, 2), padding=(1, 0), count_include_pad=False), F.adaptive_avg_pool2d(x, 1), F.max_pool3d(x, 2))",
        "torch.randn(2, 4, ROWS, COLS), torch.randn(4, 1, 1), torch.randn(2, ROWS, COLS)",
        "x, b, s",
    ),
    "feed_forward": MODULES,
    "channels": CHANNELS,
}
"""By name: source text."""
