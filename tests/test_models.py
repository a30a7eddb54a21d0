"""The image classifiers: torchvision's parameter counts, state-dict keys, and outputs for one seed."""

from __future__ import annotations

import pytest

import rushlight
from rushlight.vision import models

# Published parameter counts, and a key of each state dict (torchvision 0.28).
KNOWN = {
    "alexnet": (61_100_840, "classifier.6.bias"),
    "mobilenet_v2": (3_504_872, "features.18.1.num_batches_tracked"),
    "resnet18": (11_689_512, "layer4.1.bn2.running_var"),
    "resnet34": (21_797_672, "layer3.5.conv2.weight"),
    "resnet50": (25_557_032, "layer1.0.downsample.0.weight"),
    "resnext50_32x4d": (25_028_904, "layer2.3.bn3.weight"),
    "squeezenet1_0": (1_248_424, "features.12.expand3x3.weight"),
    "squeezenet1_1": (1_235_496, "features.12.squeeze.bias"),
    "wide_resnet50_2": (68_883_240, "layer4.2.conv3.weight"),
}


@pytest.mark.parametrize("name", KNOWN)
def test_parameters(name):
    count, key = KNOWN[name]
    model = getattr(models, name)()
    assert sum(p.numel() for p in model.parameters()) == count and key in model.state_dict()


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("resnet18", [0.0615, 0.343, 0.00595]),
        ("mobilenet_v2", None),
        ("squeezenet1_1", None),
    ],
)
def test_outputs_and_gradients(name, expected):
    rushlight.manual_seed(0)
    model = getattr(models, name)(num_classes=7)
    model.eval()
    rushlight.manual_seed(1)
    output = model(rushlight.randn(1, 3, 64, 64))
    assert output.shape == (1, 7) and output.isfinite().all()
    if expected is not None:  # what torchvision 0.28 gives
        assert output[0, :3].tolist() == pytest.approx(expected, rel=5e-3)
    model.train()
    model(rushlight.randn(2, 3, 64, 64)).sum().backward()
    assert all(p.grad is not None for p in model.parameters())


def test_variants():
    dilated = models.resnet50(replace_stride_with_dilation=[False, True, True], num_classes=3, zero_init_residual=True)
    assert dilated.layer4[2].conv2.dilation == (4, 4) and dilated.layer1[0].bn3.weight.sum() == 0
    with pytest.raises(ValueError, match="BasicBlock only supports groups=1"):
        models.resnet18(groups=2)


@pytest.mark.parametrize(("depth", "count"), [(11, 9_220_480), (13, 9_404_992), (16, 14_714_688), (19, 20_024_384)])
def test_vgg(depth, count):
    """The convolutions: the dense layers, of 124 million parameters in all, would take seconds to initialize."""
    features = models.vgg._features(depth, batch_norm=False)
    assert sum(p.numel() for p in features.parameters()) == count
    assert repr(models.vgg._features(depth, batch_norm=True)[1]).startswith("BatchNorm2d(64")


@pytest.mark.parametrize("name", ["alexnet", "resnet18", "vgg11", "squeezenet1_0", "mobilenet_v2"])
@pytest.mark.parametrize("asked", [{"weights": "DEFAULT"}, {"pretrained": True}])
def test_weights_are_not_fetched(name, asked):
    with pytest.raises(ValueError, match=r"does not fetch weights.*load_state_dict"):
        getattr(models, name)(**asked)
