"""The fp16 split of convolutions: a pass that writes images and weights as half-precision parts, two or one, channels last.

One launch. A program writes all weights of one channel of the result, or looks for the largest finite magnitude of a share of an image, or
writes a tile of an image a few images before that: what it reads again is in the L2. Programs draw their turns in the order in which they
start, so what one waits for is under way. The last image comes first: the convolution then finds the first ones in the L2.
"""

from __future__ import annotations

IMAGES: dict[str, str] = {
    "image_halves": '''
@triton.jit
def weights_and_images_kernel(
    w_ptr,
    w_high_ptr,
    w_low_ptr,
    w_exponents_ptr,
    x_ptr,
    peaks_ptr,
    high_ptr,
    low_ptr,
    exponents_ptr,
    turns_ptr,
    n_results,
    n_inputs,
    n_taps,
    w_wide,
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
    TURNED: tl.constexpr,
    JOINED: tl.constexpr,
    TAPS_P: tl.constexpr,
    TAPS_C: tl.constexpr,
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
    """Weights -> their parts, a result a program; images -> their parts and exponents."""
    turn = tl.atomic_add(turns_ptr, 1, sem="relaxed")
    if turn < n_results:
        weight_halves(
            w_ptr,
            w_high_ptr,
            w_low_ptr,
            w_exponents_ptr,
            turn,
            n_results,
            n_inputs,
            n_taps,
            w_wide,
            TURNED=TURNED,
            GROUPS=JOINED,
            WIDE=WIDE,
            FEW=FEW,
            TWO=TWO,
            BLOCK_P=TAPS_P,
            BLOCK_C=TAPS_C,
        )
    else:
        image_turn(
            turn - n_results,
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


def image_halves(
    x: torch.Tensor,
    weight: torch.Tensor,
    wide: int = 1,
    stride: int = 1,
    dilation: int = 1,
    padding: int = 0,
    groups: int = 1,
    transposed: bool = False,
    parts: int = 2,
) -> list[torch.Tensor]:
    """x [images, channels, ...] -> its parts [images, places, channels], each group filled up with zeros, and the images' exponents.

    The same of the weights follows, the channels of the result in the place of images. With `wide` elements of a row as channels, places
    are those of a kernel as wide as that.
    """
    n_images, n_channels, n_cols = x.shape[0], x.shape[1], x.shape[-1]
    x, weight = x.reshape(n_images, n_channels, -1), weight.contiguous()
    n_pixels = x.shape[2]
    # an image is read through from its first element to its last: one that has gaps is copied
    x = x if x.stride()[1:] in ((n_pixels, 1), (1, n_channels)) else x.contiguous()
    n_inputs, n_results = weight.shape[:2] if transposed else (weight.shape[1], weight.shape[0])
    n_taps = weight[0, 0].numel() // wide
    joined = groups if transposed else 1
    # channels of a group where their number shapes the code
    few = n_inputs if wide > 1 else 0
    w_wide = joined * triton.cdiv(n_inputs // joined * wide, 16) * 16
    n_out = (n_cols + 2 * padding - dilation * (wide - 1) - 1) // stride + 1
    n_places, n_wide = n_pixels // n_cols * n_out, groups * triton.cdiv(n_channels // groups * wide, 16) * 16
    n_elements = n_channels * n_pixels
    assert max(n_elements, n_places * n_wide, n_inputs * n_taps * wide, n_taps * w_wide) < 2**31, "offsets within an image are 32-bit"
    share = triton.cdiv(triton.cdiv(n_elements, min(256, max(1, 8192 // n_images))), 4096) * 4096
    n_shares = triton.cdiv(n_elements, share)
    sizes = ((n_images, n_places, n_wide), (n_results, n_taps, w_wide))
    made, w_made = ([torch.empty(size, dtype=torch.float16, device=x.device) for _ in range(parts)] for size in sizes)
    exponents, w_exponents = (torch.empty(count, dtype=torch.int32, device=x.device) for count in (n_images, n_results))
    peaks = torch.empty(n_images * n_shares, dtype=torch.float32, device=x.device)
    turns = torch.zeros(1 + n_images, dtype=torch.int32, device=x.device)
    taps_p = min(64, triton.next_power_of_2(n_taps))
    span = n_wide if 1 < wide and n_wide <= 64 else 0
    block_c = 16 if span else min(64, triton.next_power_of_2(n_wide))
    # smaller tiles where there are too few to fill a device
    block_p = (4096 if span or n_images * n_places * n_wide >= 2**20 else 2048) // block_c
    channels_last = x.stride()[1:] == (1, n_channels)
    tiles = triton.cdiv(n_places, block_p) * triton.cdiv(n_wide, span or block_c)
    # enough turns between both readings of an image; where the L2 does not hold what lies between, all are read before one is written
    lag = min(n_images, triton.cdiv(512, n_shares + tiles))
    lag = lag if lag * n_elements <= 2**22 else n_images
    weights_and_images_kernel[(n_results + lag * n_shares + n_images * (n_shares + tiles),)](
        weight,
        w_made[0],
        w_made[-1],
        w_exponents,
        x,
        peaks,
        made[0],
        made[-1],
        exponents,
        turns,
        n_results,
        n_inputs,
        n_taps,
        w_wide,
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
        TURNED=transposed,
        JOINED=joined,
        TAPS_P=taps_p,
        TAPS_C=min(triton.next_power_of_2(w_wide), 4096 // taps_p),
        CHANNELS_LAST=channels_last,
        # groups that are full as they are lie side by side already
        GROUPS=1 if wide == 1 and n_wide == n_channels else groups,
        WIDE=wide,
        FEW=few,
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
    return [*made, exponents, *w_made, w_exponents]
''',
}
"""By name: the pass of a convolution, with its host function."""
