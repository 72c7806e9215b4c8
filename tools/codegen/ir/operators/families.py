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

WAITING = frozenset({
    "bincount", "histc", "multinomial", "ctc_loss", "_ctc_loss", "_cudnn_ctc_loss", "mode", "segment_reduce", "embedding_renorm_",
    "equal", "is_nonzero", "item", "_local_scalar_dense", "nonzero", "masked_select", "_unique2", "unique_consecutive", "unique_dim",
    "cholesky", "linalg_cholesky", "linalg_cholesky_ex", "cholesky_solve", "_cholesky_solve_helper", "inverse", "pinverse",
    "cholesky_inverse", "linalg_inv", "linalg_inv_ex", "linalg_pinv", "linalg_solve", "linalg_solve_ex", "_linalg_solve_ex",
    "linalg_lu_factor", "linalg_lu_factor_ex", "linalg_lu_solve", "linalg_ldl_factor", "linalg_ldl_solve", "linalg_lstsq", "linalg_lu",
    "linalg_det", "_linalg_det", "det", "logdet", "linalg_slogdet", "_linalg_slogdet", "slogdet", "linalg_eig", "linalg_eigvals",
    "linalg_eigh", "linalg_eigvalsh", "_linalg_eigh", "linalg_svd", "linalg_svdvals", "_linalg_svd", "svd", "linalg_qr", "geqrf",
    "linalg_matrix_rank", "linalg_matrix_exp", "linalg_cond", "_linalg_check_errors",
})  # fmt: skip
"""What has the host wait for the device, by ATen's CUDA sources: to learn a size or whether a matrix is regular, or in a library."""
