"""Softmax over many classes, cheaply: frequent ones at once, rare ones in clusters (Grave et al., 2016)."""

from __future__ import annotations

from collections import namedtuple

from ...ops.common import known_values
from ...ops.public import PUBLIC
from .. import functional as F
from ..containers import ModuleList, Sequential
from ..module import Module
from .linear import Linear

__all__ = ["AdaptiveLogSoftmaxWithLoss"]

_ASMoutput = namedtuple("_ASMoutput", ["output", "loss"])


class AdaptiveLogSoftmaxWithLoss(Module):
    """The head scores the classes below ``cutoffs[0]`` and the clusters; each cluster scores its own classes."""

    in_features: int
    n_classes: int
    cutoffs: list[int]
    div_value: float
    head_bias: bool
    head: Linear
    tail: ModuleList

    def __init__(
        self,
        in_features: int,
        n_classes: int,
        cutoffs,
        div_value: float = 4.0,
        head_bias: bool = False,
        device=None,
        dtype=None,
    ):
        super().__init__()
        cutoffs = list(cutoffs)
        _check_cutoffs(cutoffs, n_classes)
        self.in_features, self.n_classes = in_features, n_classes
        self.cutoffs = cutoffs + [n_classes]
        self.div_value, self.head_bias = div_value, head_bias
        self.shortlist_size, self.n_clusters = self.cutoffs[0], len(self.cutoffs) - 1
        self.head_size = self.shortlist_size + self.n_clusters
        where = {"device": device, "dtype": dtype}
        self.head = Linear(in_features, self.head_size, bias=head_bias, **where)
        self.tail = ModuleList()
        for i, (low, high) in enumerate(zip(self.cutoffs, self.cutoffs[1:])):
            width = int(in_features // (div_value ** (i + 1)))
            self.tail.append(
                Sequential(
                    Linear(in_features, width, bias=False, **where), Linear(width, high - low, bias=False, **where)
                )
            )

    def reset_parameters(self) -> None:
        self.head.reset_parameters()
        for first, second in self.tail:
            first.reset_parameters()
            second.reset_parameters()

    def forward(self, input_, target_):
        """(the log-probability of each target, minus their mean)."""
        _check_shapes(input_, target_)
        _check_classes(target_, self.n_classes)
        batched = target_.dim() > 0
        rows, target = (input_, target_) if batched else (input_.unsqueeze(0), target_.unsqueeze(0))
        head = F.log_softmax(self.head(rows), dim=1)
        output = _pick(head, target.clamp(max=self.shortlist_size - 1))
        # Every cluster looks at every row and is used where it is the target's: shapes do not depend on values.
        for i, (low, high) in enumerate(zip(self.cutoffs, self.cutoffs[1:])):
            scores = F.log_softmax(self.tail[i](rows), dim=1)
            found = _pick(scores, (target - low).clamp(0, high - low - 1)) + head[:, self.shortlist_size + i]
            output = PUBLIC["where"]((target >= low) & (target < high), found, output)
        loss = (-output).mean()
        return _ASMoutput(output if batched else output.squeeze(0), loss)

    def _get_full_log_prob(self, input, head_output):
        """The log-probabilities of all classes from the head's scores."""
        head = F.log_softmax(head_output, dim=1)
        parts = [head[:, : self.shortlist_size]]
        for i, cluster in enumerate(self.tail):
            scores = F.log_softmax(cluster(input), dim=1)
            parts.append(scores + head[:, self.shortlist_size + i].unsqueeze(1))
        return PUBLIC["cat"](parts, 1)

    def log_prob(self, input):
        """The log-probabilities of all classes, (N, n_classes)."""
        return self._get_full_log_prob(input, self.head(input))

    def predict(self, input):
        """The most probable class of each row."""
        return self.log_prob(input).argmax(1)


def _pick(scores, index):
    return scores.gather(1, index.unsqueeze(1)).squeeze(1)


def _check_cutoffs(cutoffs, n_classes):
    if not cutoffs:
        raise ValueError("cutoffs should be a sequence of length larger than 0")
    wrong = cutoffs != sorted(cutoffs) or len(set(cutoffs)) != len(cutoffs) or any(int(c) != c for c in cutoffs)
    if wrong or min(cutoffs) <= 0 or max(cutoffs) > n_classes - 1:
        raise ValueError(
            "cutoffs should be a sequence of unique, positive integers sorted in an increasing order, where each value "
            "is between 1 and n_classes-1"
        )


def _check_shapes(input, target):
    if target.dim() == 1:
        if input.shape[0] != target.shape[0]:
            raise RuntimeError("Input and target should have the same size in the batch dimension.")
        if input.dim() != 2:
            raise RuntimeError(f"1D target tensor expects 2D input tensors, but found inputs with size {input.shape}")
    elif target.dim() == 0:
        if input.dim() != 1:
            raise RuntimeError(f"0D target tensor expects 1D input tensors, but found inputs with size {input.shape}")
    else:
        raise RuntimeError("0D or 1D target tensor expected, multi-target not supported")


def _check_classes(target, n_classes):
    values = known_values(target, lambda i: (i >= 0) & (i < n_classes))
    if values is not None and values.size and (values.min() < 0 or values.max() >= n_classes):
        raise RuntimeError(
            f"Target values should be in [0, {n_classes - 1}], but values in range [{values.min()}, {values.max()}] "
            "were found. "
        )
