"""Operators by family, under the names that ATen has for them; `lower/` has a rule for each."""

from __future__ import annotations

from tools.codegen.ir.operators.element_losses import LOSSES as ELEMENT_LOSSES

CASTS = frozenset({"to", "_to_copy", "type_as", "float", "half", "bfloat16", "double"})
"""Conversions to another dtype."""

PRODUCTS = frozenset({"linear", "mm", "matmul", "bmm", "addmm", "baddbmm", "mv", "dot", "einsum"})
"""Matrix products."""

INVERSES = frozenset({"inverse", "linalg_inv", "linalg_inv_ex", "linalg_pinv", "pinverse", "cholesky_inverse"})
"""Inverses of matrices: their elements are large where a matrix is nearly singular, and a product with them cancels."""

CONVOLUTIONS = {
    **{f"conv{rank}d": (rank, False) for rank in (1, 2, 3)},
    **{f"conv_transpose{rank}d": (rank, True) for rank in (1, 2, 3)},
}
"""Convolutions: number of spatial dimensions, and whether it is transposed."""

EITHER_LAYOUT = frozenset(name for name, (rank, _) in CONVOLUTIONS.items() if rank > 1)
"""Convolutions that the library runs on either memory layout: channels first, or channels last."""

ADAPTIVE_POOLINGS = frozenset(f"adaptive_{kind}_pool{rank}d" for kind in ("avg", "max") for rank in (1, 2, 3))
"""Poolings to a given number of windows."""

POOLINGS = ADAPTIVE_POOLINGS | {
    f"{name}_pool{rank}d{more}" for name, more in (("max", ""), ("max", "_with_indices"), ("avg", "")) for rank in (1, 2, 3)
}
"""Poolings, of maxima and of means."""

ATTENTIONS = frozenset({"scaled_dot_product_attention"})
"""Attention as one operator."""

REDUCTIONS = frozenset(
    {
        "sum", "mean", "amax", "amin", "max", "min", "argmax", "argmin", "var", "std", "var_mean", "norm", "linalg_vector_norm",
        "logsumexp", "prod",
    }
)  # fmt: skip
"""What makes one element of many; `max` and `min` of two tensors are pointwise, which their arguments tell."""

SCANS = frozenset({"cumsum", "cumprod", "cumsum_reversed", "cumprod_reversed"})
"""What makes each element of those before it, or of those after it."""

NORMALISATIONS = frozenset(
    {
        "softmax", "log_softmax", "layer_norm", "rms_norm", "group_norm", "instance_norm", "batch_norm",
        "_native_batch_norm_legit_functional",
    }
)  # fmt: skip
"""What scales each row by its own statistics."""

LOSSES = frozenset({"cross_entropy_loss", "nll_loss_nd", "triplet_margin_loss", "cosine_similarity", *ELEMENT_LOSSES})
"""Losses, by row and by element."""

ROW_OPERATORS = REDUCTIONS | SCANS | NORMALISATIONS | LOSSES
"""What looks along rows."""

STRUCTURES = frozenset({"diag", "diag_embed", "tril", "triu"})
"""What says that an operand or a result of a product is diagonal or triangular."""

JOINS = frozenset({"cat", "stack", "pad", "constant_pad_nd"})
"""What lays tensors, or a number and a tensor, one after the other."""

MOVING = frozenset({
    *JOINS, "slice_scatter", "select_scatter", "index_select", "roll", "flip", "grid_sampler",
    "upsample_nearest2d", "upsample_bilinear2d", "upsample_bicubic2d",
})  # fmt: skip
"""What moves elements of images, and can write them in either layout."""

RECURRENT = frozenset({"lstm", "gru", "rnn_tanh", "rnn_relu"})
"""What launches a kernel or more for each step of a sequence, in each layer and direction."""
RECURRENT_LAUNCHES = 16
"""Launches of such an operator, at least, where its steps are not counted."""
