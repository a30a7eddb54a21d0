"""``nn.utils`` as in PyTorch: clipping, parametrizations, norms of weights, pruning, functional calls, fusion."""

from __future__ import annotations

import copy
import warnings

import numpy as np
import pytest
import torch
import torch.nn.utils.prune

import rushlight
import rushlight.nn.utils.prune

LIBRARIES = (torch, rushlight)


def numbers(value):
    """Tensors, in whatever containers, as NumPy arrays."""
    if isinstance(value, (torch.Tensor, rushlight.Tensor)):
        return value.detach().numpy()
    if isinstance(value, dict):
        return {k: numbers(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [numbers(v) for v in value]
    return value


def same(function, tolerance=1e-6):
    """``function(library)`` gives the same on both, or the same error."""
    results = []
    for library in LIBRARIES:
        library.manual_seed(0)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                result = numbers(function(library))
            except Exception as error:
                result = (type(error), str(error).split("\n")[0])
            kinds = {
                (w.category, str(w.message))
                for w in caught
                if "nn.utils" in str(w.message) or "empty" in str(w.message)
            }
        results.append((result, kinds))
    (theirs, their_warnings), (ours, our_warnings) = results
    assert our_warnings == their_warnings
    _compare(ours, theirs, tolerance)
    return theirs


def _compare(ours, theirs, tolerance):
    if isinstance(theirs, np.ndarray):
        assert ours.dtype == theirs.dtype and ours.shape == theirs.shape
        np.testing.assert_allclose(ours, theirs, rtol=tolerance, atol=tolerance)
    elif isinstance(theirs, dict):
        assert list(ours) == list(theirs)
        for key in theirs:
            _compare(ours[key], theirs[key], tolerance)
    elif isinstance(theirs, (list, tuple)):
        assert len(ours) == len(theirs), (ours, theirs)
        for a, b in zip(ours, theirs):
            _compare(a, b, tolerance)
    else:
        assert ours == theirs


def with_grads(lib):
    model = lib.nn.Sequential(lib.nn.Linear(3, 4), lib.nn.Linear(4, 2))
    model(lib.ones(2, 3)).square().sum().backward()
    return model


# -- gradients -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("norm_type", [1, 2.0, 3, float("inf"), 0.5])
@pytest.mark.parametrize("max_norm", [0.1, 1e6])
def test_clip_grad_norm(max_norm, norm_type):
    def run(lib):
        model = with_grads(lib)
        total = lib.nn.utils.clip_grad_norm_(model.parameters(), max_norm, norm_type)
        return total, [p.grad for p in model.parameters()]

    same(run, 1e-5)


def test_clip_grad_value_and_parts():
    def run(lib):
        model = with_grads(lib)
        total = lib.nn.utils.get_total_norm([p.grad for p in model.parameters()])
        lib.nn.utils.clip_grads_with_norm_(model.parameters(), 0.5, total)
        lib.nn.utils.clip_grad_value_(model.parameters(), 0.01)
        return total, [p.grad for p in model.parameters()]

    same(run)


def test_clip_grad_corners():
    same(lambda lib: lib.nn.utils.clip_grad_norm_([], 1.0))
    same(lambda lib: lib.nn.utils.clip_grad_norm_((p for p in []), 1.0))
    same(lambda lib: lib.nn.utils.clip_grad_norm_(lib.nn.Linear(2, 2).parameters(), 1.0))
    same(lambda lib: lib.nn.utils.clip_grad_norm(with_grads(lib).parameters(), 1.0))

    def infinite(lib):
        p = lib.nn.Parameter(lib.ones(2))
        p.grad = lib.tensor([float("inf"), 1.0])
        return lib.nn.utils.clip_grad_norm_(p, 1.0, error_if_nonfinite=True)

    assert same(infinite)[0] is RuntimeError


def test_vectors():
    def run(lib):
        model = lib.nn.Linear(3, 2)
        vector = lib.nn.utils.parameters_to_vector(model.parameters())
        lib.nn.utils.vector_to_parameters(vector * 2, model.parameters())
        return vector, list(model.parameters())

    same(run)
    same(lambda lib: lib.nn.utils.vector_to_parameters([1], []))


# -- parametrizations ------------------------------------------------------------------------------------------------


def symmetric(lib, inverse=False):
    class Symmetric(lib.nn.Module):
        def forward(self, x):
            return x.triu() + x.triu(1).transpose(-1, -2)

    class Invertible(Symmetric):
        def right_inverse(self, x):
            return x.triu()

    return Invertible() if inverse else Symmetric()


def test_register_and_remove():
    def run(lib):
        P = lib.nn.utils.parametrize
        layer = lib.nn.Linear(3, 3)
        P.register_parametrization(layer, "weight", symmetric(lib))
        out = [layer.weight, repr(layer), type(layer).__name__, list(layer.state_dict()), P.is_parametrized(layer)]
        out += [P.is_parametrized(layer, "bias"), P.type_before_parametrizations(layer) is lib.nn.Linear]
        layer(lib.ones(2, 3)).sum().backward()
        out.append(layer.parametrizations.weight.original.grad)
        with P.cached():
            out.append(layer.weight is layer.weight)
        twin = copy.deepcopy(layer)
        out.append(twin.weight)
        P.remove_parametrizations(layer, "weight")
        out += [
            layer.weight,
            type(layer) is lib.nn.Linear,
            list(layer.state_dict()),
            hasattr(layer, "parametrizations"),
        ]
        return out

    same(run)


def test_assigning_and_stacking():
    def run(lib):
        P = lib.nn.utils.parametrize
        layer = lib.nn.Linear(3, 3)
        P.register_parametrization(layer, "weight", symmetric(lib, inverse=True))
        P.register_parametrization(layer, "weight", symmetric(lib, inverse=True))
        layer.weight = lib.eye(3) * 2
        first = layer.weight
        P.remove_parametrizations(layer, "weight", leave_parametrized=False)
        return first, layer.weight, [n for n, _ in layer.named_parameters()]

    same(run)


def test_parametrized_buffers_and_errors():
    def buffer(lib):
        layer = lib.nn.Linear(2, 2)
        layer.register_buffer("b", lib.ones(3, 3))
        lib.nn.utils.parametrize.register_parametrization(layer, "b", symmetric(lib))
        return layer.b, list(layer.state_dict())

    def absent(lib):
        lib.nn.utils.parametrize.register_parametrization(lib.nn.Linear(2, 2), "no", symmetric(lib))

    def not_there(lib):
        lib.nn.utils.parametrize.remove_parametrizations(lib.nn.Linear(2, 2), "weight")

    def pickled(lib):
        import pickle

        layer = lib.nn.Linear(3, 3)
        lib.nn.utils.parametrize.register_parametrization(layer, "weight", symmetric(lib))
        pickle.dumps(layer)

    def no_inverse(lib):
        layer = lib.nn.Linear(3, 3)
        lib.nn.utils.parametrize.register_parametrization(layer, "weight", symmetric(lib))
        layer.weight = lib.eye(3)

    def reshaping(lib):
        lib.nn.utils.parametrize.register_parametrization(lib.nn.Linear(2, 3), "weight", lib.nn.Flatten(0))

    same(buffer)
    for case in (absent, not_there, pickled, no_inverse):
        assert isinstance(same(case), (tuple, list))
    with pytest.raises(ValueError, match="may not change the shape"):
        reshaping(rushlight)


@pytest.mark.parametrize("dim", [0, 1, -1, None])
def test_weight_norm(dim):
    def run(lib):
        layer = lib.nn.utils.parametrizations.weight_norm(lib.nn.Linear(3, 4), dim=dim)
        layer(lib.ones(2, 3)).square().sum().backward()
        grads = [p.grad for p in layer.parameters()]
        before = layer.weight
        lib.nn.utils.parametrize.remove_parametrizations(layer, "weight")
        return before, grads, layer.state_dict()

    same(run)


def test_weight_norm_reads_old_names():
    def run(lib):
        old, new = (
            lib.nn.utils.weight_norm(lib.nn.Linear(3, 4)),
            lib.nn.utils.parametrizations.weight_norm(lib.nn.Linear(3, 4)),
        )
        new.load_state_dict(old.state_dict())
        return new.weight

    same(run)


def test_old_weight_norm():
    def run(lib):
        layer = lib.nn.utils.weight_norm(lib.nn.Linear(3, 4))
        names = [n for n, _ in layer.named_parameters()]
        layer(lib.ones(2, 3)).square().sum().backward()
        grads = [p.grad for p in layer.parameters()]
        lib.nn.utils.remove_weight_norm(layer)
        return names, grads, layer(lib.ones(1, 3)), [n for n, _ in layer.named_parameters()]

    same(run)
    same(lambda lib: lib.nn.utils.remove_weight_norm(lib.nn.Linear(1, 1)))


@pytest.mark.parametrize("training", [True, False])
def test_spectral_norm(training):
    def run(lib):
        layer = lib.nn.utils.parametrizations.spectral_norm(lib.nn.Linear(3, 4), n_power_iterations=2).train(training)
        layer(lib.ones(2, 3)).square().sum().backward()
        return layer.state_dict(), [p.grad for p in layer.parameters()], layer.weight

    same(run, 1e-5)


def test_old_spectral_norm():
    def run(lib):
        layer = lib.nn.utils.spectral_norm(lib.nn.Linear(3, 4))
        layer(lib.ones(2, 3)).square().sum().backward()
        state = dict(layer.state_dict())
        metadata = layer.state_dict()._metadata[""]
        grads = [p.grad for p in layer.parameters()]
        lib.nn.utils.remove_spectral_norm(layer)
        return state, dict(metadata), grads, layer.state_dict()

    same(run, 1e-5)
    same(lambda lib: lib.nn.utils.spectral_norm(lib.nn.Linear(1, 1), n_power_iterations=0))


@pytest.mark.parametrize("shape", [(3, 3), (4, 2), (2, 4)])
@pytest.mark.parametrize("way", ["matrix_exp", "cayley", "householder", None])
@pytest.mark.parametrize("trivial", [True, False])
def test_orthogonal(shape, way, trivial):
    def run(lib):
        layer = lib.nn.Linear(*shape)
        lib.nn.utils.parametrizations.orthogonal(layer, "weight", way, use_trivialization=trivial)
        layer(lib.ones(2, shape[0])).square().sum().backward()
        return layer.weight, layer.parametrizations.weight.original, layer.parametrizations.weight.original.grad

    same(run, 2e-5)


def test_orthogonal_assignment():
    def run(lib):
        layer = lib.nn.utils.parametrizations.orthogonal(lib.nn.Linear(3, 3))
        layer.weight = lib.eye(3)
        return layer.weight

    same(run)
    same(lambda lib: lib.nn.utils.parametrizations.orthogonal(lib.nn.Linear(3, 3), "bias"))
    same(lambda lib: lib.nn.utils.parametrizations.orthogonal(lib.nn.Linear(3, 3), orthogonal_map="x"))


# -- pruning ---------------------------------------------------------------------------------------------------------

PRUNINGS = {
    "identity": lambda p, m: p.identity(m, "weight"),
    "l1": lambda p, m: p.l1_unstructured(m, "weight", 0.3),
    "l1 count": lambda p, m: p.l1_unstructured(m, "weight", 5),
    "random": lambda p, m: p.random_unstructured(m, "weight", 0.4),
    "structured": lambda p, m: p.ln_structured(m, "weight", 0.5, 2, 0),
    "structured last": lambda p, m: p.ln_structured(m, "weight", 1, 1, -1),
    "random structured": lambda p, m: p.random_structured(m, "weight", 0.5, 1),
    "twice": lambda p, m: p.l1_unstructured(p.l1_unstructured(m, "weight", 0.3), "weight", 0.5),
    "both": lambda p, m: p.ln_structured(p.l1_unstructured(m, "weight", 0.3), "weight", 1, 2, 0),
    "structured twice": lambda p, m: p.ln_structured(p.ln_structured(m, "weight", 1, 2, 0), "weight", 1, 2, 0),
    "too much": lambda p, m: p.l1_unstructured(m, "weight", 1000),
    "negative": lambda p, m: p.l1_unstructured(m, "weight", -1),
    "words": lambda p, m: p.l1_unstructured(m, "weight", "a"),
    "vector": lambda p, m: p.ln_structured(m, "bias", 1, 2, 0),
    "remove unpruned": lambda p, m: p.remove(m, "weight"),
}


@pytest.mark.parametrize("name", PRUNINGS)
def test_pruning(name):
    def run(lib):
        prune = lib.nn.utils.prune
        layer = lib.nn.Linear(4, 6)
        PRUNINGS[name](prune, layer)
        out = [layer.weight, layer.state_dict(), prune.is_pruned(layer), [n for n, _ in layer.named_parameters()]]
        layer(lib.ones(2, 4)).sum().backward()
        out.append(layer.weight_orig.grad)
        prune.remove(layer, "weight")
        return [*out, layer.state_dict(), prune.is_pruned(layer)]

    same(run)


def test_global_pruning_and_masks():
    def run(lib):
        prune = lib.nn.utils.prune
        model = lib.nn.Sequential(lib.nn.Linear(4, 6), lib.nn.Linear(6, 2))
        pairs = [(model[0], "weight"), (model[1], "weight")]
        prune.global_unstructured(pairs, prune.L1Unstructured, amount=0.4)
        prune.global_unstructured(pairs, prune.L1Unstructured, amount=3)
        prune.custom_from_mask(model[1], "bias", lib.tensor([1, 0]))
        return model.state_dict(), model(lib.ones(1, 4)), copy.deepcopy(model)(lib.ones(1, 4))

    same(run)


# -- functional calls ------------------------------------------------------------------------------------------------


def test_functional_call():
    def run(lib):
        model = lib.nn.Sequential(lib.nn.Linear(2, 2), lib.nn.Linear(2, 2))
        weight = lib.ones(2, 2, requires_grad=True)
        out = lib.func.functional_call(model, {"0.weight": weight}, (lib.ones(1, 2),))
        out.sum().backward()
        after = model(lib.ones(1, 2))
        return out, weight.grad, after, lib.func.functional_call(model, [{"1.bias": lib.zeros(2)}], lib.ones(1, 2))

    same(run)


def test_functional_call_tied():
    def tied(lib):
        model = lib.nn.Sequential(lib.nn.Linear(2, 2), lib.nn.Linear(2, 2))
        model[1].weight = model[0].weight
        return model

    call = lambda lib, given, **more: lib.func.functional_call(tied(lib), given, (lib.ones(1, 2),), **more)
    same(lambda lib: call(lib, {"0.weight": lib.ones(2, 2)}))
    same(lambda lib: call(lib, {"0.weight": lib.ones(2, 2)}, tie_weights=False))
    same(lambda lib: call(lib, {"0.weight": lib.ones(2, 2)}, strict=True))
    for lib in LIBRARIES:
        with pytest.raises(ValueError, match="multiple values for keys"):
            call(lib, {"0.weight": lib.ones(2, 2), "1.weight": lib.zeros(2, 2)})


def test_stack_module_state():
    same(lambda lib: lib.func.stack_module_state([lib.nn.Linear(2, 3) for _ in range(3)]))
    same(lambda lib: lib.func.stack_module_state([]))
    same(lambda lib: lib.func.stack_module_state([lib.nn.Linear(2, 3), lib.nn.Flatten()]))
    same(lambda lib: lib.func.stack_module_state([lib.nn.Linear(2, 3), lib.nn.Linear(2, 3).eval()]))


# -- the rest --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["Conv1d", "Conv2d", "ConvTranspose2d", "Linear"])
def test_fusion(kind):
    if not hasattr(rushlight.nn, kind) or not hasattr(rushlight.nn, "BatchNorm2d"):
        pytest.skip(f"no {kind} or BatchNorm yet")

    def run(lib):
        if kind == "Linear":
            layer, bn, x = lib.nn.Linear(3, 4), lib.nn.BatchNorm1d(4), lib.rand(2, 3)
        else:
            d = int(kind[-2])
            layer = getattr(lib.nn, kind)(3, 4, 2)
            bn, x = getattr(lib.nn, f"BatchNorm{d}d")(4), lib.rand(2, 3, *[5] * d)
        with lib.no_grad():
            bn.running_mean.uniform_(), bn.running_var.uniform_(1, 2), bn.weight.uniform_(), bn.bias.uniform_()
        layer.eval(), bn.eval()
        u = lib.nn.utils
        fused = (
            u.fuse_linear_bn_eval(layer, bn) if kind == "Linear" else u.fuse_conv_bn_eval(layer, bn, "Trans" in kind)
        )
        return fused.weight, fused.bias, (fused(x) - bn(layer(x))).abs().max() < 1e-5

    same(run, 1e-5)


def test_skip_init():
    def run(lib):
        layer = lib.nn.utils.skip_init(lib.nn.Linear, 2, 3)
        return list(layer.weight.shape), lib.rand(2)

    same(run)
    same(lambda lib: lib.nn.utils.skip_init(lib.nn.Flatten))


def test_memory_format():
    if not hasattr(rushlight.nn, "Conv2d"):
        pytest.skip("no Conv2d yet")

    def run(lib):
        model = lib.nn.Sequential(lib.nn.Conv2d(3, 4, 2))
        lib.nn.utils.convert_conv2d_weight_memory_format(model, lib.channels_last)
        return model[0].weight, list(model[0].weight.stride())

    same(run)
