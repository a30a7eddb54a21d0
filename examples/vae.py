"""A variational auto-encoder on drawn digits: encode to a normal distribution, sample, decode. Writes vae.png."""

import argparse

import digits
import torch
from torch import nn, optim
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset


class VAE(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(784, 128)
        self.fc21 = nn.Linear(128, 10)
        self.fc22 = nn.Linear(128, 10)
        self.fc3 = nn.Linear(10, 128)
        self.fc4 = nn.Linear(128, 784)

    def encode(self, x):
        h = F.relu(self.fc1(x))
        return self.fc21(h), self.fc22(h)

    def reparameterize(self, mu, logvar):
        std = torch.exp(0.5 * logvar)
        return mu + torch.randn_like(std) * std

    def decode(self, z):
        return torch.sigmoid(self.fc4(F.relu(self.fc3(z))))

    def forward(self, x):
        mu, logvar = self.encode(x.view(-1, 784))
        return self.decode(self.reparameterize(mu, logvar)), mu, logvar


def loss_function(recon_x, x, mu, logvar):
    """Reconstruction error plus the divergence of the code from a standard normal distribution."""
    bce = F.binary_cross_entropy(recon_x, x.view(-1, 784), reduction="sum")
    kld = -0.5 * torch.sum(1 + logvar - mu.pow(2) - logvar.exp())
    return bce + kld


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=8)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    torch.manual_seed(args.seed)

    images, _ = digits.draw(1000)
    images = torch.from_numpy(images).float().div(255).unsqueeze(1)
    loader = DataLoader(TensorDataset(images), batch_size=50, shuffle=True)
    model = VAE()
    optimizer = optim.Adam(model.parameters(), lr=2e-3)

    model.train()
    history = []
    for epoch in range(1, args.epochs + 1):
        total = 0.0
        for (data,) in loader:
            optimizer.zero_grad()
            recon, mu, logvar = model(data)
            loss = loss_function(recon, data, mu, logvar)
            loss.backward()
            total += loss.item()
            optimizer.step()
        history.append(total / len(images))
        print(f"epoch {epoch}: average loss {history[-1]:.4f}")

    model.eval()
    with torch.no_grad():
        sample = model.decode(torch.randn(64, 10)).view(64, 28, 28)
    print(f"64 samples, mean ink {sample.mean().item():.4f} (digits: {images.mean().item():.4f})")
    digits.save_grid(sample.numpy(), "vae.png")
    print("vae.png: 64 digits that nobody drew")


if __name__ == "__main__":
    main()
