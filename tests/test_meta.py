"""Tensors without values; beside PyTorch in parity/test_meta.py."""

import copy
import pickle
import subprocess
import sys

import pytest

import rushlight as torch
from rushlight import nn


def empty(*size, **options):
    return torch.empty(*size, device="meta", **options)


def test_importing_and_building_a_model_need_no_jax():
    code = (
        "import sys, rushlight as torch; assert 'rushlight.engine.meta' not in sys.modules\n"
        "m = torch.nn.Linear(1000, 2000, device='meta'); m.to_empty(device='cpu'); assert 'jax' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


@pytest.mark.parametrize("jax", [True, False])
def test_large_arguments(jax, monkeypatch):
    from rushlight.engine.meta import namespace

    if jax:
        pytest.importorskip("jax")
    else:
        monkeypatch.setattr(namespace.importlib.util, "find_spec", lambda name: None)
    namespace._known.clear()
    x = empty(1 << 20, 4, requires_grad=True)
    y = torch.cat([x.exp().sum(0), torch.ones(3, device="meta")]).to(torch.float64)
    assert y.shape == (7,) and y.dtype is torch.float64
    y.sum().backward()
    assert x.grad.shape == x.shape and x.grad.is_meta


def test_what_depends_on_values_says_so():
    x = empty(3)
    for call in (x.nonzero, lambda: x[x > 0], lambda: torch.unique(x), lambda: x.masked_select(x > 0)):
        with pytest.raises(NotImplementedError, match="depends on values"):
            call()


def test_errors_of_shape_are_those_of_the_cpu():
    with pytest.raises(RuntimeError, match="mat1 and mat2 shapes cannot be multiplied"):
        empty(2, 3) @ empty(2, 3)
    with pytest.raises(RuntimeError, match="The size of tensor a"):
        empty(2, 3) + empty(2, 4)


def test_views_and_writes():
    x = empty(4, 3)
    row = x[1]
    row.fill_(2)
    x[:, 0] = 1
    assert x._version == 2 and row._base is x and row.shape == (3,)
    y = empty(3, requires_grad=True)
    z = y * 2
    z[0] = 5
    z.sum().backward()
    assert y.grad.shape == (3,)


def test_second_gradients():
    x = empty(3, requires_grad=True)
    (g,) = torch.autograd.grad((x**3).sum(), x, create_graph=True)
    (h,) = torch.autograd.grad(g.sum(), x)
    assert h.is_meta and h.shape == (3,)


def test_copies_and_pickles():
    x = nn.Parameter(empty(2, 3))
    for made in (copy.deepcopy(x), pickle.loads(pickle.dumps(x))):
        assert made.is_meta and made.shape == (2, 3) and made.requires_grad


def test_parameters_registered_on_meta_are_filled_later(monkeypatch):
    """What ``init_empty_weights`` of accelerate does: registration is patched, and tensors move as they come."""

    register = nn.Module.register_parameter

    def register_empty(self, name, param):
        register(self, name, param)
        if param is not None:
            self._parameters[name] = nn.Parameter(param.to("meta"), requires_grad=param.requires_grad)

    real = nn.Linear(2, 3)
    with monkeypatch.context() as patched:
        patched.setattr(nn.Module, "register_parameter", register_empty)
        module = nn.Linear(2, 3)
    assert all(p.is_meta for p in module.parameters())
    module.load_state_dict(real.state_dict(), assign=True)
    assert torch.equal(module(torch.ones(2)), real(torch.ones(2)))
