"""What one program does for the fp16 split of a convolution: the weights of a result, a share of an image, or a tile of it as halves."""

from __future__ import annotations

HALVES: dict[str, str] = {
    "image_kernels": '''
@triton.jit
def largest_finite(x_ptr, n_elements, n_together, step, APART: tl.constexpr, BLOCK: tl.constexpr):
    """The largest finite magnitude of n_elements that lie side by side; n_together of them every `step` if APART."""
    peak = tl.zeros([BLOCK], tl.float32)
    for start in range(0, n_elements, BLOCK):
        offs = start + tl.arange(0, BLOCK)
        there = offs // n_together * step + offs % n_together if APART else offs
        x = tl.load(x_ptr + there, mask=offs < n_elements, other=0.0)
        peak = tl.maximum(peak, tl.where(tl.abs(x) < float("inf"), tl.abs(x), 0.0))
    return tl.max(peak, axis=0)


@triton.jit
def channel_source(channel, n_channels, n_wide, GROUPS: tl.constexpr, WIDE: tl.constexpr, FEW: tl.constexpr):
    """Which channel and which of WIDE elements of a row each of n_wide channels is made of, and whether of any: some fill up a group."""
    if GROUPS * WIDE == 1:
        return channel, channel * 0, channel < n_channels
    else:
        share, filled = FEW if WIDE > 1 else n_channels // GROUPS, n_wide // GROUPS
        group = channel // filled if GROUPS > 1 else 0
        slot = channel - group * filled
        element = slot // share if WIDE > 1 else slot * 0
        inside = (channel < n_wide) & (slot < share * WIDE)
        return group * share + slot - element * share, element, inside


@triton.jit
def weight_halves(
    w_ptr,
    high_ptr,
    low_ptr,
    exponents_ptr,
    result,
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
    """The weights of a result, n_channels by n_places rows of WIDE -> their parts, n_places by n_wide.

    TURNED: results lie within channels, else channels within results.
    """
    n_taps = n_places * WIDE
    w_ptr += result.to(tl.int64) * (n_taps if TURNED else n_channels * n_taps)
    step = n_results * n_taps if TURNED else n_taps
    peak = largest_finite(w_ptr, n_channels * n_taps, n_taps, step, APART=TURNED, BLOCK=BLOCK_P * BLOCK_C)
    exponent = halves_exponent(peak)
    tl.store(exponents_ptr + result, exponent)
    first = result.to(tl.int64) * (n_places * n_wide)
    tiles_c = tl.cdiv(n_wide, BLOCK_C)
    for tile in range(0, tl.cdiv(n_places, BLOCK_P) * tiles_c):
        place = tile // tiles_c * BLOCK_P + tl.arange(0, BLOCK_P)[:, None]
        channel = tile % tiles_c * BLOCK_C + tl.arange(0, BLOCK_C)[None, :]
        source, element, inside = channel_source(channel, n_channels, n_wide, GROUPS, WIDE, FEW)
        x = tl.load(w_ptr + place * WIDE + element + source * step, mask=(place < n_places) & inside, other=0.0)
        made = place * n_wide + channel
        mask = (place < n_places) & (channel < n_wide)
        if TWO:
            high, rest = as_halves(x, exponent)
            tl.store(low_ptr + first + made, rest, mask=mask)
        else:
            high = as_half(x, exponent)
        tl.store(high_ptr + first + made, high, mask=mask)


@triton.jit
def image_tile(
    x_ptr,
    peaks_ptr,
    high_ptr,
    low_ptr,
    exponents_ptr,
    image,
    tile,
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
):
    """A tile of an image of n_channels by rows of n_cols -> a float16 part, or TWO, of WIDE elements of a row at each place.

    The channels of each group are filled up to its share of n_wide. Pixels and distances of images are multiples of UNIT. A tile has
    BLOCK_C channels, or all SPAN of them: which element of which channel each is made of is then known when this is compiled.
    """
    n_pixels, step_image = n_pixels // UNIT * UNIT, step_image // UNIT * UNIT
    tiles_c = tl.cdiv(n_wide, BLOCK_C) if SPAN == 0 else 1
    x_ptr += image * step_image
    high_ptr += image * (n_wide * n_places)
    low_ptr += image * (n_wide * n_places)
    place = tile // tiles_c * BLOCK_P + tl.arange(0, BLOCK_P)[:, None]
    for begin in tl.static_range(0, SPAN if SPAN > 0 else BLOCK_C, BLOCK_C):
        channel = (begin if SPAN > 0 else tile % tiles_c * BLOCK_C) + tl.arange(0, BLOCK_C)[None, :]
        source, element, inside = channel_source(channel, n_channels, n_wide, GROUPS, WIDE, FEW)
        if WIDE == 1:
            pixel = place
            inside = inside & (place < n_pixels)
        else:
            col = place % n_out * STRIDE + element * DILATION - PADDING
            pixel = place // n_out * n_cols + col
            inside = inside & (place < n_places)
            if PADDING > 0:
                inside = inside & (col >= 0) & (col < n_cols)
        there = pixel * n_channels + source if CHANNELS_LAST else source * n_pixels + pixel
        x = tl.load(x_ptr + there, mask=inside, other=0.0)
        # the first elements are on their way while the largest is looked for
        if begin == 0:
            share = tl.arange(0, SHARES)
            peak = tl.max(tl.load(peaks_ptr + image * n_shares + share, mask=share < n_shares, other=0.0), axis=0)
            exponent = halves_exponent(peak)
            tl.store(exponents_ptr + image, exponent, mask=tile == 0)
        mask = (place < n_places) & (channel < n_wide)
        if TWO:
            high, rest = as_halves(x, exponent)
            tl.store(low_ptr + place * n_wide + channel, rest, mask=mask)
        else:
            high = as_half(x, exponent)
        tl.store(high_ptr + place * n_wide + channel, high, mask=mask)


@triton.jit
def image_turn(
    turn,
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
    """A share of an image -> its largest finite magnitude, or a tile of the image `lag` images before it -> its parts."""
    tiles = tl.cdiv(n_places, BLOCK_P) * (tl.cdiv(n_wide, BLOCK_C) if SPAN == 0 else 1)
    # the first turns look through `lag` images, those after them through an image and write one
    later = turn - lag * n_shares
    image = tl.where(later < 0, turn // n_shares, later // (n_shares + tiles) + lag)
    part = tl.where(later < 0, turn % n_shares, later % (n_shares + tiles))
    if part < n_shares:
        if image < n_images:
            here = (image if lag == n_images else n_images - 1 - image).to(tl.int64)
            begin = part * share
            count = tl.minimum(share, n_channels * n_pixels - begin)
            peak = largest_finite(x_ptr + here * step_image + begin, count, count, count, APART=False, BLOCK=BLOCK)
            tl.store(peaks_ptr + here * n_shares + part, peak)
            tl.debug_barrier()
            tl.atomic_add(turns_ptr + 1 + here, 1, sem="release")
    else:
        here = (n_images - 1 - image + lag).to(tl.int64)
        while tl.atomic_add(turns_ptr + 1 + here, 0, sem="acquire") < n_shares:
            pass
        image_tile(
            x_ptr,
            peaks_ptr,
            high_ptr,
            low_ptr,
            exponents_ptr,
            here,
            part - n_shares,
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
        )
''',
}
"""By name: functions of kernels, for `conv_split.py` and `conv_prepack.py`."""
