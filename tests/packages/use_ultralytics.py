import torch
from harness import main, section
from ultralytics.cfg import get_cfg
from ultralytics.nn.modules import DFL, SPPF, C2f, Conv
from ultralytics.nn.tasks import ClassificationModel, DetectionModel, SegmentationModel
from ultralytics.utils.metrics import bbox_iou
from ultralytics.utils.ops import scale_boxes, xywh2xyxy


def batch(model, **more):
    model.args = get_cfg()
    return {
        "img": torch.rand(2, 3, 64, 64),
        "batch_idx": torch.tensor([0.0, 0, 1]),
        "cls": torch.tensor([[1.0], [2.0], [0.0]]),
        "bboxes": torch.tensor([[0.5, 0.5, 0.4, 0.3], [0.3, 0.3, 0.2, 0.2], [0.6, 0.5, 0.5, 0.5]]),
        **more,
    }


@section
def detection():
    model = DetectionModel("yolov8n.yaml", nc=4, verbose=False)
    loss, parts = model(batch(model))
    loss.sum().backward()
    return [parts, model.model[0].conv.weight.grad.flatten()[:5]]


@section
def newer():
    model = DetectionModel("yolo11n.yaml", nc=4, verbose=False).eval()
    return model(torch.rand(1, 3, 64, 64))[0][0, :, :5]


@section
def fused():
    model = DetectionModel("yolov8n.yaml", nc=4, verbose=False).eval()
    return model.fuse(verbose=False)(torch.rand(1, 3, 64, 64))[0].mean(-1)


@section
def segmentation():
    model = SegmentationModel("yolov8n-seg.yaml", nc=4, verbose=False)
    masks = torch.zeros(2, 16, 16)
    masks[:, 4:10, 4:12] = 1
    return model(batch(model, masks=masks))[1]


@section
def classification():
    model = ClassificationModel("yolov8n-cls.yaml", nc=5, verbose=False).eval()
    found = model(torch.rand(2, 3, 64, 64))
    return found[0] if isinstance(found, tuple) else found


@section
def layers():
    x = torch.randn(1, 16, 8, 8)
    return [
        Conv(16, 8, 3).eval()(x).mean((2, 3)),
        C2f(16, 8).eval()(x).mean((2, 3)),
        SPPF(16, 8).eval()(x).mean((2, 3)),
        DFL(4)(torch.randn(1, 16, 5)),
    ]


@section
def boxes():
    a, b = torch.rand(5, 4), torch.rand(5, 4)
    return [bbox_iou(a, b, CIoU=True), xywh2xyxy(a), scale_boxes((64, 64), a * 64, (100, 80))]


main()
