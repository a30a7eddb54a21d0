"""Image datasets on small files in their true formats, and transforms."""

from __future__ import annotations

import gzip
import hashlib
import http.server
import os
import pickle
import struct
import subprocess
import sys
import threading

import numpy as np
import pytest

import rushlight as torch
from rushlight.utils.data import DataLoader
from rushlight.vision import datasets
from rushlight.vision import transforms as T
from rushlight.vision.datasets.mnist import read_idx
from rushlight.vision.transforms import functional as F
from rushlight.vision.utils import make_grid, save_image

Image = pytest.importorskip("PIL.Image")


def pixels(*shape, seed=0) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 256, shape, dtype=np.uint8)


# -- Digits ----------------------------------------------------------------------------------------------------------


def test_digits_are_the_known_ones():
    everything = datasets.Digits(train=None)
    assert len(everything) == 1797
    assert everything.targets[:10].tolist() == list(range(10))
    assert np.bincount(everything.targets.numpy()).tolist() == [178, 182, 177, 183, 181, 182, 181, 179, 174, 180]
    train, test = datasets.Digits(), datasets.Digits(train=False)
    assert (len(train), len(test)) == (1437, 360)
    image, digit = train[0]
    assert image.shape == (1, 8, 8)
    assert image.dtype == torch.float32
    assert (float(image.min()), float(image.max())) == (0, 1)
    assert isinstance(digit, int)


def test_digits_whole_batches_equal_samples():
    digits = datasets.Digits(train=False)
    images, targets = next(iter(DataLoader(digits, batch_size=5)))
    assert images.equal(torch.stack([digits[i][0] for i in range(5)]))
    assert targets.tolist() == [digits[i][1] for i in range(5)]
    transformed = datasets.Digits(train=False, transform=T.ToTensor(), target_transform=lambda t: -t)
    images_of_pil, negative = next(iter(DataLoader(transformed, batch_size=5)))
    assert images_of_pil.equal(images)
    assert negative.tolist() == (-targets).tolist()


def test_digits_need_no_pillow():
    code = "import sys; sys.modules['PIL'] = None; from rushlight.vision import datasets, transforms; print(len("
    code += "datasets.Digits()[0][0])); transforms.ToTensor()(datasets.Digits().data.numpy()[0])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "1\n"


def test_what_works_without_pillow():
    code = """
import sys
sys.modules["PIL"] = None
from rushlight.vision import datasets, transforms as T
normal = T.Compose([T.ToTensor(), T.Normalize((0.5,), (0.5,))])
print(datasets.Digits(transform=normal)[0][0].shape)
try:
    datasets.Digits(transform=T.Compose([T.RandomRotation(5), T.ToTensor()]))[0]
except ImportError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == (
        "torch.Size([1, 8, 8])\nimages need Pillow, which is not installed: pip install 'rushlight[vision]'\n"
    )


# -- MNIST's format --------------------------------------------------------------------------------------------------


def idx(array: np.ndarray) -> bytes:
    code = {"uint8": 8, "int8": 9, "int16": 11, "int32": 12, "float32": 13, "float64": 14}[str(array.dtype)]
    head = struct.pack(f">BBBB{array.ndim}I", 0, 0, code, array.ndim, *array.shape)
    return head + array.astype(array.dtype.newbyteorder(">")).tobytes()


def write_mnist(folder, zipped: bool, prefix="", parts=("train", "t10k")) -> None:
    os.makedirs(folder)
    for seed, part in enumerate(parts):
        for name, array in (("images-idx3", pixels(7, 28, 28, seed=seed)), ("labels-idx1", np.arange(7, dtype="u1"))):
            path = os.path.join(folder, f"{prefix}{part}-{name}-ubyte")
            if zipped:
                with gzip.open(path + ".gz", "wb") as file:
                    file.write(idx(array))
            else:
                with open(path, "wb") as file:
                    file.write(idx(array))


@pytest.mark.parametrize("zipped", [False, True])
@pytest.mark.parametrize("kind", [datasets.MNIST, datasets.FashionMNIST, datasets.KMNIST])
def test_mnist_files(tmp_path, kind, zipped):
    write_mnist(tmp_path / kind.__name__ / "raw", zipped)
    for train in (True, False):
        dataset = kind(tmp_path, train=train)
        assert dataset.data.dtype == torch.uint8
        assert np.array_equal(dataset.data.numpy(), pixels(7, 28, 28, seed=0 if train else 1))
        image, target = dataset[3]
        assert (image.mode, image.size, target) == ("L", (28, 28), 3)
    assert dataset.targets.dtype == torch.int64
    assert dataset.class_to_idx[dataset.classes[9]] == 9
    assert repr(dataset).splitlines()[:3] == [
        f"Dataset {kind.__name__}",
        "    Number of datapoints: 7",
        f"    Root location: {tmp_path}",
    ]


def test_emnist_files(tmp_path):
    write_mnist(tmp_path / "EMNIST" / "raw", True, "emnist-letters-", ("train", "test"))
    dataset = datasets.EMNIST(tmp_path, "letters", train=False)
    assert len(dataset) == 7
    assert len(dataset.classes) == 27
    assert [len(datasets.EMNIST.classes_split_dict[s]) for s in ("byclass", "balanced")] == [62, 47]
    with pytest.raises(ValueError, match="Unknown value 'x' for argument split"):
        datasets.EMNIST(tmp_path, "x")


@pytest.mark.parametrize("dtype", ["uint8", "int8", "int16", "int32", "float32", "float64"])
def test_idx_types(tmp_path, dtype):
    array = (np.arange(6).reshape(2, 3) * 1.5).astype(dtype)
    (tmp_path / "file").write_bytes(idx(array))
    read = read_idx(tmp_path / "file")
    assert read.dtype == array.dtype
    assert np.array_equal(read, array)


@pytest.mark.parametrize("content", [b"", b"<html>", idx(pixels(6))[:-1]])
def test_broken_idx(tmp_path, content):
    (tmp_path / "file").write_bytes(content)
    with pytest.raises(RuntimeError, match=r"file: (not an IDX file|5 bytes where)"):
        read_idx(tmp_path / "file")


@pytest.mark.parametrize(
    ("make", "place"),
    [
        (lambda root: datasets.MNIST(root), "MNIST/raw/train-images-idx3-ubyte"),
        (lambda root: datasets.CIFAR10(root, train=False), "cifar-10-batches-py/test_batch"),
        (lambda root: datasets.CIFAR100(root), "cifar-100-python/train"),
    ],
)
def test_missing_files_are_named(tmp_path, make, place):
    with pytest.raises(RuntimeError, match=r"Dataset not found. You can use download=True") as caught:
        make(tmp_path)
    assert str(tmp_path / place) in str(caught.value)


def test_download(tmp_path, monkeypatch, capfd):
    source = tmp_path / "source"
    write_mnist(source, True)
    handler = type("Handler", (http.server.SimpleHTTPRequestHandler,), {"log_message": lambda *args: None})
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), lambda *a: handler(*a, directory=source)) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        monkeypatch.setattr(datasets.MNIST, "mirrors", [f"http://127.0.0.1:{server.server_port}/"])
        names = [name for name, _ in datasets.MNIST.resources]
        sums = [hashlib.md5((source / name).read_bytes(), usedforsecurity=False).hexdigest() for name in names]
        monkeypatch.setattr(datasets.MNIST, "resources", [*zip(names, sums[:3]), (names[3], "0" * 32)])
        with pytest.raises(RuntimeError, match="invalid hash value"):
            datasets.MNIST(tmp_path, train=False, download=True)
        assert names[3] not in os.listdir(tmp_path / "MNIST" / "raw")
        monkeypatch.setattr(datasets.MNIST, "resources", [*zip(names, sums)])
        assert len(datasets.MNIST(tmp_path, train=False, download=True)) == 7
        server.shutdown()
        thread.join()
    assert len(datasets.MNIST(tmp_path, download=True)) == 7  # all there: nothing is asked of the server, now gone
    with pytest.raises(RuntimeError, match=r"put it here: .*train-images-idx3-ubyte.gz"):
        datasets.MNIST(tmp_path / "new", download=True)


# -- CIFAR -----------------------------------------------------------------------------------------------------------


def python2_pickle(**entries) -> bytes:
    """A dict as Python 2 and NumPy 1 pickled it: text as bytes, arrays by the old module's name."""
    stream = b"\x80\x02}("
    for key, value in entries.items():
        stream += b"U" + bytes([len(key)]) + key.encode() + _python2(value)
    return stream + b"u."


def _python2(value) -> bytes:
    if isinstance(value, np.ndarray):
        rows, columns = (b"J" + struct.pack("<i", n) for n in value.shape)
        data = value.tobytes()
        return (
            b"cnumpy.core.multiarray\n_reconstruct\ncnumpy\nndarray\nK\x00\x85U\x01b\x87R(K\x01"
            + rows
            + columns
            + b"\x86cnumpy\ndtype\nU\x02u1K\x00K\x01\x87R(K\x03U\x01|NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tb\x89T"
            + struct.pack("<i", len(data))
            + data
            + b"tb"
        )
    items = b"".join(b"K" + bytes([v]) if isinstance(v, int) else b"U" + bytes([len(v)]) + v.encode() for v in value)
    return b"](" + items + b"e"


def test_cifar10(tmp_path):
    folder = tmp_path / "cifar-10-batches-py"
    folder.mkdir()
    for i, name in enumerate([*datasets.CIFAR10.train_list, "test_batch"]):
        batch = python2_pickle(batch_label="x", labels=[i, 9], data=pixels(2, 3072, seed=i))
        (folder / name).write_bytes(batch)
    (folder / "batches.meta").write_bytes(python2_pickle(label_names=[f"class {i}" for i in range(10)]))
    train, test = datasets.CIFAR10(tmp_path), datasets.CIFAR10(tmp_path, train=False, transform=T.ToTensor())
    assert (len(train), len(test)) == (10, 2)
    assert train.targets == [0, 9, 1, 9, 2, 9, 3, 9, 4, 9]
    image, target = train[2]
    assert np.array_equal(np.asarray(image), pixels(2, 3072, seed=1)[0].reshape(3, 32, 32).transpose(1, 2, 0))
    assert target == 1
    assert test[0][0].shape == (3, 32, 32)
    assert train.class_to_idx["class 9"] == 9


@pytest.mark.parametrize("protocol", [2, 5])
def test_cifar100(tmp_path, protocol):
    folder = tmp_path / "cifar-100-python"
    folder.mkdir()
    batch = {"data": pixels(2, 3072), "fine_labels": [5, 99], "coarse_labels": [1, 2]}
    (folder / "train").write_bytes(pickle.dumps(batch, protocol))
    (folder / "meta").write_bytes(pickle.dumps({"fine_label_names": [str(i) for i in range(100)]}, protocol))
    assert datasets.CIFAR100(tmp_path).targets == [5, 99]


class Evil:
    def __reduce__(self):
        return os.system, ("touch hacked",)


def test_cifar_runs_no_code(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "cifar-100-python"
    folder.mkdir()
    (folder / "train").write_bytes(pickle.dumps({"data": Evil()}))
    (folder / "meta").write_bytes(pickle.dumps({}))
    with pytest.raises(pickle.UnpicklingError, match=r"asks for (posix|nt|os)\.system"):
        datasets.CIFAR100(tmp_path)
    assert not (tmp_path / "hacked").exists()


# -- folders and fakes -----------------------------------------------------------------------------------------------


def test_image_folder(tmp_path):
    for name in ("b/1.png", "a/deep/2.PNG", "a/1.jpg", "a/notes.txt"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.suffix == ".txt":
            path.write_text("no")
        else:
            Image.fromarray(pixels(4, 5)).save(path)
    dataset = datasets.ImageFolder(str(tmp_path), transform=T.ToTensor())
    assert dataset.classes == ["a", "b"]
    assert [(os.path.relpath(path, tmp_path), target) for path, target in dataset.samples] == [
        ("a/1.jpg", 0),
        ("a/deep/2.PNG", 0),
        ("b/1.png", 1),
    ]
    assert dataset[0][0].shape == (3, 4, 5)
    assert dataset.targets == [0, 0, 1]
    (tmp_path / "c").mkdir()
    with pytest.raises(
        FileNotFoundError, match=r"Found no valid file for the classes c. Supported extensions are: .jpg"
    ):
        datasets.ImageFolder(str(tmp_path))
    assert len(datasets.ImageFolder(str(tmp_path), allow_empty=True)) == 3
    texts = datasets.DatasetFolder(str(tmp_path), lambda path: path[-9:], (".txt",), allow_empty=True)
    assert texts[0] == ("notes.txt", 0)
    with pytest.raises(FileNotFoundError, match="Couldn't find any class folder"):
        datasets.ImageFolder(str(tmp_path / "c"))


def test_fake_data_is_always_the_same():
    fake = datasets.FakeData(size=4, image_size=(3, 6, 5), transform=T.PILToTensor())
    state = torch.get_rng_state()
    first, again = fake[2], fake[2]
    assert first[0].equal(again[0])
    assert first[1] == again[1]
    assert first[0].shape == (3, 6, 5)
    assert torch.get_rng_state().equal(state)
    with pytest.raises(IndexError):
        fake[4]
    assert len(list(fake)) == 4


# -- transforms ------------------------------------------------------------------------------------------------------


def images() -> list:
    """One picture as a PIL image, a tensor of bytes, a tensor of floats."""
    array = pixels(20, 30, 3)
    return [Image.fromarray(array), torch.from_numpy(array.transpose(2, 0, 1).copy()), T.ToTensor()(array)]


def as_bytes(image) -> np.ndarray:
    """Channels, height, width, from 0 to 255."""
    if isinstance(image, torch.Tensor):
        return image.numpy() * (255.0 if image.is_floating_point() else 1.0)
    return np.asarray(image).reshape(image.height, image.width, -1).transpose(2, 0, 1).astype(float)


@pytest.mark.parametrize(
    ("array", "mode", "dtype"),
    [
        (pixels(4, 5), "L", torch.uint8),
        (pixels(4, 5, 3), "RGB", torch.uint8),
        (pixels(4, 5, 4), "RGBA", torch.uint8),
        (pixels(4, 5, 2), "LA", torch.uint8),
        (np.arange(20, dtype=np.int32).reshape(4, 5) * 1000, "I", torch.int32),
        (np.arange(20, dtype=np.float32).reshape(4, 5) / 7, "F", torch.float32),
    ],
)
def test_pil_and_back(array, mode, dtype):
    image = F.to_pil_image(array)
    assert image.mode == mode
    same = F.pil_to_tensor(image)
    assert same.dtype == dtype
    assert np.array_equal(np.squeeze(same.numpy().transpose(1, 2, 0)), array)
    floats = F.to_tensor(image)
    expected = array.astype(np.float32) / 255 if array.dtype == np.uint8 else array
    assert np.array_equal(np.squeeze(floats.numpy().transpose(1, 2, 0)), expected)
    if array.dtype == np.uint8:
        assert np.array_equal(np.asarray(F.to_pil_image(floats)), array)


def test_black_and_white_image():
    image = Image.fromarray(np.array([[True, False]]))
    assert F.to_tensor(image).tolist() == [[[1.0, 0.0]]]


def test_wrong_pictures():
    with pytest.raises(
        TypeError, match=r"pic should be PIL Image or ndarray. Got <class '(torch|rushlight\.tensor)\.Tensor'>"
    ):
        F.to_tensor(torch.ones(3))
    with pytest.raises(ValueError, match=r"pic should be 2/3 dimensional. Got 4 dimensions."):
        F.to_pil_image(torch.ones(1, 1, 1, 1))
    with pytest.raises(ValueError, match=r"pic should not have > 4 channels. Got 5 channels."):
        F.to_pil_image(torch.ones(5, 1, 1))
    with pytest.raises(TypeError, match="Unexpected type <class 'int'>"):
        F.hflip(3)


def test_normalize():
    image = torch.ones(3, 2, 2)
    out = T.Normalize((1, 0, 0.5), (1, 2, 0.5))(image)
    assert [out[c].unique().tolist() for c in range(3)] == [[0], [0.5], [1]]
    assert image.unique().tolist() == [1]
    assert T.Normalize([0.5], [0.5], inplace=True)(image) is image
    with pytest.raises(TypeError, match=r"Input tensor should be a float tensor. Got torch.uint8."):
        T.Normalize([0.5], [0.5])(torch.ones(3, 2, 2, dtype=torch.uint8))
    with pytest.raises(ValueError, match="std evaluated to zero"):
        T.Normalize([0.5], [0.0])(image)
    with pytest.raises(ValueError, match=r"Expected tensor to be a tensor image of size"):
        T.Normalize([0.5], [0.5])(torch.ones(2, 2))


def test_convert_image_dtype():
    image = torch.tensor([0, 128, 255], dtype=torch.uint8)
    assert F.convert_image_dtype(image, torch.float32).tolist() == pytest.approx([0, 128 / 255, 1])
    assert F.convert_image_dtype(F.convert_image_dtype(image), torch.uint8).tolist() == [0, 128, 255]
    assert F.convert_image_dtype(image, torch.int16).tolist() == [0, 128 * 128, 255 * 128]
    with pytest.raises(RuntimeError, match="cannot be performed safely"):
        F.convert_image_dtype(torch.ones(1), torch.int64)


EXACT = [
    T.CenterCrop(10),
    T.CenterCrop((40, 8)),
    T.RandomCrop(16, padding=4),
    T.RandomCrop(32, pad_if_needed=True),
    T.RandomHorizontalFlip(1),
    T.RandomVerticalFlip(1),
    T.Pad(3),
    T.Pad((1, 2)),
    T.Pad((1, 2, 3, 4), padding_mode="reflect"),
    T.Pad(2, padding_mode="edge"),
    T.Pad(2, padding_mode="symmetric"),
    T.RandomInvert(1),
    T.RandomRotation((90, 90), expand=True),
    T.RandomRotation((180, 180)),
    T.RandomAffine(0, translate=(0.2, 0.2)),
    T.RandomAffine((180, 180)),
]
CLOSE = [
    T.Resize(10),
    T.Resize((13, 50)),
    T.Resize(10, max_size=12),
    T.RandomResizedCrop(8),
    T.Grayscale(),
    T.Grayscale(3),
    T.ColorJitter(brightness=0.5),
    T.ColorJitter(contrast=0.5),
    T.ColorJitter(saturation=0.5),
    T.GaussianBlur(3),
    T.GaussianBlur((3, 5), sigma=1.5),
]


@pytest.mark.parametrize("transform", [*EXACT, *CLOSE], ids=repr)
def test_pil_and_tensors_agree(transform):
    results = []
    for image in images():
        torch.manual_seed(3)
        results.append(as_bytes(transform(image)))
    for result in results[1:]:
        assert result.shape == results[0].shape
        assert np.abs(result - results[0]).max() <= (1e-3 if transform in EXACT else 1.6)


@pytest.mark.parametrize("factor", [-0.3, 0.1, 0.5])
def test_hue(factor):
    pil, byte, floats = (as_bytes(F.adjust_hue(image, factor)) for image in images())
    assert np.abs(pil - byte).mean() < 3  # PIL's hues are bytes
    assert np.abs(byte - floats).max() <= 1
    assert np.abs(as_bytes(F.adjust_hue(images()[2], 0.0)) - as_bytes(images()[2])).max() < 1e-3


def test_rotation_is_counter_clockwise():
    image = torch.tensor([[[1.0, 2.0], [3.0, 4.0]]])
    assert F.rotate(image, 90).tolist() == [[[2.0, 4.0], [1.0, 3.0]]]
    assert F.rotate(torch.ones(1, 5, 5), 45, fill=[7.0])[0, 0, 0].item() == 7


def test_erasing():
    image = torch.ones(3, 16, 16)
    out = T.RandomErasing(p=1, value=(0, 2, 3))(image)
    erased = (out[0] == 0).nonzero()
    top, left = erased.min(0).values.tolist()
    bottom, right = erased.max(0).values.tolist()
    assert len(erased) == (bottom - top + 1) * (right - left + 1)
    assert out[1, top, left].item() == 2
    assert image.sum().item() == image.numel()
    assert T.RandomErasing(p=0)(image) is image
    assert T.RandomErasing(p=1, value="random")(image).unique().numel() > 2
    with pytest.raises(ValueError, match="either a single value or 3"):
        T.RandomErasing(p=1, value=(1, 2))(image)


def test_crops():
    image = images()[1]
    five = T.FiveCrop(8)(image)
    assert [tuple(part.shape) for part in five] == [(3, 8, 8)] * 5
    assert five[3].equal(image[:, -8:, -8:])
    assert len(T.TenCrop(8)(image)) == 10
    with pytest.raises(ValueError, match=r"Required crop size \(30, 8\) is larger than input image size \(20, 30\)"):
        T.RandomCrop((30, 8))(image)


def test_combinations():
    add, double = T.Lambda(lambda x: x + 1), T.Lambda(lambda x: x * 2)
    assert T.Compose([add, double])(3) == 8
    assert T.RandomChoice([add, double], p=[0, 1])(3) == 6
    assert T.RandomOrder([add, double])(3) in (7, 8)
    assert T.RandomApply([add], p=1)(3) == 4
    assert torch.nn.Sequential(T.Resize(4), T.CenterCrop(2))(images()[1]).shape == (3, 2, 2)
    with pytest.raises(TypeError, match="Argument lambd should be callable, got 'int'"):
        T.Lambda(3)


@pytest.mark.parametrize(
    ("transform", "text"),
    [
        (T.Compose([T.ToTensor()]), "Compose(\n    ToTensor()\n)"),
        (T.Resize(256), "Resize(size=256, interpolation=bilinear, max_size=None, antialias=True)"),
        (T.CenterCrop(2), "CenterCrop(size=(2, 2))"),
        (T.RandomCrop(32, padding=4), "RandomCrop(size=(32, 32), padding=4)"),
        (T.RandomHorizontalFlip(), "RandomHorizontalFlip(p=0.5)"),
        (T.Normalize((0.5,), (0.5,)), "Normalize(mean=(0.5,), std=(0.5,))"),
        (T.RandomRotation(10), "RandomRotation(degrees=[-10.0, 10.0], interpolation=nearest, expand=False, fill=0)"),
        (T.ColorJitter(0.5), "ColorJitter(brightness=(0.5, 1.5), contrast=None, saturation=None, hue=None)"),
        (
            T.RandomResizedCrop(224),
            "RandomResizedCrop(size=(224, 224), scale=(0.08, 1.0), ratio=(0.75, 1.3333), interpolation=bilinear, "
            "antialias=True)",
        ),
    ],
)
def test_printed_form(transform, text):
    assert repr(transform) == text


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: T.ColorJitter(-1), "If brightness is a single number, it must be non negative."),
        (lambda: T.ColorJitter(hue=0.7), r"hue values should be between \(-0.5, 0.5\), but got \[-0.7, 0.7\]."),
        (lambda: T.RandomRotation(-1), "If degrees is a single number, it must be positive."),
        (lambda: T.RandomErasing(p=2), "Random erasing probability should be between 0 and 1"),
        (lambda: T.Pad((1, 2, 3)), "Padding must be an int or a 1, 2, or 4 element tuple, not a 3 element tuple"),
        (lambda: T.Pad(1, padding_mode="x"), "Padding mode should be either constant, edge, reflect or symmetric"),
        (lambda: T.GaussianBlur(2), "Kernel size value should be an odd and positive number."),
        (lambda: T.Resize((1, 2, 3)), "If size is a sequence, it should have 1 or 2 values"),
        (lambda: F.resize(images()[0], 10, max_size=5), "max_size = 5 must be strictly greater"),
    ],
)
def test_bad_arguments(make, text):
    with pytest.raises(ValueError, match=text):
        make()


# -- grids -----------------------------------------------------------------------------------------------------------


def test_grid(tmp_path):
    grid = make_grid(torch.arange(5.0).reshape(5, 1, 1, 1).expand(5, 1, 2, 2), nrow=3, padding=1, pad_value=-1)
    assert grid.shape == (3, 7, 10)
    assert grid[0, 1].tolist() == [-1, 0, 0, -1, 1, 1, -1, 2, 2, -1]
    assert grid[2, 4].tolist() == [-1, 3, 3, -1, 4, 4, -1, -1, -1, -1]
    assert make_grid(torch.rand(2, 3, 2, 2) * 9 - 4, normalize=True, scale_each=True).max().item() == 1
    save_image(torch.ones(3, 4, 5) * 0.5, tmp_path / "image.png")
    saved = np.asarray(Image.open(tmp_path / "image.png"))
    assert saved.shape == (4, 5, 3)
    assert np.unique(saved).tolist() == [128]


def test_second_transforms():
    from rushlight.vision.transforms import v2

    pixels = np.arange(5 * 4 * 3, dtype=np.uint8).reshape(5, 4, 3)
    image = v2.Compose([v2.ToImage(), v2.ToDtype(torch.float32, scale=True)])(pixels)
    assert image.shape == (3, 5, 4) and image.dtype == torch.float32
    np.testing.assert_allclose(image.numpy(), pixels.transpose(2, 0, 1) / np.float32(255))
    assert v2.ToDtype(torch.float32)(v2.ToImage()(pixels[:, :, 0])).max() == pixels[:, :, 0].max()
    assert v2.Identity()(3) == 3


def test_the_digits_are_those_that_ship():
    """Whoever changes the data changes this line too."""
    from rushlight.vision.datasets.digits import FILE

    found = hashlib.sha256(FILE.read_bytes()).hexdigest()
    assert found == "19762e197c6b643a59fcb94a34c3cb5625774e9ab3b5a71bb4c0701e65ed268e"
