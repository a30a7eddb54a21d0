"""transforms.v2, tv_tensors, io and drawing: against torchvision 0.28's numbers, PIL, and the pixels themselves."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

import rushlight as torch
from rushlight.vision import io, utils
from rushlight.vision import transforms as v1
from rushlight.vision import tv_tensors as tv
from rushlight.vision.ops import masks_to_boxes
from rushlight.vision.transforms import v2

Image = pytest.importorskip("PIL.Image")


def pixels(*shape, seed=0) -> torch.Tensor:
    return torch.tensor(np.random.default_rng(seed).integers(0, 256, shape, dtype=np.uint8))


# -- transforms ------------------------------------------------------------------------------------------------------

ARGUMENTS = {
    "Resize": ((7, 11),), "CenterCrop": (10,), "RandomCrop": ((8, 9), 2), "RandomResizedCrop": (12,),
    "RandomHorizontalFlip": (1.0,), "RandomRotation": (40,), "RandomAffine": (20, (0.1, 0.2), (0.7, 1.3), 5),
    "RandomPerspective": (0.5, 1.0), "RandomZoomOut": (0.5, (1.0, 4.0), 1.0), "ScaleJitter": ((16, 20),),
    "RandomShortestSize": ([8, 10], 13), "ColorJitter": (0.4, 0.3, 0.5, 0.2), "GaussianBlur": (5,),
    "RandomAutocontrast": (1.0,), "RandomPosterize": (3, 1.0), "RandomErasing": (1.0,),
}  # fmt: skip

# What torchvision 0.28 gives for the seed 1: the sum of the image, and the boxes.
EXPECTED = [
    ("Resize", 114.78, [1.1, 1.4, 3.67, 4.2, 0.37, 0.7, 10.63, 6.65]),
    ("CenterCrop", 149.71, [0.0, 0.0, 0.0, 7.0, 0.0, 0.0, 10.0, 10.0]),
    ("RandomCrop", 104.88, [0.0, 4.0, 3.0, 8.0, 0.0, 2.0, 9.0, 8.0]),
    ("RandomResizedCrop", 218.09, [1.33, 2.4, 6.0, 8.8, 0.0, 0.8, 12.0, 12.0]),
    ("RandomHorizontalFlip", 893.27, [20.0, 4.0, 27.0, 12.0, 1.0, 2.0, 29.0, 19.0]),
    ("RandomRotation", 757.57, [1.66, 6.14, 11.02, 16.1, 0.0, 0.0, 30.0, 20.0]),
    ("RandomAffine", 880.28, [0.31, 0.0, 9.06, 10.26, 0.0, 0.0, 30.0, 20.0]),
    ("RandomPerspective", 539.91, [5.48, 4.25, 10.84, 12.35, 3.91, 2.13, 23.0, 19.0]),
    ("RandomZoomOut", 2963.27, [13.0, 15.0, 20.0, 23.0, 11.0, 13.0, 39.0, 30.0]),
    ("RandomIoUCrop", 229.68, [0.0, 0.0, 0.0, 0.0, 0.0, 2.0, 14.0, 11.0]),
    ("ScaleJitter", 571.67, [2.4, 3.2, 8.0, 9.6, 0.8, 1.6, 23.2, 15.2]),
    ("RandomShortestSize", 155.01, [1.3, 1.6, 4.33, 4.8, 0.43, 0.8, 12.57, 7.6]),
    ("ColorJitter", 1132.92, [3.0, 4.0, 10.0, 12.0, 1.0, 2.0, 29.0, 19.0]),
    ("RandomPhotometricDistort", 782.64, [3.0, 4.0, 10.0, 12.0, 1.0, 2.0, 29.0, 19.0]),
    ("GaussianBlur", 895.09, [3.0, 4.0, 10.0, 12.0, 1.0, 2.0, 29.0, 19.0]),
    ("RandomAutocontrast", 896.77, [3.0, 4.0, 10.0, 12.0, 1.0, 2.0, 29.0, 19.0]),
    ("RandomPosterize", 784.38, [3.0, 4.0, 10.0, 12.0, 1.0, 2.0, 29.0, 19.0]),
    ("RandomErasing", 801.80, [3.0, 4.0, 10.0, 12.0, 1.0, 2.0, 29.0, 19.0]),
    ("RandAugment", 803.90, [3.0, 4.0, 10.0, 12.0, 1.0, 2.0, 29.0, 19.0]),
    ("TrivialAugmentWide", 894.90, [3.0, 4.0, 10.0, 12.0, 1.0, 2.0, 29.0, 19.0]),
]


@pytest.mark.parametrize(
    ("make", "totals"),
    [
        (lambda: v2.AugMix(), [876.28, 886.86, 895.37, 885.64, 877.84, 888.57, 703.63, 901.05]),
        (lambda: v2.AutoAugment(), [1032.67, 895.16, 996.58, 744.98, 729.26, 893.27, 741.32, 894.85]),
        (
            lambda: v2.AutoAugment(v2.AutoAugmentPolicy.CIFAR10),
            [819.39, 1032.67, 1032.67, 868.66, 1032.67, 893.27, 1032.67, 893.27],
        ),
        (
            lambda: v2.AutoAugment(v2.AutoAugmentPolicy.SVHN),
            [381.49, 793.89, 1083.01, 857.18, 714.55, 857.23, 906.73, 893.27],
        ),
    ],
    ids=["AugMix", "ImageNet", "CIFAR-10", "SVHN"],
)
def test_chains_of_operations_are_torchvisions(make, totals):
    """The sums that torchvision 0.28 gives for the seeds 1 to 8."""
    image, found = (torch.arange(3 * 20 * 30) * 7 % 256).reshape(3, 20, 30) / 256, []
    for seed in range(1, 9):
        torch.manual_seed(seed)
        found.append(float(make()(image).sum()))
    assert found == pytest.approx(totals, abs=0.02)


@pytest.mark.parametrize(("name", "total", "boxes"), EXPECTED, ids=[row[0] for row in EXPECTED])
def test_numbers_are_torchvisions(name, total, boxes):
    options = {"p": 1.0} if name == "RandomPhotometricDistort" else {}
    transform = getattr(v2, name)(*ARGUMENTS.get(name, ()), **options)
    torch.manual_seed(1)
    image = tv.Image((torch.arange(3 * 20 * 30) * 7 % 256).reshape(3, 20, 30) / 256)
    sample = [image, tv.BoundingBoxes([[3.0, 4, 10, 12], [1, 2, 29, 19]], format="XYXY", canvas_size=(20, 30))]
    if "Augment" in name:
        sample[0] = transform(image)
    else:
        sample = transform(sample)
    assert type(sample[0]) is tv.Image and type(sample[1]) is tv.BoundingBoxes
    assert float(sample[0].sum()) == pytest.approx(total, abs=0.02)
    assert sample[1].flatten().tolist() == pytest.approx(boxes, abs=0.006)


@pytest.mark.parametrize(
    "transform",
    [
        v2.Resize((40, 90)),
        v2.Pad([3, 4, 5, 6]),
        v2.CenterCrop((61, 75)),
        v2.RandomHorizontalFlip(1.0),
        v2.RandomVerticalFlip(1.0),
        v2.RandomCrop((35, 55)),
        v2.RandomRotation((90, 90), expand=True),
    ],
    ids=lambda t: type(t).__name__,
)
def test_boxes_and_points_go_where_the_pixels_go(transform):
    mask = torch.zeros(1, 40, 60, dtype=torch.uint8)
    mask[0, 10:30, 20:40] = 1
    corner = torch.zeros(1, 40, 60, dtype=torch.uint8)
    corner[0, 10:12, 20:22] = 1
    boxes = tv.BoundingBoxes([[20, 10, 40, 30]], format="XYXY", canvas_size=(40, 60))
    points = tv.KeyPoints([[20.5, 10.5]], canvas_size=(40, 60))
    sample = {"mask": tv.Mask(mask), "boxes": boxes, "points": points, "name": "a", "corner": tv.Mask(corner)}
    made = transform(sample)
    around = masks_to_boxes(made["mask"] > 0)
    around[:, 2:] += 1  # its boxes end at the last pixel, these after it
    assert made["boxes"].tolist() == [pytest.approx(row, abs=1) for row in around.tolist()]
    assert made["boxes"].canvas_size == tuple(made["mask"].shape[-2:])
    middle = masks_to_boxes(made["corner"] > 0).reshape(2, 2).float().mean(0)
    assert made["points"][0].tolist() == pytest.approx(middle.tolist(), abs=1)
    assert made["name"] == "a"


def test_images_are_those_of_the_first_transforms():
    image = pixels(3, 21, 30)
    for name, *args in (["RandomResizedCrop", 9], ["ColorJitter", 0.3, 0.2, 0.4, 0.1], ["RandomRotation", 30]):
        torch.manual_seed(3)
        first = getattr(v1, name)(*args)(image.float() / 255)
        torch.manual_seed(3)
        assert getattr(v2, name)(*args)(image.float() / 255).equal(first), name


@pytest.mark.parametrize("name", ["posterize", "solarize", "equalize", "adjust_sharpness", "autocontrast", "invert"])
def test_tones_are_pils(name):
    image = pixels(3, 40, 50)
    args = {"posterize": (3,), "solarize": (120,), "adjust_sharpness": (1.7,)}.get(name, ())
    picture = v2.functional.to_pil_image(image)
    theirs = v2.functional.pil_to_tensor(getattr(v2.functional, name)(picture, *args))
    ours = getattr(v2.functional, name)(image, *args)
    assert (ours.int() - theirs.int()).abs().max() <= (name in ("adjust_sharpness", "autocontrast"))


def test_plain_tensors_are_the_image_only_where_there_is_no_other():
    flip = v2.RandomHorizontalFlip(1.0)
    first, second = torch.arange(4.0).reshape(1, 2, 2), torch.arange(4.0).reshape(1, 2, 2)
    made = flip(first, second)
    assert made[0].equal(first.flip(-1)) and made[1] is second
    assert flip((tv.Image(first), second))[1] is second


def test_boxes_too_small_are_taken_out_with_their_labels_and_masks():
    boxes = tv.BoundingBoxes([[0, 0, 5, 5], [2, 2, 2, 8]], format="XYXY", canvas_size=(10, 10))
    masks = tv.Mask(torch.ones(2, 10, 10))
    made = v2.SanitizeBoundingBoxes()({"boxes": boxes, "masks": masks, "labels": torch.tensor([7, 8])})
    assert (len(made["boxes"]), len(made["masks"]), made["labels"].tolist()) == (1, 1, [7])
    with pytest.raises(ValueError, match="Could not infer where the labels are"):
        v2.SanitizeBoundingBoxes()({"boxes": boxes})


def test_mixing_makes_labels_probabilities():
    images = torch.arange(4.0).reshape(4, 1, 1, 1).expand(4, 3, 8, 8)
    for mixing in (v2.MixUp(num_classes=5), v2.CutMix(num_classes=5)):
        torch.manual_seed(0)
        made, labels = mixing(images, torch.arange(4))
        assert labels.sum(1).tolist() == pytest.approx([1] * 4)
        assert labels.argmax(1).shape == (4,)
        # The part of a pixel that is the image's own, on average, is the probability of its label.
        mean = made.mean((1, 2, 3))
        expected = [sum(p * (4 if (k, i) == (4, 0) else k) for k, p in enumerate(row)) for i, row in enumerate(labels)]
        assert mean.tolist() == pytest.approx([float(e) for e in expected], abs=1e-5)
    with pytest.raises(ValueError, match="Expected a batched input"):
        v2.MixUp(num_classes=5)(torch.zeros(3, 8, 8), torch.zeros(3, dtype=torch.int64))


def test_own_transforms_and_kernels():
    class Brighter(v2.Transform):
        def make_params(self, flat_inputs):
            return {"by": len(flat_inputs)}

        def transform(self, inpt, params):
            return inpt + params["by"] if isinstance(inpt, tv.Image) else inpt

    image, boxes = Brighter()(
        tv.Image(torch.zeros(3, 2, 2)), tv.BoundingBoxes([0, 0, 1, 1], format="XYXY", canvas_size=(2, 2))
    )
    assert image.max() == 2 and isinstance(boxes, tv.BoundingBoxes)

    class Sound(tv.TVTensor):
        pass

    @v2.functional.register_kernel(v2.functional.hflip, Sound)
    def backwards(sound):
        return tv.wrap(sound.flip(-1), like=sound)

    made = v2.RandomHorizontalFlip(1.0)(torch.arange(3).as_subclass(Sound))
    assert made.tolist() == [2, 1, 0] and isinstance(made, Sound)


def test_printed_forms():
    assert str(v2.Resize(3)) == "Resize(size=[3], interpolation=bilinear, antialias=True)"
    assert str(v2.Compose([v2.ToImage(), v2.RandomHorizontalFlip()])) == (
        "Compose(\n      ToImage()\n      RandomHorizontalFlip(p=0.5)\n)"
    )


def test_bad_samples_are_refused():
    image, boxes = tv.Image(pixels(3, 8, 8)), tv.BoundingBoxes([[1, 1, 2, 2]], format="XYXY", canvas_size=(8, 8))
    with pytest.raises(ValueError, match="larger than padded input image size"):
        v2.RandomCrop(20)(image)
    with pytest.raises(TypeError, match="not supported by RandAugment"):
        v2.RandAugment()(image, boxes)
    with pytest.raises(TypeError, match="requires input sample to contain"):
        v2.RandomIoUCrop()(image)
    with pytest.raises(TypeError, match="should be a float tensor"):
        v2.Normalize([0.0], [1.0])(image)
    with pytest.raises(TypeError, match="but got <class 'str'>"):
        v2.functional.hflip("a")


# -- tensors that say what they are ----------------------------------------------------------------------------------


def test_arithmetic_gives_plain_tensors():
    boxes = tv.BoundingBoxes([[1.0, 2, 3, 4]], format="XYWH", canvas_size=(9, 9))
    assert type(boxes + 1) is torch.Tensor and type(boxes[0]) is torch.Tensor
    for kept in (boxes.clone(), boxes.to(torch.float64), boxes.detach(), copy.deepcopy(boxes)):
        assert isinstance(kept, tv.BoundingBoxes) and kept.canvas_size == (9, 9)
    assert isinstance(tv.wrap(boxes * 2, like=boxes), tv.BoundingBoxes)
    with tv.set_return_type("TVTensor"):
        assert isinstance(boxes + 1, tv.BoundingBoxes)
    assert type(boxes + 1) is torch.Tensor
    assert str(boxes) == (
        "BoundingBoxes([[1., 2., 3., 4.]], format=BoundingBoxFormat.XYWH, canvas_size=(9, 9), clamping_mode=soft)"
    )
    again = pickle.loads(pickle.dumps(boxes))
    assert again.canvas_size == (9, 9) and again.equal(boxes)


# -- files -----------------------------------------------------------------------------------------------------------


def test_files(tmp_path):
    image = pixels(3, 9, 7)
    io.write_png(image, tmp_path / "a.png")
    assert io.read_image(str(tmp_path / "a.png")).equal(image)
    assert io.read_image(tmp_path / "a.png", io.ImageReadMode.GRAY).shape == (1, 9, 7)
    assert io.decode_image(tmp_path / "a.png", mode="RGB_ALPHA").shape == (4, 9, 7)
    smooth = torch.arange(256, dtype=torch.uint8).reshape(1, 16, 16)
    io.write_jpeg(smooth, tmp_path / "a.jpg", quality=95)
    again = io.decode_jpeg(io.read_file(tmp_path / "a.jpg"))
    assert (again.int() - smooth.int()).abs().max() < 12
    assert again.equal(io.decode_jpeg(io.encode_jpeg(smooth, 95)))
    frames = [Image.fromarray(np.full((4, 5, 3), v, np.uint8)) for v in (0, 255)]
    frames[0].save(tmp_path / "a.gif", save_all=True, append_images=frames[1:])
    assert io.read_image(tmp_path / "a.gif").shape == (2, 3, 4, 5)


def test_bad_files_and_images_are_refused():
    with pytest.raises(RuntimeError, match="Unsupported image file"):
        io.decode_image(torch.zeros(9, dtype=torch.uint8))
    with pytest.raises(RuntimeError, match="1-dimensional uint8"):
        io.decode_png(torch.zeros(9))
    with pytest.raises(RuntimeError, match="dtype should be uint8"):
        io.encode_png(torch.zeros(3, 4, 4))
    with pytest.raises(RuntimeError, match="channels should be 1 or 3, got: 2"):
        io.encode_jpeg(torch.zeros(2, 4, 4, dtype=torch.uint8))
    with pytest.raises(ValueError, match="between 1 and 100"):
        io.encode_jpeg(torch.zeros(3, 4, 4, dtype=torch.uint8), 0)


# -- drawing ---------------------------------------------------------------------------------------------------------


def test_drawing():
    dark = torch.zeros(3, 12, 12, dtype=torch.uint8)
    boxes = utils.draw_bounding_boxes(dark, torch.tensor([[2, 2, 8, 8]]), labels=["a"], colors="red", fill=True)
    assert boxes[:, 2, 2].tolist() == [255, 0, 0] and boxes[:, 7, 3].tolist() != [0, 0, 0] and boxes[:, 9, 9].sum() == 0
    mask = torch.zeros(2, 12, 12, dtype=torch.bool)
    mask[0, :4], mask[1, 3:6] = True, True
    masks = utils.draw_segmentation_masks(dark, mask, alpha=0.6, colors=["red", "blue"])
    assert masks[:, [0, 3, 5, 9], 0].T.tolist() == [[153, 0, 0], [0, 0, 0], [0, 0, 153], [0, 0, 0]]
    assert utils.draw_segmentation_masks(dark.float(), mask[0], 0.5, "red")[0, 0, 0] == 0.5
    points = torch.tensor([[[2.0, 2.0], [9.0, 9.0]]])
    drawn = utils.draw_keypoints(dark, points, [(0, 1)], colors="blue", radius=1, width=1)
    assert drawn[:, [2, 5], [1, 5]].T.tolist() == [[0, 0, 255], [255, 255, 255]]
    hidden = utils.draw_keypoints(dark, points, [(0, 1)], visibility=torch.tensor([[True, False]]))
    assert hidden[:, 9, 9].sum() == 0
    angles = torch.arange(4) * (2 * np.pi / 8)
    flow = torch.stack((angles.cos(), angles.sin()))[:, None].to(torch.float32)
    colors = [[255, 0, 0], [255, 114, 0], [255, 229, 0], [32, 255, 0]]  # what torchvision 0.28 gives
    assert (utils.flow_to_image(flow)[:, 0].T.int() - torch.tensor(colors)).abs().max() <= 1


def test_bad_drawings_are_refused():
    dark = torch.zeros(3, 12, 12, dtype=torch.uint8)
    with pytest.raises(ValueError, match="xmin, ymin, xmax, ymax"):
        utils.draw_bounding_boxes(dark, torch.tensor([[8, 2, 2, 8]]))
    with pytest.raises(ValueError, match="dtype bool"):
        utils.draw_segmentation_masks(dark, torch.zeros(12, 12))
    with pytest.raises(ValueError, match="same height and width"):
        utils.draw_segmentation_masks(dark, torch.zeros(5, 5, dtype=torch.bool))
    with pytest.raises(ValueError, match="num_instances, K, 2"):
        utils.draw_keypoints(dark, torch.zeros(2, 2))
