"""PyTorch's inner names that packages call, beside PyTorch."""

import importlib
import warnings

import pytest

torch = pytest.importorskip("torch")

import rushlight  # noqa: E402


def part(m, path):
    return importlib.import_module(f"{m.__name__}.{path}")


def said(function, *args, **kwargs):
    try:
        return function(*args, **kwargs)
    except Exception as error:
        return [type(error).__name__, str(error)]


def flat_and_back(m):
    inner = part(m, "_utils")
    tensors = [m.ones(2, 2), m.zeros(0), m.arange(3.0)]
    flat = inner._flatten_dense_tensors(tensors)
    parts = inner._unflatten_dense_tensors(flat, tensors)
    flat[0] = 7.0
    return [flat.tolist(), [p.tolist() for p in parts], type(parts).__name__]


def devices(m):
    inner = part(m, "_utils")
    return [inner._get_available_device_type(), m._C._get_cudnn_enabled()]


def aliases(m):
    a = m.ones(3)
    return [m._C._is_alias_of(a, a[1:]), m._C._is_alias_of(a, a.clone()), m._C._is_alias_of(a, a.detach())]


def casts(m):
    return [str(m._cast_Long(m.ones(1)).dtype)[-5:], m._cast_Half(m.tensor([0.1])).tolist()]


def swapped_places(m):
    swap = part(m, "nn.utils._named_member_accessor").swap_tensor
    layer, b = m.nn.Linear(2, 2), m.ones(2)
    before = swap(layer, "bias", b)
    found = [type(before).__name__, layer.bias is b, list(dict(layer.named_parameters()))]
    swap(layer, "bias", before)
    wrong = [said(swap, layer, name, value) for name, value in (("no", b), ("a.b", b), ("", b), ("bias", 3))]
    return [*found, layer.bias is before, wrong, said(swap, 3, "bias", b)]


def decorators(m):
    base, log = part(m, "utils._contextlib")._DecoratorContextManager, []

    class Logged(base):
        def __init__(self, word):
            self.word = word

        def __enter__(self):
            log.append(f"in {self.word}")

        def __exit__(self, *_):
            log.append(f"out {self.word}")

        def clone(self):
            return type(self)(self.word)

    @Logged("f")
    def f():
        log.append("f")

    @Logged("g")
    def g():
        yield 1
        yield 2

    f()
    log.extend(g())
    return log


def prefixes(m):
    state = m.nn.Sequential(m.nn.Sequential(m.nn.Linear(1, 1))).state_dict(prefix="module.")
    names = part(m, "nn.modules.utils")
    names.consume_prefix_in_state_dict_if_present(state, "module.")
    return [list(state), sorted(state._metadata), names._reverse_repeat_tuple((1, 2, 3), 2)]


def bytes_as_storages(m):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = [m.ByteStorage.from_buffer(b"abc").tolist(), m.ByteStorage._from_buffer(b"abc").tolist()]
        found.append(m.ByteTensor(m.ByteStorage.from_buffer(b"abc")).tolist())
        found.append(m.IntStorage.from_buffer(bytes(12), "little", 2, 4).tolist())
        found.append(m.ShortStorage.from_buffer(b"\0\1", byte_order="big").tolist())
        return [*found, said(m.IntStorage.from_buffer, bytes(4))]


def attention_checks(m):
    f, z = part(m, "nn.functional"), m.zeros
    found = [
        f._mha_shape_check(z(2, 3, 4), z(2, 3, 4), z(2, 3, 4), None, None, 2),
        f._mha_shape_check(z(3, 4), z(3, 4), z(3, 4), None, None, 2),
        said(f._mha_shape_check, z(4), z(4), z(4), None, None, 2),
        f._none_or_dtype(None),
        str(f._none_or_dtype(z(1)))[-7:],
        said(f._none_or_dtype, 3),
        [f._Reduction.get_enum(word) for word in ("none", "mean", "sum")],
    ]
    return [*found, said(f._Reduction.get_enum, "no")]


def inverses_of_other_peoples_transforms(m):
    transforms = part(m, "distributions.transforms")

    class Twice(transforms.Transform):
        bijective, sign = True, 1
        domain = codomain = part(m, "distributions.constraints").real

        def _call(self, x):
            return x * 2

        def _inverse(self, y):
            return y / 2

    t = Twice(cache_size=1)
    y = t(m.ones(2))
    before = t._inv
    back = t.inv
    return [before, t._inv is None, back is t.inv, back(y).tolist(), [v.tolist() for v in t._cached_x_y]]


def registry_of_divergences(m):
    kl, d = part(m, "distributions.kl"), m.distributions
    return [(d.Normal, d.Normal) in kl._KL_REGISTRY, (d.Normal, d.Categorical) in kl._KL_REGISTRY]


def scaler_stages(m):
    return [(s.name, s.value) for s in part(m, "amp.grad_scaler").OptState]


def rates_asked_for(m):
    schedules, w = part(m, "optim.lr_scheduler"), m.ones(1, requires_grad=True)
    schedule = schedules.ExponentialLR(m.optim.SGD([w], lr=1.0), 0.5)
    schedule.last_epoch = 1
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with schedules._enable_get_lr_call(schedule):
            inside = schedule.get_lr()
        quiet = len(caught)
        schedule.get_lr()
    return [inside, quiet, len(caught)]


def levels_of_forward_mode(m):
    ad = m.autograd.forward_ad
    before = ad._current_level
    with ad.dual_level():
        inside = ad._current_level
    return [before, inside, ad._current_level]


def numbers_of_backward_passes(m):
    x, seen = m.ones(2, requires_grad=True), []
    for _ in range(2):
        y = x * 2
        y.register_hook(lambda g: seen.append(m._C._current_graph_task_id() >= 0))
        y.sum().backward()
    return [m._C._current_graph_task_id(), seen]


def clones_without_a_format(m):
    x = m.arange(6).view(2, 3).T
    return [x.clone(memory_format=None).stride(), m.clone(x, memory_format=None).tolist()]


def typed_on_the_gpu(m):
    t = m.cuda.FloatTensor
    return [t.__name__, t.__module__.partition(".")[2], isinstance(m.ones(1), t), isinstance(m.ones(1), m.FloatTensor)]


def switches_of_precision(m):
    b = m.backends
    before = [b.cuda.matmul.fp32_precision, b.cudnn.fp32_precision, b.fp32_precision, b.cudnn.conv.fp32_precision]
    b.cuda.matmul.fp32_precision = "tf32"
    found = [b.cuda.matmul.fp32_precision]
    for word in ("ieee", "none"):
        b.cuda.matmul.fp32_precision = word
        found.append(b.cuda.matmul.fp32_precision)
    return [before, found]


def foreign_loaders(m):
    """fastai's loader is no DataLoader; it has only a loader's attributes."""
    data = part(m, "utils.data.dataloader")

    class Loader:
        _IterableDataset_len_called, _auto_collation, drop_last, in_order = None, False, False, True
        generator, prefetch_factor, pin_memory, num_workers, timeout = None, 2, False, 0, 0
        persistent_workers, pin_memory_device, worker_init_fn = False, "", None
        multiprocessing_context, _get_shared_seed = None, lambda self: 0
        _dataset_kind = data._DatasetKind.Iterable
        _index_sampler = range(100)

        def collate_fn(self, sample):
            return sample * 10

        @property
        def dataset(self):
            return [1, 2, 3]

    iterator = data._SingleProcessDataLoaderIter(Loader())
    first = next(iterator)
    return [first, iterator._num_yielded, next(iterator._sampler_iter), list(iterator)]


@pytest.mark.parametrize(
    "case",
    [
        flat_and_back, devices, aliases, casts, swapped_places, decorators, prefixes, bytes_as_storages,
        attention_checks, inverses_of_other_peoples_transforms, registry_of_divergences, scaler_stages, rates_asked_for,
        levels_of_forward_mode, numbers_of_backward_passes, clones_without_a_format, typed_on_the_gpu,
        switches_of_precision, foreign_loaders,
    ],
    ids=lambda case: case.__name__,
)  # fmt: skip
def test_as_in_pytorch(case):
    assert case(rushlight) == case(torch)


# -- functorch -------------------------------------------------------------------------------------------------------


def functional_module(m, functorch):
    m.manual_seed(0)
    model = m.nn.Sequential(m.nn.Linear(2, 2), m.nn.BatchNorm1d(2))
    f, params, buffers = functorch.make_functional_with_buffers(model)
    linear, weights = functorch.make_functional(model[0], disable_autograd_tracking=True)
    y, x = f(params, buffers, m.randn(3, 2)), m.ones(2)
    found = [[round(v, 4) for v in y.flatten().tolist()], f.param_names, f.buffer_names, buffers[2].item()]
    found += [params[0] is model[0].weight, weights[0].requires_grad, f.stateless_model[0].weight.device.type]
    found.append([round(v, 4) for v in linear(weights, x).tolist()])
    return [*found, said(functorch.make_functional, model), isinstance(linear, functorch.FunctionalModule)]


def ensemble(m, functorch):
    m.manual_seed(0)
    f, params, buffers = functorch.combine_state_for_ensemble([m.nn.Linear(2, 1) for _ in range(3)])
    return [functorch.vmap(f, in_dims=(0, 0, None))(params, buffers, m.ones(2)).tolist(), len(buffers)]


def warned(m, functorch):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        slope = functorch.grad(lambda x: x**3)(m.tensor(2.0)).item()
        functorch.vmap(m.sin)(m.ones(2))
    return [slope, [(w.category.__name__, str(w.message)) for w in caught]]


@pytest.mark.filterwarnings("ignore::FutureWarning")
@pytest.mark.parametrize("case", [functional_module, ensemble, warned], ids=lambda case: case.__name__)
def test_functorch(case):
    functorch = pytest.importorskip("functorch")
    ours = importlib.import_module("rushlight.utils._functorch")
    assert case(rushlight, ours) == case(torch, functorch)


# -- vmap over collections of tensors --------------------------------------------------------------------------------


class Pair:
    """As tensordict's: it knows itself how a level is entered and left, and calls functions by a level's number."""

    def __init__(self, m, a, b):
        self.m, self.a, self.b = m, a, b
        self.shape, self.ndim = a.shape[:1], 1

    def _add_batch_dim(self, *, in_dim, vmap_level):
        add = part(self.m, "_C._functorch")._add_batch_dim
        return Pair(self.m, add(self.a, in_dim, vmap_level), add(self.b, in_dim, vmap_level))

    def _maybe_remove_batch_dim(self, funcname, vmap_level, batch_size, out_dim):
        remove = part(self.m, "_functorch.vmap")._maybe_remove_batch_dim
        a, b = (remove(funcname, t, vmap_level, batch_size, out_dim) for t in (self.a, self.b))
        return Pair(self.m, a, b)


def test_vmap_over_a_collection():
    inner, seen = part(rushlight, "_C._functorch"), []

    def swap(pair):
        seen.append((inner.is_batchedtensor(pair.a), tuple(pair.a.shape), tuple(inner.get_unwrapped(pair.a).shape)))
        return Pair(rushlight, pair.b * 2, pair.a.sum())

    a, b = rushlight.arange(6.0).view(2, 3), rushlight.tensor([1.0, 2.0])
    found = rushlight.vmap(swap)(Pair(rushlight, a, b))
    assert found.a.tolist() == [2.0, 4.0] and found.b.tolist() == [3.0, 12.0]
    assert seen == [(True, (3,), (2, 3))] and not inner.is_batchedtensor(a)
