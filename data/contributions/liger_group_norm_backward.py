"""Gradients of group norm of bfloat16; those of weight and bias are summed for each batch element first."""

import torch

BATCH, CHANNELS, SIZE, GROUPS = 16, 4096, 512, 1024
SMALL_SIZES = [{"BATCH": 3, "CHANNELS": 8, "SIZE": 37, "GROUPS": 2}]


def liger_group_norm_backward(dy, x, weight, mean, rstd):
    batch, channels, size = x.shape
    wide = (batch, GROUPS, channels // GROUPS, size)
    normed = (x.float().reshape(wide) - mean.float()[:, :, None, None]) * rstd.float()[:, :, None, None]
    upstream = dy.float().reshape(wide)
    weighted = upstream * weight.float().reshape(1, GROUPS, -1, 1)
    first = (normed * weighted).mean((2, 3), keepdim=True)
    second = weighted.mean((2, 3), keepdim=True)
    dx = (weighted - (normed * first + second)) * rstd.float()[:, :, None, None]
    dw = (upstream * normed).sum(3).sum(0).reshape(channels)
    db = upstream.sum(3).sum(0).reshape(channels)
    return dx.reshape(x.shape).to(x.dtype), dw.to(x.dtype), db.to(x.dtype)


def example_inputs():
    x = torch.randn(BATCH, CHANNELS, SIZE).bfloat16()
    wide = x.float().reshape(BATCH, GROUPS, -1)
    mean, rstd = wide.mean(-1).bfloat16(), wide.var(-1, correction=0).add(1e-6).rsqrt().bfloat16()
    return torch.randn(BATCH, CHANNELS, SIZE).bfloat16(), x, torch.randn(CHANNELS).bfloat16(), mean, rstd
