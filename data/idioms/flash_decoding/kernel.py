import torch
import triton
import triton.language as tl


@triton.jit
def part_kernel(
    q_ptr, k_ptr, v_ptr, top_ptr, sum_ptr, acc_ptr, n_keys, width, scale, keys_each, BLOCK: tl.constexpr, BLOCK_D: tl.constexpr
):
    """q [heads, width], k, v [heads, keys, width]: program (head, split) attends to its share of the keys with online softmax."""
    head, split = tl.program_id(0), tl.program_id(1)
    inner = tl.arange(0, BLOCK_D)
    q = tl.load(q_ptr + head * width + inner, mask=inner < width, other=0.0) * scale
    top = -float("inf")
    total = 0.0
    acc = tl.zeros([BLOCK_D], tl.float32)
    first = split * keys_each
    last = tl.minimum(first + keys_each, n_keys)
    for start in range(first, last, BLOCK):
        keys = start + tl.arange(0, BLOCK)
        mask = (keys[:, None] < last) & (inner[None, :] < width)
        at = (head.to(tl.int64) * n_keys + keys[:, None]) * width + inner[None, :]
        scores = tl.sum(tl.load(k_ptr + at, mask=mask, other=0.0) * q[None, :], 1)
        scores = tl.where(keys < last, scores, -float("inf"))
        new = tl.maximum(top, tl.max(scores, 0))
        weights = tl.exp(scores - new)
        old = tl.exp(top - new)
        acc = acc * old + tl.sum(tl.load(v_ptr + at, mask=mask, other=0.0) * weights[:, None], 0)
        total = total * old + tl.sum(weights, 0)
        top = new
    place = head * tl.num_programs(1) + split
    tl.store(top_ptr + place, top)
    tl.store(sum_ptr + place, total)
    tl.store(acc_ptr + place * width + inner, acc, mask=inner < width)


@triton.jit
def join_kernel(top_ptr, sum_ptr, acc_ptr, o_ptr, width, SPLITS: tl.constexpr, BLOCK_D: tl.constexpr):
    """Parts of one head -> o [heads, width]: each is rescaled to the largest maximum; a split without keys weighs nothing."""
    head = tl.program_id(0)
    splits = head * SPLITS + tl.arange(0, SPLITS)
    inner = tl.arange(0, BLOCK_D)
    top = tl.load(top_ptr + splits)
    weight = tl.exp(top - tl.max(top, 0))
    total = tl.sum(tl.load(sum_ptr + splits) * weight, 0)
    acc = tl.load(acc_ptr + splits[:, None] * width + inner[None, :], mask=inner[None, :] < width, other=0.0)
    tl.store(o_ptr + head * width + inner, tl.sum(acc * weight[:, None], 0) / total, mask=inner < width)


class ModelNew(torch.nn.Module):
    def forward(self, q, k, v):
        heads, width = q.shape
        n_keys = k.shape[1]
        BLOCK, SPLITS = 64, 16
        keys_each = triton.cdiv(triton.cdiv(n_keys, SPLITS), BLOCK) * BLOCK
        top = torch.empty(heads, SPLITS, device=q.device, dtype=torch.float32)
        total = torch.empty_like(top)
        acc = torch.empty(heads, SPLITS, width, device=q.device, dtype=torch.float32)
        o = torch.empty_like(q)
        block_d = triton.next_power_of_2(width)
        part_kernel[(heads, SPLITS)](
            q, k, v, top, total, acc, n_keys, width, width**-0.5, keys_each, BLOCK=BLOCK, BLOCK_D=block_d, num_warps=4
        )
        join_kernel[(heads,)](top, total, acc, o, width, SPLITS=SPLITS, BLOCK_D=block_d, num_warps=4)
        return o
