import torch
import triton
import triton.language as tl


@triton.jit
def product_kernel(x_ptr, packed_ptr, scale_ptr, y_ptr, m, n, half, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr):
    """x [m, 2 half], packed [n, half] -> y [m, n]: a byte is read once and split in registers; even and odd columns are two products."""
    rows = tl.program_id(1) * BLOCK_M + tl.arange(0, BLOCK_M)
    cols = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    inner = tl.arange(0, BLOCK_K)
    total = tl.zeros([BLOCK_M, BLOCK_N], tl.float32)
    for start in range(0, half, BLOCK_K):
        at = start + inner
        mask_x = (rows[:, None] < m) & (at[None, :] < half)
        even = tl.load(x_ptr + rows[:, None] * 2 * half + 2 * at[None, :], mask=mask_x, other=0.0)
        odd = tl.load(x_ptr + rows[:, None] * 2 * half + 2 * at[None, :] + 1, mask=mask_x, other=0.0)
        mask_w = (cols[None, :] < n) & (at[:, None] < half)
        packed = tl.load(packed_ptr + cols[None, :].to(tl.int64) * half + at[:, None], mask=mask_w, other=0x88).to(tl.int32)
        total += tl.dot(even, ((packed & 15) - 8).to(tl.float32), input_precision="ieee")
        total += tl.dot(odd, ((packed >> 4) - 8).to(tl.float32), input_precision="ieee")
    # one scale a row of weights: it waits until the sum is done
    total *= tl.load(scale_ptr + cols, mask=cols < n, other=0.0)[None, :]
    tl.store(y_ptr + rows[:, None] * n + cols[None, :], total, mask=(rows[:, None] < m) & (cols[None, :] < n))


class ModelNew(torch.nn.Module):
    def forward(self, x, packed, scale):
        m = x.shape[0]
        n, half = packed.shape
        y = torch.empty(m, n, device=x.device, dtype=x.dtype)
        BLOCK_M, BLOCK_N = 16, 32
        grid = (triton.cdiv(n, BLOCK_N), triton.cdiv(m, BLOCK_M))
        product_kernel[grid](x, packed, scale, y, m, n, half, BLOCK_M=BLOCK_M, BLOCK_N=BLOCK_N, BLOCK_K=32, num_warps=4, num_stages=3)
        return y
