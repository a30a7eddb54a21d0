import tempfile

import segmentation_models_pytorch as smp
import torch
from harness import main, section


def steps(model, measure=None, count=2, classes=3, size=64):
    measure = measure or torch.nn.CrossEntropyLoss()
    optimizer, losses = torch.optim.Adam(model.parameters(), lr=1e-3), []
    for _ in range(count):
        x, y = torch.randn(2, 3, size, size), torch.randint(0, classes, (2, size, size))
        loss = measure(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def made(kind, encoder="resnet18", **options):
    return getattr(smp, kind)(encoder, encoder_weights=None, classes=3, **options)


@section
def unet():
    return steps(made("Unet"))


@section
def unet_plus_plus():
    return steps(made("UnetPlusPlus", decoder_channels=(32, 16, 16, 8, 8)), count=1)


@section
def manet():
    return steps(made("MAnet"), count=1)


@section
def linknet():
    return steps(made("Linknet"), count=1)


@section
def fpn():
    return steps(made("FPN", decoder_dropout=0.0), count=1)


@section
def pspnet():
    return steps(made("PSPNet", psp_dropout=0.0), count=1)


@section
def deeplab():
    return steps(made("DeepLabV3Plus"), count=1)


@section
def pan():
    return steps(made("PAN"), count=1, size=128)


@section
def segformer():
    return steps(made("Segformer", "mit_b0"), count=1)


@section
def upernet():
    return steps(made("UPerNet"), count=1)


@section
def encoders():
    found = []
    with torch.no_grad():
        for name in ("timm-mobilenetv3_small_minimal_100", "efficientnet-b0", "tu-resnet10t"):
            model = made("Unet", name, encoder_depth=3, decoder_channels=(32, 16, 8)).eval()
            y = model(torch.randn(1, 3, 64, 64))
            found.append([list(y.shape), y.mean(), y[0, 0, 0, :3]])
    return found


@section
def losses():
    logits, y = torch.randn(2, 3, 8, 8, requires_grad=True), torch.randint(0, 3, (2, 8, 8))
    many = [smp.losses.DiceLoss("multiclass"), smp.losses.JaccardLoss("multiclass"), smp.losses.FocalLoss("multiclass"),
            smp.losses.LovaszLoss("multiclass"), smp.losses.TverskyLoss("multiclass"),
            smp.losses.SoftCrossEntropyLoss(smooth_factor=0.1)]  # fmt: skip
    found = []
    for measure in many:
        loss = measure(logits, y)
        (gradient,) = torch.autograd.grad(loss, logits)
        found.append([loss.item(), gradient.abs().sum()])
    return found


@section
def metrics():
    found, y = torch.randint(0, 3, (2, 8, 8)), torch.randint(0, 3, (2, 8, 8))
    counts = smp.metrics.get_stats(found, y, mode="multiclass", num_classes=3)
    return [counts, smp.metrics.iou_score(*counts, reduction="micro"), smp.metrics.f1_score(*counts, reduction="macro")]


@section
def save_and_load():
    model, x = made("Unet", aux_params={"classes": 4}).eval(), torch.randn(1, 3, 32, 32)
    with tempfile.TemporaryDirectory() as folder, torch.no_grad():
        model.save_pretrained(folder)
        again = smp.from_pretrained(folder).eval()
        mask, label = again(x)
        return [label, (mask - model(x)[0]).abs().max(), mask[0, 0, 0, :4]]


main()
