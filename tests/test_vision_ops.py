"""torchvision's operators against what they mean, written as loops."""

import math

import numpy as np
import pytest

import rushlight
from rushlight import nn
from rushlight.vision import ops

rng = np.random.default_rng(0)


def random_boxes(count, size=20.0):
    corners = np.sort(rng.uniform(0, size, (count, 2, 2)), axis=1)
    return rushlight.tensor(corners.reshape(count, 4).astype(np.float32))


def overlap(a, b):
    wide = max(min(a[2], b[2]) - max(a[0], b[0]), 0)
    high = max(min(a[3], b[3]) - max(a[1], b[1]), 0)
    areas = (a[2] - a[0]) * (a[3] - a[1]) + (b[2] - b[0]) * (b[3] - b[1])
    return wide * high, areas - wide * high


def test_overlaps():
    a, b = random_boxes(5), random_boxes(4)
    iou, general, near, complete = (
        f(a, b).tolist() for f in (ops.box_iou, ops.generalized_box_iou, ops.distance_box_iou, ops.complete_box_iou)
    )
    for i, x in enumerate(a.tolist()):
        for j, y in enumerate(b.tolist()):
            common, union = overlap(x, y)
            wide, high = max(x[2], y[2]) - min(x[0], y[0]), max(x[3], y[3]) - min(x[1], y[1])
            assert iou[i][j] == pytest.approx(common / union, abs=1e-5)
            assert general[i][j] == pytest.approx(common / union - (wide * high - union) / (wide * high), abs=1e-5)
            apart = ((x[0] + x[2] - y[0] - y[2]) ** 2 + (x[1] + x[3] - y[1] - y[3]) ** 2) / 4
            assert near[i][j] == pytest.approx(common / union - apart / (wide**2 + high**2), abs=1e-5)
            angle = math.atan((x[2] - x[0]) / (x[3] - x[1])) - math.atan((y[2] - y[0]) / (y[3] - y[1]))
            v = 4 / math.pi**2 * angle**2
            assert complete[i][j] == pytest.approx(near[i][j] - v * v / (1 - iou[i][j] + v), abs=1e-4)


def test_losses_are_one_less_the_overlaps():
    a, b = random_boxes(6), random_boxes(6)
    pairs = ((ops.generalized_box_iou_loss, ops.generalized_box_iou), (ops.distance_box_iou_loss, ops.distance_box_iou),
             (ops.complete_box_iou_loss, ops.complete_box_iou))  # fmt: skip
    for loss, measure in pairs:
        np.testing.assert_allclose(loss(a, b).tolist(), 1 - np.diag(measure(a, b).numpy()), rtol=1e-4, atol=1e-5)
        a.requires_grad_()
        loss(a, b, reduction="mean").backward()
        assert bool(a.grad.isfinite().all())
        a = a.detach()
    with pytest.raises(ValueError, match="Supported reduction modes"):
        ops.generalized_box_iou_loss(a, b, reduction="some")


def test_nms_takes_the_best_of_what_overlaps():
    boxes, scores = random_boxes(40, 10.0), rushlight.tensor(rng.uniform(size=40).astype(np.float32))
    for threshold in (0.1, 0.5, 0.9):
        left, kept = sorted(range(40), key=lambda i: -scores[i].item()), []
        while left:
            best = left.pop(0)
            kept.append(best)
            measure = {i: overlap(boxes[best].tolist(), boxes[i].tolist()) for i in left}
            left = [i for i in left if measure[i][0] / measure[i][1] <= threshold]
        assert ops.nms(boxes, scores, threshold).tolist() == kept
    groups = rushlight.tensor([0, 1] * 20)
    each = {i for g in (0, 1) for i in (groups == g).nonzero().flatten()[
        ops.nms(boxes[groups == g], scores[groups == g], 0.3)].tolist()}  # fmt: skip
    assert set(ops.batched_nms(boxes, scores, groups, 0.3).tolist()) == each
    assert ops.nms(boxes[:0], scores[:0], 0.5).shape == (0,)
    with pytest.raises(RuntimeError, match="2d tensor"):
        ops.nms(boxes[0], scores, 0.5)


def test_boxes():
    boxes = random_boxes(3)
    for form in ("xywh", "cxcywh"):
        there = ops.box_convert(boxes, "xyxy", form)
        assert rushlight.allclose(ops.box_convert(there, form, "xyxy"), boxes, atol=1e-5)
        assert rushlight.allclose(ops.box_iou(there, there, form), ops.box_iou(boxes, boxes), atol=1e-5)
    assert ops.clip_boxes_to_image(rushlight.tensor([[-1.0, -2.0, 30.0, 9.0]]), (8, 20)).tolist() == [[0, 0, 20, 8]]
    assert ops.remove_small_boxes(rushlight.tensor([[0.0, 0, 1, 1], [0.0, 0, 3, 3]]), 2).tolist() == [1]
    masks = rushlight.zeros(1, 5, 6)
    masks[0, 1:3, 2:5] = 1
    assert ops.masks_to_boxes(masks).tolist() == [[2, 1, 4, 2]]
    with pytest.raises(ValueError, match="Unsupported Bounding Box"):
        ops.box_convert(boxes, "xyxy", "yxyx")


def interpolated(image, y, x):
    height, width = image.shape
    if y < -1 or y > height or x < -1 or x > width:
        return 0.0
    y, x = max(y, 0), max(x, 0)
    y0, x0 = min(int(y), height - 1), min(int(x), width - 1)
    y1, x1 = min(y0 + 1, height - 1), min(x0 + 1, width - 1)
    b, a = (0.0 if y0 == height - 1 else y - y0), (0.0 if x0 == width - 1 else x - x0)
    top, bottom = image[y0, x0] * (1 - a) + image[y0, x1] * a, image[y1, x0] * (1 - a) + image[y1, x1] * a
    return top * (1 - b) + bottom * b


@pytest.mark.parametrize(("ratio", "aligned"), [(2, False), (-1, False), (2, True), (-1, True)])
def test_roi_align(ratio, aligned):
    image = rng.normal(size=(2, 3, 9, 8))
    boxes = np.array([[0, 1.5, 2.25, 13.0, 9.5], [1, -4.0, -3.0, 20.0, 30.0], [1, 3.0, 3.0, 3.2, 3.3]])
    found = ops.roi_align(rushlight.tensor(image), rushlight.tensor(boxes), (2, 3), 0.5, ratio, aligned)
    for k, (n, *box) in enumerate(boxes):
        x1, y1, x2, y2 = (v * 0.5 - (0.5 if aligned else 0) for v in box)
        high, wide = (y2 - y1, x2 - x1) if aligned else (max(y2 - y1, 1), max(x2 - x1, 1))
        grid = (ratio, ratio) if ratio > 0 else (math.ceil(high / 2), math.ceil(wide / 3))
        for c in range(3):
            for p in range(2):
                for q in range(3):
                    ys = [y1 + (p + (i + 0.5) / grid[0]) * high / 2 for i in range(grid[0])]
                    xs = [x1 + (q + (i + 0.5) / grid[1]) * wide / 3 for i in range(grid[1])]
                    expected = np.mean([[interpolated(image[int(n), c], y, x) for x in xs] for y in ys])
                    assert found[k, c, p, q].item() == pytest.approx(expected, abs=1e-9)


def test_regions_have_gradients():
    image = rushlight.randn(1, 2, 6, 6, dtype=rushlight.float64, requires_grad=True)
    boxes = [rushlight.tensor([[0.0, 1.0, 4.0, 5.0], [2.0, 2.0, 3.0, 3.0]], dtype=rushlight.float64)]
    assert rushlight.autograd.gradcheck(lambda x: ops.roi_align(x, boxes, 2, 1.0, 2), (image,))
    assert rushlight.autograd.gradcheck(lambda x: ops.roi_pool(x, boxes, 2), (image,))
    assert (
        repr(ops.RoIAlign(7, 0.25, 2)) == "RoIAlign(output_size=7, spatial_scale=0.25, sampling_ratio=2, aligned=False)"
    )
    with pytest.raises(ValueError, match="K, 5"):
        ops.roi_pool(image, rushlight.zeros(2, 4), 2)


def test_roi_pool():
    image = rushlight.arange(36.0).reshape(1, 1, 6, 6)
    found = ops.roi_pool(image, rushlight.tensor([[0.0, 0.0, 0.0, 3.0, 3.0], [0.0, 9.0, 9.0, 9.0, 9.0]]), 2)
    assert found.tolist() == [[[[7, 9], [19, 21]]], [[[0, 0], [0, 0]]]]


def test_deformable_convolutions():
    x, weight, bias = rushlight.randn(2, 4, 6, 5), rushlight.randn(6, 2, 3, 3), rushlight.randn(6)
    still = rushlight.zeros(2, 2 * 2 * 9, 3, 3)
    found = ops.deform_conv2d(x, still, weight, bias, stride=2, padding=1)
    assert rushlight.allclose(found, nn.functional.conv2d(x, weight, bias, 2, 1, groups=2), atol=1e-5)
    one_down = rushlight.zeros(2, 2, 9, 2, 4, 3)
    one_down[:, :, :, 0] = 1.0
    found = ops.deform_conv2d(x, one_down.reshape(2, 36, 4, 3), weight, mask=rushlight.full((2, 18, 4, 3), 0.5))
    below = nn.functional.pad(x, (0, 0, 0, 1))[:, :, 1:]
    assert rushlight.allclose(found, 0.5 * nn.functional.conv2d(below, weight, groups=2), atol=1e-5)
    inputs = [
        rushlight.randn(*s, dtype=rushlight.float64, requires_grad=True)
        for s in ((1, 1, 4, 4), (1, 8, 3, 3), (1, 1, 2, 2))
    ]
    assert rushlight.autograd.gradcheck(ops.deform_conv2d, inputs)
    with pytest.raises(RuntimeError, match="offset output dims"):
        ops.deform_conv2d(x, rushlight.zeros(2, 36, 9, 9), weight)


def test_blocks():
    norm, frozen = nn.BatchNorm2d(3), ops.FrozenBatchNorm2d(3)
    norm(rushlight.randn(4, 3, 5, 5))
    frozen.load_state_dict(norm.eval().state_dict())
    x = rushlight.randn(2, 3, 4, 4)
    assert rushlight.allclose(frozen(x), norm(x), atol=1e-5) and not list(frozen.parameters())
    assert list(ops.SqueezeExcitation(8, 2).state_dict()) == ["fc1.weight", "fc1.bias", "fc2.weight", "fc2.bias"]
    block = ops.Conv2dNormActivation(3, 4, kernel_size=5, dilation=2)
    assert block[0].padding == (4, 4) and block[0].bias is None and block(x).shape == (2, 4, 4, 4)
    assert ops.MLP(3, [4, 5])(rushlight.randn(2, 3)).shape == (2, 5)
    assert ops.Permute([0, 2, 1])(rushlight.zeros(1, 2, 3)).shape == (1, 3, 2)
    loss = ops.sigmoid_focal_loss(rushlight.tensor([0.5, -1.0]), rushlight.tensor([1.0, 0.0]), gamma=0, alpha=-1)
    expected = nn.functional.binary_cross_entropy_with_logits(
        rushlight.tensor([0.5, -1.0]), rushlight.tensor([1.0, 0.0]), reduction="none"
    )
    assert rushlight.allclose(loss, expected)


def test_stochastic_depth():
    rushlight.manual_seed(0)
    x = rushlight.ones(200, 2, 2)
    dropped = ops.stochastic_depth(x, 0.25, "row")
    rows = dropped[:, 0, 0]
    assert rows.unique().tolist() == pytest.approx([0.0, 4 / 3]) and 120 < (rows > 0).sum().item() < 180
    assert ops.StochasticDepth(0.5, "batch").eval()(x) is x
    with pytest.raises(ValueError, match="between 0 and 1"):
        ops.stochastic_depth(x, 1.5, "row")
