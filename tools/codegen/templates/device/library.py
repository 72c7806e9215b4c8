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
