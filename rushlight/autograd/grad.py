"""``backward`` and ``grad``: the two ways to start the tape's loop."""

from __future__ import annotations

import numpy as np

from ..engine import namespace_of
from ..errors import warn_once
from ..tensor import Tensor, wrap
from . import mode, overriding
from .graph import GradientEdge, node_of
from .overriding import asking
from .tape import _size, _to_tensor, check_differentiable, run_backward

__all__ = ["backward", "grad"]


def backward(tensors, grad_tensors=None, retain_graph=None, create_graph=False, inputs=None) -> None:
    """Sum the gradients of ``tensors`` into the leaves' ``.grad`` (or only into those of ``inputs``).

    >>> x = rushlight.tensor(3.0, requires_grad=True)
    >>> rushlight.autograd.backward(x * x)
    >>> x.grad
    tensor(6.)
    """
    tensors = _tuple(tensors)
    inputs = tuple(inputs.values()) if isinstance(inputs, dict) else inputs
    if inputs is not None and not _tuple(inputs):
        raise RuntimeError("`inputs` argument to `backward()` cannot be empty.")
    with_tensors = create_graph or _has_tangents() or (overriding.begun and _is_dispatched(tensors))
    roots, gradients = _roots(tensors, _tuple(grad_tensors, len(tensors)), with_tensors)
    retain = create_graph if retain_graph is None else retain_graph
    if create_graph:
        _warn_cycle()
    if inputs is None:
        run_backward(roots, gradients, retain=retain, graph=create_graph, tensors=with_tensors)
        return
    nodes = {_target(t, i) for i, t in enumerate(_tuple(inputs))}
    for t in _tuple(inputs):
        if isinstance(t, Tensor):
            t.retain_grad()
    run_backward(
        roots, gradients, retain=retain, graph=create_graph, wanted=nodes, accumulate=True, tensors=with_tensors
    )


def _has_tangents() -> bool:
    """Is forward mode on? Then a backward pass works on Tensors, for its gradients have tangents too."""
    return bool(mode.active and mode.levels())


def _is_dispatched(tensors) -> bool:
    """Does somebody answer for operators? Then gradients travel as Tensors, or he would not see them."""
    from . import dispatching

    return dispatching.on_tensors([node for t in tensors if (node := node_of(t)) is not None])


@asking
def grad(
    outputs,
    inputs,
    grad_outputs=None,
    retain_graph=None,
    create_graph=False,
    only_inputs=True,
    allow_unused=None,
    is_grads_batched=False,
    materialize_grads=False,
):
    """The gradients of ``outputs`` with respect to ``inputs``, as a tuple; nothing is accumulated.

    >>> x = rushlight.tensor(3.0, requires_grad=True)
    >>> rushlight.autograd.grad(x * x, x)
    (tensor(6.),)
    """
    if is_grads_batched:
        return _batched(outputs, inputs, grad_outputs, retain_graph, create_graph, allow_unused, materialize_grads)
    if materialize_grads and allow_unused is False:
        raise ValueError(
            "Expected allow_unused to be True or not passed when materialize_grads=True, but got: allow_unused=False."
        )
    if isinstance(inputs, dict):
        values = grad(
            outputs, tuple(inputs.values()), grad_outputs, retain_graph, create_graph, only_inputs, allow_unused,
            is_grads_batched, materialize_grads,
        )  # fmt: skip
        return dict(zip(inputs, values))
    outputs, inputs = _tuple(outputs), _tuple(inputs)
    for each in outputs:
        if not isinstance(each, (Tensor, GradientEdge)):
            raise AssertionError("Expected output to be a torch.Tensor")
    if not inputs:
        raise RuntimeError("`inputs` argument to `grad()` cannot be empty.")
    with_tensors = create_graph or _has_tangents() or (overriding.begun and _is_dispatched(outputs))
    roots, gradients = _roots(outputs, _tuple(grad_outputs, len(outputs)), with_tensors)
    nodes = [_target(t, i) for i, t in enumerate(inputs)]
    retain = create_graph if retain_graph is None else retain_graph
    found = run_backward(roots, gradients, retain=retain, graph=create_graph, wanted=set(nodes), tensors=with_tensors)
    results = []
    for i, node in enumerate(nodes):
        if node in found:
            results.append(_to_tensor(found[node], with_tensors))
        elif materialize_grads:
            results.append(wrap(node.xp.zeros(node.shape, dtype=node.dtype)))
        elif allow_unused:
            results.append(None)
        else:
            raise RuntimeError(
                f"The differentiated Tensor at index {i} appears to not have been used in the graph. "
                "Set allow_unused=True if this is the desired behavior."
            )
    return tuple(results)


def _batched(outputs, inputs, grad_outputs, retain_graph, create_graph, allow_unused, materialize_grads):
    """One backward pass for a batch of gradients: their first dimension is mapped over."""
    from .batching import Vmap

    starts = _tuple(grad_outputs)
    sizes = {t._array.shape[0] for t in starts if t is not None}
    if len(sizes) != 1:
        raise ValueError(
            "is_grads_batched: Expected all tensors of grad_outputs to have the same size in the first dimension, got "
            f"sizes {sorted(sizes)}"
        )
    level = Vmap(sizes.pop(), "error")
    with mode.intercepting(level):
        given = [None if t is None else level.enter(t, 0) for t in starts]
        found = grad(outputs, inputs, given, retain_graph, create_graph, True, allow_unused, False, materialize_grads)
    level.close()
    if isinstance(found, dict):
        return {name: g if g is None else level.leave(g, 0) for name, g in found.items()}
    return tuple(None if g is None else level.leave(g, 0) for g in found)


def _tuple(value, count: int = 0):
    if value is None:
        return (None,) * count
    return (value,) if isinstance(value, (Tensor, GradientEdge)) else tuple(value)


def _target(place, index: int):
    node = node_of(place)
    if node is None:
        raise RuntimeError("One of the differentiated Tensors does not require grad")
    return node


def _roots(outputs, gradients, with_tensors):
    nodes, starts = [], []
    for i, (t, g) in enumerate(zip(outputs, gradients)):
        if isinstance(t, GradientEdge):
            nodes.append(node_of(t))
            starts.append(_start_at_edge(nodes[-1], g, with_tensors))
            continue
        t._sync_graph()
        if t._node is None:
            raise RuntimeError(f"element {i} of tensors does not require grad and does not have a grad_fn")
        if g is None:
            if t._array.size != 1:
                raise RuntimeError("grad can be implicitly created only for scalar outputs")
            if t._array.dtype.kind == "c":
                raise RuntimeError(
                    "grad can be implicitly created only for real scalar outputs but got " + repr(t.dtype)
                )
            g = _one_like(t._array) if not (with_tensors and overriding.begun) else _one_dispatched(t)
        elif not isinstance(g, Tensor):
            raise TypeError(f"gradients can be either Tensors or None, but got {type(g).__name__}")
        elif g.shape != t.shape:
            raise RuntimeError(
                f"Mismatch in shape: grad_output[{i}] has a shape of {g.shape} and output[{i}] has a shape of "
                f"{t.shape}."
            )
        g._sync()
        check_differentiable(t._array.dtype)
        nodes.append(t._node)
        starts.append(g if with_tensors else g._array)
    return nodes, starts


def _one_like(array) -> Tensor:
    """Where a backward pass starts: a new tensor, for hooks and ``retain_grad`` hand it to the user."""
    if array.__class__ is np.ndarray:
        one = np.empty(array.shape, array.dtype)  # half the time of np.ones
        one.fill(1)
        return wrap(one)
    return wrap(namespace_of(array).ones_like(array))


def _one_dispatched(t) -> Tensor:
    from .dispatching import one_like

    return one_like(t)


def _start_at_edge(node, g, with_tensors):
    if g is None:
        if _size(node.shape) != 1:
            raise RuntimeError("grad can be implicitly created only for scalar outputs")
        g = wrap(node.xp.ones(node.shape, dtype=node.dtype))
    return g if with_tensors else g._array


def _warn_cycle() -> None:
    warn_once(
        "Using backward() with create_graph=True will create a reference cycle between the parameter and its "
        "gradient which can cause a memory leak. We recommend using autograd.grad when creating the graph to avoid "
        "this. If you have to use this function, make sure to reset the .grad fields of your parameters to None "
        "after use to break the cycle and avoid the leak.",
    )


def _backward_method(self, gradient=None, retain_graph=None, create_graph=False, inputs=None) -> None:
    """Add this tensor's gradients into the ``.grad`` of the leaves it came from."""
    backward(self, gradient, retain_graph, create_graph, inputs)


_backward_method.__name__, _backward_method.__qualname__ = "backward", "Tensor.backward"
Tensor.backward = _backward_method
