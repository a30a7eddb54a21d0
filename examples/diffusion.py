"""A diffusion model of handwritten digits: noise is taken away in 100 small steps. Writes diffusion.png.

The 1,797 digits of 8x8 pixels ship with rushlight. The network is told a noisy picture, how noisy it is and which digit
it shows, and learns to say the noise.
"""

import argparse
import math

import digits
import torch
from torch import nn
from torch.nn import functional as F
from torchvision.datasets import Digits

STEPS = 100


class Denoiser(nn.Module):
    def __init__(self, width=192, depth=2):
        super().__init__()
        self.digit = nn.Embedding(10, width)
        self.time = nn.Sequential(nn.Linear(32, width), nn.SiLU(), nn.Linear(width, width))
        self.first, self.last = nn.Linear(64, width), nn.Linear(width, 64)
        self.blocks = nn.ModuleList(
            nn.Sequential(nn.LayerNorm(width), nn.Linear(width, width), nn.SiLU(), nn.Linear(width, width))
            for _ in range(depth)
        )

    def forward(self, noisy, step, digit):
        told = self.time(waves(step)) + self.digit(digit)
        x = self.first(noisy)
        for block in self.blocks:
            x = x + block(x + told)
        return self.last(x)


def waves(step):
    """Sines and cosines of 16 frequencies, so that neighbouring steps look alike."""
    frequencies = torch.exp(-math.log(1000.0) * torch.arange(16) / 16)
    angles = step.float().unsqueeze(1) * frequencies
    return torch.cat([angles.sin(), angles.cos()], dim=1)


def schedule():
    """How much of the picture is left after each step, by a cosine."""
    t = torch.linspace(0, 1, STEPS + 1)
    left = torch.cos((t + 0.008) / 1.008 * math.pi / 2) ** 2
    return (left / left[0])[1:].clamp(1e-4, 1.0)


@torch.no_grad()
def sample(model, digit, left):
    """Pictures of the given digits, from noise."""
    x = torch.randn(len(digit), 64)
    for i in reversed(range(STEPS)):
        noise = model(x, torch.full((len(digit),), i), digit)
        before = left[i - 1] if i else torch.tensor(1.0)
        alpha = left[i] / before
        clean = ((x - (1 - left[i]).sqrt() * noise) / left[i].sqrt()).clamp(-1, 1)
        mean = (before.sqrt() * (1 - alpha) * clean + alpha.sqrt() * (1 - before) * x) / (1 - left[i])
        x = mean + ((1 - alpha) * (1 - before) / (1 - left[i])).sqrt() * torch.randn_like(x)
    return x


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--iterations", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    torch.manual_seed(args.seed)

    data = Digits(train=None)
    images = data.data.reshape(-1, 64).float() / 127.5 - 1
    model, left = Denoiser(), schedule()
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, args.iterations)
    total = 0.0
    for iteration in range(1, args.iterations + 1):
        chosen = torch.randint(len(images), (64,))
        step, noise = torch.randint(STEPS, (64,)), torch.randn(64, 64)
        share = left[step].unsqueeze(1)
        noisy = share.sqrt() * images[chosen] + (1 - share).sqrt() * noise
        loss = F.mse_loss(model(noisy, step, data.targets[chosen]), noise)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        scheduler.step()
        total += loss.item()
        if iteration % 250 == 0:
            print(f"iteration {iteration}: loss {total / 250:.4f}")
            total = 0.0

    wanted = torch.arange(10).repeat(6)
    made = sample(model, wanted, left)
    digits.save_grid(((made + 1) / 2).view(-1, 8, 8).numpy(), "diffusion.png", columns=10, enlarge=5)
    print("diffusion.png: 0 to 9, six times")
    nearest = torch.cdist(made, images).argmin(dim=1)
    right = (data.targets[nearest] == wanted).float().mean().item()
    print(f"the nearest real digit is the one that was asked for: {right:.3f}")


if __name__ == "__main__":
    main()
