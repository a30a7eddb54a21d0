"""Training steps as a PyTorch user writes them: each function returns ``step()``, which gives a loss to wait for.

``mode`` is "eager", or "compiled": then the model is, as public training scripts do it, and nothing else.
"""

from __future__ import annotations

import models

ALL = ("mlp", "gpt2", "resnet50", "gpt2_loop", "lstm", "unet", "dcgan", "sample")
MODES = {"gpt2_loop": ("compiled",), "sample": ("eager",)}


def _compiled(torch, model, mode):
    return torch.compile(model) if mode == "compiled" else model


def _supervised(torch, device, mode, name, optimizer, autocast=False):
    model, criterion, data = getattr(models, name)(torch)
    model = model.to(device)
    x, y = [d.to(device) for d in data]
    optimizer = optimizer(model.parameters())
    model = _compiled(torch, model, mode)

    def step():
        optimizer.zero_grad()
        with torch.autocast(device_type=torch.device(device).type, dtype=torch.bfloat16, enabled=autocast):
            loss = criterion(model(x), y)
        loss.backward()
        optimizer.step()
        return loss

    return step


def mlp(torch, device, mode):
    return _supervised(torch, device, mode, "mlp", lambda p: torch.optim.Adam(p, lr=1e-3))


def gpt2(torch, device, mode):
    return _supervised(torch, device, mode, "gpt2", lambda p: torch.optim.AdamW(p, lr=1e-4), autocast=True)


def resnet50(torch, device, mode):
    sgd = lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9)
    return _supervised(torch, device, mode, "resnet50", sgd, autocast=True)


def gpt2_loop(torch, device, mode):
    """The loop of a public training script: a compiled model, a schedule, clipping, fused AdamW, logging."""
    model, criterion, (x, y) = models.gpt2(torch)
    model, x, y = model.to(device), x.to(device), y.to(device)
    decayed = [p for p in model.parameters() if p.dim() >= 2]
    others = [p for p in model.parameters() if p.dim() < 2]
    groups = [{"params": decayed, "weight_decay": 0.1}, {"params": others, "weight_decay": 0.0}]
    optimizer = torch.optim.AdamW(groups, lr=6e-4, betas=(0.9, 0.95), fused=device == "cuda")
    compiled = _compiled(torch, model, mode)
    turn = 0

    def step():
        nonlocal turn
        turn += 1
        for group in optimizer.param_groups:
            group["lr"] = 6e-4 * min(1.0, turn / 100)
        with torch.autocast(device_type=torch.device(device).type, dtype=torch.bfloat16):
            loss = criterion(compiled(x), y)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        return loss

    return step


def lstm(torch, device, mode):
    """A word language model: embedding, two LSTM layers, a decoder; 20 sequences of 35."""
    nn = torch.nn

    class Model(nn.Module):
        def __init__(self, words=10_000, size=650):
            super().__init__()
            self.drop = nn.Dropout(0.5)
            self.encoder = nn.Embedding(words, size)
            self.rnn = nn.LSTM(size, size, 2, dropout=0.5)
            self.decoder = nn.Linear(size, words)

        def forward(self, x, state):
            y, state = self.rnn(self.drop(self.encoder(x)), state)
            return self.decoder(self.drop(y)).flatten(0, 1), state

    model = Model().to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
    x = torch.randint(0, 10_000, (35, 20)).to(device)
    y = torch.randint(0, 10_000, (35 * 20,)).to(device)
    state = tuple(torch.zeros(2, 20, 650, device=device) for _ in range(2))
    compiled = _compiled(torch, model, mode)

    def step():
        nonlocal state
        state = tuple(s.detach() for s in state)
        optimizer.zero_grad()
        out, state = compiled(x, state)
        loss = nn.functional.cross_entropy(out, y)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 0.25)
        optimizer.step()
        return loss

    return step


def unet(torch, device, mode):
    """A small U-Net on 8 images of 3 x 128 x 128, batch norm, Adam."""
    nn = torch.nn

    def block(i, o):
        layers = []
        for a, b in ((i, o), (o, o)):
            layers += [nn.Conv2d(a, b, 3, padding=1, bias=False), nn.BatchNorm2d(b), nn.ReLU(inplace=True)]
        return nn.Sequential(*layers)

    class UNet(nn.Module):
        def __init__(self):
            super().__init__()
            self.down1, self.down2, self.down3 = block(3, 32), block(32, 64), block(64, 128)
            self.up2, self.up1 = nn.ConvTranspose2d(128, 64, 2, 2), nn.ConvTranspose2d(64, 32, 2, 2)
            self.mix2, self.mix1, self.last = block(128, 64), block(64, 32), nn.Conv2d(32, 1, 1)

        def forward(self, x):
            a = self.down1(x)
            b = self.down2(nn.functional.max_pool2d(a, 2))
            c = self.down3(nn.functional.max_pool2d(b, 2))
            b = self.mix2(torch.cat([self.up2(c), b], 1))
            a = self.mix1(torch.cat([self.up1(b), a], 1))
            return self.last(a)

    model = UNet().to(device)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    x = torch.randn(8, 3, 128, 128).to(device)
    y = (torch.rand(8, 1, 128, 128) > 0.5).float().to(device)
    compiled = _compiled(torch, model, mode)

    def step():
        optimizer.zero_grad()
        loss = nn.functional.binary_cross_entropy_with_logits(compiled(x), y)
        loss.backward()
        optimizer.step()
        return loss

    return step


def dcgan(torch, device, mode):
    """DCGAN's two networks and two optimizers on 64 images of 3 x 64 x 64."""
    nn = torch.nn
    up = lambda i, o, s, p: [nn.ConvTranspose2d(i, o, 4, s, p, bias=False), nn.BatchNorm2d(o), nn.ReLU(True)]
    down = lambda i, o: [nn.Conv2d(i, o, 4, 2, 1, bias=False), nn.BatchNorm2d(o), nn.LeakyReLU(0.2, True)]
    g = nn.Sequential(
        *up(100, 512, 1, 0), *up(512, 256, 2, 1), *up(256, 128, 2, 1), *up(128, 64, 2, 1),
        nn.ConvTranspose2d(64, 3, 4, 2, 1, bias=False), nn.Tanh(),
    ).to(device)  # fmt: skip
    d = nn.Sequential(
        nn.Conv2d(3, 64, 4, 2, 1, bias=False), nn.LeakyReLU(0.2, True), *down(64, 128), *down(128, 256),
        *down(256, 512), nn.Conv2d(512, 1, 4, 1, 0, bias=False), nn.Sigmoid(),
    ).to(device)  # fmt: skip
    criterion = nn.BCELoss()
    adam = lambda m: torch.optim.Adam(m.parameters(), lr=2e-4, betas=(0.5, 0.999))
    optimizer_g, optimizer_d = adam(g), adam(d)
    real = torch.randn(64, 3, 64, 64).to(device)
    make, judge = _compiled(torch, g, mode), _compiled(torch, d, mode)

    def step():
        d.zero_grad()
        label = torch.full((64,), 1.0, device=device)
        criterion(judge(real).view(-1), label).backward()
        fake = make(torch.randn(64, 100, 1, 1, device=device))
        label.fill_(0.0)
        criterion(judge(fake.detach()).view(-1), label).backward()
        optimizer_d.step()
        g.zero_grad()
        label.fill_(1.0)
        loss = criterion(judge(fake).view(-1), label)
        loss.backward()
        optimizer_g.step()
        return loss

    return step


def sample(torch, device, mode):
    """50 tokens, one by one, with a growing context; a step is the whole text."""
    model, _, _ = models.gpt2(torch)
    model = model.to(device).eval()

    @torch.no_grad()
    def step():
        text = torch.zeros(1, 1, dtype=torch.long, device=device)
        for _ in range(50):
            logits = model(text)
            chosen = torch.multinomial(torch.softmax(logits.view(1, text.shape[1], -1)[:, -1], -1), 1)
            text = torch.cat([text, chosen], 1)
        return text.float().sum()

    return step
