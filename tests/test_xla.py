"""Tensors on XLA devices, and the names of ``cuda``, ``accelerator`` and ``backends``, without an accelerator."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys

import numpy as np
import pytest

import rushlight as torch
from rushlight import nn

# -- eager ops on the device -----------------------------------------------------------------------------------------


def test_views_share_their_base():
    base = torch.arange(6.0, device="xla").reshape(2, 3)
    row, transposed = base[1], base.t()
    row.mul_(10)
    assert transposed.tolist() == [[0.0, 30.0], [1.0, 40.0], [2.0, 50.0]]
    base.zero_()
    assert row.tolist() == [0.0] * 3
    assert (row.storage_offset(), transposed.stride(), transposed.is_contiguous()) == (3, (1, 3), False)
    part = torch.arange(10.0, device="xla")[4:]
    assert part.as_strided((2, 2), (1, 2)).tolist() == [[4.0, 6.0], [5.0, 7.0]]


def test_windows_of_nothing():
    x = torch.ones(2, 3, device="xla", requires_grad=True)
    assert x.unfold(1, 0, 1).shape == (2, 4, 0) and x[:0].unfold(0, 0, 1).shape == (1, 3, 0)
    (x.unfold(1, 2, 1).sum() + x.unfold(1, 0, 1).sum() + x[:0].unfold(0, 0, 1).sum()).backward()
    assert x.grad.tolist() == [[1.0, 2.0, 1.0]] * 2
    nowhere, nothing = torch.zeros(2, 0, dtype=torch.long, device="xla"), torch.zeros(0, 5, device="xla")
    assert nn.functional.embedding(nowhere, nothing).shape == (2, 0, 5)


def test_written_views_have_gradients():
    x = torch.ones(3, device="xla", requires_grad=True)
    y = x * 2
    y[1:] *= x[1:] * 5
    y.sum().backward()
    assert x.grad.tolist() == [2.0, 20.0, 20.0] and x.grad.device.type == "xla"


def test_saved_tensor_that_was_written_raises():
    x = torch.ones(2, device="xla", requires_grad=True)
    y = x.exp()
    y.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()


def test_hooks_and_double_backward():
    x, seen = torch.tensor([2.0, 3.0], device="xla", requires_grad=True), []
    x.register_hook(lambda g: seen.append(g.tolist()))
    (first,) = torch.autograd.grad((x**3).sum(), x, create_graph=True)
    first.sum().backward()
    assert x.grad.tolist() == [12.0, 18.0] and seen == [[12.0, 27.0], [12.0, 18.0]]
    model = nn.Linear(2, 1).to("xla")
    model.register_full_backward_hook(lambda module, given, got: seen.append(got[0].device.type))
    model(torch.ones(1, 2, device="xla", requires_grad=True)).sum().backward()
    assert seen[-1] == "xla"


@pytest.mark.parametrize("name", ["SGD", "Adam", "AdamW", "RMSprop", "Adagrad"])
def test_optimizers(name):
    results = []
    for device in ("cpu", "xla"):
        torch.manual_seed(0)
        model = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1)).to(device, torch.float64)
        optimizer = getattr(torch.optim, name)(model.parameters(), lr=0.1)
        x = torch.ones(2, 3).to(device, torch.float64)
        for _ in range(3):
            optimizer.zero_grad()
            model(x).square().mean().backward()
            optimizer.step()
        state = [v for p in model.parameters() for v in optimizer.state[p].values() if isinstance(v, torch.Tensor)]
        assert {t.device.type for t in state if t.dim()} <= {device}
        results.append([p.detach().cpu().numpy() for p in model.parameters()])
    for a, b in zip(*results):
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-12)


def test_autocast():
    x = torch.ones(2, 2, device="xla")
    with torch.autocast("xla", dtype=torch.bfloat16):
        assert (x @ x).dtype is torch.bfloat16
        assert (x + x).dtype is torch.float32


def test_two_devices_in_one_op():
    with pytest.raises(
        RuntimeError, match=r"Expected all tensors to be on the same device.*(cpu and xla:0|xla:0 and cpu)"
    ):
        torch.ones(2) + torch.ones(2, device="xla")
    with pytest.raises(RuntimeError, match="same device"):
        nn.Linear(2, 2)(torch.ones(1, 2, device="xla"))
    assert (torch.ones(2, device="xla") * torch.tensor(2.0)).tolist() == [2.0, 2.0]  # numbers may be anywhere


def test_moving():
    model = nn.BatchNorm1d(2).to("xla")
    assert {t.device.type for t in model.state_dict().values()} == {"xla"}
    x = torch.ones(2).to("xla")
    assert (x.is_xla, x.is_cuda, x.cpu().device.type, x.device) == (True, False, "cpu", torch.device("xla", 0))
    with pytest.raises(TypeError, match="can't convert xla:0 device type tensor to numpy"):
        x.numpy()


def test_where_new_tensors_are_made():
    assert torch.get_default_device() == torch.device("cpu")
    with torch.device("xla"):
        assert torch.zeros(2).device.type == nn.Linear(2, 2).weight.device.type == "xla"
        assert torch.zeros(2, device="cpu").device.type == "cpu"
    torch.set_default_device("xla")
    try:
        assert torch.arange(2).device.type == torch.get_default_device().type == "xla"
    finally:
        torch.set_default_device(None)
    assert torch.zeros(2).device.type == "cpu"


def test_out_of_memory_says_how_much():
    for ask in (lambda: torch.zeros(10**15, device="xla"), lambda: _product(10**8).sum().item()):
        with pytest.raises(torch.OutOfMemoryError, match=r"Tried to allocate \d+\.\d [TP]iB.*in use"):
            ask()
    assert torch.ones(2, device="xla").sum().item() == 2


def _product(n):
    x = torch.ones(n, device="xla", dtype=torch.int8)
    return x[:, None] * x


# -- a machine without a GPU -----------------------------------------------------------------------------------------

needs_no_gpu = pytest.mark.skipif("torch.cuda.is_available()", reason="there is a GPU")


@needs_no_gpu
def test_without_a_gpu_asking_is_fine_and_using_says_why_not():
    cuda = torch.cuda
    assert (cuda.is_available(), cuda.device_count(), cuda.is_initialized()) == (False, 0, False)
    assert (cuda.is_bf16_supported(), cuda.is_tf32_supported(), cuda.get_arch_list()) == (False, False, [])
    assert (cuda.memory_allocated(), cuda.max_memory_allocated(), cuda.memory_stats()) == (0, 0, {})
    assert cuda.get_rng_state_all() == []
    cuda.empty_cache()
    with cuda.stream(None), cuda.device(-1), cuda.device(None):
        pass
    assert torch.accelerator.current_accelerator() is None and not torch.accelerator.is_available()
    assert not torch.backends.cuda.is_built() and not torch.backends.mps.is_available()
    assert torch.device("cuda:1").index == 1  # a name needs no device
    uses = [
        lambda: torch.zeros(2, device="cuda"), lambda: torch.zeros(2).cuda(), lambda: nn.Linear(1, 1).to("cuda:1"),
    ]  # fmt: skip
    for use in uses:
        with pytest.raises(RuntimeError, match=r"no such NVIDIA GPU is visible.*rushlight\[cuda\]"):
            use()
    names = ["synchronize", "current_device", "get_device_name", "Event", "Stream", "current_stream", "init",
             "get_device_properties", "get_device_capability", "initial_seed", "mem_get_info"]  # fmt: skip
    for name in names:
        with pytest.raises(RuntimeError, match="No CUDA GPUs are available"):
            getattr(cuda, name)()


@needs_no_gpu
def test_seeding_gpus_that_are_not_there_leaves_the_cpu_alone():
    torch.manual_seed(3)
    expected = torch.rand(2).tolist()
    torch.manual_seed(3)
    torch.cuda.manual_seed_all(7)
    torch.cuda.manual_seed(7)
    assert torch.rand(2).tolist() == expected


def test_older_names_of_amp():
    from rushlight.cuda.amp import GradScaler, autocast

    with pytest.warns(FutureWarning, match="is deprecated. Please use `torch.amp"):
        assert autocast(enabled=False).device == "cuda"
        assert autocast(dtype=torch.bfloat16, enabled=False).fast_dtype is torch.bfloat16
        assert GradScaler(init_scale=8.0, enabled=False).is_enabled() is False
        older = autocast(enabled=False)
    with older:
        assert (torch.ones(2, 2) @ torch.ones(2, 2)).dtype is torch.float32  # a CPU's tensors are not its business


def test_backends_are_set_and_read_back():
    from rushlight import backends

    before = torch.get_float32_matmul_precision()
    try:
        backends.cuda.matmul.allow_tf32 = True
        assert torch.get_float32_matmul_precision() == "high"
    finally:
        torch.set_float32_matmul_precision(before)
    assert backends.cuda.matmul.allow_tf32 is (before != "highest")
    with backends.cudnn.flags(enabled=False, deterministic=True):
        assert (backends.cudnn.enabled, backends.cudnn.deterministic) == (False, True)
    assert (backends.cudnn.enabled, backends.cudnn.deterministic) == (True, False)
    with backends.cuda.sdp_kernel(enable_flash=False):
        assert not backends.cuda.flash_sdp_enabled()
    assert backends.cuda.flash_sdp_enabled()


# -- with GPUs: two of the CPU's XLA devices stand in for them ---------------------------------------------------------

_TWO_GPUS = """
import jax
import rushlight as torch
from rushlight.engine.xla import devices

places = tuple(jax.devices("cpu"))
torch.cuda._gpus = lambda: places
devices._PLATFORM["cuda"], devices._TYPE["cpu"] = "cpu", "cuda"

cuda = torch.cuda
assert cuda.device_count() == 2 and cuda.current_device() == 0
x = torch.ones(2, device="cuda")
assert x.device == torch.device("cuda:0") and x.is_cuda
cuda.set_device(1)
assert torch.ones(2).cuda().device == torch.device("cuda:1") and cuda.current_device() == 1
with cuda.device(0):
    assert torch.ones(2, device="cuda").device.index == 0
with cuda.device_of(x):
    assert cuda.current_device() == 0
assert cuda.current_device() == 1 and torch.ones(1, device="cuda:0").device.index == 0
try:
    x + torch.ones(2, device="cuda")
except RuntimeError as error:
    assert "cuda:0 and cuda:1" in str(error)
else:
    raise AssertionError("two devices in one op")
try:
    cuda.set_device(2)
except RuntimeError as error:
    assert "invalid device ordinal" in str(error)

start, end = cuda.Event(enable_timing=True), cuda.Event(enable_timing=True)
start.record()
(torch.ones(300, 300, device="cuda") @ torch.ones(300, 300, device="cuda")).sum()
end.record()
cuda.synchronize()
assert 0 < start.elapsed_time(end) < 60_000 and end.query()
side = cuda.Stream()
side.wait_stream(cuda.current_stream())
with cuda.stream(side):
    y = torch.ones(2, device="cuda") * 3
cuda.current_stream().wait_stream(side)
assert y.tolist() == [3.0, 3.0] and side == cuda.current_stream() and side.query()

states = cuda.get_rng_state_all()
a = torch.rand(3, device="cuda").tolist()
cuda.set_rng_state_all(states)
assert torch.rand(3, device="cuda").tolist() == a
cuda.manual_seed_all(1)
b = torch.rand(3, device="cuda").tolist()
cuda.manual_seed(1)
assert torch.rand(3, device="cuda").tolist() == b != a
with cuda.nvtx.range("step {}", 1):
    pass
assert torch.accelerator.current_accelerator() == torch.device("cuda")
assert "allocated_bytes.all.current" in cuda.memory_stats() and "memory of" in cuda.memory_summary()
assert cuda.get_device_properties(0).name == cuda.get_device_name(0)
"""


def test_with_gpus():
    environment = {"XLA_FLAGS": "--xla_force_host_platform_device_count=2", "JAX_PLATFORMS": "cpu"}
    done = subprocess.run([sys.executable, "-c", _TWO_GPUS], env={**os.environ, **environment}, capture_output=True)
    assert done.returncode == 0, done.stderr.decode()


def test_an_op_that_runs_out_of_memory_says_the_sizes(monkeypatch):
    import jax

    from rushlight.engine.xla import namespace as xla

    def full(xp, x):
        raise jax.errors.JaxRuntimeError("RESOURCE_EXHAUSTED: Out of memory allocating 400000000000 bytes.")

    monkeypatch.setitem(xla.BODIES, "exp", full)
    with pytest.raises(torch.OutOfMemoryError, match=r"Tried to allocate 372\.5 GiB"):
        torch.ones(3, 1, 7, device="xla").exp()  # a shape that no other test has recorded


@pytest.fixture
def without_kernels(monkeypatch):
    """As on a GPU."""
    from rushlight.engine.xla.kernels import native

    monkeypatch.setattr(native, "serves", lambda *arrays: False)


@pytest.mark.parametrize("shape", [(6, 5), (4, 3, 5), (8, 3, 6, 5), (2, 3, 2, 3, 4)])
@pytest.mark.parametrize("offset, spread", [(0, 1), (100, 1), (0, 1e25), (float("inf"), 1)])
def test_batch_norm_with_fewer_passes_is_the_rule(without_kernels, shape, offset, spread):
    layer_of = {2: nn.BatchNorm1d, 3: nn.BatchNorm1d, 4: nn.BatchNorm2d, 5: nn.BatchNorm3d}
    results = []
    for device, dtype in (("cpu", torch.float64 if offset == 100 else torch.float32), ("xla", torch.float32)):
        torch.manual_seed(0)
        layer = layer_of[len(shape)](shape[1])
        layer.weight.data.normal_()
        x = torch.randn(shape) * spread
        x.select(1, 1).add_(offset)
        layer, x = layer.to(device, dtype), x.to(device, dtype).requires_grad_()
        y = layer(x)
        (y * torch.randn(shape).to(y)).sum().backward()
        found = [y, x.grad, layer.weight.grad, layer.bias.grad, layer.running_mean, layer.running_var]
        results.append([t.detach().cpu().float().numpy() for t in found])
    for expected, found in zip(*results):
        size = np.abs(expected[np.isfinite(expected)]).max(initial=1)
        np.testing.assert_allclose(found / size, expected / size, rtol=1e-5, atol=2e-5 if offset == 100 else 2e-6)


def test_batch_norm_of_a_first_sample_unlike_the_others(without_kernels):
    x = torch.randn(256, 2, 4, 4) * 1e-2
    x[0] += 1000
    expected = nn.BatchNorm2d(2).double()(x.double())
    found = nn.BatchNorm2d(2).to("xla")(x.to("xla"))
    np.testing.assert_allclose(found.detach().cpu().numpy(), expected.detach().numpy(), rtol=1e-4, atol=1e-5)


def test_asking_for_a_gpu_where_jax_can_have_none_does_not_load_jax():
    program = "import sys, rushlight; print(rushlight.cuda.is_available(), 'jax' in sys.modules)"
    if importlib.util.find_spec("jax_plugins") is not None:
        pytest.skip("JAX has plugins here")
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "False"]
