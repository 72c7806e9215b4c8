"""Host functions of emitted modules that call the library where PyTorch has no public function for it, or no single one."""

from __future__ import annotations

LIBRARY_HELPERS: dict[str, str] = {
    "convolution_relu": '''
def convolution_relu(x, weight, bias, stride, padding, dilation, groups, added=None):
    """relu of a convolution with its bias, and with another tensor added: one call of cuDNN; without CUDA three of PyTorch."""
    if x.device.type != "cuda" or torch.version.cuda is None:
        made = F.conv2d(x, weight, bias, stride, padding, dilation, groups)
        return F.relu(made if added is None else made + added)
    if added is None:
        return torch.cudnn_convolution_relu(x, weight, bias, stride, padding, dilation, groups)
    return torch.cudnn_convolution_add_relu(x, weight, added, 1.0, bias, stride, padding, dilation, groups)
''',
    "channels_last": '''
@triton.jit
def channels_last_kernel(x_ptr, made_ptr, n_channels, n_places, BLOCK_P: tl.constexpr, BLOCK_C: tl.constexpr):
    """x [images, channels, places] -> made [images, places, channels], a tile a program."""
    tiles_c = tl.cdiv(n_channels, BLOCK_C)
    tiles = tl.cdiv(n_places, BLOCK_P) * tiles_c
    image = (tl.program_id(0) // tiles).to(tl.int64) * n_channels * n_places
    tile = tl.program_id(0) % tiles
    place = tile // tiles_c * BLOCK_P + tl.arange(0, BLOCK_P)[:, None]
    channel = tile % tiles_c * BLOCK_C + tl.arange(0, BLOCK_C)[None, :]
    mask = (place < n_places) & (channel < n_channels)
    x = tl.load(x_ptr + image + channel * n_places + place, mask=mask)
    tl.store(made_ptr + image + place * n_channels + channel, x, mask=mask)


def channels_last(x):
    """x [images, channels, ...] -> the same, its channels last in memory."""
    last = torch.channels_last if x.dim() == 4 else torch.channels_last_3d
    if x.is_contiguous(memory_format=last):
        return x
    x, made = x.contiguous(), torch.empty_like(x, memory_format=last)
    n_images, n_channels, n_places = x.shape[0], x.shape[1], x[0, 0].numel()
    assert n_channels * n_places < 2**31, "offsets within an image are 32-bit"
    block_c = min(64, triton.next_power_of_2(n_channels))
    block_p = 4096 // block_c
    grid = (n_images * triton.cdiv(n_places, block_p) * triton.cdiv(n_channels, block_c),)
    channels_last_kernel[grid](x, made, n_channels, n_places, BLOCK_P=block_p, BLOCK_C=block_c, num_warps=8)
    return made
''',
    "in_order": '''
@triton.jit
def in_order_kernel(
    x_ptr, made_ptr, n_t, n_u, n_v, n_rest, t_in, u_in, v_in, rest_in, above_in, t_out, u_out, v_out, rest_out, above_out,
    BLOCK_T: tl.constexpr, BLOCK_U: tl.constexpr, BLOCK_V: tl.constexpr,
):
    """x [above, rest, t, u, v] -> made, of the same shape but other strides, a tile of t, u and v a program."""
    tiles_v, tiles_u = tl.cdiv(n_v, BLOCK_V), tl.cdiv(n_u, BLOCK_U)
    tiles = tl.cdiv(n_t, BLOCK_T) * tiles_u * tiles_v
    outside = (tl.program_id(0) // tiles).to(tl.int64)
    tile = tl.program_id(0) % tiles
    t = (tile // (tiles_u * tiles_v) * BLOCK_T + tl.arange(0, BLOCK_T)[:, None, None]).to(tl.int64)
    u = (tile // tiles_v % tiles_u * BLOCK_U + tl.arange(0, BLOCK_U)[None, :, None]).to(tl.int64)
    v = (tile % tiles_v * BLOCK_V + tl.arange(0, BLOCK_V)[None, None, :]).to(tl.int64)
    mask = (t < n_t) & (u < n_u) & (v < n_v)
    x_at = outside // n_rest * above_in + outside % n_rest * rest_in + t * t_in + u * u_in + v * v_in
    made_at = outside // n_rest * above_out + outside % n_rest * rest_out + t * t_out + u * u_out + v * v_out
    tl.store(made_ptr + made_at, tl.load(x_ptr + x_at, mask=mask), mask=mask)


def in_order(x: torch.Tensor, order: tuple[int, ...]) -> torch.Tensor:
    """x -> the same, its dimensions in memory in that order."""
    wanted = x.permute(order)
    made = torch.empty(wanted.shape, dtype=x.dtype, device=x.device)
    dims = []
    for size, before, after in zip(wanted.shape, wanted.stride(), made.stride()):
        if dims and dims[-1][1] == size * before:
            # neighbours in both are one dimension
            dims[-1] = (dims[-1][0] * size, before, after)
        elif size > 1:
            dims.append((size, before, after))
    # side by side in x, then in the result; where that is one dimension, the longest other one beside it
    u = min(dims, key=lambda dim: dim[1], default=(1, 1, 1))
    rest = sorted((dim for dim in dims if dim is not u), key=lambda dim: (dim[2] > 1, -dim[0]))
    if len(rest) > 4 or not x.numel():
        made.copy_(wanted)
    else:
        v = rest[0] if rest else (1, 0, 0)
        # short dimensions make small tiles: more of them, whose elements are near in x, fill one
        more = sorted(rest[1:], key=lambda dim: dim[1])
        t, one, two = (*more, *((1, 0, 0) for _ in range(3 - len(more))))
        block_u, block_v = (min(64, triton.next_power_of_2(each[0])) for each in (u, v))
        block_t = min(triton.next_power_of_2(t[0]), 4096 // (block_u * block_v))
        grid = (one[0] * two[0] * triton.cdiv(t[0], block_t) * triton.cdiv(u[0], block_u) * triton.cdiv(v[0], block_v),)
        in_order_kernel[grid](
            x, made, t[0], u[0], v[0], one[0], t[1], u[1], v[1], one[1], two[1], t[2], u[2], v[2], one[2], two[2],
            BLOCK_T=block_t, BLOCK_U=block_u, BLOCK_V=block_v, num_warps=8 if block_t * block_u * block_v > 1024 else 4,
        )
    return made.permute([order.index(place) for place in range(len(order))])
''',
    "channels_last_weight": '''
def channels_last_weight(weight):
    """weight of a convolution over two or three dimensions -> the same, its second dimension last in memory."""
    return weight.contiguous(memory_format=torch.channels_last if weight.dim() == 4 else torch.channels_last_3d)
''',
    "norm_scale": '''
def norm_scale(weight, bias):
    """The power of two, float32 [], that takes all that a norm with these can give below 2 ** 15; rows have fewer than 2 ** 31 elements."""
    peak = (torch.ones_like(bias) if weight is None else weight).double().abs()
    peak = 2.0**16 * peak if bias is None else torch.add(bias.double().abs(), peak, alpha=2.0**16)
    exponent = torch.frexp(peak.nan_to_num(0.0, 0.0, 0.0).max()).exponent
    # 15 - exponent, with float32's bias of 127, by its bits: a power need not be exact
    return ((142 - exponent).clamp(1, 253) << 23).view(torch.float32)
''',
    "folded_weight": '''
def folded_weight(weight, gamma, variance, eps, dim):
    """weight, with results along `dim` -> the weight whose results are scaled as the batch norm after it scales them."""
    scale = torch.rsqrt(variance.double() + eps) * (1.0 if gamma is None else gamma)
    return weight * scale.float().view([-1 if place == dim else 1 for place in range(weight.dim())])
''',
    "folded_bias": '''
def folded_bias(bias, gamma, beta, mean, variance, eps):
    """The bias that goes with a folded weight, [channels]."""
    scale = torch.rsqrt(variance.double() + eps) * (1.0 if gamma is None else gamma)
    shifted = ((0.0 if bias is None else bias) - mean.double()) * scale
    return (shifted if beta is None else shifted + beta).float()
''',
}
"""By name."""
