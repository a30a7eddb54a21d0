import tempfile

import numpy as np
import torch
from harness import main, section
from monai import transforms as T
from monai.data import CacheDataset, DataLoader, Dataset, MetaTensor, decollate_batch
from monai.engines import SupervisedTrainer
from monai.inferers import sliding_window_inference
from monai.losses import DiceCELoss, DiceLoss, FocalLoss, TverskyLoss
from monai.metrics import ConfusionMatrixMetric, DiceMetric, HausdorffDistanceMetric, MeanIoU
from monai.networks.nets import UNETR, AttentionUnet, DenseNet121, SegResNet, SwinUNETR, UNet


def steps(model, shape, classes=2, count=2):
    measure = DiceCELoss(to_onehot_y=True, softmax=True)
    optimizer, losses = torch.optim.Adam(model.parameters(), lr=1e-2), []
    for _ in range(count):
        x, y = torch.randn(2, 1, *shape), torch.randint(0, classes, (2, 1, *shape))
        loss = measure(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


@section
def unet():
    flat = UNet(spatial_dims=2, in_channels=1, out_channels=2, channels=(4, 8, 16), strides=(2, 2), num_res_units=1)
    deep = UNet(spatial_dims=3, in_channels=1, out_channels=2, channels=(4, 8), strides=(2,), num_res_units=1)
    return [steps(flat, (32, 32)), steps(deep, (16, 16, 16))]


@section
def networks():
    attention = AttentionUnet(spatial_dims=2, in_channels=1, out_channels=2, channels=(4, 8, 16), strides=(2, 2))
    residual = SegResNet(spatial_dims=2, init_filters=8, in_channels=1, out_channels=2)
    return [steps(attention, (32, 32), count=1), steps(residual, (32, 32), count=1)]


@section
def transformers():
    plain = UNETR(1, 2, img_size=32, feature_size=8, hidden_size=24, mlp_dim=32, num_heads=2, spatial_dims=2)
    windows = SwinUNETR(in_channels=1, out_channels=2, feature_size=12, spatial_dims=2, depths=(1, 1, 1, 1))
    return [steps(plain, (32, 32), count=1), steps(windows, (64, 64), count=1)]


@section
def classifier():
    model = DenseNet121(
        spatial_dims=2, in_channels=1, out_channels=3, init_features=8, growth_rate=4, block_config=(2, 2)
    )
    loss = torch.nn.functional.cross_entropy(model(torch.randn(2, 1, 32, 32)), torch.tensor([0, 2]))
    loss.backward()
    return [loss.item(), sum(p.grad.abs().sum() for p in model.parameters())]


@section
def losses():
    logits, y = torch.randn(2, 3, 8, 8, requires_grad=True), torch.randint(0, 3, (2, 1, 8, 8))
    found = []
    for measure in (DiceLoss(to_onehot_y=True, softmax=True), FocalLoss(to_onehot_y=True),
                    TverskyLoss(to_onehot_y=True, softmax=True)):  # fmt: skip
        loss = measure(logits, y)
        found.append([loss.item(), torch.autograd.grad(loss, logits)[0].abs().sum()])
    return found


@section
def metrics():
    def masks():
        return torch.nn.functional.one_hot(torch.randint(0, 3, (2, 8, 8)), 3).permute(0, 3, 1, 2)

    found, y = masks(), masks()
    many = [DiceMetric(), MeanIoU(), HausdorffDistanceMetric(), ConfusionMatrixMetric(metric_name="recall")]
    results = []
    for metric in many:
        metric(found, y)
        results.append(metric.aggregate())
    return results


@section
def tensors_with_metadata():
    image = MetaTensor(
        torch.arange(16.0).reshape(1, 4, 4), meta={"name": "a"}, affine=torch.diag(torch.tensor([2.0, 2, 1, 1]))
    )
    double = image * 2 + 1
    part = double[:, 1:3]
    both = torch.stack([image, double])
    return [type(double).__name__, double.meta["name"], part, part.meta["name"], type(both).__name__, both.sum().item(),
            image.pixdim, type(image.as_tensor()).__name__, image.clone().affine]  # fmt: skip


@section
def transform_chain():
    chain = T.Compose([
        T.EnsureChannelFirst(channel_dim="no_channel"), T.ScaleIntensity(), T.Spacing(pixdim=(2.0, 2.0)),
        T.Resize((12, 12)), T.RandRotate90(prob=1.0), T.RandFlip(prob=1.0, spatial_axis=0),
        T.RandGaussianNoise(prob=1.0),
        T.RandAffine(prob=1.0, rotate_range=0.5, padding_mode="zeros"), T.NormalizeIntensity()])  # fmt: skip
    chain.set_random_state(0)
    made = chain(MetaTensor(torch.from_numpy(np.random.rand(20, 20).astype(np.float32)), affine=torch.eye(4)))
    return [list(made.shape), made.as_tensor()[0, :3, :4], made.affine, [t["class"] for t in made.applied_operations]]


@section
def inverse():
    keys = ["image", "label"]
    chain = T.Compose(
        [T.Flipd(keys, spatial_axis=1), T.Rotate90d(keys, k=1), T.SpatialPadd(keys, (10, 10)), T.Zoomd("image", 1.5)]
    )
    data = {"image": MetaTensor(torch.rand(1, 8, 8)), "label": MetaTensor(torch.rand(1, 8, 8))}
    there = chain(data)
    back = chain.inverse(there)
    return [there["image"].as_tensor()[0, :3, :3], back["image"].as_tensor()[0, :3, :3],
            torch.equal(back["label"].as_tensor(), data["label"].as_tensor())]  # fmt: skip


@section
def datasets():
    files = [{"image": np.random.rand(1, 8, 8).astype(np.float32), "label": i % 2} for i in range(4)]
    chain = T.Compose([T.ToTensord("image"), T.ScaleIntensityd("image"), T.RandFlipd("image", prob=0.5)])
    chain.set_random_state(0)
    cached = CacheDataset(files, chain, progress=False)
    found = [[b["image"].mean(), b["label"]] for b in DataLoader(cached, batch_size=2)]
    parts = decollate_batch(next(iter(DataLoader(Dataset(files, chain), batch_size=2))))
    return [found, len(parts), type(parts[0]["image"]).__name__, parts[0]["image"].as_tensor()[0, 0, :3]]


@section
def sliding_window():
    model = torch.nn.Conv2d(1, 2, 3, padding=1)
    with torch.no_grad():
        y = sliding_window_inference(torch.randn(1, 1, 40, 40), (16, 16), 4, model, overlap=0.5, mode="gaussian")
    return [list(y.shape), y.mean(), y[0, :, 20, 20]]


@section
def trainer():
    data = [{"image": torch.randn(1, 16, 16), "label": torch.randint(0, 2, (1, 16, 16))} for _ in range(4)]
    model = UNet(spatial_dims=2, in_channels=1, out_channels=2, channels=(4, 8), strides=(2,))
    made = SupervisedTrainer(
        device=torch.device("cpu"), max_epochs=2, train_data_loader=DataLoader(data, batch_size=2), network=model,
        optimizer=torch.optim.SGD(model.parameters(), 0.1), loss_function=DiceLoss(to_onehot_y=True, softmax=True),
    )  # fmt: skip
    made.run()
    return [part["loss"] for part in made.state.output]


@section
def save_and_load():
    image = MetaTensor(torch.rand(1, 4, 4), meta={"name": "a"})
    with tempfile.NamedTemporaryFile(suffix=".pt") as file:
        torch.save(image, file.name)
        again = torch.load(file.name, weights_only=False)
    return [type(again).__name__, again.meta["name"], torch.equal(again.as_tensor(), image.as_tensor())]


main()
