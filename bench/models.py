"""The models that whole training steps are measured on, written once: ``torch`` is PyTorch or rushlight."""

from __future__ import annotations


def tiny_mlp(torch):
    """2-3-2, sigmoid, MSE."""
    nn = torch.nn
    model = nn.Sequential(nn.Linear(2, 3), nn.Sigmoid(), nn.Linear(3, 2), nn.Sigmoid())
    return model, nn.functional.mse_loss, (torch.randn(4, 2), torch.rand(4, 2))


def mlp(torch, batch=64):
    """784-512-512-10, ReLU, cross entropy."""
    nn = torch.nn
    model = nn.Sequential(nn.Linear(784, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 10))
    return model, nn.functional.cross_entropy, (torch.randn(batch, 784), torch.randint(0, 10, (batch,)))


def cnn(torch, batch=64):
    """The MNIST network: conv32, conv64, pool, dropout, dense128."""
    nn = torch.nn
    model = nn.Sequential(
        nn.Conv2d(1, 32, 3), nn.ReLU(), nn.Conv2d(32, 64, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Dropout(0.25),
        nn.Flatten(), nn.Linear(9216, 128), nn.ReLU(), nn.Dropout(0.5), nn.Linear(128, 10),
    )  # fmt: skip
    return model, nn.functional.cross_entropy, (torch.randn(batch, 1, 28, 28), torch.randint(0, 10, (batch,)))


def residual(torch, batch=16, size=32, width=64):
    """Two residual blocks with batch norm."""
    nn = torch.nn

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv1, self.bn1 = nn.Conv2d(width, width, 3, padding=1, bias=False), nn.BatchNorm2d(width)
            self.conv2, self.bn2 = nn.Conv2d(width, width, 3, padding=1, bias=False), nn.BatchNorm2d(width)
            self.relu = nn.ReLU()

        def forward(self, x):
            y = self.bn2(self.conv2(self.relu(self.bn1(self.conv1(x)))))
            return self.relu(x + y)

    model = nn.Sequential(
        nn.Conv2d(3, width, 3, padding=1, bias=False), nn.BatchNorm2d(width), nn.ReLU(), Block(), Block(),
        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(width, 10),
    )  # fmt: skip
    return model, nn.functional.cross_entropy, (torch.randn(batch, 3, size, size), torch.randint(0, 10, (batch,)))


def lstm(torch, batch=32, length=64, inside=128, width=256):
    """One LSTM layer that predicts a class from its last output."""
    nn = torch.nn

    class Last(nn.Module):
        def __init__(self):
            super().__init__()
            self.lstm, self.head = nn.LSTM(inside, width, batch_first=True), nn.Linear(width, 10)

        def forward(self, x):
            return self.head(self.lstm(x)[0][:, -1])

    return Last(), nn.functional.cross_entropy, (torch.randn(batch, length, inside), torch.randint(0, 10, (batch,)))


def small_mlp(torch, batch=1):
    """64-128-128-10, for inference."""
    nn = torch.nn
    model = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 128), nn.ReLU(), nn.Linear(128, 10))
    return model, nn.functional.cross_entropy, (torch.randn(batch, 64), torch.randint(0, 10, (batch,)))


def encoder(torch, batch=8, length=128, width=256, heads=8, layers=4, dropout=0.1):
    """A transformer encoder that predicts its input's classes."""
    nn = torch.nn

    class Encoder(nn.Module):
        def __init__(self):
            super().__init__()
            layer = nn.TransformerEncoderLayer(width, heads, 4 * width, dropout=dropout, batch_first=True)
            self.encoder = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)
            self.head = nn.Linear(width, 10)

        def forward(self, x):
            return self.head(self.encoder(x).mean(1))

    return Encoder(), nn.functional.cross_entropy, (torch.randn(batch, length, width), torch.randint(0, 10, (batch,)))


def gpt2(torch, batch=8, length=1024, vocabulary=50304, layers=12, heads=12, width=768):
    """GPT-2 small with tied embeddings."""
    nn, F = torch.nn, torch.nn.functional

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.ln1, self.ln2 = nn.LayerNorm(width), nn.LayerNorm(width)
            self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
            self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

        def forward(self, x):
            b, t, c = x.shape
            q, k, v = (
                part.reshape(b, t, heads, c // heads).transpose(1, 2) for part in self.qkv(self.ln1(x)).split(c, dim=2)
            )
            y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + self.out(y.transpose(1, 2).reshape(b, t, c))
            return x + self.down(F.gelu(self.up(self.ln2(x)), approximate="tanh"))

    class GPT2(nn.Module):
        def __init__(self):
            super().__init__()
            self.token, self.position = nn.Embedding(vocabulary, width), nn.Embedding(length, width)
            self.blocks = nn.ModuleList([Block() for _ in range(layers)])
            self.norm = nn.LayerNorm(width)
            self.head = nn.Linear(width, vocabulary, bias=False)
            self.head.weight = self.token.weight
            for p in self.parameters():
                if p.dim() > 1:
                    nn.init.normal_(p, std=0.02)

        def forward(self, tokens):
            x = self.token(tokens) + self.position.weight[: tokens.shape[1]]
            for block in self.blocks:
                x = block(x)
            return self.head(self.norm(x))

    def loss(logits, targets):
        return F.cross_entropy(logits.reshape(-1, vocabulary), targets.reshape(-1))

    tokens = torch.randint(0, vocabulary, (batch, length + 1))
    return GPT2(), loss, (tokens[:, :-1].contiguous(), tokens[:, 1:].contiguous())


def gpt(torch):
    """A GPT for characters."""
    return gpt2(torch, batch=12, length=64, vocabulary=65, layers=4, heads=4, width=128)


def resnet50(torch, batch=128, size=224):
    """ResNet-50, ImageNet shapes."""
    nn = torch.nn

    class Bottleneck(nn.Module):
        def __init__(self, inside, width, stride):
            super().__init__()
            self.conv1, self.bn1 = nn.Conv2d(inside, width, 1, bias=False), nn.BatchNorm2d(width)
            self.conv2, self.bn2 = nn.Conv2d(width, width, 3, stride, 1, bias=False), nn.BatchNorm2d(width)
            self.conv3, self.bn3 = nn.Conv2d(width, 4 * width, 1, bias=False), nn.BatchNorm2d(4 * width)
            self.relu = nn.ReLU(inplace=True)
            self.down = None
            if stride != 1 or inside != 4 * width:
                self.down = nn.Sequential(
                    nn.Conv2d(inside, 4 * width, 1, stride, bias=False), nn.BatchNorm2d(4 * width)
                )

        def forward(self, x):
            y = self.relu(self.bn1(self.conv1(x)))
            y = self.relu(self.bn2(self.conv2(y)))
            y = self.bn3(self.conv3(y))
            return self.relu(y + (x if self.down is None else self.down(x)))

    def stage(inside, width, count, stride):
        first = Bottleneck(inside, width, stride)
        return nn.Sequential(first, *(Bottleneck(4 * width, width, 1) for _ in range(count - 1)))

    model = nn.Sequential(
        nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(inplace=True), nn.MaxPool2d(3, 2, 1),
        stage(64, 64, 3, 1), stage(256, 128, 4, 2), stage(512, 256, 6, 2), stage(1024, 512, 3, 2),
        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(2048, 1000),
    )  # fmt: skip
    return model, nn.functional.cross_entropy, (torch.randn(batch, 3, size, size), torch.randint(0, 1000, (batch,)))
