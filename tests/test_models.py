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


# Published parameter counts, and a key of each state dict, of models that are built without values.
LARGER = {
    "efficientnet_v2_m": (54_139_356, "features.7.4.block.2.fc1.weight"),
    "efficientnet_v2_s": (21_458_488, "features.1.0.block.0.0.weight"),
    "googlenet": (13_004_888, "inception4d.branch3.1.conv.weight"),
    "inception_v3": (27_161_264, "Mixed_7c.branch3x3dbl_3b.bn.weight"),
    "maxvit_t": (30_919_624, "blocks.2.layers.4.layers.grid_attention.attn_layer.1.relative_position_bias_table"),
    "mnasnet0_5": (2_218_512, "layers.12.3.layers.6.weight"),
    "mnasnet1_3": (6_282_256, "classifier.1.weight"),
    "regnet_x_400mf": (5_495_976, "trunk_output.block4.block4-11.f.c.0.weight"),
    "regnet_x_8gf": (39_572_648, "trunk_output.block1.block1-0.proj.0.weight"),
    "regnet_y_400mf": (4_344_144, "trunk_output.block2.block2-0.f.se.fc1.weight"),
    "regnet_y_1_6gf": (11_202_430, "stem.0.weight"),
    "shufflenet_v2_x0_5": (1_366_792, "stage4.0.branch1.3.num_batches_tracked"),
    "shufflenet_v2_x2_0": (7_393_996, "stage2.3.branch2.5.weight"),
    "swin_s": (49_606_258, "features.5.17.attn.relative_position_bias_table"),
    "swin_t": (28_288_354, "features.6.reduction.weight"),
    "swin_v2_b": (87_930_848, "features.5.17.attn.relative_coords_table"),
    "swin_v2_t": (28_351_570, "features.7.1.attn.cpb_mlp.2.weight"),
    "segmentation.deeplabv3_mobilenet_v3_large": (11_029_328, "classifier.0.convs.4.1.weight"),
    "segmentation.deeplabv3_resnet50": (42_004_074, "classifier.0.project.0.weight"),
    "segmentation.fcn_resnet50": (35_322_218, "aux_classifier.4.bias"),
    "segmentation.lraspp_mobilenet_v3_large": (3_221_538, "classifier.low_classifier.weight"),
}


@pytest.mark.parametrize("name", LARGER)
def test_parameters_of_larger_models(name, monkeypatch):
    monkeypatch.setattr(rushlight.nn.init, "trunc_normal_", lambda tensor, **_: tensor)  # there are no values to draw
    count, key = LARGER[name]
    place, _, last = name.rpartition(".")
    aux = {"aux_loss": True} if place and "lraspp" not in name else {}
    with rushlight.device("meta"):
        model = getattr(models.segmentation if place else models, last)(**aux)
    assert sum(p.numel() for p in model.parameters()) == count and key in model.state_dict()


@pytest.mark.parametrize("name", ["googlenet", "inception_v3", "mnasnet0_5", "regnet_y_400mf", "shufflenet_v2_x0_5"])
def test_outputs_of_more_models(name):
    rushlight.manual_seed(0)
    options = {"googlenet": {"init_weights": False}, "inception_v3": {"init_weights": False, "aux_logits": False}}
    model = getattr(models, name)(num_classes=5, **options.get(name, {}))
    output = model.train()(rushlight.randn(2, 3, 80, 80))
    if name == "googlenet":
        assert output._fields == ("logits", "aux_logits2", "aux_logits1")
        assert all(part.shape == (2, 5) for part in output)
        output = output[0]
    assert output.shape == (2, 5) and output.isfinite().all()
    output.sum().backward()
    assert next(model.parameters()).grad.abs().sum() > 0


def test_every_pixel_has_its_classes():
    model = models.segmentation.lraspp_mobilenet_v3_large(num_classes=4).eval()
    assert model(rushlight.randn(1, 3, 70, 50))["out"].shape == (1, 4, 70, 50)
    with pytest.raises(ValueError, match="not known here"):
        models.segmentation.fcn_resnet50(weights="DEFAULT")


@pytest.mark.parametrize(("pixel", "seen"), [((0, 0), (0, 3)), ((5, 5), (3, 10)), ((13, 13), (10, 14))])
def test_shifted_windows_do_not_look_around_the_edge(pixel, seen):
    from rushlight.vision.models.swin_transformer import ShiftedWindowAttention

    rushlight.manual_seed(0)
    attention = ShiftedWindowAttention(8, 7, 3, 2, 0.0, 0.0)
    x = rushlight.randn(1, 14, 14, 8, requires_grad=True)
    attention(x)[0, pixel[0], pixel[1]].sum().backward()
    reached = (x.grad[0].abs().sum(-1) > 1e-12).nonzero()
    assert reached.amin(0).tolist() == [seen[0]] * 2 and reached.amax(0).tolist() == [seen[1] - 1] * 2
    assert len(reached) == (seen[1] - seen[0]) ** 2


def test_a_small_swin_transformer_takes_any_size():
    rushlight.manual_seed(0)
    model = models.SwinTransformer(16, (2, 2), (2, 4), num_classes=3).eval()
    assert model(rushlight.randn(2, 3, 60, 44)).shape == (2, 3)


def test_the_second_swin_looks_by_cosines():
    from rushlight.vision.models.swin_transformer import ShiftedWindowAttentionV2

    rushlight.manual_seed(0)
    attention = ShiftedWindowAttentionV2(8, 4, 2, 2, 0.0, 0.0)
    table = attention.relative_coords_table
    assert table.shape == (1, 7, 7, 2) and table[0, 0, 6].tolist() == pytest.approx([-1.0566, 1.0566], abs=1e-4)
    x = rushlight.randn(1, 8, 8, 8)
    before = attention(x)
    with rushlight.no_grad():
        attention.qkv.weight[:16] *= 3  # longer queries and keys point where they did
        attention.qkv.bias[:8] *= 3
        attention.qkv.bias[8:16] = 5.0  # keys have no bias
    rushlight.testing.assert_close(attention(x), before)


def test_a_small_maxvit():
    rushlight.manual_seed(0)
    options = {"stem_channels": 8, "block_channels": [8, 16], "block_layers": [1, 2], "head_dim": 8, "num_classes": 3}
    model = models.maxvit_t(input_size=(56, 56), partition_size=7, **options).eval()
    images = rushlight.randn(2, 3, 56, 56, requires_grad=True)
    model(images)[:, 0].sum().backward()
    assert model(images).shape == (2, 3) and (images.grad.abs().amax(1) > 0).all()  # every pixel counts
    with pytest.raises(ValueError, match="not divisible by partition size"):
        models.maxvit_t(input_size=(64, 64), partition_size=7, **options)


# -- detection -------------------------------------------------------------------------------------------------------


RETINANET_LOSSES = [0.566934, 0.348536]


def test_retinanet():
    rushlight.manual_seed(0)
    build = models.detection.retinanet_resnet50_fpn
    model = build(weights_backbone=None, num_classes=4, min_size=64, max_size=96)
    drawn = np.random.default_rng(0)
    images = [rushlight.tensor(drawn.random(shape), dtype=rushlight.float32) for shape in ((3, 50, 70), (3, 60, 40))]
    targets = [
        {"boxes": rushlight.tensor([[10.0, 10, 40, 45], [30, 5, 65, 40]]), "labels": rushlight.tensor([1, 3])},
        {"boxes": rushlight.zeros(0, 4), "labels": rushlight.zeros(0, dtype=rushlight.int64)},
    ]
    losses = model(images, targets)
    assert list(losses) == ["classification", "bbox_regression"]  # what torchvision 0.28 gives:
    assert [loss.item() for loss in losses.values()] == pytest.approx(RETINANET_LOSSES, rel=1e-4)
    sum(losses.values()).backward()
    assert all(p.grad is not None for p in model.parameters())
    with rushlight.no_grad():
        model.head.classification_head.cls_logits.bias.fill_(-2.0)
        found = model.eval()(images)
    for image, one in zip(images, found):
        boxes, scores = one["boxes"], one["scores"]
        assert 0 < len(boxes) <= 300 and (scores[:-1] >= scores[1:]).all() and (one["labels"] < 4).all()
        height, width = image.shape[-2:]
        assert boxes.min() >= 0 and boxes[:, 0::2].max() <= width + 1e-3 and boxes[:, 1::2].max() <= height + 1e-3
    with pytest.raises(AssertionError, match="positive height and width"):
        model.train()(images[:1], [{"boxes": rushlight.tensor([[3.0, 3, 3, 5]]), "labels": rushlight.tensor([1])}])
    with pytest.raises(AssertionError, match="targets should not be none"):
        model(images)
    with pytest.raises(ValueError, match="the address of these weights"):
        build(weights="DEFAULT")


def test_retinanets_parameters():
    with rushlight.device("meta"):
        model = models.detection.retinanet_resnet50_fpn(weights_backbone=None)
    norms = sum(p.numel() for m in model.modules() if isinstance(m, rushlight.nn.BatchNorm2d) for p in m.parameters())
    # The published count is without the norms of the backbone, which are frozen in trained models.
    assert sum(p.numel() for p in model.parameters()) - norms == 34_014_999


def test_fcos():
    rushlight.manual_seed(0)
    with rushlight.device("meta"):
        model = models.detection.fcos_resnet50_fpn(weights_backbone=None)
    norms = sum(p.numel() for m in model.modules() if isinstance(m, rushlight.nn.BatchNorm2d) for p in m.parameters())
    assert sum(p.numel() for p in model.parameters()) - norms == 32_269_600
    model = models.detection.fcos_resnet50_fpn(weights_backbone=None, num_classes=4, min_size=64, max_size=96)
    images = [rushlight.rand(3, 50, 70), rushlight.rand(3, 60, 40)]
    targets = [
        {"boxes": rushlight.tensor([[10.0, 10, 40, 45], [30, 5, 65, 40]]), "labels": rushlight.tensor([1, 3])},
        {"boxes": rushlight.zeros(0, 4), "labels": rushlight.zeros(0, dtype=rushlight.int64)},
    ]
    losses = model(images, targets)
    assert list(losses) == ["classification", "bbox_regression", "bbox_ctrness"]
    sum(losses.values()).backward()
    assert all(p.grad is not None and p.grad.isfinite().all() for p in model.parameters())
    model.score_thresh = 0.0
    with rushlight.no_grad():
        found = model.eval()(images)
    assert all(0 < len(one["boxes"]) <= 100 and (one["scores"].diff() <= 0).all() for one in found)


def test_fcos_gives_each_place_the_smallest_object_around_it():
    from rushlight.vision.models.detection.fcos import FCOS, BoxLinearCoder

    net = rushlight.nn.Identity()
    net.out_channels = 32
    model = FCOS(net, 3)
    anchors = rushlight.tensor([[12.0, 12, 20, 20], [60, 60, 68, 68], [8, 8, 24, 24], [72, 72, 88, 88]])
    boxes = rushlight.tensor([[4.0, 4, 28, 28], [0, 0, 160, 160], [10, 10, 22, 22]])
    assert model._matched(anchors, boxes, [2, 1, 1]).tolist() == [2, -1, -1, 1]
    assert model._matched(anchors, boxes[:0], [2, 1, 1]).tolist() == [-1] * 4
    coder = BoxLinearCoder()
    codes = coder.encode(anchors[0], boxes[0])
    assert codes.tolist() == [1.5, 1.5, 1.5, 1.5] and coder.decode_single(codes, anchors[0]).equal(boxes[0])
