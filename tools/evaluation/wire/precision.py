"""Precision settings that trusted and untrusted processes make alike."""

from __future__ import annotations

from tools.records import Precision


def set_precision(precision: Precision) -> None:
    """Say whether cuBLAS and cuDNN may round float32 to TF32 in this process."""
    import torch

    torch.backends.cuda.matmul.allow_tf32 = precision.matmul_tf32
    torch.backends.cudnn.allow_tf32 = precision.cudnn_tf32
