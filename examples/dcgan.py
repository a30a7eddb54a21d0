"""A DCGAN on drawn 16x16 digits: transposed convolutions against convolutions, batch norm, two optimizers."""

import argparse

import digits
import torch
import torch.nn as nn
import torch.optim as optim
from torch.utils.data import DataLoader, TensorDataset

NZ, NGF, NDF = 16, 16, 16


def weights_init(m):
    classname = m.__class__.__name__
    if classname.find("Conv") != -1:
        nn.init.normal_(m.weight, 0.0, 0.02)
    elif classname.find("BatchNorm") != -1:
        nn.init.normal_(m.weight, 1.0, 0.02)
        nn.init.zeros_(m.bias)


class Generator(nn.Module):
    def __init__(self):
        super().__init__()
        self.main = nn.Sequential(
            nn.ConvTranspose2d(NZ, NGF * 2, 4, 1, 0, bias=False),
            nn.BatchNorm2d(NGF * 2),
            nn.ReLU(True),
            nn.ConvTranspose2d(NGF * 2, NGF, 4, 2, 1, bias=False),
            nn.BatchNorm2d(NGF),
            nn.ReLU(True),
            nn.ConvTranspose2d(NGF, 1, 4, 2, 1, bias=False),
            nn.Tanh(),
        )

    def forward(self, input):
        return self.main(input)


class Discriminator(nn.Module):
    def __init__(self):
        super().__init__()
        self.main = nn.Sequential(
            nn.Conv2d(1, NDF, 4, 2, 1, bias=False),
            nn.LeakyReLU(0.2, inplace=True),
            nn.Conv2d(NDF, NDF * 2, 4, 2, 1, bias=False),
            nn.BatchNorm2d(NDF * 2),
            nn.LeakyReLU(0.2, inplace=True),
            nn.Conv2d(NDF * 2, 1, 4, 1, 0, bias=False),
            nn.Sigmoid(),
        )

    def forward(self, input):
        return self.main(input).view(-1, 1).squeeze(1)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--niter", type=int, default=6, help="epochs")
    parser.add_argument("--batchSize", type=int, default=40)
    parser.add_argument("--lr", type=float, default=0.001)
    parser.add_argument("--beta1", type=float, default=0.5)
    parser.add_argument("--manualSeed", type=int, default=3)
    parser.add_argument("--double", action="store_true", help="compute in float64")
    opt = parser.parse_args()
    if opt.double:
        torch.set_default_dtype(torch.double)
    torch.manual_seed(opt.manualSeed)

    images, _ = digits.draw(800, size=16)
    images = torch.from_numpy(images).to(torch.get_default_dtype()).div(127.5).sub(1).unsqueeze(1)
    loader = DataLoader(TensorDataset(images), batch_size=opt.batchSize, shuffle=True)

    netG, netD = Generator(), Discriminator()
    netG.apply(weights_init)
    netD.apply(weights_init)
    criterion = nn.BCELoss()
    fixed_noise = torch.randn(64, NZ, 1, 1)
    optimizerD = optim.Adam(netD.parameters(), lr=opt.lr, betas=(opt.beta1, 0.999))
    optimizerG = optim.Adam(netG.parameters(), lr=opt.lr, betas=(opt.beta1, 0.999))

    mean_image = images.mean(0)

    def distance():
        return (netG(fixed_noise).mean(0) - mean_image).pow(2).mean().item()

    with torch.no_grad():
        before = distance()
    for epoch in range(opt.niter):
        for i, (real,) in enumerate(loader):
            # The discriminator: say 1 to real pictures and 0 to made ones.
            netD.zero_grad()
            label = torch.full((real.size(0),), 1.0)
            output = netD(real)
            errD_real = criterion(output, label)
            errD_real.backward()
            fake = netG(torch.randn(real.size(0), NZ, 1, 1))
            label.fill_(0.0)
            errD_fake = criterion(netD(fake.detach()), label)
            errD_fake.backward()
            errD = errD_real + errD_fake
            optimizerD.step()

            # The generator: make the discriminator say 1.
            netG.zero_grad()
            label.fill_(1.0)
            errG = criterion(netD(fake), label)
            errG.backward()
            optimizerG.step()
            if i % 5 == 0:
                print(f"[{epoch}/{opt.niter}][{i}/{len(loader)}] Loss_D: {errD.item():.4f} Loss_G: {errG.item():.4f}")
    with torch.no_grad():
        after = distance()
    print(f"mean picture's distance from the digits': {before:.4f} before, {after:.4f} after")


if __name__ == "__main__":
    main()
