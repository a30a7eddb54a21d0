"""``torch.onnx.export``: names, open sizes, writes in place, and what is refused."""

from __future__ import annotations

import io

import numpy as np
import pytest

import rushlight
from rushlight import nn
from rushlight.vision import models

onnx = pytest.importorskip("onnx", reason="the extra 'onnx' is not installed")
pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.norm = nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8)
        self.pool, self.head = nn.MaxPool2d(3, stride=2, padding=1), nn.Linear(128, 5)

    def forward(self, image, scale=None):
        features = self.pool(nn.functional.relu_(self.norm(self.conv(image))))
        logits = self.head(features.flatten(1))
        return logits if scale is None else logits * scale


def close(found, expected):
    np.testing.assert_allclose(found.numpy(), expected.detach().numpy(), rtol=1e-4, atol=1e-5)


def test_names_files_and_open_sizes(tmp_path):
    model, image = Net(), rushlight.randn(1, 3, 8, 8)
    options = {"input_names": ["picture"], "output_names": ["logits"], "dynamic_axes": {"picture": {0: "batch"}}}
    path = tmp_path / "net.onnx"
    assert rushlight.onnx.export(model, image, path, dynamo=False, opset_version=17, **options) is None
    read = onnx.load(path)
    assert [i.name for i in read.graph.input] == ["picture"] and [o.name for o in read.graph.output] == ["logits"]
    assert [o.type.tensor_type.shape.dim[0].dim_param for o in read.graph.output] == ["batch"]
    assert "conv.weight" in [w.name for w in read.graph.initializer] and read.opset_import[0].version == 17
    assert model.training  # as it was
    program = rushlight.onnx.export(model, (image,), dynamic_shapes={"image": {0: "batch"}}, verify=True)
    model.eval()
    for count in (1, 4):
        many = rushlight.randn(count, 3, 8, 8)
        close(program(many)[0], model(many))
    program.save(buffer := io.BytesIO())
    assert onnx.load_from_string(buffer.getvalue()).graph.input[0].name == "image"


def test_keywords_are_inputs():
    model, image, scale = Net().eval(), rushlight.randn(2, 3, 8, 8), rushlight.tensor(3.0)
    program = rushlight.onnx.export(model, (image,), kwargs={"scale": scale})
    assert [i.name for i in program.model_proto.graph.input] == ["image", "scale"]
    close(program(image, scale=rushlight.tensor(5.0))[0], model(image, rushlight.tensor(5.0)))


def test_two_open_sizes():
    layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True).eval()
    x = rushlight.randn(2, 3, 8)
    program = rushlight.onnx.export(layer, (x,), input_names=["src"], dynamic_axes={"src": {0: "batch", 1: "time"}})
    other = rushlight.randn(4, 7, 8)
    close(program(other)[0], layer(other))


def small_vit(num_classes):
    return models.VisionTransformer(64, 16, 2, 4, 32, 64, num_classes=num_classes)


def small_swin(num_classes):
    return models.SwinTransformer(16, [2, 2], [2, 4], 4, num_classes=num_classes)


@pytest.mark.parametrize(
    "make",
    [models.resnet18, models.mobilenet_v3_small, models.squeezenet1_1, models.densenet121, small_vit, small_swin],
)
def test_vision_models(make):
    model, image = make(num_classes=7).eval(), rushlight.randn(1, 3, 64, 64)
    nn.init.normal_(list(model.parameters())[-2], std=0.1)  # the head of a vision transformer begins at zero
    program = rushlight.onnx.export(model, (image,))
    close(program(image)[0], model(image))


def test_what_depends_on_values_is_refused():
    def by_hand(x):
        return x * float(x.sum())

    with pytest.raises(rushlight.onnx.OnnxExporterError, match="depends on the values"):
        rushlight.onnx.export(by_hand, (rushlight.ones(3),))


def test_random_numbers_are_refused():
    before = rushlight.get_rng_state()
    with pytest.raises(rushlight.onnx.OnnxExporterError, match="random numbers"):
        rushlight.onnx.export(lambda x: x + rushlight.rand(3), (rushlight.ones(3),))
    assert rushlight.equal(rushlight.get_rng_state(), before)


def test_what_depends_on_an_open_size_is_refused():
    def average(x):
        return x.sum(0) * (1.0 / len(x))

    program = rushlight.onnx.export(average, (rushlight.ones(3, 2),))
    close(program(rushlight.ones(3, 2))[0], rushlight.ones(2))
    with pytest.raises(rushlight.onnx.OnnxExporterError, match="the size 'n', which is to stay open"):
        rushlight.onnx.export(average, (rushlight.ones(3, 2),), dynamic_axes={"x": {0: "n"}})


def test_an_operator_that_onnx_lacks_is_named():
    with pytest.raises(rushlight.onnx.OnnxExporterError, match="svd"):
        rushlight.onnx.export(rushlight.linalg.svdvals, (rushlight.ones(2, 2),))


def test_a_part_written_in_place_is_refused():
    def write(x):
        y = x * 1
        y[0] = 0
        return y

    with pytest.raises(rushlight.onnx.OnnxExporterError, match="in place"):
        rushlight.onnx.export(write, (rushlight.ones(3),))
    assert not rushlight.onnx.is_in_onnx_export()
