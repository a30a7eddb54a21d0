"""How sparse tensors print: PyTorch's text."""

from __future__ import annotations

from .._printing import _host_values, _is_usual, _names_device, _values_text, _with_notes
from ..layout import sparse_coo, sparse_csc, sparse_csr

__all__ = ["text"]


def text(s) -> str:
    """The ``repr``: places and values as tensors of their own, then what is to be said of the whole."""
    prefix = "tensor("
    notes = [f"size={tuple(s.shape)}", f"nnz={s._values_.shape[0]}"]
    if _names_device(s.device):
        notes.append(f"device='{s.device}'")
    if not _is_usual(s.dtype):
        notes.append(f"dtype={s.dtype}")
    names = _NAMES[s._form]
    parts = [_part(name, t.detach(), len(prefix)) for name, t in zip((*names, "values"), (*s._index, s._values_))]
    if s._form is sparse_coo:  # the size begins a line
        parts.append(notes.pop(0))
    body = prefix + (",\n" + " " * len(prefix)).join(parts)
    notes.append(f"layout={s._form}")
    if s.grad_fn is not None:
        notes.append(f"grad_fn=<{s.grad_fn.name().rpartition('::')[2]}>")
    elif s.requires_grad:
        notes.append("requires_grad=True")
    return _with_notes(body, notes, len(prefix))


_NAMES = {
    sparse_coo: ("indices",),
    sparse_csr: ("crow_indices", "col_indices"),
    sparse_csc: ("ccol_indices", "row_indices"),
}


def _part(name: str, t, indent: int) -> str:
    """``values=tensor([…])``"""
    start = f"{name}=tensor("
    if t.numel() == 0:
        return f"{start}[], size={tuple(t.shape)})"
    return start + _values_text(_host_values(t), indent + len(start)) + ")"
