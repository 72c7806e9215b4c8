"""What weights need that are packed in a step of their own, and the passes of such convolutions: weights once, images at every call.

The passes write what `conv_split.py` writes in one launch of both, bit by bit, with the functions of `conv_halves.py`.
"""

from __future__ import annotations

PREPACKED: dict[str, str] = {
    "versions": '''
def versions(weights):
    """Where weights lie and how often each was written in place; those made in inference mode do not count that."""
    return [(weight.data_ptr(), 0 if weight.is_inference() else weight._version) for weight in weights]
''',
    "packed_weight_halves": '''
@triton.jit
def weight_halves_kernel(
    w_ptr,
    high_ptr,
    low_ptr,
    exponents_ptr,
    n_results,
    n_channels,
    n_places,
    n_wide,
    TURNED: tl.constexpr,
    GROUPS: tl.constexpr,
    WIDE: tl.constexpr,
    FEW: tl.constexpr,
    TWO: tl.constexpr,
    BLOCK_P: tl.constexpr,
    BLOCK_C: tl.constexpr,
):
    """Weights as halves, a channel of the result a program."""
    result = tl.program_id(0)
    weight_halves(
        w_ptr,
        high_ptr,
        low_ptr,
        exponents_ptr,
        result,
        n_results,
        n_channels,
        n_places,
        n_wide,
        TURNED=TURNED,
        GROUPS=GROUPS,
        WIDE=WIDE,
        FEW=FEW,
        TWO=TWO,
        BLOCK_P=BLOCK_P,
        BLOCK_C=BLOCK_C,
    )


def packed_weight_halves(
    weight: torch.Tensor,
    wide: int = 1,
    groups: int = 1,
    transposed: bool = False,
    parts: int = 2,
    multiple: int = 16,
) -> list[torch.Tensor]:
    """weight -> its parts [results, places, channels], `wide` elements of a row as channels, and an exponent a result.

    The channels of each group are filled up with zeros to a multiple.
    """
    weight = weight.contiguous()
    n_inputs, n_results = weight.shape[:2] if transposed else (weight.shape[1], weight.shape[0])
    n_taps = weight[0, 0].numel() // wide
    joined = groups if transposed else 1
    n_wide = joined * triton.cdiv(n_inputs // joined * wide, multiple) * multiple
    assert max(n_inputs * n_taps * wide, n_taps * n_wide) < 2**31, "offsets within the weights of a result are 32-bit"
    made = [torch.empty((n_results, n_taps, n_wide), dtype=torch.float16, device=weight.device) for _ in range(parts)]
    exponents = torch.empty(n_results, dtype=torch.int32, device=weight.device)
    block_p = min(64, triton.next_power_of_2(n_taps))
    weight_halves_kernel[(n_results,)](
        weight,
        made[0],
        made[-1],
        exponents,
        n_results,
        n_inputs,
        n_taps,
        n_wide,
        TURNED=transposed,
        GROUPS=joined,
        WIDE=wide,
        # channels of a group where their number shapes the code
        FEW=n_inputs if wide > 1 else 0,
        TWO=parts == 2,
        BLOCK_P=block_p,
        BLOCK_C=min(triton.next_power_of_2(n_wide), 4096 // block_p),
        num_warps=8,
    )
    return [*made, exponents]
''',
    "packed_image_halves": '''
@triton.jit
def images_kernel(
    x_ptr,
    peaks_ptr,
    high_ptr,
    low_ptr,
    exponents_ptr,
    turns_ptr,
    n_images,
    lag,
    share,
    n_channels,
    n_pixels,
    n_places,
    n_cols,
    n_out,
    n_wide,
    n_shares,
    step_image,
    CHANNELS_LAST: tl.constexpr,
    GROUPS: tl.constexpr,
    WIDE: tl.constexpr,
    FEW: tl.constexpr,
    STRIDE: tl.constexpr,
    DILATION: tl.constexpr,
    PADDING: tl.constexpr,
    UNIT: tl.constexpr,
    SPAN: tl.constexpr,
    TWO: tl.constexpr,
    SHARES: tl.constexpr,
    BLOCK_P: tl.constexpr,
    BLOCK_C: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """Images -> their parts and exponents."""
    image_turn(
        tl.atomic_add(turns_ptr, 1, sem="relaxed"),
        x_ptr,
        peaks_ptr,
        high_ptr,
        low_ptr,
        exponents_ptr,
        turns_ptr,
        n_images,
        lag,
        share,
        n_channels,
        n_pixels,
        n_places,
        n_cols,
        n_out,
        n_wide,
        n_shares,
        step_image,
        CHANNELS_LAST=CHANNELS_LAST,
        GROUPS=GROUPS,
        WIDE=WIDE,
        FEW=FEW,
        STRIDE=STRIDE,
        DILATION=DILATION,
        PADDING=PADDING,
        UNIT=UNIT,
        SPAN=SPAN,
        TWO=TWO,
        SHARES=SHARES,
        BLOCK_P=BLOCK_P,
        BLOCK_C=BLOCK_C,
        BLOCK=BLOCK,
    )


def packed_image_halves(
    x: torch.Tensor,
    wide: int = 1,
    stride: int = 1,
    dilation: int = 1,
    padding: int = 0,
    groups: int = 1,
    parts: int = 2,
) -> list[torch.Tensor]:
    """x [images, channels, ...] -> its parts [images, places, channels], each group filled up with zeros, and the images' exponents.

    With `wide` elements of a row as channels, places are those of a kernel as wide as that.
    """
    n_images, n_channels, n_cols = x.shape[0], x.shape[1], x.shape[-1]
    x = x.reshape(n_images, n_channels, -1)
    n_pixels = x.shape[2]
    # an image is read through from its first element to its last: one that has gaps is copied
    x = x if x.stride()[1:] in ((n_pixels, 1), (1, n_channels)) else x.contiguous()
    n_out = (n_cols + 2 * padding - dilation * (wide - 1) - 1) // stride + 1
    n_places, n_wide = n_pixels // n_cols * n_out, groups * triton.cdiv(n_channels // groups * wide, 16) * 16
    n_elements = n_channels * n_pixels
    assert max(n_elements, n_places * n_wide) < 2**31, "offsets within an image are 32-bit"
    share = triton.cdiv(triton.cdiv(n_elements, min(256, max(1, 8192 // n_images))), 4096) * 4096
    n_shares = triton.cdiv(n_elements, share)
    made = [torch.empty((n_images, n_places, n_wide), dtype=torch.float16, device=x.device) for _ in range(parts)]
    exponents = torch.empty(n_images, dtype=torch.int32, device=x.device)
    peaks = torch.empty(n_images * n_shares, dtype=torch.float32, device=x.device)
    turns = torch.zeros(1 + n_images, dtype=torch.int32, device=x.device)
    span = n_wide if 1 < wide and n_wide <= 64 else 0
    block_c = 16 if span else min(64, triton.next_power_of_2(n_wide))
    # smaller tiles where there are too few to fill a device
    block_p = (4096 if span or n_images * n_places * n_wide >= 2**20 else 2048) // block_c
    channels_last = x.stride()[1:] == (1, n_channels)
    tiles = triton.cdiv(n_places, block_p) * triton.cdiv(n_wide, span or block_c)
    # enough turns between both readings of an image; where the L2 does not hold what lies between, all are read before one is written
    lag = min(n_images, triton.cdiv(512, n_shares + tiles))
    lag = lag if lag * n_elements <= 2**22 else n_images
    images_kernel[(lag * n_shares + n_images * (n_shares + tiles),)](
        x,
        peaks,
        made[0],
        made[-1],
        exponents,
        turns,
        n_images,
        lag,
        share,
        n_channels,
        n_pixels,
        n_places,
        n_cols,
        n_out,
        n_wide,
        n_shares,
        x.stride(0),
        CHANNELS_LAST=channels_last,
        # groups that are full as they are lie side by side already
        GROUPS=1 if wide == 1 and n_wide == n_channels else groups,
        WIDE=wide,
        # channels of a group where their number shapes the code
        FEW=n_channels // groups if wide > 1 else 0,
        STRIDE=stride,
        DILATION=dilation,
        PADDING=padding,
        UNIT=1 if channels_last or n_pixels % 4 or x.stride(0) % 4 else 4,
        SPAN=span,
        TWO=parts == 2,
        SHARES=256,
        BLOCK_P=block_p,
        BLOCK_C=block_c,
        BLOCK=4096,
        num_warps=8,
    )
    return [*made, exponents]
''',
}
"""By name: what tells whether weights have changed, and the passes, each with its host function."""
