"""What the distributions share, under the names that PyTorch has for it."""

from __future__ import annotations

import math
from numbers import Number

import rushlight as torch

from . import constraints

__all__ = [
    "broadcast_all",
    "clamp_probs",
    "lazy_property",
    "logits_to_probs",
    "probs_to_logits",
    "tril_matrix_to_vec",
    "vec_to_tril_matrix",
]


def __dir__():
    return __all__


def broadcast_all(*values):
    """Parameters, tensors or numbers, as tensors of one dtype and shape."""
    if not all(isinstance(v, torch.Tensor | Number) for v in values):
        raise ValueError(
            "Input arguments must all be instances of Number, torch.Tensor or objects implementing __torch_function__."
        )
    tensors = [v for v in values if isinstance(v, torch.Tensor)]
    like = {"dtype": tensors[0].dtype, "device": tensors[0].device} if tensors else {"dtype": torch.get_default_dtype()}
    return torch.broadcast_tensors(*(v if isinstance(v, torch.Tensor) else torch.tensor(v, **like) for v in values))


def logits_to_probs(logits, is_binary: bool = False):
    """Logits as probabilities."""
    return torch.sigmoid(logits) if is_binary else torch.softmax(logits, dim=-1)


def probs_to_logits(probs, is_binary: bool = False):
    """Probabilities as logits."""
    probs = clamp_probs(probs)
    return probs.log() - (-probs).log1p() if is_binary else probs.log()


def clamp_probs(probs):
    """Away from 0 and 1 by the least step, so that logarithms are finite."""
    eps = torch.finfo(probs.dtype).eps
    return probs.clamp(min=eps, max=1 - eps)


def sum_rightmost(value, dims: int):
    """The sum over the last ``dims`` dimensions."""
    return value if dims == 0 else value.reshape(*value.shape[: value.dim() - dims], -1).sum(-1)


_sum_rightmost = sum_rightmost
euler_constant = 0.57721566490153286060  # Euler and Mascheroni's


def _standard_normal(shape, dtype, device):
    """Draws from the standard normal distribution."""
    return torch.normal(torch.zeros(shape, dtype=dtype, device=device), torch.ones(shape, dtype=dtype, device=device))


def vec_to_tril_matrix(vec, diag: int = 0):
    """The entries of a lower triangle, row by row, as a square matrix."""
    n = round((-(1 + 2 * diag) + ((1 + 2 * diag) ** 2 + 8 * vec.shape[-1] + 4 * abs(diag) * (diag + 1)) ** 0.5) / 2)
    matrix = torch.zeros((*vec.shape[:-1], n, n), dtype=vec.dtype, device=vec.device)
    rows, columns = torch.tril_indices(n, n, diag)
    matrix[..., rows, columns] = vec
    return matrix


def tril_matrix_to_vec(mat, diag: int = 0):
    """The entries of a square matrix' lower triangle, row by row."""
    n = mat.shape[-1]
    if diag < -n or diag >= n:
        raise ValueError(f"diag ({diag}) provided is outside [{-n}, {n - 1}].")
    rows, columns = torch.tril_indices(n, n, diag)
    return mat[..., rows, columns]


class lazy_property:
    """A parameter computed from the other way to give it, when first asked for, and then kept."""

    def __init__(self, function):
        self.function, self.name, self.__doc__ = function, function.__name__, function.__doc__

    def __get__(self, instance, owner=None):
        if instance is None:
            return self
        with torch.enable_grad():
            value = self.function(instance)
        instance.__dict__[self.name] = value
        return value


class LocScale:
    """All real numbers, moved by ``loc`` and stretched by ``scale``."""

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.real
    has_rsample = True

    def __init__(self, loc, scale, validate_args=None):
        self.loc, self.scale = broadcast_all(loc, scale)
        super().__init__(self.loc.shape, validate_args=validate_args)


class ByProbsOrLogits:
    """``probs`` and ``logits``, of which one was given; ``_binary``: logits are log-odds, not log-probabilities."""

    _binary = True

    @lazy_property
    def probs(self):
        return logits_to_probs(self.logits, self._binary)

    @lazy_property
    def logits(self):
        return probs_to_logits(self.probs, self._binary)

    @property
    def _param(self):
        """The one that was given."""
        return self.__dict__["probs" if self._by_probs else "logits"]

    def _given(self, probs, logits):
        """Note which of the two it is; returns it."""
        if (probs is None) == (logits is None):
            raise ValueError("Either `probs` or `logits` must be specified, but not both.")
        self._by_probs = probs is not None
        return probs if self._by_probs else logits

    def _keep(self, value) -> None:
        self.__dict__["probs" if self._by_probs else "logits"] = value

    def _copied(self, instance):
        new = super()._copied(instance)
        new._by_probs = self._by_probs
        return new


LOG_SQRT_2PI = math.log(math.sqrt(2 * math.pi))
