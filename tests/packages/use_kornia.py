import kornia
import torch
from harness import main, section


@section
def filters():
    x = torch.rand(1, 3, 16, 16)
    return [
        kornia.filters.gaussian_blur2d(x, (3, 3), (1.0, 1.0))[0, 0, 3],
        kornia.filters.sobel(x)[0, 1, 4],
        kornia.filters.median_blur(x, (3, 3))[0, 0, 5],
        kornia.color.rgb_to_hsv(x)[0, :, 2, 2],
        kornia.color.rgb_to_lab(x)[0, :, 2, 2],
    ]


@section
def geometry():
    x = torch.rand(1, 1, 8, 8, requires_grad=True)
    angle = torch.tensor([30.0], requires_grad=True)
    turned = kornia.geometry.rotate(x, angle)
    turned.square().sum().backward()
    points = torch.tensor([[[0.0, 0.0], [7.0, 0.0], [7.0, 7.0], [0.0, 7.0]]])
    return [turned[0, 0, 3], angle.grad, kornia.geometry.get_perspective_transform(points, points + 1.0)]


@section
def augmentation_and_losses():
    augment = kornia.augmentation.AugmentationSequential(
        kornia.augmentation.RandomHorizontalFlip(p=1.0), kornia.augmentation.RandomAffine(10.0, p=1.0)
    )
    x = torch.rand(2, 3, 8, 8)
    return [augment(x)[0, 0, 3], kornia.losses.ssim_loss(x, x.flip(-1), 3), kornia.losses.total_variation(x)]


main()
