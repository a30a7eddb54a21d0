import lpips
import torch
from harness import main, section


@section
def alex():
    measure = lpips.LPIPS(net="alex", pnet_rand=True, verbose=False)
    x, y = torch.rand(2, 3, 64, 64) * 2 - 1, (torch.rand(2, 3, 64, 64) * 2 - 1).requires_grad_()
    distance = measure(x, y)
    distance.sum().backward()
    return [distance, y.grad.abs().sum(), y.grad[0, 0, :3, :3]]


@section
def squeeze_by_place():
    measure = lpips.LPIPS(net="squeeze", pnet_rand=True, spatial=True, verbose=False)
    with torch.no_grad():
        parts = measure(torch.rand(1, 3, 48, 48), torch.rand(1, 3, 48, 48), retPerLayer=True, normalize=True)
    return [parts[0].mean(), parts[0][0, 0, :3, :3], [p.mean() for p in parts[1]]]


@section
def loss_of_an_image():
    measure = lpips.LPIPS(net="alex", pnet_rand=True, verbose=False)
    target, image = torch.rand(1, 3, 64, 64), torch.nn.Parameter(torch.rand(1, 3, 64, 64))
    optimizer, losses = torch.optim.Adam([image], lr=0.01), []
    for _ in range(3):
        optimizer.zero_grad()
        loss = measure(image, target).mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


main()
