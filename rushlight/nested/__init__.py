"""Nested tensors: examples of different lengths one after the other in one tensor, without padding.

>>> nt = rushlight.nested.nested_tensor([[1.0, 2.0], [3.0]], layout=rushlight.jagged)
>>> nt
NestedTensor(size=(2, j1), offsets=tensor([0, 2, 3]), contiguous=True)
>>> (nt * 2).to_padded_tensor(0.0)
tensor([[2., 4.],
        [6., 0.]])
"""

from __future__ import annotations

from ..compat import missing as _missing
from ..layout import jagged as _jagged
from ..layout import strided as _strided
from ..ops.public import PUBLIC
from ..tensor import Tensor as _Tensor
from . import operators as _operators
from .strided import from_tensors as _from_tensors
from .tensor import from_list as _from_list

__all__ = [
    "as_nested_tensor", "masked_select", "narrow", "nested_tensor", "nested_tensor_from_jagged", "to_padded_tensor",
]  # fmt: skip


def nested_tensor(tensor_list, *, dtype=None, layout=None, device=None, requires_grad=False, pin_memory=False):
    """A new leaf with copies of the tensors (or lists of numbers) in ``tensor_list``."""
    make = _maker(layout)
    copies = [
        t.detach().to(device=device, dtype=dtype)
        if isinstance(t, _Tensor)
        else PUBLIC["tensor"](t, dtype=dtype, device=device)
        for t in tensor_list
    ]
    made = make(copies)
    return made.requires_grad_() if requires_grad else made


def as_nested_tensor(ts, dtype=None, device=None, layout=None):
    """The tensors of a list, or the rows of a tensor, as one nested tensor; gradients flow back to them."""
    make = _maker(layout)
    if isinstance(ts, _Tensor) and ts.is_nested and layout in (None, ts.layout):
        return ts.to(device=device, dtype=dtype)
    if not isinstance(ts, (_Tensor, list, tuple)):
        raise TypeError("as_nested_tensor(): Expected first argument to be a tensor or a list / tuple of tensors ")
    parts = list(ts.unbind()) if isinstance(ts, _Tensor) else ts
    if not all(isinstance(t, _Tensor) for t in parts):
        raise TypeError("as_nested_tensor(): Expected first argument to be a tensor or a list / tuple of tensors ")
    return make([t.to(device=device, dtype=dtype) for t in parts])


def nested_tensor_from_jagged(values, offsets=None, lengths=None, jagged_dim=None, min_seqlen=None, max_seqlen=None):
    """``values`` seen as examples: ``offsets`` says where each begins (and the last ends), ``lengths`` how long it is.

    With both there may be gaps between them. ``min_seqlen`` and ``max_seqlen`` save looking for these.
    """
    if offsets is None and lengths is None:
        raise RuntimeError("nested_tensor_from_jagged(): At least one of offsets or lengths is required.")
    if offsets is None:
        offsets, lengths = _operators.starts(lengths), None
    if offsets.dim() != 1:
        raise AssertionError(f"offsets must be 1D, but got {offsets.dim()}D")
    return _operators.from_jagged(values, offsets, lengths, jagged_dim or 1, (min_seqlen, max_seqlen))


def narrow(tensor, dim, start, length, layout=_strided):
    """Of each row of ``tensor`` a part of its own ``start`` and ``length`` along ``dim``; nothing is copied."""
    if _maker(layout) is not _from_list:
        raise RuntimeError("narrow(): pass layout=torch.jagged; nested tensors of the strided layout are not cut here")
    if dim != 1:
        raise RuntimeError("jagged layout only supports dim=1")
    rows, width = tensor.shape[:2]
    start, length = (
        t if isinstance(t, _Tensor) else PUBLIC["full"]((rows,), t, device=tensor.device) for t in (start, length)
    )
    begin = start + PUBLIC["arange"](rows, device=tensor.device) * width
    offsets = PUBLIC["cat"]([begin, begin[-1:] + length[-1:]])
    return _operators.from_jagged(tensor.flatten(0, 1), offsets, length)


def masked_select(tensor, mask):
    """The elements of each row where ``mask`` is true."""
    if tensor.layout is not _strided:
        raise RuntimeError(f"torch.nested.masked_select requires a strided tensor, got {tensor.layout}")
    kept = mask.expand(tensor.shape)
    if tensor.dim() > 2:
        raise RuntimeError("masked_select: nested tensors are made of matrices here")
    return _operators.from_jagged(tensor[kept], _operators.starts(kept.sum(-1)))


def to_padded_tensor(input, padding, output_size=None, out=None):
    """A dense tensor, with ``padding`` where an example is shorter than the longest."""
    if not input.is_nested:
        raise NotImplementedError(
            "Could not run 'aten::to_padded_tensor' with arguments from the 'CPU' backend: the tensor is not nested"
        )
    return input.to_padded_tensor(padding, output_size)


def _maker(layout):
    """What makes nested tensors of a layout; strided is PyTorch's default."""
    if layout is None or layout is _strided:
        return _from_tensors
    if layout is not _jagged:
        raise RuntimeError(f"Specified layout is unsupported for nested tensors: {layout}")
    return _from_list


def __dir__():
    return sorted(__all__)


__getattr__ = _missing(__name__)
