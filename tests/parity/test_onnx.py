"""``torch.onnx.export`` of every layer of PyTorch's module database, run by onnxruntime."""

from __future__ import annotations

import warnings

import moduledb
import numpy as np
import pytest
from convert import Converter
from opdb import Options

import rushlight

pytest.importorskip("onnx", reason="the extra 'onnx' is not installed")
pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")

# What cannot be expressed, and why; docs/differences.md says the same.
NOT_IN_ONNX = {"CTCLoss": "a loop over paths"}


def tensors(value):
    leaves, _ = rushlight.utils._pytree.tree_flatten(value)
    return [t for t in leaves if isinstance(t, rushlight.Tensor)]


def check(name, samples=2):
    """Export some samples of a class in evaluation, and compare what onnxruntime computes."""
    info, count = moduledb.MODULES[name], 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for _, sample in moduledb.samples_of(info, Options(samples=samples), False):
            convert = Converter()
            layer = moduledb.build(info, sample.constructor_input, convert).eval()
            args, kwargs = convert(sample.forward_input.args), convert(sample.forward_input.kwargs)
            with rushlight.no_grad():
                expected = tensors(layer(*args, **kwargs))
            program = rushlight.onnx.export(layer, args, kwargs=kwargs)
            found = program(*args, **kwargs)
            assert len(found) == len(expected)
            for mine, theirs in zip(expected, found):
                assert mine.dtype == theirs.dtype and mine.shape == theirs.shape
                np.testing.assert_allclose(theirs.numpy(), mine.numpy(), rtol=1e-4, atol=1e-5)
            count += 1
    return count


@pytest.mark.parametrize("name", sorted(set(moduledb.MODULES) - set(NOT_IN_ONNX)))
def test_layer(name):
    assert check(name) > 0


@pytest.mark.parametrize("name", sorted(NOT_IN_ONNX))
def test_what_cannot_be_expressed_says_so(name):
    with pytest.raises(rushlight.onnx.OnnxExporterError):
        check(name)
