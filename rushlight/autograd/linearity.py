"""What operators are as functions of their arrays: element by element, or linear. Whatever is not listed is neither.

Forward mode finds tangents by it (``tangents``). A test takes the tables away, so that each tangent comes from the
gradient rule alone, and compares.
"""

from __future__ import annotations


def _words(text: str) -> frozenset:
    return frozenset(text.split())


# An element of the result is a function of the same element of each array, after broadcasting.
POINTWISE = _words(
    "abs add add_scaled addcdiv addcmul airy_ai angle arccos arccosh arcsin arcsinh arctan arctan2 arctanh "
    "bernoulli_of bessel_j0 bessel_j1 bessel_y0 bessel_y1 binomial_of bitwise_and bitwise_or bitwise_xor ceil clip "
    "compared copied copysign cos cosh deg2rad digamma dirichlet_slope divide divide_rounded elu entr equal erf erfc "
    "erfcx erfinv exp exp2 expm1 floor floor_divide fmax fmin fmod frac gamma_of gamma_slope gcd gelu greater "
    "greater_equal hardshrink hardsigmoid hardswish hardtanh heaviside hypot i0 i0e i1 i1e igamma igammac invert "
    "isclose isfinite isinf isnan isneginf isposinf isreal lcm ldexp leaky_relu left_shift lerp less less_equal lgamma "
    "log log10 log1p log2 log_ndtr log_sigmoid logaddexp logaddexp2 logical_and logical_not logical_or logical_xor "
    "logit masked_fill maximum minimum mish modified_bessel_k0 modified_bessel_k1 mse_each multiply mvlgamma "
    "nan_to_num native_dropped ndtri negative nextafter normal_of not_equal overwritten poisson_of polygamma power "
    "prelu_kernel rad2deg reciprocal relu remainder right_shift round rrelu_with_noise rsqrt rsub "
    "scaled_modified_bessel_k0 scaled_modified_bessel_k1 sigmoid sign signbit silu sin sinc sinh softplus softshrink "
    "spherical_bessel_j0 sqrt subtract subtract_scaled tan tanh threshold trunc where xlog1py xlogy zeta"
)

# Linear in all arrays that have gradients, taken together. Views are too; they need no entry.
LINEAR = _words(
    "add_along_axis add_at add_at_zeros add_positions add_slices add_strided add_windows affine_grid_generator "
    "affine_grid_slope alias_copy astype at_positions augmented avg_pool avg_pool_slope block_diag broadcast_to_copy "
    "cat channel_means channel_shuffle clone col2im cumsum diagonal_copy double_middle embed_diagonal embed_slice "
    "embedding embedding_slope expand_dims_copy fft_c2c fft_c2r fft_r2c fill_slices filled flip frames gather im2col "
    "index_add index_at lay_out make_complex masked_select matrix_transpose_copy mean overlap_add pack_masked "
    "pack_rows pick pixel_shuffle pixel_unshuffle put_at put_diagonal put_masked put_selected put_slice put_slices "
    "put_strided repeat resample resize_ends roll rot90 scatter scatter_add scatter_zeros select_part_copy "
    "slice_part_copy split_apart split_sizes_copy spread spread_masked spread_windows squeeze_copy strided_copy sum "
    "sum_rows sum_windows swapaxes_copy take_along_axis take_flat take_slices take_strided trace transpose_copy tril "
    "triu unbind_copy unpool unsafe_view view_as_shape_copy windows_copy"
)

# Linear in each of these alone. An argument that is only added is left out where another's turn is taken.
MULTILINEAR = {
    "matmul": ("x", "w"), "matvec": ("x", "w"), "vecmat": ("x", "w"), "dot": ("x", "w"), "vdot": ("x", "w"),
    "cross": ("x", "w"), "linear": ("x", "w"), "conv": ("x", "w"), "conv_input": ("g_", "w"),
    "conv_weight": ("x", "g_"),
}  # fmt: skip
ADDED = {"linear": "b", "conv": "b", "conv_input": "b"}
