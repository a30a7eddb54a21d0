import torch
from entmax import Entmax15Loss, EntmaxBisect, SparsemaxLoss, entmax15, entmax_bisect, normmax_bisect, sparsemax
from harness import main, section


@section
def mappings():
    x = torch.randn(3, 6, requires_grad=True)
    ys = [sparsemax(x, dim=-1), entmax15(x, dim=-1), entmax15(x, dim=0, k=2), entmax_bisect(x, 1.7), normmax_bisect(x)]
    sum((y * torch.arange(6.0)).sum() for y in ys).backward()
    return [ys, x.grad]


@section
def learned_alpha():
    x, alpha = torch.randn(2, 5), torch.tensor(1.3, requires_grad=True)
    y = entmax_bisect(x, alpha)
    (y * torch.arange(5.0)).sum().backward()
    return [y, alpha.grad]


@section
def losses():
    x, target = torch.randn(4, 5, requires_grad=True), torch.tensor([0, 1, 4, 2])
    loss = SparsemaxLoss()(x, target) + Entmax15Loss(reduction="sum")(x, target)
    loss.backward()
    return [loss, x.grad]


@section
def layers():
    return EntmaxBisect(alpha=2.0, dim=1)(torch.randn(2, 4, 3))


main()
