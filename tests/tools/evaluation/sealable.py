"""Candidates for the tests of launch plans, with the references they are held against on a GPU."""

from __future__ import annotations

_HEAD = "import torch\nimport triton\nimport triton.language as tl\n"

_MAKES_OUT = """class ModelNew(torch.nn.Module):
    def __init__(self, size):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.empty(size, size))

    def forward(self, x):
        m, k = x.shape
        n = self.weight.shape[1]
        out = torch.empty((m, n), device=x.device, dtype=x.dtype)"""

SOFTMAX_REFERENCE = """
import torch

rows = 8000
columns = 4000
SMALL_SIZES = [{"rows": 5, "columns": 129}]


def softmax(x):
    return torch.softmax(x, -1)


def example_inputs():
    return (torch.randn(rows, columns),)
"""

SOFTMAX = (
    _HEAD
    + """

@triton.jit
def softmax_kernel(x_ptr, out_ptr, columns, scale, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    offsets = tl.arange(0, BLOCK)
    mask = offsets < columns
    x = tl.load(x_ptr + row * columns + offsets, mask=mask, other=-float("inf")) * scale
    e = tl.exp(x - tl.max(x, 0))
    tl.store(out_ptr + row * columns + offsets, e / tl.sum(e, 0), mask=mask)


class ModelNew(torch.nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        softmax_kernel[(x.shape[0],)](x, out, x.shape[1], 1.0, BLOCK=triton.next_power_of_2(x.shape[1]), num_warps=8)
        return out
"""
)

MATMUL_REFERENCE = """
import torch

size = 2048
SMALL_SIZES = [{"size": 96}]


class Model(torch.nn.Module):
    def __init__(self, size):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.randn(size, size) / size**0.5)

    def forward(self, x):
        return x @ self.weight


def get_inputs():
    return [torch.randn(size, size)]


def get_init_inputs():
    return [size]
"""

MATMUL = (
    _HEAD
    + """

@triton.jit
def matmul_kernel(a_ptr, b_ptr, c_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    rm = tl.program_id(0) * BM + tl.arange(0, BM)
    rn = tl.program_id(1) * BN + tl.arange(0, BN)
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(0, K, BK):
        rk = k + tl.arange(0, BK)
        a = tl.load(a_ptr + rm[:, None] * K + rk[None, :], mask=(rm[:, None] < M) & (rk[None, :] < K), other=0.0)
        b = tl.load(b_ptr + rk[:, None] * N + rn[None, :], mask=(rk[:, None] < K) & (rn[None, :] < N), other=0.0)
        acc += tl.dot(a, b, input_precision="tf32x3")
    tl.store(c_ptr + rm[:, None] * N + rn[None, :], acc, mask=(rm[:, None] < M) & (rn[None, :] < N))


MAKES_OUT
        grid = (triton.cdiv(m, 128), triton.cdiv(n, 128))
        matmul_kernel[grid](x, self.weight, out, m, n, k, BM=128, BN=128, BK=32, num_warps=8, num_stages=3)
        return out
""".replace("MAKES_OUT", _MAKES_OUT)
)

TILES = (
    _HEAD
    + """from triton.tools.tensor_descriptor import TensorDescriptor


@triton.jit
def tiles_kernel(a_tiles, b_tiles, c_tiles, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    row, column = tl.program_id(0) * BM, tl.program_id(1) * BN
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(0, K, BK):
        acc += tl.dot(a_tiles.load([row, k]), b_tiles.load([k, column]), input_precision="tf32x3")
    c_tiles.store([row, column], acc)


MAKES_OUT
        a, b = TensorDescriptor.from_tensor(x, [128, 32]), TensorDescriptor.from_tensor(self.weight, [32, 64])
        grid = (triton.cdiv(m, 128), triton.cdiv(n, 64))
        tiles_kernel[grid](a, b, TensorDescriptor.from_tensor(out, [128, 64]), k, BM=128, BN=64, BK=32, num_warps=8, num_stages=3)
        return out
""".replace("MAKES_OUT", _MAKES_OUT)
)

PACKED = (
    MATMUL.replace(
        "class ModelNew",
        """@triton.jit
def turn_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    row = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)[:, None]
    column = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)[None, :]
    mask = (row < n) & (column < n)
    tl.store(out_ptr + column * n + row, tl.load(x_ptr + row * n + column, mask=mask), mask=mask)


class ModelNew""",
    )
    .replace("b_ptr + rk[:, None] * N + rn[None, :]", "b_ptr + rn[None, :] * K + rk[:, None]")
    .replace(
        "    def forward(self, x):",
        """    def pack_weights(self):
        self.turned = torch.empty_like(self.weight)
        n = self.weight.shape[0]
        turn_kernel[(triton.cdiv(n, 64), triton.cdiv(n, 64))](self.weight, self.turned, n, BLOCK=64)

    def forward(self, x):""",
    )
    .replace("matmul_kernel[grid](x, self.weight, out", "matmul_kernel[grid](x, self.turned, out")
)
"""The product, of weights that lie the other way about: turned in a step of its own."""

PACKED_BY_THE_LIBRARY = PACKED.replace(
    """        self.turned = torch.empty_like(self.weight)
        n = self.weight.shape[0]
        turn_kernel[(triton.cdiv(n, 64), triton.cdiv(n, 64))](self.weight, self.turned, n, BLOCK=64)
""",
    """        zeros = torch.zeros(self.weight.shape[0], device=self.weight.device)
        is_positive = self.weight > 0
        both = torch.stack([torch.where(is_positive, self.weight, zeros), torch.where(is_positive, zeros, self.weight)])
        turned = both.double().sum(0).float().t()
        self.turned = torch.empty(turned.shape, device=turned.device)
        self.turned[:5].copy_(turned[:5])
        self.turned[5:].copy_(turned[5:])
""",
)
"""The same by operators of torch, and no kernel: positive and negative weights are put together again."""

SUM_REFERENCE = """
import torch

rows = 64
columns = 1 << 20
SMALL_SIZES = [{"rows": 3, "columns": 5000}]


def rows_sum(x):
    return x.sum(-1)


def example_inputs():
    return (torch.randn(rows, columns),)
"""

SUM = (
    _HEAD
    + """

@triton.jit
def partial_kernel(x_ptr, out_ptr, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    offsets = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * columns + offsets, mask=offsets < columns, other=0.0)
    tl.atomic_add(out_ptr + row, tl.sum(x, 0))


class ModelNew(torch.nn.Module):
    def forward(self, x):
        rows, columns = x.shape
        out = torch.zeros(rows, device=x.device, dtype=x.dtype)
        HOST
        partial_kernel[(rows, triton.cdiv(columns, 8192))](x, out, columns, BLOCK=8192)
        return out
"""
)


def sum_with(lines: str) -> str:
    """The split reduction with lines of host code before its launch."""
    return SUM.replace("        HOST", "\n".join("        " + line for line in lines.strip().splitlines()))


TUNED = SOFTMAX.replace(
    "@triton.jit",
    """@triton.autotune([triton.Config({}, num_warps=2), triton.Config({}, num_warps=8), triton.Config({}, num_warps=16)], key=["columns"])
@triton.heuristics({"BLOCK": lambda given: triton.next_power_of_2(given["columns"])})
@triton.jit""",
).replace(", BLOCK=triton.next_power_of_2(x.shape[1]), num_warps=8)", ")")
"""The softmax, autotuned over warps, with a heuristic for its block."""

BETWEEN_CALLS = (
    SOFTMAX.replace(
        "        out = torch.empty_like(x)\n",
        "        x = x.t().contiguous().t().neg().neg()\n        out = torch.empty(x.shape, device=x.device)\n",
    )
    .replace("        return out", "        return torch.where(out < 0, out.neg(), out)")
    .replace("row * columns + offsets, mask=mask, other", "row + offsets * tl.num_programs(0), mask=mask, other")
)
"""The softmax between calls of torch that turn its input over and negate it twice, and one that does nothing to its result."""

GRAPHED = SOFTMAX.replace(
    """class ModelNew(torch.nn.Module):
    def forward(self, x):
        out""",
    """class ModelNew(torch.nn.Module):
    def forward(self, x):
        known = self.__dict__.setdefault("graphs", {})
        if x.shape not in known:
            given = x.clone()
            self.launch(given)
            torch.cuda.synchronize()
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph):
                out = self.launch(given)
            known[x.shape] = given, graph, out
        given, graph, out = known[x.shape]
        given.copy_(x)
        graph.replay()
        return out.clone()

    def launch(self, x):
        out""",
)
"""The softmax, replayed as a CUDA graph on a copy of its input."""

CONVOLVED_REFERENCE = """
import torch

images, size = 32, 96
SMALL_SIZES = [{"images": 2, "size": 11}]


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = torch.nn.Conv2d(16, 32, 3, padding=1)

    def forward(self, x):
        return torch.nn.functional.max_pool2d(torch.tanh(self.conv(x)), 2)


def get_inputs():
    return [torch.randn(images, 16, size, size)]


def get_init_inputs():
    return []
"""

CONVOLVED = (
    _HEAD
    + """

@triton.jit
def tanh_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask)
    e = tl.exp(-2.0 * tl.abs(x))
    y = tl.where(tl.abs(x) < 0.01, x * (1.0 - x * x / 3.0), tl.where(x < 0, -1.0, 1.0) * (1.0 - e) / (1.0 + e))
    tl.store(out_ptr + offsets, y, mask=mask)


class ModelNew(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = torch.nn.Conv2d(16, 32, 3, padding=1)

    def forward(self, x):
        x = self.conv(x)
        out = torch.empty_like(x)
        tanh_kernel[(triton.cdiv(x.numel(), 1024),)](x, out, x.numel(), BLOCK=1024)
        return torch.nn.functional.max_pool2d(out, 2)
"""
)
"""A kernel between cuDNN's convolution and torch's pooling, whose second result nobody reads."""

ATTENTION_REFERENCE = """
import torch

length = 1024
SMALL_SIZES = [{"length": 17}]


def attend(q, k, v):
    return torch.nn.functional.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(2, length, 512) * 2.0


def example_inputs():
    return tuple(torch.randn(2, 8, length, 64) for _ in range(3))
"""

ATTENTION = (
    _HEAD
    + """

@triton.jit
def double_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    tl.store(out_ptr + offsets, tl.load(x_ptr + offsets, mask=mask) * 2, mask=mask)


class ModelNew(torch.nn.Module):
    def forward(self, q, k, v):
        x = torch.nn.functional.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(2, q.shape[2], 512)
        out = torch.empty_like(x)
        double_kernel[(triton.cdiv(x.numel(), 1024),)](x, out, x.numel(), BLOCK=1024)
        return out
"""
)
"""A kernel behind torch's attention, which lies as the fused kernels leave it: no copy is made of it."""
