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
    "channels_last_weight": '''
def channels_last_weight(weight):
    """weight of a convolution over two or three dimensions -> the same, its second dimension last in memory."""
    return weight.contiguous(memory_format=torch.channels_last if weight.dim() == 4 else torch.channels_last_3d)
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
