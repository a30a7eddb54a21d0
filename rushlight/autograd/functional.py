"""Jacobians, Hessians and their products with vectors, of plain functions of tensors."""

from __future__ import annotations

from ..engine import namespace_of
from ..tensor import Tensor, wrap
from . import mode
from .batching import Vmap, unit_vectors
from .grad import grad
from .tangents import Tangents

__all__ = ["hessian", "hvp", "jacobian", "jvp", "vhp", "vjp"]


def __dir__():
    return __all__


def vjp(func, inputs, v=None, create_graph=False, strict=False):
    """``(func(inputs), vᵀ J)``.

    >>> x = rushlight.tensor([1.0, 2.0])
    >>> rushlight.autograd.functional.vjp(lambda x: x * x, x, rushlight.ones(2))
    (tensor([1., 4.]), tensor([2., 4.]))
    """
    with mode.enable_grad():
        call = _Call(func, inputs, "vjp", create_graph, strict)
        v = _vector(v, call.outputs, "vjp", "outputs of the user-provided function", call.one_output)
        grads = call.grad(call.outputs, v, create_graph)
        return call.result_outputs(), call.like_inputs(call.finish(grads, create_graph))


def jvp(func, inputs, v=None, create_graph=False, strict=False):
    """``(func(inputs), J v)``, by forward mode.

    >>> x = rushlight.tensor([1.0, 2.0])
    >>> rushlight.autograd.functional.jvp(lambda x: x * x, x, rushlight.ones(2))
    (tensor([1., 4.]), tensor([2., 4.]))
    """
    if strict:  # it asks what the graph says
        return _twice_transposed(func, inputs, v, create_graph)
    with mode.enable_grad(), Tangents() as level:
        call = _Call(func, inputs, "jvp", create_graph, strict, lambda x: _vector_for(v, x, level))
        columns = tuple(_zeros(o) if level.of(o) is None else level.of(o) for o in call.outputs)
        return call.result_outputs(), call.like_outputs(columns if create_graph else _detached(columns))


def _vector_for(v, inputs, level, name="jvp"):
    """Give the inputs the parts of ``v`` as tangents."""
    v = _vector(v, inputs, name, "inputs", len(inputs) == 1, what="input")
    for x, tangent in zip(inputs, v):
        level.give(x, tangent)


def _twice_transposed(func, inputs, v, create_graph):
    """``J v`` by differentiating ``uᵀ J`` with respect to ``u``."""
    with mode.enable_grad():
        call = _Call(func, inputs, "jvp", create_graph, True)
        v = _vector(v, call.inputs, "jvp", "inputs", call.one_input, what="input")
        u = tuple(mode.fresh(_zeros(o)).requires_grad_() for o in call.outputs)
        rows = call.grad(call.outputs, u, create_graph=True)
        used = [(r, w) for r, w in zip(rows, v) if r is not None and r.requires_grad]
        if used:
            columns = grad([r for r, _ in used], u, [w for _, w in used], create_graph=create_graph, allow_unused=True)
        else:
            columns = (None,) * len(u)
        columns = tuple(_zeros(o) if c is None else c for c, o in zip(columns, call.outputs))
        return call.result_outputs(), call.like_outputs(columns if create_graph else _detached(columns))


def jacobian(func, inputs, create_graph=False, strict=False, vectorize=False, strategy="reverse-mode"):
    """The Jacobian of ``func``: for each output and input a tensor of shape ``(*output.shape, *input.shape)``.

    >>> rushlight.autograd.functional.jacobian(lambda x: x * x, rushlight.tensor([1.0, 2.0]))
    tensor([[2., 0.],
            [0., 4.]])
    """
    if strategy not in ("forward-mode", "reverse-mode"):
        raise AssertionError(
            'Expected strategy to be either "forward-mode" or "reverse-mode". Hint: If your function has more outputs '
            'than inputs, "forward-mode" tends to be more performant. Otherwise, prefer to use "reverse-mode".'
        )
    if strategy == "forward-mode" and create_graph:
        raise NotImplementedError(
            "torch.autograd.functional.jacobian: `create_graph=True` and `strategy='forward-mode'` are not supported "
            "together (yet). Please either set `create_graph=False` or `strategy='reverse-mode'`."
        )
    if strategy == "forward-mode" and not vectorize:
        raise NotImplementedError(
            "Computing Jacobian using forward-AD or forward-over-reverse Hessian is only implemented for "
            "`vectorize=True`."
        )
    if vectorize and strict:
        raise RuntimeError(
            "torch.autograd.functional.jacobian: `strict=True` and `vectorized=True` are not supported together. "
            "Please "
            "either set `strict=False` or `vectorize=False`."
        )
    if strategy == "forward-mode":
        return _by_columns(func, inputs)
    with mode.enable_grad():
        call = _Call(func, inputs, "jacobian", create_graph, strict)
        if vectorize:
            rows = _rows_at_once(call, create_graph)
        else:
            rows = [_rows(call, i, o, create_graph) for i, o in enumerate(call.outputs)]
        rows = [row if create_graph else _detached(row) for row in rows]
        return call.like_outputs([call.like_inputs(row) for row in rows])


def _rows_at_once(call, create_graph):
    """All rows of all outputs by one backward pass on a batch."""
    starts, counts = unit_vectors(call.outputs), [o.shape.numel() for o in call.outputs]
    live = [i for i, o in enumerate(call.outputs) if o.requires_grad]
    if live:
        found = grad(
            [call.outputs[i] for i in live], call.inputs, [starts[i] for i in live], create_graph=create_graph,
            retain_graph=True, allow_unused=True, is_grads_batched=True,
        )  # fmt: skip
    else:
        found = (None,) * len(call.inputs)
    total = sum(counts)
    found = [_zeros_of(x, (total, *x.shape)) if g is None else g for g, x in zip(found, call.inputs)]
    rows, start = [], 0
    for o, count in zip(call.outputs, counts):
        parts = [g[start : start + count].reshape((*o.shape, *x.shape)) for g, x in zip(found, call.inputs)]
        rows.append(tuple(parts))
        start += count
    return rows


def _by_columns(func, inputs):
    """The Jacobian by forward mode, all columns at once."""
    one_input = isinstance(inputs, Tensor)
    points = _tensors(inputs, "inputs", "jacobian")
    directions, counts = unit_vectors(points), [x.shape.numel() for x in points]
    level = Vmap(sum(counts), "error")
    with mode.intercepting(level), Tangents() as tangents:
        given = [x.detach() for x in points]
        for x, direction in zip(given, directions):
            tangents.give(x, level.enter(direction, 0))
        outputs = func(*given)
        results = _tensors(outputs, "outputs", "jacobian", "of the user-provided function ")
        columns = [tangents.of(o) for o in results]
        columns = [_zeros(o) if c is None else c for c, o in zip(columns, results)]
    made = []
    for c, o in zip(columns, results):
        whole, start, parts = level.leave(c.detach(), o.ndim), 0, []
        for x, count in zip(points, counts):
            parts.append(whole[..., start : start + count].reshape((*o.shape, *x.shape)))
            start += count
        made.append(parts[0] if one_input else parts)
    return made[0] if isinstance(outputs, Tensor) else made  # lists, as PyTorch's


def hessian(func, inputs, create_graph=False, strict=False, vectorize=False, outer_jacobian_strategy="reverse-mode"):
    """The Hessian of a scalar function.

    >>> rushlight.autograd.functional.hessian(lambda x: (x * x * x).sum(), rushlight.tensor([1.0, 2.0]))
    tensor([[ 6.,  0.],
            [ 0., 12.]])
    """
    if outer_jacobian_strategy not in ("forward-mode", "reverse-mode"):
        raise AssertionError('Expected strategy to be either "forward-mode" or "reverse-mode".')
    one = isinstance(inputs, Tensor)

    def gradient(*points):
        first = jacobian(_scalar(func, "hessian"), points[0] if one else points, create_graph=True)
        if strict:
            _check_twice(first if isinstance(first, tuple) else (first,))
        return first

    return jacobian(gradient, inputs, create_graph, strict, vectorize, outer_jacobian_strategy)


def vhp(func, inputs, v=None, create_graph=False, strict=False):
    """``(func(inputs), vᵀ H)`` of a scalar function."""
    with mode.enable_grad():
        call = _Call(_scalar(func, "vhp"), inputs, "vhp", True, strict)
        v = _vector(v, call.inputs, "vhp", "inputs", call.one_input, what="input")
        first = tuple(_zeros(x) if g is None else g for g, x in zip(call.grad(call.outputs, None, True), call.inputs))
        used = [(g, w) for g, w in zip(first, v) if g.requires_grad]
        call.check_strict(first)
        if used:
            second = call.grad([g for g, _ in used], [w for _, w in used], create_graph)
        else:
            second = (None,) * len(first)
        return call.result_outputs(create_graph), call.like_inputs(call.finish(second, create_graph))


def hvp(func, inputs, v=None, create_graph=False, strict=False):
    """``(func(inputs), H v)`` of a scalar function: forward mode over a backward pass.

    >>> rushlight.autograd.functional.hvp(lambda x: (x * x * x).sum(), rushlight.tensor([1.0, 2.0]), rushlight.ones(2))
    (tensor(9.), tensor([ 6., 12.]))
    """
    if strict:
        return vhp(func, inputs, v, create_graph, strict)
    with mode.enable_grad(), Tangents() as level:
        call = _Call(_scalar(func, "hvp"), inputs, "hvp", True, strict, lambda x: _vector_for(v, x, level, "hvp"))
        grads = call.grad(call.outputs, None, create_graph)
        second = tuple(None if g is None else level.of(g) for g in grads)
        return call.result_outputs(create_graph), call.like_inputs(call.finish(second, create_graph))


class _Call:
    """One evaluation of the user's function on fresh inputs, and the way back to the shapes the user gave."""

    def __init__(self, func, inputs, name, create_graph, strict, prepare=None):
        self.name, self.strict = name, strict
        self.one_input = isinstance(inputs, Tensor)
        self.inputs = tuple(_fresh(x, create_graph) for x in _tensors(inputs, "inputs", name))
        if prepare is not None:
            prepare(self.inputs)
        outputs = func(*self.inputs)
        self.one_output = isinstance(outputs, Tensor)
        self.outputs = _tensors(outputs, "outputs", name, "of the user-provided function ")
        self.create_graph = create_graph
        if strict:
            for i, o in enumerate(self.outputs):
                if not o.requires_grad:
                    raise RuntimeError(
                        f"Output {i} of the user-provided function does not require gradients. The outputs must be "
                        "computed in a differentiable manner from the input when running in strict mode."
                    )

    def grad(self, outputs, v, create_graph):
        pairs = [(o, w) for o, w in zip(outputs, v or (None,) * len(outputs)) if o.requires_grad]
        if not pairs:
            return (None,) * len(self.inputs)
        gradients = None if v is None else [w for _, w in pairs]
        return grad(
            [o for o, _ in pairs],
            self.inputs,
            gradients,
            create_graph=create_graph,
            retain_graph=True,
            allow_unused=True,
        )

    def finish(self, grads, create_graph):
        if self.strict:
            for i, g in enumerate(grads):
                if g is None:
                    raise RuntimeError(
                        f"The output of the user-provided function is independent of input {i}. This is not allowed in "
                        "strict mode."
                    )
        grads = tuple(_zeros(x) if g is None else g for g, x in zip(grads, self.inputs))
        if create_graph:
            self.check_strict(grads)
            return grads
        return _detached(grads)

    def check_strict(self, grads):
        if self.strict:
            for i, g in enumerate(grads):
                if not g.requires_grad:
                    raise RuntimeError(
                        f"The jacobian of the user-provided function with respect to input {i} is independent of the "
                        "input. This is not allowed in strict mode when create_graph=True."
                    )

    def result_outputs(self, create_graph=None):
        keep = self.create_graph if create_graph is None else create_graph
        return self.like_outputs(self.outputs if keep else _detached(self.outputs))

    def like_inputs(self, values):
        return values[0] if self.one_input else tuple(values)

    def like_outputs(self, values):
        return values[0] if self.one_output else tuple(values)


def _rows(call, index, output, create_graph):
    """For one output: the Jacobian with respect to each input."""
    from ..ops import PUBLIC

    flat = output.reshape(-1)
    per_element = []
    for j in range(flat.shape[0]):
        grads = call.grad([flat[j]], None, create_graph)
        if call.strict and any(g is None for g in grads):
            i = next(i for i, g in enumerate(grads) if g is None)
            raise RuntimeError(
                f"Output {index} of the user-provided function is independent of input {i}. This is not allowed in "
                f"strict mode."
            )
        grads = tuple(_zeros(x) if g is None else g for g, x in zip(grads, call.inputs))
        if create_graph:
            call.check_strict(grads)
        per_element.append(grads)
    stack = PUBLIC["stack"]
    columns = zip(*per_element) if per_element else [()] * len(call.inputs)
    return tuple(
        stack(list(c)).reshape(tuple(output.shape) + tuple(x.shape))
        if c
        else _zeros_of(x, tuple(output.shape) + tuple(x.shape))
        for c, x in zip(columns, call.inputs)
    )


def _fresh(x, create_graph):
    if create_graph:
        return x.view_as(x) if x.requires_grad else _leaf(x)
    return _leaf(x)


def _leaf(x):
    """A leaf with the values of ``x``, in every ``vmap`` around, with the tangents of forward mode outside."""
    return mode.carry(x, mode.fresh(x).requires_grad_())


def _scalar(func, name):
    def checked(*inputs):
        out = func(*inputs)
        _tensors(out, "outputs", name, "of the user-provided function ")
        if not isinstance(out, Tensor):
            raise RuntimeError(f"The function given to {name} should return a single Tensor")
        if out.shape.numel() != 1:
            raise RuntimeError(f"The Tensor returned by the function given to {name} should contain a single element")
        return out.reshape(())

    return checked


def _tensors(value, what, name, whose=""):
    values = value if isinstance(value, tuple) else tuple(value) if isinstance(value, list) else (value,)
    for i, t in enumerate(values):
        if not isinstance(t, Tensor):
            given = f"{what} {whose}"
            found = (
                f"the given {given}has type" if t is value else f"the value at index {i} of the given {given}has type"
            )
            raise TypeError(
                f"The {given}given to {name} must be either a Tensor or a tuple of Tensors but {found} {type(t)}."
            )
    return values


def _vector(v, like, name, whose, alone, what="output"):
    """Check the vector of a product against what it must look like; ones for a single element if it was not given."""
    if v is None:
        if len(like) != 1 or like[0].shape.numel() != 1:
            raise RuntimeError(
                "The vector v can only be None if the user-provided function returns a single Tensor with a single "
                "element."
                if what == "output"
                else "The vector v can only be None if the input to the user-provided function is a single Tensor "
                "with a single element."
            )
        return (wrap(namespace_of(like[0]._array).ones_like(like[0]._array)),)
    v = _tensors(v, "v", name)
    if len(v) != len(like):
        if alone:
            raise RuntimeError("The given v should contain a single Tensor.")
        raise RuntimeError(f"v is a tuple of invalid length: should be {len(like)} but got {len(v)}.")
    for i, (w, x) in enumerate(zip(v, like)):
        if w.shape != x.shape:
            at = "" if alone else f"Entry {i} in "
            raise RuntimeError(f"{at}v has invalid size: should be {x.shape} but got {w.shape}.")
    return v


def _check_twice(gradients) -> None:
    for i, g in enumerate(gradients):
        if not g.requires_grad:
            raise RuntimeError(
                f"While computing the hessian, found that the jacobian of the user-provided function with respect to "
                f"input {i} "
                "is independent of the input. This is not allowed in strict mode. You should ensure that your "
                "function is "
                "twice differentiable and that the jacobian depends on the inputs (this would be violated by a linear "
                "function for example)."
            )


def _zeros(x):
    return wrap(namespace_of(x._array).zeros_like(x._array))


def _zeros_of(x, shape):
    return wrap(namespace_of(x._array).zeros(shape, dtype=x._array.dtype))


def _detached(values):
    return tuple(t.detach() for t in values)
