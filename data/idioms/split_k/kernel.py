import torch
import triton
import triton.language as tl


@triton.jit
def partial_kernel(x_ptr, w_ptr, part_ptr, m, n, k, k_each, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr):
    """x [m, k], w [k, n] -> part [splits, m, n]: program (tile, split) adds up its share of the sum."""
    tiles_n = tl.cdiv(n, BLOCK_N)
    rows = (tl.program_id(0) // tiles_n) * BLOCK_M + tl.arange(0, BLOCK_M)[:, None]
    cols = (tl.program_id(0) % tiles_n) * BLOCK_N + tl.arange(0, BLOCK_N)[None, :]
    first = tl.program_id(1) * k_each
    last = tl.minimum(first + k_each, k)
    inner = tl.arange(0, BLOCK_K)
    total = tl.zeros([BLOCK_M, BLOCK_N], tl.float32)
    for start in range(first, last, BLOCK_K):
        at = start + inner
        x = tl.load(x_ptr + rows * k + at[None, :], mask=(rows < m) & (at[None, :] < last), other=0.0)
        w = tl.load(w_ptr + at[:, None].to(tl.int64) * n + cols, mask=(at[:, None] < last) & (cols < n), other=0.0)
        total += tl.dot(x, w, input_precision="ieee")
    where = part_ptr + (tl.program_id(1).to(tl.int64) * m + rows) * n + cols
    tl.store(where, total, mask=(rows < m) & (cols < n))


@triton.jit
def add_kernel(part_ptr, y_ptr, numel, SPLITS: tl.constexpr, BLOCK: tl.constexpr):
    """part [splits, numel] -> y, always in the same order: equal inputs give equal bits."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    total = tl.zeros([BLOCK], tl.float32)
    for split in range(SPLITS):
        total += tl.load(part_ptr + split * numel + at, mask=at < numel, other=0.0)
    tl.store(y_ptr + at, total, mask=at < numel)


class ModelNew(torch.nn.Module):
    def forward(self, x, w):
        m, k = x.shape
        n = w.shape[1]
        BLOCK_M, BLOCK_N, BLOCK_K, SPLITS = 16, 64, 64, 32
        part = torch.empty(SPLITS, m, n, device=x.device, dtype=torch.float32)
        y = torch.empty(m, n, device=x.device, dtype=x.dtype)
        k_each = triton.cdiv(triton.cdiv(k, SPLITS), BLOCK_K) * BLOCK_K
        tiles = triton.cdiv(m, BLOCK_M) * triton.cdiv(n, BLOCK_N)
        partial_kernel[(tiles, SPLITS)](
            x, w, part, m, n, k, k_each, BLOCK_M=BLOCK_M, BLOCK_N=BLOCK_N, BLOCK_K=BLOCK_K, num_warps=4, num_stages=3
        )
        add_kernel[(triton.cdiv(m * n, 256),)](part, y, m * n, SPLITS=SPLITS, BLOCK=256, num_warps=4)
        return y
