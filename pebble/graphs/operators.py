"""What the operators of PyTorch are, by name: views, products, norms and so on."""

from __future__ import annotations

VIEWS = frozenset(
    """
    view reshape transpose permute t numpy_T expand expand_as unsqueeze squeeze slice select narrow flatten
    unflatten contiguous detach alias lift_fresh_copy dropout feature_dropout alpha_dropout movedim moveaxis
    swapaxes swapdims view_as reshape_as mT mH adjoint _unsafe_view _reshape_alias broadcast_to diagonal clone
    positive real view_as_real view_as_complex native_dropout data detach_ lift expand_copy view_copy squeeze_copy
    unsqueeze_copy
    """.split()  # noqa: SIM905
)
PIECES = {"split", "split_with_sizes", "chunk", "unbind", "tensor_split", "hsplit", "vsplit"}
NOTHING = frozenset(
    """
    sym_size sym_numel sym_stride size _assert_async _assert_scalar sym_constrain_range sym_constrain_range_for_size
    _assert_tensor_metadata
    """.split()  # noqa: SIM905
)
CREATES = frozenset(
    """
    zeros ones full empty arange rand randn randint linspace eye zeros_like ones_like full_like empty_like rand_like
    randn_like new_zeros new_ones new_full new_empty scalar_tensor
    """.split()  # noqa: SIM905
)
NORMS = frozenset(
    """
    layer_norm batch_norm group_norm instance_norm rms_norm _fused_rms_norm native_layer_norm
    native_group_norm native_batch_norm _native_batch_norm_legit local_response_norm
    """.split()  # noqa: SIM905
)
REDUCTIONS = frozenset(
    """
    sum mean amax amin max min var std norm argmax argmin prod all any logsumexp linalg_vector_norm linalg_norm
    cross_entropy_loss frobenius_norm var_mean std_mean cumsum cumprod logcumsumexp adaptive_avg_pool1d
    adaptive_avg_pool2d adaptive_avg_pool3d mse_loss l1_loss smooth_l1_loss huber_loss kl_div cosine_similarity topk
    sort aminmax median cosine_embedding_loss triplet_margin_loss hinge_embedding_loss pairwise_distance histc bincount
    """.split()  # noqa: SIM905
)
ELEMENTWISE = frozenset(
    """
    add sub rsub mul div pow neg abs exp log sqrt rsqrt reciprocal sin cos tan tanh sigmoid relu relu6 gelu silu
    mish elu selu celu softplus softsign hardtanh hardswish hardsigmoid leaky_relu prelu clamp clamp_min clamp_max
    minimum maximum erf floor ceil round sign square bitwise_not logical_not logical_and logical_or eq ne lt le gt
    ge to _to_copy type_as addcmul addcdiv lerp log1p expm1 log2 exp2 log10 log_sigmoid glu cat stack concat
    concatenate logit atan atan2 sinh cosh asin acos remainder fmod floor_divide true_divide bitwise_and bitwise_or
    roll flip logaddexp hypot trunc isnan isinf isfinite tanhshrink softshrink hardshrink threshold pixel_shuffle
    pixel_unshuffle channel_shuffle repeat repeat_interleave tile nan_to_num float half bfloat16 double int long
    bool conj_physical complex polar sgn binary_cross_entropy bce_with_logits multiply divide subtract negative
    absolute clip greater less greater_equal less_equal not_equal fix __and__ __or__ __xor__ bitwise_xor logical_xor
    diff
    """.split()  # noqa: SIM905
)
SOFTMAX = {"softmax", "_softmax", "log_softmax", "_log_softmax", "_safe_softmax"}
POOLS = {"max_pool1d", "max_pool2d", "max_pool3d", "avg_pool1d", "avg_pool2d", "avg_pool3d", "max_pool2d_with_indices"}
CHOOSES = {"embedding", "index_select", "gather", "index", "take_along_dim", "take", "masked_select", "grid_sampler"}
CONVOLUTIONS = {"conv1d", "conv2d", "conv3d", "convolution"}
TRANSPOSED = {"conv_transpose1d", "conv_transpose2d", "conv_transpose3d"}
_KINDS = (
    (NORMS, "norm"),
    (SOFTMAX, "softmax"),
    (REDUCTIONS, "reduction"),
    (ELEMENTWISE, "elementwise"),
    (TRANSPOSED, "convolution"),
)


def kind_of(name: str) -> str:
    """The kind of an operator whose operands are read once each, in place or not; '' for one that is not known.

    Examples
    --------
    >>> kind_of("layer_norm"), kind_of("add_"), kind_of("fft")
    ('norm', 'elementwise', '')
    """
    return next((kind for names, kind in _KINDS if {name, name.removesuffix("_")} & names), "")
