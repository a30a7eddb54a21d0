import torch
import torchmetrics
from harness import main, section


@section
def classification():
    probabilities, target = torch.randn(3, 20, 5).softmax(-1), torch.randint(5, (3, 20))
    metrics = torchmetrics.MetricCollection(
        {
            "accuracy": torchmetrics.classification.MulticlassAccuracy(5),
            "f1": torchmetrics.classification.MulticlassF1Score(5),
            "auroc": torchmetrics.classification.MulticlassAUROC(5),
            "confusion": torchmetrics.classification.MulticlassConfusionMatrix(5),
            "calibration": torchmetrics.classification.MulticlassCalibrationError(5),
        }
    )
    for p, t in zip(probabilities, target):
        metrics.update(p, t)
    return metrics.compute()


@section
def regression():
    a, b = torch.randn(50), torch.randn(50)
    return [
        m(a, b)
        for m in (
            torchmetrics.MeanSquaredError(),
            torchmetrics.R2Score(),
            torchmetrics.PearsonCorrCoef(),
            torchmetrics.SpearmanCorrCoef(),
            torchmetrics.MeanAbsoluteError(),
        )
    ]


@section
def image_and_text():
    a, b = torch.rand(2, 3, 32, 32), torch.rand(2, 3, 32, 32)
    return [
        torchmetrics.image.StructuralSimilarityIndexMeasure(data_range=1.0)(a, b),
        torchmetrics.image.PeakSignalNoiseRatio(data_range=1.0)(a, b),
        torchmetrics.text.BLEUScore()(["the cat sat on the mat"], [["the cat is on the mat"]]),
        torchmetrics.text.CharErrorRate()(["hello there"], ["hallo there"]),
    ]


@section
def state():
    metric = torchmetrics.MeanMetric()
    metric.persistent(True)
    metric.update(torch.tensor([1.0, 2.0]))
    again = torchmetrics.MeanMetric()
    again.persistent(True)
    again.load_state_dict(metric.state_dict())
    metric.reset()
    again.update(6.0)
    return [again.compute(), sorted(again.state_dict())]


main()
