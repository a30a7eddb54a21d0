import numpy as np
import torch
from facenet_pytorch import InceptionResnetV1, fixed_image_standardization
from facenet_pytorch.models.mtcnn import MTCNN
from harness import main, section
from PIL import Image


@section
def embeddings():
    model = InceptionResnetV1(pretrained=None, num_classes=5).eval()
    return model(fixed_image_standardization(torch.rand(2, 3, 96, 96) * 255))[:, :8]


@section
def classifying():
    model = InceptionResnetV1(pretrained=None, classify=True, num_classes=5)
    model.dropout.p = 0.0
    loss = torch.nn.functional.cross_entropy(model(torch.randn(2, 3, 96, 96)), torch.tensor([1, 3]))
    loss.backward()
    return loss


@section
def detecting():
    gradient = np.add.outer(np.arange(80), np.arange(100))[..., None] * np.array([1, 0.5, 0.7])
    boxes, scores, _ = MTCNN(thresholds=[0.3, 0.3, 0.3]).detect(
        Image.fromarray(gradient.astype("uint8")), landmarks=True
    )
    return [None if boxes is None else boxes.tolist(), None if boxes is None else scores.tolist()]


main()
