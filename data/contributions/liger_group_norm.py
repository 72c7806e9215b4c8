"""Group norm of bfloat16 with its statistics, at a shape of Liger-Kernel's benchmark."""

import torch

BATCH, CHANNELS, SIZE, GROUPS = 16, 4096, 512, 1024
SMALL_SIZES = [{"BATCH": 3, "CHANNELS": 8, "SIZE": 37, "GROUPS": 2}]


def liger_group_norm(x, weight, bias):
    wide = x.float().reshape(x.shape[0], GROUPS, -1)
    mean = wide.mean(-1)
    rstd = (wide.var(-1, correction=0) + 1e-6).rsqrt()
    normed = ((wide - mean[..., None]) * rstd[..., None]).reshape(x.shape)
    return (normed * weight[:, None] + bias[:, None]).to(x.dtype), mean.to(x.dtype), rstd.to(x.dtype)


def example_inputs():
    return torch.randn(BATCH, CHANNELS, SIZE).bfloat16(), torch.randn(CHANNELS).bfloat16(), torch.randn(CHANNELS).bfloat16()
