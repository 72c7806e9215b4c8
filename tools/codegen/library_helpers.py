"""Host functions of emitted modules that call the library where PyTorch has no public function for it."""

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
}
"""By name."""
