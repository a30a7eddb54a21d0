"""The image classifiers: torchvision's parameter counts, state-dict keys, and outputs for one seed."""

from __future__ import annotations

import numpy as np
import pytest

import rushlight
from rushlight.vision import models

# Published parameter counts, and a key of each state dict (torchvision 0.28).
KNOWN = {
    "convnext_tiny": (28_589_128, "features.7.2.block.5.weight"),
    "densenet121": (7_978_856, "features.denseblock4.denselayer16.conv2.weight"),
    "efficientnet_b0": (5_288_548, "features.7.0.block.2.fc1.weight"),
    "efficientnet_b1": (7_794_184, "classifier.1.bias"),
    "mobilenet_v3_large": (5_483_032, "features.15.block.2.fc2.bias"),
    "mobilenet_v3_small": (2_542_856, "classifier.3.weight"),
    "vit_b_32": (88_224_232, "encoder.layers.encoder_layer_11.mlp.3.weight"),
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
        ("convnext_tiny", None),
        ("densenet121", None),
        ("efficientnet_b0", None),
        ("mobilenet_v3_small", None),
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


@pytest.fixture
def fetched(tmp_path, monkeypatch):
    """A folder of weights as if they had been fetched: nothing is asked for over the network."""
    monkeypatch.setattr(rushlight.hub, "_dir", str(tmp_path))
    (tmp_path / "checkpoints").mkdir()
    monkeypatch.setattr(rushlight.hub, "download", lambda url, *_: pytest.fail(f"fetches {url}"))
    return tmp_path / "checkpoints"


@pytest.mark.parametrize(
    "asked",
    [{"weights": "DEFAULT"}, {"weights": models.SqueezeNet1_1_Weights.IMAGENET1K_V1}, {"pretrained": True},
     {"weights": "SqueezeNet1_1_Weights.IMAGENET1K_V1"}],
)  # fmt: skip
def test_published_weights(fetched, asked):
    made = models.squeezenet1_1()
    rushlight.save(made.state_dict(), fetched / "squeezenet1_1-b8a52dc0.pth")
    model = models.squeezenet1_1(**asked)
    assert all(a.equal(b) for a, b in zip(model.parameters(), made.parameters()))


def test_weights_there_are():
    assert models.ResNet50_Weights.DEFAULT is models.ResNet50_Weights.IMAGENET1K_V2
    assert models.ResNet50_Weights.DEFAULT.url.endswith("/resnet50-11ad3fa6.pth")
    assert repr(models.VGG16_Weights.DEFAULT) == "VGG16_Weights.IMAGENET1K_V1"
    with pytest.raises(ValueError, match="ResNet18_Weights has IMAGENET1K_V1, DEFAULT"):
        models.resnet18(weights="IMAGENET1K_V7")
    with pytest.raises(ValueError, match="'num_classes' expected value 1000 but got 10 instead"):
        models.resnet18(weights="DEFAULT", num_classes=10)


def test_inputs_of_published_weights():
    pytest.importorskip("PIL.Image")
    from PIL import Image

    pixels = np.random.default_rng(0).integers(0, 256, (300, 280, 3), dtype=np.uint8)
    made = models.ResNet18_Weights.DEFAULT.transforms()(Image.fromarray(pixels))
    assert made.shape == (3, 224, 224) and made.dtype == rushlight.float32 and made.mean().abs() < 1


def test_a_transformer_of_patches():
    model = models.VisionTransformer(32, 8, 2, 2, 16, 32, num_classes=5)
    output = model(rushlight.randn(2, 3, 32, 32))
    assert output.shape == (2, 5) and model.seq_length == 17
    with pytest.raises(ValueError, match="Expected 32 but got 16"):
        model(rushlight.randn(1, 3, 16, 16))
    with pytest.raises(ValueError, match="load_state_dict"):
        models.vit_b_16(weights="DEFAULT")
