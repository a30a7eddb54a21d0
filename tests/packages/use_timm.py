import timm
import torch
from harness import main, section
from timm.data import Mixup, create_transform, resolve_data_config
from timm.loss import LabelSmoothingCrossEntropy
from timm.optim import create_optimizer_v2
from timm.scheduler import CosineLRScheduler
from timm.utils import ModelEmaV3


def steps(model, size=32, classes=10, count=2, optimizer="sgd", batch=2):
    optimizer = create_optimizer_v2(model, opt=optimizer, lr=0.01)
    losses = []
    for _ in range(count):
        x, y = torch.randn(batch, 3, size, size), torch.randint(classes, (batch,))
        loss = LabelSmoothingCrossEntropy()(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


@section
def resnet18():
    return steps(timm.create_model("resnet18", num_classes=10))


@section
def vit_tiny():
    return steps(timm.create_model("vit_tiny_patch16_224", img_size=32, patch_size=8, depth=3, num_classes=10))


@section
def vit_evaluation():
    model = timm.create_model("vit_tiny_patch16_224", img_size=32, patch_size=8, depth=2, num_classes=4).eval()
    with torch.no_grad():
        x = torch.randn(2, 3, 32, 32)
        return [model(x), model.forward_features(x)[0, 0, :5]]


@section
def convnext():
    return steps(timm.create_model("convnext_atto", num_classes=10), size=64, optimizer="adamw")


@section
def efficientnet():
    return steps(timm.create_model("efficientnet_b0", num_classes=10), count=1)


@section
def mobilenet():
    return steps(timm.create_model("mobilenetv3_small_050", num_classes=10), count=1)


@section
def swin():
    model = timm.create_model("swin_tiny_patch4_window7_224", img_size=56, depths=(1, 1, 1, 1), num_classes=10)
    return steps(model, size=56, count=1)


@section
def mixer():
    return steps(timm.create_model("mixer_s32_224", img_size=64, num_classes=10), size=64)


@section
def densenet():
    return steps(timm.create_model("densenet121", num_classes=10), size=64, count=1)


@section
def features():
    model = timm.create_model("resnet18", features_only=True, out_indices=(1, 3)).eval()
    with torch.no_grad():
        return [[list(f.shape), f.mean()] for f in model(torch.randn(1, 3, 64, 64))] + [model.feature_info.channels()]


@section
def save_and_load():
    import tempfile

    model = timm.create_model("resnet10t", num_classes=3).eval()
    x = torch.randn(1, 3, 64, 64)
    with tempfile.NamedTemporaryFile(suffix=".pth") as file, torch.no_grad():
        torch.save(model.state_dict(), file.name)
        again = timm.create_model("resnet10t", num_classes=3, checkpoint_path=file.name).eval()
        return [again(x), model(x)]


@section
def schedule_and_ema():
    model = torch.nn.Linear(3, 2)
    ema = ModelEmaV3(model, decay=0.9)
    optimizer = create_optimizer_v2(model, opt="lamb", lr=0.1)
    schedule = CosineLRScheduler(optimizer, t_initial=5, warmup_t=2, warmup_lr_init=1e-3)
    rates = []
    for epoch in range(5):
        model(torch.randn(4, 3)).square().mean().backward()
        optimizer.step()
        schedule.step(epoch + 1)
        ema.update(model)
        rates.append(optimizer.param_groups[0]["lr"])
    return [rates, ema.module.weight]


@section
def mixup():
    x, y = Mixup(mixup_alpha=0.5, cutmix_alpha=1.0, num_classes=4)(torch.randn(4, 3, 8, 8), torch.tensor([0, 1, 2, 3]))
    return [x.mean(), y]


@section
def listing():
    return [len(timm.list_models("resnet*")) > 50, timm.is_model("vit_base_patch16_224")]


@section
def data_config():
    config = resolve_data_config({}, model=timm.create_model("resnet18"))
    transform = create_transform(**config)
    return [list(config["input_size"]), config["interpolation"], len(transform.transforms)]


main()
