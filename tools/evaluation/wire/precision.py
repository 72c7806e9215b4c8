"""Precision settings that trusted and untrusted processes make alike."""

from __future__ import annotations


def allow_tf32(allowed: bool) -> None:
    """Say whether cuBLAS and cuDNN may round float32 to TF32 in this process."""
    import torch

    torch.backends.cuda.matmul.allow_tf32 = allowed
    torch.backends.cudnn.allow_tf32 = allowed
