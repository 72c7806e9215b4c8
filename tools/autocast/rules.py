"""What torch.autocast does on CUDA to each ATen operator, as torch's `autocast_mode.h` lists it (2.4 to 2.13)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import StrEnum
from typing import Any

import torch

WIDE = torch.float32


class Rule(StrEnum):
    """What an operator's float tensors become before it runs."""

    LOWER = "lower"
    """All of autocast's dtype."""
    WIDE = "float32"
    """All float32."""
    WIDE_FIRST = "float32 by the first"
    """The same; where a dtype is asked for, or the first one is not to be cast, all stay as they are."""
    WIDEST = "widest"
    """All float32 where one of them is, else of autocast's dtype."""


_LOWER = """
_convolution _convolution.deprecated conv1d conv2d conv3d conv_tbc conv_transpose1d conv_transpose2d.input conv_transpose3d.input
convolution cudnn_convolution cudnn_convolution_transpose prelu addmm addmv addr matmul einsum mm mv linalg_vecdot linear addbmm baddbmm
bmm chain_matmul linalg_multi_dot _thnn_fused_lstm_cell _thnn_fused_gru_cell lstm_cell gru_cell rnn_tanh_cell rnn_relu_cell
_scaled_dot_product_flash_attention scaled_dot_product_attention
"""
_WIDE = """
acos asin cosh erfinv exp expm1 log log10 log2 log1p reciprocal rsqrt sinh tan pow.Tensor_Scalar pow.Tensor_Tensor pow.Scalar softplus
layer_norm native_layer_norm rms_norm group_norm frobenius_norm.dim nuclear_norm nuclear_norm.dim cosine_similarity poisson_nll_loss
cosine_embedding_loss nll_loss nll_loss2d hinge_embedding_loss kl_div l1_loss smooth_l1_loss huber_loss mse_loss margin_ranking_loss
multilabel_margin_loss soft_margin_loss triplet_margin_loss multi_margin_loss binary_cross_entropy_with_logits dist pdist cdist renorm
logsumexp upsample_nearest1d _upsample_nearest_exact1d upsample_nearest2d _upsample_nearest_exact2d upsample_nearest3d
_upsample_nearest_exact3d upsample_linear1d upsample_bilinear2d _upsample_bilinear2d_aa upsample_trilinear3d upsample_bicubic2d
_upsample_bicubic2d_aa
"""
_WIDE_FIRST = """
prod prod.dim_int softmax.int log_softmax.int cumprod cumsum linalg_vector_norm linalg_matrix_norm linalg_matrix_norm.str_ord sum
sum.dim_IntList norm.Scalar norm.ScalarOpt_dim
"""
_WIDEST = "addcdiv addcmul atan2 bilinear cross dot vdot grid_sampler index_put tensordot scatter_add"
REFUSED = "binary_cross_entropy"
"""What autocast raises an error for."""
RULES: dict[str, Rule] = {
    f"aten::{name}": rule
    for rule, names in ((Rule.LOWER, _LOWER), (Rule.WIDE, _WIDE), (Rule.WIDE_FIRST, _WIDE_FIRST), (Rule.WIDEST, _WIDEST))
    for name in names.split()
}
"""By the operator's name with its overload, as the dispatcher has it."""
INSIDE: dict[str, Rule] = {
    **{f"aten::conv{dim}d.padding": Rule.LOWER for dim in (1, 2, 3)},
    **{f"{name}.vec": rule for name, rule in RULES.items() if "upsample" in name},
    "aten::nll_loss_nd": Rule.WIDE,
    "aten::cross_entropy_loss": Rule.WIDE,
}
"""Of operators that a trace has whole, and that autocast meets in their parts."""


def dtype_for(name: str, given: Sequence[torch.dtype | None], lower: torch.dtype, *, asked: bool) -> torch.dtype | None:
    """Say which dtype an operator's float tensors become; None where they stay.

    `given` are the dtypes of its tensors in order, None for what autocast does not cast; `asked`: it is called with a dtype.
    """
    rule = RULES.get(name) or INSIDE.get(name)
    if rule is None or not any(given):
        return None
    if rule is Rule.WIDE_FIRST:
        return None if asked or not given[0] else WIDE
    if rule is Rule.WIDEST:
        return WIDE if WIDE in given else lower
    return WIDE if rule is Rule.WIDE else lower


def castable(value: torch.Tensor) -> torch.dtype | None:
    """Give the dtype of a tensor that autocast may cast: a float, but none of 64 bits."""
    return value.dtype if value.is_floating_point() and value.dtype is not torch.float64 else None


def flat(tree: Any) -> Iterator[Any]:
    """List what stands in an operator's arguments, lists taken apart."""
    for item in tree:
        if isinstance(item, list | tuple):
            yield from flat(item)
        else:
            yield item
