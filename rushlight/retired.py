"""Names that PyTorch keeps for old programs: they warn, say what took their place, or always answer the same."""

from __future__ import annotations

import math
import os

from .errors import warn_user
from .ops.public import PUBLIC, public
from .tensor import Tensor

__all__: list[str] = []

_REMOVED = {
    "eig": "torch.linalg.eig(A), or eigvals(A) without vectors, returns complex tensors",
    "lstsq": "torch.linalg.lstsq(A, B).solution has its arguments reversed and does not hold the QR decomposition",
    "matrix_rank": "torch.linalg.matrix_rank has 'hermitian' for 'symmetric'",
    "solve": "torch.linalg.solve(A, B) has its arguments reversed and does not return the LU factorization",
    "symeig": "torch.linalg.eigh(A, UPLO='U' if upper else 'L'), or eigvalsh without vectors",
}


def _removed(name: str, instead: str):
    def function(self, *args, **kwargs):
        raise RuntimeError(f"This function was deprecated since version 1.9 and is now removed. {instead}.")

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"Removed: {instead}."
    return function


for _name, _instead in _REMOVED.items():
    PUBLIC[_name] = _removed(_name, _instead)
    if _name != "matrix_rank":
        setattr(Tensor, _name, PUBLIC[_name])


@public(function=False)
def resize(self, *sizes):
    """``reshape`` by its old name, with a warning."""
    warn_user("non-inplace resize is deprecated")
    return _reshaped(self, sizes[0] if len(sizes) == 1 and not isinstance(sizes[0], int) else sizes)


@public(function=False)
def resize_as(self, tensor):
    """``reshape`` to another tensor's shape, with a warning."""
    warn_user("non-inplace resize_as is deprecated")
    return _reshaped(self, tensor.shape)


def _reshaped(x, sizes):
    if math.prod(sizes) != x.numel():
        wanted, present = ("x".join(map(str, shape)) for shape in (sizes, x.shape))
        raise RuntimeError(
            f"requested resize to {wanted} ({math.prod(sizes)} elements in total), but the given tensor has a size of "
            f"{present} ({x.numel()} elements). autograd's resize can only change the shape of a given tensor, while "
            "preserving the number of elements. "
        )
    return x.contiguous().view(sizes)


@public(function=False)
def to_padded_tensor(self, padding, output_size=None):
    """For nested tensors, which are not here; others are refused, as in PyTorch."""
    raise NotImplementedError("Could not run 'aten::to_padded_tensor' with a tensor that is not nested")


@public(function=False)
def reinforce(self, reward):
    """Removed: ``-distributions.Categorical(probs).log_prob(action) * reward`` is a loss."""
    raise RuntimeError(
        "reinforce() was removed.\nUse torch.distributions instead: with m = torch.distributions.Categorical(probs) "
        "and action = m.sample(), the loss is -m.log_prob(action) * reward."
    )


@public(function=False)
def to_sparse_coo(self):
    """``to_sparse`` of layout COO."""
    return self.to_sparse()


def _setstate(self, state):
    """What ``pickle`` calls for tensors of very old files: storage, offset, size and stride, or data and flags."""
    if not self.is_leaf:
        raise RuntimeError("__setstate__ can be only called on leaf Tensors")
    if len(state) == 4:
        self.set_(*state)
        return
    if len(state) == 5:
        self.data = state[0]
        state = (state[3], state[4], state[2])
    requires_grad, _, hooks = state
    self.requires_grad = requires_grad
    if hooks:
        self._backward_hooks = hooks


def _delitem(self, index):
    raise TypeError("Tensor does not support deleting items")


def _volatile(self):
    """False: ``no_grad`` took its place."""
    warn_user("volatile was removed (Variable.volatile is always False)")
    return False


Tensor.__setstate__, Tensor.__delitem__ = _setstate, _delitem  # type: ignore[attr-defined]
Tensor.__long__, Tensor.__nonzero__ = Tensor.__int__, Tensor.__bool__  # type: ignore[attr-defined]
Tensor.volatile, Tensor.name = property(_volatile), None  # type: ignore[attr-defined]
Tensor.is_ipu = Tensor.is_maia = Tensor.is_mtia = Tensor.is_vulkan = False  # type: ignore[attr-defined]


def _no_such_device(kind: str, error: type, text: str):
    def move(self, device=None, non_blocking=False, **kwargs):
        raise error(text)

    move.__name__ = move.__qualname__ = kind
    move.__doc__ = f"A copy on a device of type {kind}, which is not here."
    setattr(Tensor, kind, move)


_no_such_device("ipu", RuntimeError, "PyTorch is not linked with support for ipu devices")
_no_such_device("xpu", AssertionError, "Torch not compiled with XPU enabled")
_no_such_device("mtia", AssertionError, "Torch not compiled with MTIA enabled.")


# -- answers that are always the same --------------------------------------------------------------------------------


@public(method=False, out=False)
def is_vulkan_available():
    """False."""
    return False


@public(method=False, out=False)
def get_file_path(*path_components):
    """A path beside the package."""
    return os.path.join(os.path.dirname(os.path.dirname(__file__)), *path_components)


# -- sizes, which are numbers here -----------------------------------------------------------------------------------


@public(method=False, out=False)
def sym_sqrt(a):
    """The square root of a size."""
    return math.sqrt(a)


@public(method=False, out=False)
def sym_fresh_size(expr):
    """The size itself."""
    return expr


@public(method=False, out=False)
def sym_constrain_range(size, *, min=None, max=None):
    """Raise unless a size lies within bounds."""
    low, high = -(2**63) if min is None else min, 2**63 - 1 if max is None else max
    if not low <= size <= high:
        raise RuntimeError(f"Invalid value range for {size} between [{low}, {high}].")


@public(method=False, out=False)
def sym_constrain_range_for_size(size, *, min=None, max=None):
    """Raise unless a size lies within bounds, of which the upper one is above 2."""
    if max is not None and max <= 2:
        raise RuntimeError(f"Max value to constrain_range_for_size must be greater than 2. got: {max}")
    sym_constrain_range(size, min=0 if min is None else min, max=max)
