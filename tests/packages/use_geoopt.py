import geoopt
import torch
from harness import main, section, train


@section
def ball():
    ball = geoopt.PoincareBall(c=1.0)
    x, v = ball.random(4, 3, std=0.3), torch.randn(4, 3) * 0.2
    y = ball.expmap(x, v)
    return [y, ball.logmap(x, y), ball.dist(x, y), ball.mobius_add(x, y), ball.transp(x, y, v)]


@section
def stiefel():
    manifold = geoopt.Stiefel()
    w = geoopt.ManifoldParameter(manifold.random(5, 3), manifold=manifold)
    goal, optimizer = torch.randn(5, 3), geoopt.optim.RiemannianAdam([w], lr=5e-2)
    losses = train(optimizer, lambda: (w - goal).square().sum(), 5)
    return [losses, w.detach().T @ w.detach()]


@section
def embeddings():
    manifold = geoopt.PoincareBall()
    points = geoopt.ManifoldParameter(manifold.random(6, 2, std=0.1), manifold=manifold)
    optimizer = geoopt.optim.RiemannianSGD([points], lr=0.1, momentum=0.9, stabilize=2)
    return [train(optimizer, lambda: -manifold.dist(points[:3], points[3:]).mean(), 5), points]


@section
def others():
    sphere, lorentz = geoopt.Sphere(), geoopt.Lorentz()
    x, points = sphere.random(3, 4), lorentz.random_normal(3, 4)
    spd = geoopt.SymmetricPositiveDefinite()
    a, b = spd.random(3, 3), spd.random(3, 3)
    return [sphere.dist(x, x.roll(1, 0)), lorentz.dist(points, points.roll(1, 0)), spd.dist(a, b)]


@section
def products():
    manifold = geoopt.ProductManifold((geoopt.Sphere(), 3), (geoopt.Euclidean(1), 2))
    x = manifold.random(4, 5)
    return [manifold.projx(x * 2), manifold.proju(x, torch.ones(4, 5))]


main()
