"""The gates of a tile of sums, taken apart, for recurrent layers; and numbers as TF32 has them, for these and for convolutions."""

from __future__ import annotations

GATES: dict[str, str] = {
    "four_gates": '''
@triton.jit
def four_gates(acc, BLOCK_B: tl.constexpr, BLOCK_H: tl.constexpr):
    """acc [BLOCK_B, 4 * BLOCK_H] -> four tiles [BLOCK_B, BLOCK_H], one for each gate."""
    low, high = tl.split(tl.permute(tl.reshape(acc, (BLOCK_B, 2, 2, BLOCK_H)), (0, 3, 2, 1)))
    first, second = tl.split(low)
    third, fourth = tl.split(high)
    return first, second, third, fourth
''',
    "early_launch": '''
def early_launch(x):
    """How a kernel is launched that begins beside the one ahead of it, on x's device; as usual where that cannot be."""
    able = x.is_cuda and torch.version.cuda is not None and torch.cuda.get_device_capability(x.device)[0] >= 9
    return {"launch_pdl": True} if able else {}
''',
    "nearest_tf32": '''
@triton.jit
def nearest_tf32(x):
    """x in as many digits as TF32 has, to the nearest: tensor cores cut off what is beyond, always towards zero."""
    near = ((x.to(tl.int32, bitcast=True) + 0x1000) & -0x2000).to(tl.float32, bitcast=True)
    return tl.where(x == x, near, x)


@triton.jit
def tf32_kernel(x_ptr, made_ptr, n_elements, BLOCK: tl.constexpr):
    """x -> made, BLOCK elements a program."""
    offs = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offs, mask=offs < n_elements, other=0.0)
    tl.store(made_ptr + offs, nearest_tf32(x), mask=offs < n_elements)


def to_tf32(x):
    """x rounded, in memory of its own."""
    x = x.contiguous()
    made = torch.empty_like(x)
    tf32_kernel[(triton.cdiv(x.numel(), 2048),)](x, made, x.numel(), BLOCK=2048, num_warps=4)
    return made
''',
}
"""By name."""
