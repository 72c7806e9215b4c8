"""Which operators of torch a launch plan may hold: a closed list, since the process that makes these calls holds the clock.

All of them work on the device alone, make results whose shapes do not depend on values, and give the same again for the same tensors.
"""

from __future__ import annotations

_PAIRS = ("add", "sub", "rsub", "mul", "div", "eq", "ne", "lt", "le", "gt", "ge")
_MORE_PAIRS = ("remainder", "fmod", "bitwise_and", "bitwise_or", "bitwise_xor", "__lshift__", "__rshift__")
_BY_OVERLOAD: dict[str, tuple[str, ...]] = {
    "Tensor": (*_PAIRS, *_MORE_PAIRS, "clamp", "clamp_min", "clamp_max", "masked_fill", "lerp", "xlogy", "index", "frexp"),
    "Scalar": (*_PAIRS, *_MORE_PAIRS, "pow", "masked_fill", "lerp"),
    "Tensor_Scalar": ("pow",),
    "Tensor_Tensor": ("pow",),
    "Tensor_mode": ("div",),
    "Scalar_mode": ("div",),
    "self": ("where",),
    "ScalarSelf": ("where",),
    "ScalarOther": ("where",),
    "dim": ("mean", "max", "min", "median", "any", "all"),
    "dims": ("any", "all"),
    "dim_int": ("prod",),
    "dim_IntList": ("sum",),
    "correction": ("var", "var_mean", "std", "std_mean"),
    "ScalarOpt_dim": ("norm",),
    "stable": ("sort",),
    "src": ("scatter",),
    "value": ("scatter",),
    "no_stats": ("_native_batch_norm_legit",),
    "start": ("arange",),
    "start_step": ("arange",),
    "vec": ("upsample_nearest1d", "upsample_nearest2d", "upsample_nearest3d", "upsample_bilinear2d", "upsample_bicubic2d"),
    "default": (
        *("neg", "abs", "sign", "sgn", "rsqrt", "sqrt", "reciprocal", "exp", "exp2", "expm1", "log", "log2", "log10", "log1p"),
        *("sin", "cos", "tan", "tanh", "sinh", "cosh", "asin", "acos", "atan", "erf", "erfc", "erfinv", "sigmoid", "atan2"),
        *("round", "floor", "ceil", "trunc", "frac", "clamp", "clamp_min", "clamp_max", "maximum", "minimum", "fmax", "fmin"),
        *("logical_not", "logical_and", "logical_or", "logical_xor", "isfinite", "isnan", "isinf", "bitwise_not", "nan_to_num"),
        *("relu", "gelu", "silu", "mish", "hardtanh", "hardswish", "hardsigmoid", "leaky_relu", "elu", "softplus", "threshold"),
        *("log_sigmoid_forward", "_prelu_kernel", "glu", "softshrink", "hardshrink", "addcmul", "addcdiv", "copysign", "heaviside"),
        *("sum", "mean", "prod", "amax", "amin", "aminmax", "max", "min", "argmax", "argmin", "any", "all", "logsumexp"),
        *("linalg_vector_norm", "cumsum", "cumprod", "cummax", "cummin", "logcumsumexp", "sort", "topk", "kthvalue"),
        *("_softmax", "_safe_softmax", "_log_softmax", "mm", "bmm", "addmm", "baddbmm", "mv", "addmv", "dot", "_addmm_activation"),
        *("convolution", "cudnn_convolution", "cudnn_convolution_transpose", "cudnn_convolution_relu", "cudnn_convolution_add_relu"),
        *("max_pool2d_with_indices", "max_pool3d_with_indices", "avg_pool1d", "avg_pool2d", "avg_pool3d"),
        *("_adaptive_avg_pool2d", "_adaptive_avg_pool3d", "adaptive_max_pool2d", "adaptive_max_pool3d"),
        *("native_layer_norm", "native_group_norm", "_native_batch_norm_legit_no_training", "_batch_norm_no_update", "_fused_rms_norm"),
        *("cat", "stack", "constant_pad_nd", "flip", "roll", "repeat", "index_select", "gather", "embedding", "tril", "triu"),
        *("reflection_pad1d", "reflection_pad2d", "replication_pad1d", "replication_pad2d", "replication_pad3d"),
        *("upsample_nearest1d", "upsample_nearest2d", "upsample_nearest3d", "upsample_bilinear2d", "upsample_bicubic2d"),
        *("upsample_linear1d", "upsample_trilinear3d", "pixel_shuffle", "pixel_unshuffle", "native_channel_shuffle"),
        *("im2col", "col2im", "grid_sampler_2d", "mse_loss", "smooth_l1_loss", "huber_loss", "nll_loss_forward"),
        *("binary_cross_entropy", "binary_cross_entropy_with_logits", "_cdist_forward", "arange", "eye", "scalar_tensor"),
        *("tril_indices", "triu_indices"),
    ),
}
OPERATORS = frozenset(f"aten.{name}.{overload}" for overload, names in _BY_OVERLOAD.items() for name in names)
"""Operators that read tensors and make others of their own."""

_WRITING: dict[str, tuple[str, ...]] = {
    "Tensor": ("add_", "sub_", "mul_", "div_", "masked_fill_", "lerp_", "clamp_min_", "clamp_max_"),
    "Scalar": ("add_", "sub_", "mul_", "div_", "pow_", "masked_fill_", "lerp_", "_foreach_add_", "_foreach_mul_", "_foreach_lerp_"),
    "List": ("_foreach_add_", "_foreach_mul_", "_foreach_lerp_"),
    "src": ("scatter_",),
    "value": ("scatter_",),
    "default": (
        *("relu_", "sigmoid_", "tanh_", "exp_", "log_", "abs_", "neg_", "sqrt_", "rsqrt_", "reciprocal_", "clamp_", "clamp_min_"),
        *("clamp_max_", "hardtanh_", "leaky_relu_", "elu_", "silu_", "gelu_", "mish_", "hardswish_", "hardsigmoid_", "threshold_"),
        *("addcmul_", "addcdiv_", "addmm_", "baddbmm_", "index_add_", "index_copy_", "scatter_add_", "index_put_", "tril_", "triu_"),
        *("_foreach_copy_",),
    ),
    "out": (
        *("mm", "addmm", "bmm", "baddbmm", "mv", "add", "sub", "mul", "div", "cat", "stack", "mean", "amax", "amin", "maximum"),
        *("minimum", "exp", "log", "sqrt", "rsqrt", "sigmoid", "tanh", "relu", "gelu", "silu", "cumsum", "cumprod", "index_select"),
    ),
    "IntList_out": ("sum",),
}
WRITING = frozenset(f"aten.{name}.{overload}" for overload, names in _WRITING.items() for name in names)
"""Operators that write to a tensor that is there: their first argument, a list of them, or what is named `out`."""

DROPS_AT = {
    "aten.scaled_dot_product_attention.default": 4,
    "aten.lstm.input": 5,
    "aten.gru.input": 5,
    "aten._scaled_dot_product_flash_attention.default": 3,
    "aten._scaled_dot_product_efficient_attention.default": 5,
    "aten._scaled_dot_product_cudnn_attention.default": 5,
    "aten._scaled_dot_product_flash_attention_for_cpu.default": 3,
}
"""Attention and recurrent layers, and which argument says with what probability they drop elements: above 0 they draw random numbers."""
STATISTICS_AT = {
    "aten.native_batch_norm.default": (3, 4),
    "aten._native_batch_norm_legit.default": (3, 4),
    "aten._batch_norm_with_update.default": (3, 4),
    "aten.cudnn_batch_norm.default": (3, 4),
}
"""Batch norms that bring running statistics up to date beside what they make, and which arguments those are."""
KNOWN = OPERATORS | WRITING | frozenset(DROPS_AT) | frozenset(STATISTICS_AT)
"""All that a plan may hold beside copies."""
WORDS = frozenset(["none", "tanh", "floor", "trunc", "mean", "sum"])
"""Texts that these operators take."""
