"""Names that PyTorch keeps for old programs, and settings that change nothing here: the same answers and warnings."""

import warnings

import pytest
import rushlight.cuda.amp.common
import torch
import torch.cuda.amp.common

import rushlight

LINES = """
x.resize(3, 2) | x.resize(2) | x.resize_as(x.T) | x.resize_as(T.zeros(3)) | x.volatile | x.name |
x.is_ipu | x.is_mtia | x.is_maia | x.is_vulkan | x.ipu() | x.xpu() | x.sum().__long__() | x.__long__() |
x.sum().__nonzero__() | x.__nonzero__() | x.__delitem__(0) | x.__setstate__((1, 2)) | (x * w).__setstate__((1, 2)) |
state(T.zeros(1), (x.untyped_storage(), 1, (2, 2), (2, 1))) | state(T.zeros(1), (True, False, None)) |
T.is_vulkan_available() | T.sym_sqrt(4) | T.sym_fresh_size(3) | T.sym_constrain_range(3, min=1, max=5) |
T.sym_constrain_range(3, min=4) | T.sym_constrain_range_for_size(-1) | T.sym_constrain_range_for_size(1, max=2) |
T.testing.assert_allclose(x, x + 1e-5) | T.testing.assert_allclose(x, x + 1) |
T.testing.assert_allclose(x, x.double()) |
T.testing.assert_allclose([1, 2], [1, 3]) | T.testing.assert_allclose(x, 1) |
T.testing.assert_allclose(x, x + 1, msg='far') | T.testing.assert_allclose(x.half(), x.half() + 0.01, 0., 0.1) |
T.autograd.is_multithreading_enabled() | T.autograd.set_multithreading_enabled(1) | threads() |
T.func.functionalize(lambda t: t.clone().add_(1))(x) | written() | T.cuda.amp.common.amp_definitely_not_available() |
T.func.replace_all_batch_norm_modules_(T.nn.Sequential(T.nn.BatchNorm1d(3), T.nn.InstanceNorm1d(2))) |
list(T.func.replace_all_batch_norm_modules_(T.nn.BatchNorm2d(3)).state_dict()) | T.hub.MODULE_HUBCONF |
T.autograd.grad_mode.no_grad is T.no_grad | T.Tag.pt2_compliant_tag.name
"""


def outcome(library, line):
    def state(t, given):
        t.__setstate__(given)
        return t

    def threads():
        with library.autograd.set_multithreading_enabled(False):
            inside = library.autograd.is_multithreading_enabled()
        return inside, library.autograd.is_multithreading_enabled()

    def written():
        x = library.zeros(2)
        library.func.functionalize(lambda t: t.add_(1), remove="mutations_and_views")(x)
        return x

    x, w = library.arange(6.0).view(2, 3), library.ones(3, requires_grad=True)
    names = dict(T=library, x=x, w=w, state=state, threads=threads, written=written)
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        try:
            result = repr(eval(line, names))
        except Exception as error:
            result = type(error).__name__, str(error)
    return result, [(w.category, str(w.message).split(" You can find")[0]) for w in heard]


@pytest.mark.parametrize("line", [part.strip() for part in LINES.split("|")])
def test_same_answers(line):
    assert outcome(rushlight, line) == outcome(torch, line)


@pytest.mark.parametrize("name", ["eig", "lstsq", "matrix_rank", "solve", "symeig"])
def test_removed_functions(name):
    """They raise, and say what took their place."""
    for library in (rushlight, torch):
        given = [library.ones(2, 2)] * (2 if name in ("lstsq", "solve") else 1)
        with pytest.raises(RuntimeError, match=f"now removed(.|\n)*linalg.{name.replace('sym', '')}"):
            getattr(library, name)(*given)
