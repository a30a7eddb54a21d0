"""The tensor as an object: memory, protocols, devices."""

from __future__ import annotations

import copy
import pickle
import subprocess
import sys

import numpy as np
import pytest

import rushlight


def test_from_numpy_shares_memory():
    array = np.arange(6.0)
    t = rushlight.from_numpy(array)
    t[:1] = 9
    array[1] = 7
    assert array[0] == 9
    assert t[1].item() == 7
    assert np.shares_memory(t.numpy(), array)


def test_from_numpy_of_a_slice_has_its_own_storage():
    t = rushlight.from_numpy(np.arange(6.0)[2:])
    assert (t.storage_offset(), t.untyped_storage().nbytes()) == (0, 32)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex64])
def test_memory_that_is_not_aligned_is_copied(dtype):
    """The kernels in C read whole numbers where they may lie."""
    buffer, offset = bytearray(8 + 300 * 300 * np.dtype(dtype).itemsize), 4 if dtype == np.complex64 else 1
    array = np.frombuffer(buffer, dtype, 300 * 300, offset).reshape(300, 300)
    array[...] = np.arange(300.0)
    kind = getattr(rushlight, np.dtype(dtype).name)
    for t in (
        rushlight.from_numpy(array),
        rushlight.as_tensor(array),
        rushlight.from_dlpack(array),
        rushlight.frombuffer(buffer, dtype=kind, count=90_000, offset=offset).reshape(300, 300),
    ):
        assert t.numpy().flags.aligned
        assert (t * 2 + t).sum(1).tolist() == [3 * 44850.0] * 300
        assert t.t().contiguous()[7].tolist() == [7.0] * 300


@pytest.mark.parametrize("make", [rushlight.from_numpy, rushlight.as_tensor, rushlight.asarray, rushlight.tensor])
@pytest.mark.parametrize("record", ["f4, i1", "f8, f4", ">f4, i1"])
def test_distances_must_be_whole_elements(make, record):
    array = np.zeros(70_000, record)["f0"]
    for each in (array, array[::-1], array[:1]):
        with pytest.raises(ValueError, match="given numpy array strides not a multiple of the element byte size"):
            make(each)


def test_tensor_copies():
    array = np.zeros(3)
    rushlight.tensor(array).fill_(1)
    assert array.tolist() == [0, 0, 0]


def test_views_share_a_storage():
    base = rushlight.zeros(2, 3)
    assert base[1].untyped_storage().data_ptr() == base.untyped_storage().data_ptr()
    assert base[1].storage_offset() == 3
    assert base.clone().untyped_storage().data_ptr() != base.untyped_storage().data_ptr()


@pytest.mark.parametrize("roundtrip", [copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))])
def test_copies_of_views_share_again(roundtrip):
    base = rushlight.zeros(2, 3)
    new, view = roundtrip((base, base[1]))
    view.fill_(5)
    assert new[1].tolist() == [5, 5, 5]
    assert base[1].tolist() == [0, 0, 0]


class Marked(rushlight.Tensor):
    pass


@pytest.mark.parametrize("roundtrip", [copy.copy, copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))])
def test_copies_keep_class_attributes_and_requires_grad(roundtrip):
    t = rushlight.ones(2).as_subclass(Marked).requires_grad_()
    t.note = "kept"
    new = roundtrip(t)
    assert (type(new), new.note, new.requires_grad, new.is_leaf) == (Marked, "kept", True, True)


def test_dtypes_survive_pickling():
    for dtype in (rushlight.bool, rushlight.bfloat16, rushlight.complex64):
        assert pickle.loads(pickle.dumps(dtype)) is dtype
        assert copy.deepcopy(dtype) is dtype
        assert pickle.loads(pickle.dumps(rushlight.ones(2, dtype=dtype))).dtype is dtype


def test_numpy_functions_make_tensors():
    made = np.sin(rushlight.zeros(2))
    assert isinstance(made, rushlight.Tensor)
    assert np.asarray(rushlight.ones(2), dtype=np.float64).dtype == np.float64
    assert np.concatenate([rushlight.ones(2), rushlight.zeros(1)]).tolist() == [1, 1, 0]


def test_a_failed_write_changes_nothing():
    t = rushlight.zeros(2)
    for bad in (lambda: t.copy_(rushlight.ones(3)), lambda: t.fill_(1e300), lambda: t.fill_("a")):
        with pytest.raises((RuntimeError, TypeError)):
            bad()
    assert t.tolist() == [0, 0]
    assert t._version == 0


def test_resize_keeps_memory_while_it_fits():
    base = rushlight.arange(4.0)
    pointer = base.data_ptr()
    assert base.resize_(2, 2).tolist() == [[0, 1], [2, 3]]
    assert base.data_ptr() == pointer
    assert base.resize_(5)[:4].tolist() == [0, 1, 2, 3]


def test_set_shares_the_source():
    source = rushlight.zeros(3)
    t = rushlight.ones(2).set_(source)
    t.fill_(2)
    assert source.tolist() == [2, 2, 2]


def test_inference_tensors():
    with rushlight.inference_mode():
        t = rushlight.ones(2)
    assert t.is_inference()
    assert not rushlight.ones(2).is_inference()


def test_default_device_nests():
    pytest.importorskip("jax")
    place = rushlight.device("xla")
    with place, place:
        assert rushlight.zeros(2).device.type == "xla"
    assert rushlight.zeros(2).device.type == "cpu"


def test_gradients_move_back_between_devices():
    pytest.importorskip("jax")
    x = rushlight.tensor([1.0, 2.0], requires_grad=True)
    (g,) = rushlight.autograd.grad((x.to("xla") ** 3).sum(), x, create_graph=True)
    assert (g.device.type, g.tolist()) == ("cpu", [3, 12])
    g.sum().backward()
    assert (x.grad.device.type, x.grad.tolist()) == ("cpu", [6, 12])


def test_writes_between_devices():
    pytest.importorskip("jax")
    there, here = rushlight.zeros(2, device="xla"), rushlight.tensor([1.0, 2.0])
    assert there.copy_(here).tolist() == [1, 2]
    here.fill_(7)
    assert there.tolist() == [1, 2]  # XLA never sees NumPy's later writes
    assert here.copy_(there).tolist() == [1, 2]
    with pytest.raises(TypeError, match=r"Use Tensor\.cpu"):
        there.numpy()


def test_copies_of_what_is_repeated_lie_in_plain_order():
    """In a process of its own: once something was transposed, every result's layout is looked at."""
    program = """
import rushlight as torch
for rows in (3, 5000):
    x = torch.ones(20).expand(rows, 20)
    for made in (x.clone(), x.double(), x.long(), x.half(), torch.ones(2, 1, 20).expand(2, rows, 20).double()[0]):
        assert made.stride() == (20, 1), made.stride()
"""
    subprocess.run([sys.executable, "-c", program], check=True)
