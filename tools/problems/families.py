"""Which family an ATen operator belongs to: one table, by the operator's name without overload."""

from __future__ import annotations

from tools.records import OperatorFamily

_TABLE: dict[OperatorFamily, str] = {
    OperatorFamily.MATMUL: """
        mm addmm bmm baddbmm addbmm matmul linear mv addmv dot vdot addr ger _scaled_mm _addmm_activation mkldnn_linear _grouped_mm
        linalg_multi_dot chain_matmul einsum tensordot""",
    OperatorFamily.CONVOLUTION: """
        convolution _convolution cudnn_convolution cudnn_convolution_transpose cudnn_convolution_relu mkldnn_convolution
        convolution_overrideable slow_conv3d _slow_conv2d_forward _conv_depthwise2d conv_depthwise3d slow_conv_transpose2d
        slow_conv_transpose3d thnn_conv2d im2col col2im conv1d conv2d conv3d conv_transpose1d conv_transpose2d conv_transpose3d""",
    OperatorFamily.ATTENTION: """
        scaled_dot_product_attention _scaled_dot_product_attention_math _scaled_dot_product_flash_attention
        _scaled_dot_product_flash_attention_for_cpu _scaled_dot_product_efficient_attention _scaled_dot_product_cudnn_attention
        _scaled_dot_product_fused_attention_overrideable _flash_attention_forward _efficient_attention_forward
        _native_multi_head_attention flex_attention""",
    OperatorFamily.SOFTMAX: "softmax _softmax log_softmax _log_softmax _safe_softmax _masked_softmax logsumexp softmin",
    OperatorFamily.NORMALISATION: """
        native_layer_norm layer_norm native_group_norm group_norm native_batch_norm cudnn_batch_norm batch_norm
        _native_batch_norm_legit _native_batch_norm_legit_no_training _native_batch_norm_legit_functional _batch_norm_with_update
        _batch_norm_no_update batch_norm_stats batch_norm_elemt instance_norm rms_norm _fused_rms_norm renorm
        _weight_norm_interface local_response_norm""",
    OperatorFamily.POOLING: """
        max_pool2d_with_indices max_pool3d_with_indices max_pool1d max_pool2d max_pool3d max_pool1d_with_indices avg_pool1d avg_pool2d
        avg_pool3d adaptive_avg_pool1d adaptive_avg_pool2d adaptive_avg_pool3d _adaptive_avg_pool2d _adaptive_avg_pool3d
        adaptive_max_pool1d adaptive_max_pool2d adaptive_max_pool3d fractional_max_pool2d fractional_max_pool3d lp_pool2d
        upsample_nearest1d upsample_nearest2d upsample_nearest3d upsample_bilinear2d upsample_linear1d upsample_trilinear3d
        upsample_bicubic2d""",
    OperatorFamily.SCAN: "cumsum cumprod cummax cummin logcumsumexp _cummax_helper _cummin_helper associative_scan",
    OperatorFamily.LOSS: """
        nll_loss nll_loss_forward nll_loss2d_forward nll_loss_nd mse_loss l1_loss smooth_l1_loss huber_loss binary_cross_entropy
        binary_cross_entropy_with_logits cross_entropy_loss kl_div soft_margin_loss multi_margin_loss multilabel_margin_loss_forward
        poisson_nll_loss _ctc_loss ctc_loss hinge_embedding_loss margin_ranking_loss triplet_margin_loss cosine_embedding_loss""",
    OperatorFamily.RECURRENT: """
        mkldnn_rnn_layer _cudnn_rnn _thnn_fused_lstm_cell _thnn_fused_gru_cell lstm gru rnn_tanh rnn_relu lstm_cell gru_cell
        quantized_lstm miopen_rnn""",
    OperatorFamily.REDUCTION: """
        sum mean amax amin max min prod argmax argmin any all norm linalg_vector_norm linalg_norm frobenius_norm var std var_mean
        std_mean aminmax count_nonzero nansum nanmean median nanmedian mode nuclear_norm _cdist_forward cdist trace""",
    OperatorFamily.INDEXING: """
        embedding gather scatter scatter_add scatter_reduce index index_select index_put _index_put_impl index_add index_copy
        index_fill masked_fill masked_select masked_scatter take take_along_dim embedding_bag _embedding_bag sort topk kthvalue
        searchsorted bucketize unique nonzero argsort flip roll one_hot tril triu where cat stack constant_pad_nd reflection_pad1d
        reflection_pad2d replication_pad1d replication_pad2d pad repeat repeat_interleave select_scatter slice_scatter
        diagonal_scatter grid_sampler_2d pixel_shuffle pixel_unshuffle channel_shuffle tril_indices triu_indices""",
    OperatorFamily.POINTWISE: """
        add sub rsub mul div true_divide floor_divide remainder fmod pow square sqrt rsqrt reciprocal neg abs sign sgn exp exp2 expm1 log
        log2 log10 log1p sin cos tan asin acos atan atan2 sinh cosh tanh asinh acosh atanh sigmoid logit log_sigmoid
        log_sigmoid_forward relu relu6 leaky_relu rrelu_with_noise prelu _prelu_kernel elu celu selu gelu silu mish softplus softsign
        hardtanh hardswish hardsigmoid hardshrink softshrink tanhshrink threshold glu clamp clamp_min clamp_max maximum minimum fmax fmin
        floor ceil round trunc frac erf erfc erfinv lgamma digamma addcmul addcdiv lerp xlogy special_xlog1py eq ne lt le gt ge
        logical_and logical_or logical_not logical_xor bitwise_and bitwise_or bitwise_not bitwise_xor bitwise_left_shift
        bitwise_right_shift isnan isinf isfinite nan_to_num heaviside hypot copy _to_copy clone contiguous fill zero ones zeros full
        ones_like zeros_like full_like new_zeros new_ones new_full arange scalar_tensor linspace eye i0 polar
        special_log_ndtr special_entr""",
}

_FAMILY = {name: family for family, names in _TABLE.items() for name in names.split()}


def family_of(name: str) -> OperatorFamily:
    """Return the family of the operator called `name` (`softmax`, `add_`, without namespace and overload)."""
    return _FAMILY.get(name, _FAMILY.get(name.rstrip("_"), OperatorFamily.OTHER))
