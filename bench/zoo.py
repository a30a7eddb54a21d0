"""Models of many kinds as people write them: a training step of each, eager and compiled, beside PyTorch eager.

python bench/zoo.py [words]    each library in a process of its own, in turn

``steps.py`` has the models that bars are for; these are to find what they do not show.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import harness


def cases(torch, gpu=False):
    if gpu:
        return
    for name, make in zoo(torch).items():
        yield f"{name}, eager", lambda make=make: step(torch, *make())
        compiled = torch.__name__ == "rushlight"
        yield f"{name}, compiled", lambda make=make, compiled=compiled: step(torch, *make(), compiled=compiled)


def step(torch, model, inputs, target, criterion, optimizer="Adam", compiled=False):
    optimizer = getattr(torch.optim, optimizer)(model.parameters(), lr=1e-6)

    def one(inputs, target):
        optimizer.zero_grad()
        loss = criterion(model(*inputs), target)
        loss.backward()
        optimizer.step()
        return loss

    one = torch.compile(one) if compiled else one
    return lambda: one(inputs, target)


def zoo(torch) -> dict:
    """name -> a function that makes (model, inputs, target, criterion[, optimizer])."""
    nn, F = torch.nn, torch.nn.functional
    randn, cross_entropy = torch.randn, F.cross_entropy

    def classes(n, *shape):
        return torch.randint(0, n, shape)

    def normed(inside, outside, *geometry, **options):
        return nn.Conv2d(inside, outside, *geometry, bias=False, **options), nn.BatchNorm2d(outside)

    def head(width):
        return nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(width, 10)

    class Residual(nn.Module):
        def __init__(self, inside, outside, stride=1):
            super().__init__()
            self.body = nn.Sequential(
                *normed(inside, outside, 3, stride, 1), nn.ReLU(), *normed(outside, outside, 3, 1, 1)
            )
            self.way = nn.Identity()
            if stride != 1 or inside != outside:
                self.way = nn.Sequential(*normed(inside, outside, 1, stride))

        def forward(self, x):
            return F.relu(self.body(x) + self.way(x))

    class Inverted(nn.Module):
        def __init__(self, inside, outside, stride, times=4):
            super().__init__()
            wide = inside * times
            self.is_residual = stride == 1 and inside == outside
            self.body = nn.Sequential(
                *normed(inside, wide, 1), nn.ReLU6(True), *normed(wide, wide, 3, stride, 1, groups=wide),
                nn.ReLU6(True), *normed(wide, outside, 1),
            )  # fmt: skip

        def forward(self, x):
            return x + self.body(x) if self.is_residual else self.body(x)

    class Squeeze(nn.Module):
        def __init__(self, width):
            super().__init__()
            self.down, self.up = nn.Conv2d(width, width // 4, 1), nn.Conv2d(width // 4, width, 1)

        def forward(self, x):
            return x * torch.sigmoid(self.up(F.silu(self.down(F.adaptive_avg_pool2d(x, 1)))))

    class WaveNet(nn.Module):
        def __init__(self, width=32, layers=6):
            super().__init__()
            self.first, self.last = nn.Conv1d(1, width, 1), nn.Conv1d(width, 16, 1)
            self.gates = nn.ModuleList(nn.Conv1d(width, 2 * width, 2, dilation=2**k) for k in range(layers))
            self.mixes = nn.ModuleList(nn.Conv1d(width, width, 1) for _ in range(layers))

        def forward(self, x):
            x = self.first(x)
            for k, (gate, mix) in enumerate(zip(self.gates, self.mixes)):
                a, b = gate(F.pad(x, (2**k, 0))).chunk(2, 1)
                x = x + mix(torch.tanh(a) * torch.sigmoid(b))
            return self.last(x).mean(-1)

    class ViT(nn.Module):
        def __init__(self, width=128, layers=4):
            super().__init__()
            self.patches = nn.Conv2d(3, width, 8, 8)
            self.token = nn.Parameter(torch.zeros(1, 1, width))
            self.places = nn.Parameter(torch.zeros(1, 65, width))
            layer = nn.TransformerEncoderLayer(width, 4, 4 * width, 0.0, F.gelu, batch_first=True, norm_first=True)
            self.encoder = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)
            self.head = nn.Linear(width, 10)

        def forward(self, x):
            x = self.patches(x).flatten(2).transpose(1, 2)
            x = torch.cat([self.token.expand(x.shape[0], -1, -1), x], 1) + self.places
            return self.head(self.encoder(x)[:, 0])

    class UNet(nn.Module):
        def __init__(self, width=16):
            super().__init__()
            self.a, self.b = self.block(1, width), self.block(width, 2 * width)
            self.middle = self.block(2 * width, 4 * width)
            self.up_b, self.up_a = (
                nn.ConvTranspose2d(4 * width, 2 * width, 2, 2),
                nn.ConvTranspose2d(2 * width, width, 2, 2),
            )
            self.c, self.d, self.last = (
                self.block(4 * width, 2 * width),
                self.block(2 * width, width),
                nn.Conv2d(width, 1, 1),
            )

        @staticmethod
        def block(inside, outside):
            return nn.Sequential(
                nn.Conv2d(inside, outside, 3, padding=1), nn.GroupNorm(4, outside), nn.SiLU(),
                nn.Conv2d(outside, outside, 3, padding=1), nn.GroupNorm(4, outside), nn.SiLU(),
            )  # fmt: skip

        def forward(self, x):
            a = self.a(x)
            b = self.b(F.max_pool2d(a, 2))
            x = self.c(torch.cat([self.up_b(self.middle(F.max_pool2d(b, 2))), b], 1))
            return self.last(self.d(torch.cat([self.up_a(x), a], 1)))

    class LanguageModel(nn.Module):
        def __init__(self, kind, width=128, words=1000, **options):
            super().__init__()
            self.embedding, self.last = nn.Embedding(words, width), nn.Linear(width, words)
            self.layers = getattr(nn, kind)(width, width, 2, batch_first=True, **options)

        def forward(self, tokens):
            return self.last(self.layers(self.embedding(tokens))[0]).flatten(0, 1)

    class GraphNetwork(nn.Module):
        def __init__(self, width=64):
            super().__init__()
            self.layers, self.last = nn.ModuleList(nn.Linear(width, width) for _ in range(3)), nn.Linear(width, 10)

        def forward(self, x, edges):
            for layer in self.layers:
                sent = layer(x)
                x = F.relu(sent + torch.zeros_like(sent).index_add(0, edges[1], sent[edges[0]]))
            return self.last(x)

    class Recommender(nn.Module):
        def __init__(self):
            super().__init__()
            self.tables = nn.ModuleList(nn.EmbeddingBag(5000, 32, mode="sum") for _ in range(8))
            self.bottom = nn.Sequential(nn.Linear(13, 64), nn.ReLU(), nn.Linear(64, 32))
            self.top = nn.Sequential(nn.Linear(32 + 36, 64), nn.ReLU(), nn.Linear(64, 10))

        def forward(self, x, bags):
            x = self.bottom(x)
            all_of_them = torch.stack([x, *(table(bags[:, k]) for k, table in enumerate(self.tables))], 1)
            products = torch.bmm(all_of_them, all_of_them.transpose(1, 2))
            rows, columns = torch.tril_indices(9, 9, -1)
            return self.top(torch.cat([x, products[:, rows, columns]], 1))

    class VAE(nn.Module):
        def __init__(self):
            super().__init__()
            self.inside, self.mean, self.spread = nn.Linear(784, 400), nn.Linear(400, 20), nn.Linear(400, 20)
            self.back, self.picture = nn.Linear(20, 400), nn.Linear(400, 784)

        def forward(self, x):
            h = F.relu(self.inside(x))
            mean, spread = self.mean(h), self.spread(h)
            z = mean + torch.randn_like(spread) * torch.exp(0.5 * spread)
            return torch.sigmoid(self.picture(F.relu(self.back(z)))), mean, spread

    def of_vae(made, x):
        y, mean, spread = made
        apart = -0.5 * torch.sum(1 + spread - mean.pow(2) - spread.exp())
        return F.binary_cross_entropy(y, x, reduction="sum") + apart

    class Policy(nn.Module):
        def __init__(self):
            super().__init__()
            self.body = nn.Sequential(nn.Linear(8, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh())
            self.action, self.value = nn.Linear(64, 4), nn.Linear(64, 1)

        def forward(self, x):
            h = self.body(x)
            return self.action(h), self.value(h)

    def of_policy(made, actions):
        logits, value = made
        chosen = torch.distributions.Categorical(logits=logits)
        now = chosen.log_prob(actions)
        ratio = (now - now.detach()).exp()
        gain = torch.min(ratio, torch.clamp(ratio, 0.8, 1.2)).mean()
        return 0.5 * value.pow(2).mean() - gain - 0.01 * chosen.entropy().mean()

    def resnet():
        stages = Residual(32, 32), Residual(32, 64, 2), Residual(64, 128, 2)
        model = nn.Sequential(*normed(3, 32, 7, 2, 3), nn.ReLU(), nn.MaxPool2d(3, 2, 1), *stages, *head(128))
        return model, (randn(16, 3, 64, 64),), classes(10, 16), cross_entropy, "SGD"

    def mobilenet():
        stages = Inverted(16, 16, 1), Inverted(16, 24, 2), Inverted(24, 24, 1), Inverted(24, 32, 2)
        model = nn.Sequential(*normed(3, 16, 3, 2, 1), nn.ReLU6(), *stages, *head(32))
        return model, (randn(16, 3, 64, 64),), classes(10, 16), cross_entropy, "SGD"

    def squeezed():
        first = *normed(3, 32, 3, 1, 1), nn.SiLU(), Squeeze(32)
        model = nn.Sequential(*first, *normed(32, 64, 3, 2, 1), nn.SiLU(), Squeeze(64), *head(64))
        return model, (randn(16, 3, 32, 32),), classes(10, 16), cross_entropy

    def generator():
        model = nn.Sequential(
            nn.ConvTranspose2d(64, 64, 4, bias=False), nn.BatchNorm2d(64), nn.ReLU(),
            nn.ConvTranspose2d(64, 32, 4, 2, 1, bias=False), nn.BatchNorm2d(32), nn.ReLU(),
            nn.ConvTranspose2d(32, 3, 4, 2, 1), nn.Tanh(),
        )  # fmt: skip
        return model, (randn(16, 64, 1, 1),), randn(16, 3, 16, 16), F.mse_loss

    def volumes():
        model = nn.Sequential(
            nn.Conv3d(1, 8, 3, padding=1), nn.ReLU(), nn.MaxPool3d(2), nn.Conv3d(8, 16, 3, padding=1), nn.ReLU(),
            nn.AdaptiveAvgPool3d(1), nn.Flatten(), nn.Linear(16, 10),
        )  # fmt: skip
        return model, (randn(2, 1, 16, 32, 32),), classes(10, 2), cross_entropy

    def language(kind, **options):
        return LanguageModel(kind, **options), (classes(1000, 16, 32),), classes(1000, 512), cross_entropy

    picture = torch.rand(128, 784)
    bags = (randn(256, 13), classes(5000, 256, 8, 4))
    return {
        "ResNet, 16×3×64×64": resnet,
        "MobileNet, 16×3×64×64": mobilenet,
        "squeeze and excitation, 16×3×32×32": squeezed,
        "WaveNet, 8×1×1024": lambda: (WaveNet(), (randn(8, 1, 1024),), classes(16, 8), cross_entropy),
        "ViT, 16×3×64×64": lambda: (ViT(), (randn(16, 3, 64, 64),), classes(10, 16), cross_entropy, "AdamW"),
        "U-Net, 4×1×64×64": lambda: (UNet(), (randn(4, 1, 64, 64),), randn(4, 1, 64, 64), F.mse_loss),
        "GRU language model, 16×32": lambda: language("GRU", dropout=0.1),
        "RNN language model, 16×32": lambda: language("RNN"),
        "graph network, 2,000 nodes, 10,000 edges": lambda: (
            GraphNetwork(), (randn(2000, 64), classes(2000, 2, 10000)), classes(10, 2000), cross_entropy,
        ),
        "DLRM, 256": lambda: (Recommender(), bags, classes(10, 256), cross_entropy, "Adagrad"),
        "VAE, 128×784": lambda: (VAE(), (picture,), picture, of_vae),
        "PPO, 64×8": lambda: (Policy(), (randn(64, 8),), classes(4, 64), of_policy),
        "DCGAN's generator, 16": generator,
        "volumes, 2×1×16×32×32": volumes,
    }  # fmt: skip


if __name__ == "__main__":
    harness.apart(__file__, cases)
