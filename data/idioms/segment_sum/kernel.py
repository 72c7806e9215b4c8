import torch
import triton
import triton.language as tl


@triton.jit
def segment_kernel(x_ptr, order_ptr, starts_ptr, base_ptr, y_ptr, width, BLOCK_R: tl.constexpr, BLOCK_D: tl.constexpr):
    """Program (segment, tile of columns) owns its sum: no atomics, so equal inputs give equal bits."""
    segment = tl.program_id(0)
    cols = tl.program_id(1) * BLOCK_D + tl.arange(0, BLOCK_D)
    first = tl.load(starts_ptr + segment)
    last = tl.load(starts_ptr + segment + 1)
    total = tl.zeros([BLOCK_D], tl.float32)
    for start in range(first, last, BLOCK_R):
        place = start + tl.arange(0, BLOCK_R)
        row = tl.load(order_ptr + place, mask=place < last, other=0)
        mask = (place[:, None] < last) & (cols[None, :] < width)
        total += tl.sum(tl.load(x_ptr + row[:, None] * width + cols[None, :], mask=mask, other=0.0), 0)
    total += tl.load(base_ptr + segment)
    tl.store(y_ptr + segment * width + cols, total, mask=cols < width)


class ModelNew(torch.nn.Module):
    def forward(self, x, segment, counts):
        width, n_segments = x.shape[1], counts.shape[0]
        # where ids come sorted this step is left out
        known, order = torch.sort(segment, stable=True)
        starts = torch.searchsorted(known, torch.arange(n_segments + 1, device=x.device))
        y = torch.empty(n_segments, width, device=x.device, dtype=x.dtype)
        BLOCK_D = 128
        segment_kernel[(n_segments, triton.cdiv(width, BLOCK_D))](
            x, order, starts, counts, y, width, BLOCK_R=16, BLOCK_D=BLOCK_D, num_warps=4
        )
        return y
