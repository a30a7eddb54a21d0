"""Layers as functions, under PyTorch's names; one family per file, each file's `__all__` a part of this namespace.

Made by tools/stubs.py; do not edit.
"""

from builtins import bool as _bool, complex as _complex, float as _float, int as _int, str as _str, type as _type
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Literal, Self, TypeVar, overload

import numpy as np
from typing_extensions import TypeIs

from rushlight.device import device as _device
from rushlight.dtypes import dtype as _dtype
from rushlight.layout import layout as _layout, memory_format as _memory_format
from rushlight.ops import returns as _returns
from rushlight.random import Generator as _Generator
from rushlight.storage import UntypedStorage as _UntypedStorage
from rushlight.tensor import Size as _Size, Tensor as _Tensor
from rushlight.utils.hooks import RemovableHandle as _RemovableHandle

_Number = _int | _float | _bool
_Scalar = _Number | _complex
_Device = _device | _str | _int | None
_T = TypeVar("_T")
_F = TypeVar("_F", bound=Callable[..., Any])

def adaptive_avg_pool1d(input: _Tensor, output_size: _int | Sequence[_int]) -> _Tensor:
    """The means of windows chosen so that the output has `output_size`."""
def adaptive_avg_pool2d(input: _Tensor, output_size: _int | Sequence[_int]) -> _Tensor:
    """The means of windows chosen so that the output has `output_size`."""
def adaptive_avg_pool3d(input: _Tensor, output_size: _int | Sequence[_int]) -> _Tensor:
    """The means of windows chosen so that the output has `output_size`."""
def adaptive_max_pool1d(input: _Tensor, output_size: _int | Sequence[_int], return_indices: _bool = False) -> Any:
    """The largest elements of windows chosen so that the output has `output_size`."""
def adaptive_max_pool1d_with_indices(input: _Tensor, output_size: _int | Sequence[_int], return_indices: _bool = False) -> tuple[_Tensor, _Tensor]:
    """`adaptive_max_pool1d` and where in the flattened image each element was."""
def adaptive_max_pool2d(input: _Tensor, output_size: _int | Sequence[_int], return_indices: _bool = False) -> _Tensor:
    """The largest elements of windows chosen so that the output has `output_size`."""
def adaptive_max_pool2d_with_indices(input: _Tensor, output_size: _int | Sequence[_int], return_indices: _bool = False) -> tuple[_Tensor, _Tensor]:
    """`adaptive_max_pool2d` and where in the flattened image each element was."""
def adaptive_max_pool3d(input: _Tensor, output_size: _int | Sequence[_int], return_indices: _bool = False) -> _Tensor:
    """The largest elements of windows chosen so that the output has `output_size`."""
def adaptive_max_pool3d_with_indices(input: _Tensor, output_size: _int | Sequence[_int], return_indices: _bool = False) -> tuple[_Tensor, _Tensor]:
    """`adaptive_max_pool3d` and where in the flattened image each element was."""
def affine_grid(theta: _Tensor, size: _int | Sequence[_int], align_corners: _bool | None = None) -> _Tensor:
    """The grid for `grid_sample` that the transforms `theta` (N, 2, 3) or (N, 3, 4) make of a regular one."""
def alpha_dropout(input: _Tensor, p: _float = 0.5, training: _bool = False, inplace: _bool = False) -> _Tensor:
    """Dropout that keeps mean and variance of SELU's output."""
def avg_pool1d(input: _Tensor, kernel_size: _int | Sequence[_int], stride: _int | Sequence[_int] | None = None, padding: _int | Sequence[_int] = 0, ceil_mode: _bool = False, count_include_pad: _bool = True, divisor_override: Any = None) -> _Tensor:
    """The mean of each window of the last 1 dimension(s)."""
def avg_pool2d(input: _Tensor, kernel_size: _int | Sequence[_int], stride: _int | Sequence[_int] | None = None, padding: _int | Sequence[_int] = 0, ceil_mode: _bool = False, count_include_pad: _bool = True, divisor_override: _int | None = None) -> _Tensor:
    """The mean of each window of the last 2 dimension(s)."""
def avg_pool3d(input: _Tensor, kernel_size: _int | Sequence[_int], stride: _int | Sequence[_int] | None = None, padding: _int | Sequence[_int] = 0, ceil_mode: _bool = False, count_include_pad: _bool = True, divisor_override: _int | None = None) -> _Tensor:
    """The mean of each window of the last 3 dimension(s)."""
def batch_norm(input: _Tensor, running_mean: _Tensor | None, running_var: _Tensor | None, weight: _Tensor | None = None, bias: _Tensor | None = None, training: _bool = False, momentum: _float = 0.1, eps: _float = 1e-05) -> _Tensor:
    """Each channel (dimension 1) normalized with the batch's mean and variance (`training`) or the running ones."""
def bilinear(input1: _Tensor, input2: _Tensor, weight: Any, bias: _Tensor | None = None) -> _Tensor:
    """`y[o] = x1 · weight[o] · x2 + bias[o]`."""
def binary_cross_entropy(input: _Tensor, target: _Tensor, weight: Any = None, size_average: _bool | None = None, reduce: Any = None, reduction: _str = 'mean') -> _Tensor:
    """-target · log(input) - (1 - target) · log(1 - input), for probabilities."""
def binary_cross_entropy_with_logits(input: _Tensor, target: _Tensor, weight: _Tensor | None = None, size_average: _bool | None = None, reduce: Any = None, reduction: _str = 'mean', pos_weight: _Tensor | None = None) -> _Tensor:
    """`binary_cross_entropy` of sigmoid(input), without overflow."""
def celu(input: _Tensor, alpha: _Number = 1.0, inplace: _bool = False) -> _Tensor:
    """x where positive, `alpha · (exp(x / alpha) - 1)` elsewhere."""
def celu_(input: _Tensor, *args: Any, **kwargs: Any) -> _Tensor:
    """`celu`, in place."""
def channel_shuffle(input: _Tensor, groups: _int) -> _Tensor:
    """Channels (dimension 1) dealt out anew: the first of each group, then the second of each, …"""
def conv1d(input: _Tensor, weight: Any, bias: _Tensor | None = None, stride: _int | Sequence[_int] = 1, padding: _int | Sequence[_int] = 0, dilation: _int | Sequence[_int] = 1, groups: _int = 1) -> _Tensor:
    """`weight` (outputs, inputs / groups, *kernel) slid over the last 1 dimension(s)."""
def conv2d(input: _Tensor, weight: Any, bias: _Tensor | None = None, stride: _int | Sequence[_int] = 1, padding: _int | Sequence[_int] = 0, dilation: _int | Sequence[_int] = 1, groups: _int = 1) -> _Tensor:
    """`weight` (outputs, inputs / groups, *kernel) slid over the last 2 dimension(s)."""
def conv3d(input: _Tensor, weight: Any, bias: _Tensor | None = None, stride: _int | Sequence[_int] = 1, padding: _int | Sequence[_int] = 0, dilation: _int | Sequence[_int] = 1, groups: _int = 1) -> _Tensor:
    """`weight` (outputs, inputs / groups, *kernel) slid over the last 3 dimension(s)."""
def conv_tbc(input: _Tensor, weight: Any, bias: _Tensor | None, pad: _float = 0) -> _Tensor:
    """conv1d on (time, batch, channels), with weights (kernel, channels, outputs)."""
def conv_transpose1d(input: _Tensor, weight: Any, bias: _Tensor | None = None, stride: _int | Sequence[_int] = 1, padding: _int | Sequence[_int] = 0, output_padding: _int | Sequence[_int] = 0, groups: _int = 1, dilation: _int | Sequence[_int] = 1) -> _Tensor:
    """The gradient of conv1d in its input, as a function of its own."""
def conv_transpose2d(input: _Tensor, weight: Any, bias: _Tensor | None = None, stride: _int | Sequence[_int] = 1, padding: _int | Sequence[_int] = 0, output_padding: _int | Sequence[_int] = 0, groups: _int = 1, dilation: _int | Sequence[_int] = 1) -> _Tensor:
    """The gradient of conv2d in its input, as a function of its own."""
def conv_transpose3d(input: _Tensor, weight: Any, bias: _Tensor | None = None, stride: _int | Sequence[_int] = 1, padding: _int | Sequence[_int] = 0, output_padding: _int | Sequence[_int] = 0, groups: _int = 1, dilation: _int | Sequence[_int] = 1) -> _Tensor:
    """The gradient of conv3d in its input, as a function of its own."""
def cosine_embedding_loss(input1: _Tensor, input2: _Tensor, target: _Tensor, margin: _float = 0, size_average: _bool | None = None, reduce: Any = None, reduction: _str = 'mean') -> _Tensor:
    """1 - cos where target is 1, max(0, cos - margin) where it is -1."""
def cosine_similarity(x1: _Tensor, x2: _Tensor, dim: _int = 1, eps: _float = 1e-08) -> _Tensor:
    """x1 · x2 / (|x1| |x2|) along `dim`; lengths below `eps` count as `eps`."""
def cross_entropy(input: _Tensor, target: _Tensor, weight: Any = None, size_average: _bool | None = None, ignore_index: _int = -100, reduce: Any = None, reduction: _str = 'mean', label_smoothing: _float = 0.0) -> _Tensor:
    """-log softmax(input) at the target class; targets of input's shape are class probabilities."""
def ctc_loss(log_probs: _Tensor, targets: _Tensor, input_lengths: Any, target_lengths: Any, blank: _int = 0, reduction: _str = 'mean', zero_infinity: _bool = False) -> _Tensor:
    """-log of the probability that a path through `log_probs` (T, N, C) spells `targets`."""
def dropout(input: _Tensor, p: _float = 0.5, training: _bool = True, inplace: _bool = False) -> _Tensor:
    """Each element zeroed with probability `p`, the rest scaled by 1 / (1 - p)."""
def dropout1d(input: _Tensor, p: _float = 0.5, training: _bool = True, inplace: _bool = False) -> _Tensor:
    """Dropout of whole channels of an input (N, C, L) or (C, L)."""
def dropout2d(input: _Tensor, p: _float = 0.5, training: _bool = True, inplace: _bool = False) -> _Tensor:
    """Dropout of whole channels of an input (N, C, H, W)."""
def dropout3d(input: _Tensor, p: _float = 0.5, training: _bool = True, inplace: _bool = False) -> _Tensor:
    """Dropout of whole channels of an input (N, C, D, H, W) or (C, D, H, W)."""
def elu(input: _Tensor, alpha: _Number = 1.0, inplace: _bool = False) -> _Tensor:
    """x where positive, `alpha · (exp(x) - 1)` elsewhere."""
def elu_(input: _Tensor, *args: Any, **kwargs: Any) -> _Tensor:
    """`elu`, in place."""
def embedding(input: _Tensor, weight: Any, padding_idx: _int | None = None, max_norm: Any = None, norm_type: _float = 2.0, scale_grad_by_freq: _bool = False, sparse: _bool = False) -> _Tensor:
    """The rows of `weight` that `input` names."""
def embedding_bag(input: _Tensor, weight: Any, offsets: _Tensor | None = None, max_norm: Any = None, norm_type: _float = 2, scale_grad_by_freq: _bool = False, mode: _str = 'mean', sparse: _bool = False, per_sample_weights: _Tensor | None = None, include_last_offset: _bool = False, padding_idx: _int | None = None) -> Any:
    """The sum, mean or maximum of the rows in each bag, without the table of all rows."""
def feature_alpha_dropout(input: _Tensor, p: _float = 0.5, training: _bool = False, inplace: _bool = False) -> _Tensor:
    """`alpha_dropout` of whole channels."""
def fold(input: _Tensor, output_size: _int | Sequence[_int], kernel_size: _int | Sequence[_int], dilation: _int | Sequence[_int] = 1, padding: _int | Sequence[_int] = 0, stride: _int | Sequence[_int] = 1) -> _Tensor:
    """Columns put back as windows of an image of `output_size`, adding up where they overlap."""
def fractional_max_pool2d(input: _Tensor, kernel_size: _int | Sequence[_int], output_size: _int | Sequence[_int] | None = None, output_ratio: Any = None, return_indices: _bool = False, _random_samples: Any = None) -> _Tensor:
    """The largest elements of windows of `kernel_size` that begin at random places, evenly on average."""
def fractional_max_pool2d_with_indices(input: _Tensor, kernel_size: _int | Sequence[_int], output_size: _int | Sequence[_int] | None = None, output_ratio: Any = None, return_indices: _bool = False, _random_samples: Any = None) -> tuple[_Tensor, _Tensor]:
    """`fractional_max_pool2d` and where in the flattened image each element was."""
def fractional_max_pool3d(input: _Tensor, kernel_size: _int | Sequence[_int], output_size: _int | Sequence[_int] | None = None, output_ratio: Any = None, return_indices: _bool = False, _random_samples: Any = None) -> _Tensor:
    """The largest elements of windows of `kernel_size` that begin at random places, evenly on average."""
def fractional_max_pool3d_with_indices(input: _Tensor, kernel_size: _int | Sequence[_int], output_size: _int | Sequence[_int] | None = None, output_ratio: Any = None, return_indices: _bool = False, _random_samples: Any = None) -> tuple[_Tensor, _Tensor]:
    """`fractional_max_pool3d` and where in the flattened image each element was."""
def gaussian_nll_loss(input: _Tensor, target: _Tensor, var: Any, full: _bool = False, eps: _float = 1e-06, reduction: _str = 'mean') -> _Tensor:
    """(log(var) + (input - target)² / var) / 2; `full` adds log(2π) / 2."""
def gelu(input: _Tensor, approximate: _str = 'none') -> _Tensor:
    """x · Φ(x), Φ the normal distribution function; `approximate='tanh'` for the formula with tanh."""
def glu(input: _Tensor, dim: _int | Sequence[_int] = -1) -> _Tensor:
    """The first half along `dim` times the sigmoid of the second half."""
def grid_sample(input: _Tensor, grid: _Tensor, mode: _str = 'bilinear', padding_mode: _str = 'zeros', align_corners: _bool | None = None) -> _Tensor:
    """`input` at the points `grid`: (N, H, W, 2) pairs (x, y), or (N, D, H, W, 3), from -1 to 1 across the image."""
def group_norm(input: _Tensor, num_groups: _int, weight: Any = None, bias: _Tensor | None = None, eps: _float = 1e-05) -> _Tensor:
    """Groups of channels of each sample normalized together."""
def grouped_mm(mat_a: _Tensor, mat_b: _Tensor, *, offs: Any = None, bias: _Tensor | None = None, out_dtype: _dtype | None = None) -> _Tensor:
    """A matrix product for each group: of stacked matrices, or of the parts of a matrix that end at `offs`."""
def gumbel_softmax(logits: _Tensor, tau: _float = 1, hard: _bool = False, eps: _float = 1e-10, dim: _int | Sequence[_int] = -1) -> _Tensor:
    """A sample from the Gumbel-softmax distribution; `hard`: one-hot, with the gradient of the soft one."""
def hardshrink(input: _Tensor, lambd: _float = 0.5, *, out: _Tensor | None = None) -> _Tensor:
    """x, but 0 within `lambd` of 0."""
def hardsigmoid(input: _Tensor, inplace: _bool = False) -> _Tensor:
    """relu6(x + 3) / 6."""
def hardswish(input: _Tensor, inplace: _bool = False) -> _Tensor:
    """x · relu6(x + 3) / 6."""
def hardtanh(input: _Tensor, min_val: _float = -1.0, max_val: _float = 1.0, inplace: _bool = False) -> _Tensor:
    """x, but at least `min_val` and at most `max_val`."""
def hardtanh_(input: _Tensor, *args: Any, **kwargs: Any) -> _Tensor:
    """`hardtanh`, in place."""
def hinge_embedding_loss(input: _Tensor, target: _Tensor, margin: _float = 1.0, size_average: _bool | None = None, reduce: Any = None, reduction: _str = 'mean') -> _Tensor:
    """input where target is 1, max(0, margin - input) where it is -1."""
def huber_loss(input: _Tensor, target: _Tensor, reduction: _str = 'mean', delta: _float = 1.0, weight: Any = None) -> _Tensor:
    """Squared below `delta`, linear above: d² / 2, or delta · (|d| - delta / 2)."""
def instance_norm(input: _Tensor, running_mean: _Tensor | None = None, running_var: _Tensor | None = None, weight: _Tensor | None = None, bias: _Tensor | None = None, use_input_stats: _bool = True, momentum: _float = 0.1, eps: _float = 1e-05) -> _Tensor:
    """Each channel of each sample normalized on its own."""
def interpolate(input: _Tensor, size: _int | Sequence[_int] | None = None, scale_factor: Any = None, mode: _str = 'nearest', align_corners: _bool | None = None, recompute_scale_factor: Any = None, antialias: _bool = False) -> _Tensor:
    """Resize the last dimensions to `size`, or by `scale_factor`."""
def kl_div(input: _Tensor, target: _Tensor, size_average: _bool | None = None, reduce: Any = None, reduction: _str = 'mean', log_target: _bool = False) -> _Tensor:
    """target · (log(target) - input), input being log-probabilities, target too if `log_target`."""
def l1_loss(input: _Tensor, target: _Tensor, size_average: _bool | None = None, reduce: Any = None, reduction: _str = 'mean', weight: Any = None) -> _Tensor:
    """The mean of |input - target|."""
def layer_norm(input: _Tensor, normalized_shape: _int | Sequence[_int], weight: Any = None, bias: _Tensor | None = None, eps: _float = 1e-05) -> _Tensor:
    """The last dimensions, of shape `normalized_shape`, normalized together."""
def leaky_relu(input: _Tensor, negative_slope: _float = 0.01, inplace: _bool = False) -> _Tensor:
    """x where positive, `negative_slope * x` elsewhere."""
def leaky_relu_(input: _Tensor, *args: Any, **kwargs: Any) -> _Tensor:
    """`leaky_relu`, in place."""
def linear(input: _Tensor, weight: Any, bias: _Tensor | None = None) -> _Tensor:
    """`input @ weight.T + bias`: one matrix product however many leading dimensions the input has."""
def linear_cross_entropy(input: _Tensor, linear_weight: _Tensor, target: _Tensor, *, linear_bias: Any = None, weight: Any = None, reduction: _str = 'mean', ignore_index: _int | None = None, label_smoothing: _float = 0.0, options: Any = None) -> _Tensor:
    """`cross_entropy` of `linear(input, linear_weight, linear_bias)`; weights (C, d…, in) make a loss for each d."""
def local_response_norm(input: _Tensor, size: _int, alpha: _Number = 0.0001, beta: _Number = 0.75, k: _float = 1.0) -> _Tensor:
    """x / (k + alpha · the mean of x² over `size` neighbouring channels) ** beta."""
def log_softmax(input: _Tensor, dim: _int | Sequence[_int] | None = None, _stacklevel: _float = 3, dtype: _dtype | None = None) -> _Tensor:
    """log(softmax(x)), without overflow."""
def logsigmoid(input: _Tensor) -> _Tensor:
    """log(sigmoid(x))."""
def lp_pool1d(input: _Tensor, norm_type: _float, kernel_size: _int | Sequence[_int], stride: _int | Sequence[_int] | None = None, ceil_mode: _bool = False) -> _Tensor:
    """(Σ xᵖ)^(1/p) of each window of the last 1 dimension(s)."""
def lp_pool2d(input: _Tensor, norm_type: _float, kernel_size: _int | Sequence[_int], stride: _int | Sequence[_int] | None = None, ceil_mode: _bool = False) -> _Tensor:
    """(Σ xᵖ)^(1/p) of each window of the last 2 dimension(s)."""
def lp_pool3d(input: _Tensor, norm_type: _float, kernel_size: _int | Sequence[_int], stride: _int | Sequence[_int] | None = None, ceil_mode: _bool = False) -> _Tensor:
    """(Σ xᵖ)^(1/p) of each window of the last 3 dimension(s)."""
def margin_ranking_loss(input1: _Tensor, input2: _Tensor, target: _Tensor, margin: _float = 0, size_average: _bool | None = None, reduce: Any = None, reduction: _str = 'mean') -> _Tensor:
    """max(0, -target · (input1 - input2) + margin)."""
@overload
def max_pool1d(input: _Tensor, kernel_size: _int | Sequence[_int], stride: _int | Sequence[_int] | None=None, padding: _int | Sequence[_int]=0, dilation: _int | Sequence[_int]=1, ceil_mode: _bool=False, return_indices: Literal[False]=False) -> _Tensor: ...
@overload
def max_pool1d(input: _Tensor, kernel_size: _int | Sequence[_int], stride: _int | Sequence[_int] | None=None, padding: _int | Sequence[_int]=0, dilation: _int | Sequence[_int]=1, ceil_mode: _bool=False, *, return_indices: Literal[True]) -> tuple[_Tensor, _Tensor]:
    """The largest element of each window of the last 1 dimension(s)."""
def max_pool1d_with_indices(input: _Tensor, kernel_size: _int | Sequence[_int], stride: _int | Sequence[_int] | None = None, padding: _int | Sequence[_int] = 0, dilation: _int | Sequence[_int] = 1, ceil_mode: _bool = False, return_indices: _bool = False) -> tuple[_Tensor, _Tensor]:
    """`max_pool1d` and where in the flattened image each element was."""
@overload
def max_pool2d(input: _Tensor, kernel_size: _int | Sequence[_int], stride: _int | Sequence[_int] | None=None, padding: _int | Sequence[_int]=0, dilation: _int | Sequence[_int]=1, ceil_mode: _bool=False, return_indices: Literal[False]=False) -> _Tensor: ...
@overload
def max_pool2d(input: _Tensor, kernel_size: _int | Sequence[_int], stride: _int | Sequence[_int] | None=None, padding: _int | Sequence[_int]=0, dilation: _int | Sequence[_int]=1, ceil_mode: _bool=False, *, return_indices: Literal[True]) -> tuple[_Tensor, _Tensor]:
    """The largest element of each window of the last 2 dimension(s)."""
def max_pool2d_with_indices(input: _Tensor, kernel_size: _int | Sequence[_int], stride: _int | Sequence[_int] | None = None, padding: _int | Sequence[_int] = 0, dilation: _int | Sequence[_int] = 1, ceil_mode: _bool = False, return_indices: _bool = False) -> tuple[_Tensor, _Tensor]:
    """`max_pool2d` and where in the flattened image each element was."""
@overload
def max_pool3d(input: _Tensor, kernel_size: _int | Sequence[_int], stride: _int | Sequence[_int] | None=None, padding: _int | Sequence[_int]=0, dilation: _int | Sequence[_int]=1, ceil_mode: _bool=False, return_indices: Literal[False]=False) -> _Tensor: ...
@overload
def max_pool3d(input: _Tensor, kernel_size: _int | Sequence[_int], stride: _int | Sequence[_int] | None=None, padding: _int | Sequence[_int]=0, dilation: _int | Sequence[_int]=1, ceil_mode: _bool=False, *, return_indices: Literal[True]) -> tuple[_Tensor, _Tensor]:
    """The largest element of each window of the last 3 dimension(s)."""
def max_pool3d_with_indices(input: _Tensor, kernel_size: _int | Sequence[_int], stride: _int | Sequence[_int] | None = None, padding: _int | Sequence[_int] = 0, dilation: _int | Sequence[_int] = 1, ceil_mode: _bool = False, return_indices: _bool = False) -> tuple[_Tensor, _Tensor]:
    """`max_pool3d` and where in the flattened image each element was."""
def max_unpool1d(input: _Tensor, indices: Any, kernel_size: _int | Sequence[_int], stride: _int | Sequence[_int] | None = None, padding: _int | Sequence[_int] = 0, output_size: _int | Sequence[_int] | None = None) -> _Tensor:
    """What `max_pool1d` took, put back at `indices` among zeros."""
def max_unpool2d(input: _Tensor, indices: Any, kernel_size: _int | Sequence[_int], stride: _int | Sequence[_int] | None = None, padding: _int | Sequence[_int] = 0, output_size: _int | Sequence[_int] | None = None) -> _Tensor:
    """What `max_pool2d` took, put back at `indices` among zeros."""
def max_unpool3d(input: _Tensor, indices: Any, kernel_size: _int | Sequence[_int], stride: _int | Sequence[_int] | None = None, padding: _int | Sequence[_int] = 0, output_size: _int | Sequence[_int] | None = None) -> _Tensor:
    """What `max_pool3d` took, put back at `indices` among zeros."""
def mish(input: _Tensor, inplace: _bool = False) -> _Tensor:
    """x · tanh(softplus(x))."""
def mse_loss(input: _Tensor, target: _Tensor, size_average: _bool | None = None, reduce: Any = None, reduction: _str = 'mean', weight: Any = None) -> _Tensor:
    """The mean of (input - target)²."""
def multi_head_attention_forward(query: _Tensor, key: _Tensor, value: Any, embed_dim_to_check: Any, num_heads: Any, in_proj_weight: _Tensor, in_proj_bias: Any, bias_k: Any, bias_v: Any, add_zero_attn: Any, dropout_p: _float, out_proj_weight: _Tensor, out_proj_bias: Any, training: _bool = True, key_padding_mask: _Tensor | None = None, need_weights: _bool = True, attn_mask: _Tensor | None = None, use_separate_proj_weight: _bool = False, q_proj_weight: Any = None, k_proj_weight: Any = None, v_proj_weight: Any = None, static_k: Any = None, static_v: Any = None, average_attn_weights: _bool = True, is_causal: _bool = False) -> tuple[_Tensor, _Tensor | None]:
    """(output, weights or None) of attention with several heads, on (length, batch, features) or (length, features)."""
def multi_margin_loss(input: _Tensor, target: _Tensor, p: _float = 1, margin: _float = 1.0, weight: Any = None, size_average: _bool | None = None, reduce: Any = None, reduction: _str = 'mean') -> _Tensor:
    """The mean over the wrong classes of max(0, margin - input[target] + input)ᵖ."""
def multilabel_margin_loss(input: _Tensor, target: _Tensor, size_average: _bool | None = None, reduce: Any = None, reduction: _str = 'mean') -> _Tensor:
    """Each wrong class against each right one: max(0, 1 - input[right] + input[wrong]); -1 ends a row of targets."""
def multilabel_soft_margin_loss(input: _Tensor, target: _Tensor, weight: Any = None, size_average: _bool | None = None, reduce: Any = None, reduction: _str = 'mean') -> _Tensor:
    """`binary_cross_entropy_with_logits` of each label, averaged over the labels."""
def native_channel_shuffle(input: _Tensor, groups: _int) -> _Tensor:
    """`channel_shuffle`."""
def nll_loss(input: _Tensor, target: _Tensor, weight: Any = None, size_average: _bool | None = None, ignore_index: _int = -100, reduce: Any = None, reduction: _str = 'mean') -> _Tensor:
    """Minus the input (log-probabilities, classes in dimension 1) at the target class, weighted."""
def normalize(input: _Tensor, p: _float = 2.0, dim: _int | Sequence[_int] = 1, eps: _float = 1e-12, out: Any = None) -> _Tensor:
    """x divided by its p-norm along `dim`, or by `eps` if that is larger."""
def one_hot(tensor: _Tensor, num_classes: _int = -1) -> _Tensor:
    """For each class index a row with a single 1."""
def pad(input: _Tensor, pad: Sequence[_int], mode: _str = 'constant', value: Any = None) -> _Tensor:
    """Add `pad = (left, right, top, bottom, …)` elements, the last dimension's first; negative numbers take away."""
def pairwise_distance(x1: _Tensor, x2: _Tensor, p: _float = 2.0, eps: _float = 1e-06, keepdim: _bool = False) -> _Tensor:
    """The p-norm of x1 - x2 + eps along the last dimension."""
def pdist(input: _Tensor, p: _float = 2.0) -> _Tensor:
    """The p-norm distances between all pairs of rows."""
def pixel_shuffle(input: _Tensor, upscale_factor: _int) -> _Tensor:
    """(…, C r², H, W) to (…, C, H r, W r): each group of r² channels becomes a block of r by r pixels."""
def pixel_unshuffle(input: _Tensor, downscale_factor: _int) -> _Tensor:
    """(…, C, H r, W r) to (…, C r², H, W): what undoes `pixel_shuffle`."""
def poisson_nll_loss(input: _Tensor, target: _Tensor, log_input: _bool = True, full: _bool = False, size_average: _bool | None = None, eps: _float = 1e-08, reduce: Any = None, reduction: _str = 'mean') -> _Tensor:
    """exp(input) - target · input, without `log_input`: input - target · log(input + eps); full: + log(target!)."""
def prelu(input: _Tensor, weight: Any) -> _Tensor:
    """`leaky_relu` with a learned slope: one for all, or one for each channel (dimension 1)."""
def relu(input: _Tensor, inplace: _bool = False) -> _Tensor:
    """max(0, x)."""
def relu6(input: _Tensor, inplace: _bool = False) -> _Tensor:
    """x between 0 and 6, those where it is outside."""
def relu_(input: _Tensor, *args: Any, **kwargs: Any) -> _Tensor:
    """`relu`, in place."""
def rms_norm(input: _Tensor, normalized_shape: _int | Sequence[_int], weight: Any = None, eps: _float | None = None) -> _Tensor:
    """The last dimensions, of shape `normalized_shape`, divided by the root of their mean square."""
def rrelu(input: _Tensor, lower: _float = 0.125, upper: _float = 0.3333333333333333, training: _bool = False, inplace: _bool = False) -> _Tensor:
    """`leaky_relu` with slopes drawn from [lower, upper) in training, their mean otherwise."""
def rrelu_(input: _Tensor, *args: Any, **kwargs: Any) -> _Tensor:
    """`rrelu`, in place."""
def scaled_dot_product_attention(query: _Tensor, key: _Tensor, value: Any, attn_mask: _Tensor | None = None, dropout_p: _float = 0.0, is_causal: _bool = False, scale: Any = None, enable_gqa: _bool = False) -> _Tensor:
    """softmax(q kᵀ scale + mask) v, with `scale` 1/√E if not given."""
def selu(input: _Tensor, inplace: _bool = False) -> _Tensor:
    """`elu` with the scale and alpha that keep mean 0 and variance 1."""
def selu_(input: _Tensor, *args: Any, **kwargs: Any) -> _Tensor:
    """`selu`, in place."""
def sigmoid(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor:
    """1 / (1 + exp(-x))."""
def silu(input: _Tensor, inplace: _bool = False) -> _Tensor:
    """x · sigmoid(x)."""
def smooth_l1_loss(input: _Tensor, target: _Tensor, size_average: _bool | None = None, reduce: Any = None, reduction: _str = 'mean', beta: _Number = 1.0) -> _Tensor:
    """Squared below `beta`, linear above: d² / (2 beta), or |d| - beta / 2."""
def soft_margin_loss(input: _Tensor, target: _Tensor, size_average: _bool | None = None, reduce: Any = None, reduction: _str = 'mean') -> _Tensor:
    """log(1 + exp(-target · input)), for targets of 1 and -1."""
def softmax(input: _Tensor, dim: _int | Sequence[_int] | None = None, _stacklevel: _float = 3, dtype: _dtype | None = None) -> _Tensor:
    """exp(x) divided by its sum over `dim`."""
def softmin(input: _Tensor, dim: _int | Sequence[_int] | None = None, _stacklevel: _float = 3, dtype: _dtype | None = None) -> _Tensor:
    """softmax(-x)."""
def softplus(input: _Tensor, beta: _Number = 1, threshold: _Number = 20) -> _Tensor:
    """log(1 + exp(beta · x)) / beta; x itself where `beta · x` is above `threshold`."""
def softshrink(input: _Tensor, lambd: _float = 0.5) -> _Tensor:
    """x moved by `lambd` towards 0."""
def softsign(input: _Tensor) -> _Tensor:
    """x / (1 + |x|)."""
def tanh(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor:
    """The hyperbolic tangent."""
def tanhshrink(input: _Tensor) -> _Tensor:
    """x - tanh(x)."""
def threshold(input: _Tensor, threshold: _Number, value: _Number, inplace: _bool = False) -> _Tensor:
    """x where it is above `threshold`, `value` elsewhere."""
def threshold_(input: _Tensor, *args: Any, **kwargs: Any) -> _Tensor:
    """`threshold`, in place."""
def triplet_margin_loss(anchor: _Tensor, positive: _Tensor, negative: _Tensor, margin: _float = 1.0, p: _float = 2, eps: _float = 1e-06, swap: _bool = False, size_average: _bool | None = None, reduce: Any = None, reduction: _str = 'mean') -> _Tensor:
    """max(0, d(anchor, positive) - d(anchor, negative) + margin), d being `pairwise_distance`."""
def triplet_margin_with_distance_loss(anchor: _Tensor, positive: _Tensor, negative: _Tensor, *, distance_function: Any = None, margin: _float = 1.0, swap: _bool = False, reduction: _str = 'mean') -> _Tensor:
    """`triplet_margin_loss` with a distance of one's own."""
def unfold(input: _Tensor, kernel_size: _int | Sequence[_int], dilation: _int | Sequence[_int] = 1, padding: _int | Sequence[_int] = 0, stride: _int | Sequence[_int] = 1) -> _Tensor:
    """The windows of an image as columns: (N, C, H, W) to (N, C * window, number of windows)."""
def upsample(input: _Tensor, size: _int | Sequence[_int] | None = None, scale_factor: Any = None, mode: _str = 'nearest', align_corners: _bool | None = None) -> _Tensor:
    """Deprecated: `interpolate`."""
def upsample_bilinear(input: _Tensor, size: _int | Sequence[_int] | None = None, scale_factor: Any = None) -> _Tensor:
    """Deprecated: `interpolate(…, mode='bilinear', align_corners=True)`."""
def upsample_nearest(input: _Tensor, size: _int | Sequence[_int] | None = None, scale_factor: Any = None) -> _Tensor:
    """Deprecated: `interpolate`."""
