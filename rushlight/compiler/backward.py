"""The backward pass of a compiled forward, as a node of the eager graph."""

from __future__ import annotations

import jax
import numpy as np

from ..autograd.mode import set_grad_enabled
from ..autograd.node import OpNode
from ..autograd.tape import _TWICE, Node, Output, nodes_below, run_backward
from ..engine import computed
from ..engine.numpy import namespace as numpy_engine
from ..tensor import Tensor
from .commit import LOCK
from .tree import flatten


class CompiledBackward(Node):
    """One node for all of a compiled forward; with ``create_graph`` the function is run ``again``, eagerly."""

    __slots__ = ("_again", "_meta", "_residuals", "_run", "outputs")

    def __init__(self, run, residuals, targets, results, again):
        super().__init__(tuple(t._node for t in targets), None, None, numpy_engine)
        self._run, self._residuals, self._again = run, residuals, again
        self._meta = [(t._array.shape, t._array.dtype) for t in results]
        self.outputs = self._meta

    def output(self, place, result):
        return Output(self, place, result._array.shape, result._array.dtype)

    def apply(self, xp, g, graph, keep):
        if self._residuals is None:
            raise RuntimeError(_TWICE)
        found = self._again.gradients(g) if graph else self._gradients(g)
        if not keep:
            self._residuals = self._again = None
        return found

    def _gradients(self, g):
        gradients = [np.zeros(shape, dtype) if x is None else computed(x) for x, (shape, dtype) in zip(g, self._meta)]
        with LOCK:  # the first time this traces, in the graph that the trace of the forward left
            found = self._run(self._residuals, gradients)
        on_numpy = all(x is None or x.__class__ is np.ndarray for x in g)
        return [np.array(f) if on_numpy and isinstance(f, jax.Array) else f for f in found]


class Again:
    """A call that can be made once more, to have a graph of its gradients.

    ``reason`` says why not, ``tensors`` are what it read and ``targets`` those of them that want gradients; ``roots``
    are places among the results.
    """

    __slots__ = ("_call", "_reason", "_roots", "_targets", "_tensors", "_versions")

    def __init__(self, call, reason, tensors, targets, roots):
        self._call, self._reason, self._tensors, self._targets, self._roots = call, reason, tensors, targets, roots
        self._versions = [_version(t) for t in tensors]

    def gradients(self, g) -> list:
        """The gradients of the targets, given those of the roots (or None), all of them Tensors with a graph."""
        self._check()
        fn, args, kwargs = self._call
        nodes = [t._node for t in self._targets]
        with set_grad_enabled(True):
            # A node of its own stands before each target: what arrives there is not to go on, nor to meet hooks.
            before = [t.view_as(t)._node for t in self._targets]
            results: list[Tensor] = []
            try:
                for t, node in zip(self._targets, before):
                    t._node = node
                flatten(fn(*args, **kwargs), results)
            finally:
                for t, node in zip(self._targets, nodes):
                    t._node = node
        given = [(results[i]._node, x) for i, x in zip(self._roots, g) if x is not None]
        found = run_backward([n for n, _ in given], [x for _, x in given], retain=True, graph=True, wanted=set(before))
        return [found.get(node) for node in before]

    def _check(self) -> None:
        if self._reason is not None:
            raise RuntimeError(
                "compile: create_graph=True runs a compiled function again, eagerly, which would not give the same: "
                f"{self._reason}. Call the original function."
            )
        if self._versions != [_version(t) for t in self._tensors]:
            raise RuntimeError(
                "compile: one of the variables needed for gradient computation has been modified by an inplace "
                "operation since the compiled function was called, and create_graph=True runs it again."
            )


def _version(t: Tensor) -> int:
    return 0 if t._storage is None else t._storage.version


def awaits_backward(result) -> bool:
    """Do tensors in ``result`` lie on an accelerator, with a graph that no backward pass has used up?"""
    tensors: list[Tensor] = []
    flatten(result, tensors)
    roots = [t._node for t in tensors if t._node is not None and t.device.type != "cpu"]
    nodes = nodes_below(roots)
    return any(isinstance(node, OpNode) and node.plan.frees and node.saved is not None for node in nodes)
