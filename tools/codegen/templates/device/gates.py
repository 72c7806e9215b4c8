"""What files with recurrent layers carry: the gates of a tile of sums, taken apart."""

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
}
"""By name."""
