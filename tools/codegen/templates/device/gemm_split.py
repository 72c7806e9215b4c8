"""The split of float32 operands of matrix products: passes that write several shorter parts, and tile descriptors.

An infinity is written as one, with the infinity in the last part: times an ordinary element that makes one infinite product and finite
others, where an infinity in the first part would meet parts that are zero.
"""

from __future__ import annotations

SPLITS: dict[str, str] = {
    "power_of_two": '''
@triton.jit
def power_of_two(exponent):
    """2.0 ** exponent for whole exponents between -126 and 127."""
    return ((exponent + 127) << 23).to(tl.float32, bitcast=True)
''',
    "as_halves": '''
@triton.jit
def halves_exponent(peak):
    """The exponent that takes a vector's largest finite magnitude to [2 ** 14, 2 ** 15); of zeros the largest there is."""
    return tl.minimum(141 - (peak.to(tl.int32, bitcast=True) >> 23), 126)


@triton.jit
def as_halves(x, exponent):
    """x * 2.0 ** exponent -> a half, and 2048 times what it leaves as another; an infinity is a one and itself."""
    infinite = tl.abs(x) == float("inf")
    scaled = tl.where(infinite, tl.where(x > 0.0, 1.0, -1.0), x * power_of_two(exponent))
    high = scaled.to(tl.float16)
    rest = tl.where(infinite, x, (scaled - high.to(tl.float32)) * 2048.0)
    return high, rest.to(tl.float16)


@triton.jit
def as_half(x, exponent):
    """x * 2.0 ** exponent -> a half; infinities stay what they are."""
    return (x * power_of_two(exponent)).to(tl.float16)
''',
    "halves": '''
@triton.jit
def halves_kernel(
    x_ptr,
    high_ptr,
    low_ptr,
    exponents_ptr,
    n_vectors,
    n_inner,
    n_trailing,
    TWO: tl.constexpr,
    BLOCK_V: tl.constexpr,
    BLOCK_K: tl.constexpr,
):
    """x as vectors of n_inner elements, n_trailing apart -> a float16 part of each element, or TWO, and one exponent a vector."""
    vector = tl.program_id(0).to(tl.int64) * BLOCK_V + tl.arange(0, BLOCK_V)[:, None]
    mask_v = vector < n_vectors
    base = vector // n_trailing * (n_inner * n_trailing) + vector % n_trailing
    peak = tl.zeros([BLOCK_V, BLOCK_K], tl.float32)
    for start in range(0, n_inner, BLOCK_K):
        k = start + tl.arange(0, BLOCK_K)[None, :]
        x = tl.load(x_ptr + base + k * n_trailing, mask=mask_v & (k < n_inner), other=0.0)
        peak = tl.maximum(peak, tl.where(tl.abs(x) < float("inf"), tl.abs(x), 0.0))
    exponent = halves_exponent(tl.max(peak, axis=1, keep_dims=True))
    tl.store(exponents_ptr + vector, exponent, mask=mask_v)
    for start in range(0, n_inner, BLOCK_K):
        k = start + tl.arange(0, BLOCK_K)[None, :]
        inside = mask_v & (k < n_inner)
        x = tl.load(x_ptr + base + k * n_trailing, mask=inside, other=0.0)
        if TWO:
            high, low = as_halves(x, exponent)
            tl.store(low_ptr + base + k * n_trailing, low, mask=inside)
        else:
            high = as_half(x, exponent)
        tl.store(high_ptr + base + k * n_trailing, high, mask=inside)


def halves(x: torch.Tensor, n_inner: int, n_trailing: int, n_parts: int = 2) -> list[torch.Tensor]:
    parts = [torch.empty_like(x, dtype=torch.float16) for _ in range(n_parts)]
    n_vectors = x.numel() // n_inner
    exponents = torch.empty(n_vectors, dtype=torch.int32, device=x.device)
    # few vectors: each program has fewer, whose loads still fill a sector
    block_v = 2048 // min(512 if n_trailing == 1 else 64, triton.next_power_of_2(n_inner))
    while block_v > (1 if n_trailing == 1 else 8) and triton.cdiv(n_vectors, block_v) < 256:
        block_v //= 2
    block_k = min(2048 // block_v, triton.next_power_of_2(n_inner))
    grid = (triton.cdiv(n_vectors, block_v),)
    halves_kernel[grid](
        x,
        parts[0],
        parts[-1],
        exponents,
        n_vectors,
        n_inner,
        n_trailing,
        TWO=n_parts == 2,
        BLOCK_V=block_v,
        BLOCK_K=block_k,
        num_warps=4,
    )
    return [*parts, exponents]
''',
    "wide_halves": '''
def wide_halves(x: torch.Tensor, n_inner: int) -> list[torch.Tensor]:
    """x as vectors of n_inner elements -> its halves, vectors filled up with zeros to a multiple of 16, so that they are read wide."""
    n_wide = triton.cdiv(n_inner, 16) * 16
    if n_wide > n_inner:
        wide = torch.zeros((x.numel() // n_inner, n_wide), dtype=x.dtype, device=x.device)
        wide[:, :n_inner].copy_(x.reshape(-1, n_inner))
        x = wide
    return halves(x, n_wide, 1)
''',
    "column_halves": '''
@triton.jit
def column_halves(x):
    """x [inner, cols], all of the sum -> two float16 parts of each element, one exponent a column: what `halves` writes, in registers."""
    peak = tl.max(tl.where(tl.abs(x) < float("inf"), tl.abs(x), 0.0), axis=0, keep_dims=True)
    exponent = halves_exponent(peak)
    high, low = as_halves(x, exponent)
    return high, low, exponent
''',
    "bfloat16_parts": '''
@triton.jit
def bfloat16_parts_kernel(x_ptr, high_ptr, middle_ptr, low_ptr, n_elements, THREE: tl.constexpr, BLOCK: tl.constexpr):
    """x -> two or three bfloat16 parts of each element, eight binary digits each, each times 256 for every part before it."""
    offs = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = offs < n_elements
    x = tl.load(x_ptr + offs, mask=mask, other=0.0)
    infinite = tl.abs(x) == float("inf")
    rest = tl.where(infinite, tl.where(x > 0.0, 1.0, -1.0), x)
    # the largest bfloat16: what is above it would round to an infinity
    high = tl.minimum(tl.maximum(rest, -3.3895313892515355e38), 3.3895313892515355e38).to(tl.bfloat16).to(tl.float32)
    rest = (rest - high) * 256.0
    tl.store(high_ptr + offs, high, mask=mask)
    if THREE:
        middle = rest.to(tl.bfloat16).to(tl.float32)
        rest = (rest - middle) * 256.0
        tl.store(middle_ptr + offs, middle, mask=mask)
    low = tl.where(infinite, x, rest).to(tl.bfloat16).to(tl.float32)
    tl.store(low_ptr + offs, low, mask=mask)


def bfloat16_parts(x: torch.Tensor, n_parts: int) -> list[torch.Tensor]:
    # Triton's interpreter does not multiply bfloat16; there the same numbers are held as float32
    dtype = torch.float32 if triton.knobs.runtime.interpret else torch.bfloat16
    parts = [torch.empty_like(x, dtype=dtype) for _ in range(n_parts)]
    grid = (triton.cdiv(x.numel(), 2048),)
    bfloat16_parts_kernel[grid](x, parts[0], parts[1], parts[-1], x.numel(), THREE=n_parts == 3, BLOCK=2048, num_warps=8)
    return parts
''',
    "described": '''
def described(x: torch.Tensor, n_rows: int, n_cols: int, tile: list[int]) -> TensorDescriptor:
    """x as n_rows by n_cols -> a descriptor that fetches tiles of it; copied where a row would not begin at a multiple of 16 bytes."""
    x = x.reshape(n_rows, n_cols)
    step = 16 // x.element_size()
    if n_cols % step or x.storage_offset() % step:
        wide = torch.empty((n_rows, triton.cdiv(n_cols, step) * step), dtype=x.dtype, device=x.device)
        x = wide[:, :n_cols].copy_(x)
    return TensorDescriptor(x, [n_rows, n_cols], [x.stride(0), 1], tile)
''',
    "multiprocessors": '''
def multiprocessors(x: torch.Tensor) -> int:
    """Count what runs programs side by side; without a device a few, so that each still walks several tiles."""
    return torch.cuda.get_device_properties(x.device).multi_processor_count if x.is_cuda else 3
''',
}
"""By name: device functions, passes and host functions of products."""
