import tempfile

import torch
from denoising_diffusion_pytorch import (
    Dataset1D,
    ElucidatedDiffusion,
    GaussianDiffusion,
    GaussianDiffusion1D,
    Trainer1D,
    Unet,
    Unet1D,
)
from harness import main, section


def steps(diffusion, *shape):
    optimizer, losses = torch.optim.Adam(diffusion.parameters(), lr=1e-3), []
    for _ in range(2):
        loss = diffusion(torch.rand(2, *shape))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def small():
    return Unet(dim=16, dim_mults=(1, 2), flash_attn=False)


@section
def training():
    return steps(GaussianDiffusion(small(), image_size=16, timesteps=20), 3, 16, 16)


@section
def sampling():
    diffusion = GaussianDiffusion(small(), image_size=8, timesteps=4).eval()
    picture = diffusion.sample(batch_size=1)
    return [list(picture.shape), picture.mean(), picture[0, 0, :2, :4]]


@section
def fast_sampling():
    diffusion = GaussianDiffusion(small(), image_size=8, timesteps=20, sampling_timesteps=3, objective="pred_noise")
    return diffusion.eval().sample(batch_size=1)[0, 0, :2, :4]


@section
def flash_attention():
    return steps(
        GaussianDiffusion(Unet(dim=16, dim_mults=(1, 2), flash_attn=True), image_size=16, timesteps=20), 3, 16, 16
    )


@section
def sequences():
    return steps(GaussianDiffusion1D(Unet1D(dim=16, dim_mults=(1, 2), channels=4), seq_length=16, timesteps=20), 4, 16)


@section
def elucidated():
    net = Unet(dim=16, dim_mults=(1, 2), flash_attn=False, learned_sinusoidal_cond=True)
    return steps(ElucidatedDiffusion(net, image_size=16, num_sample_steps=3), 3, 16, 16)


@section
def trainer():
    diffusion = GaussianDiffusion1D(Unet1D(dim=16, dim_mults=(1, 2), channels=4), seq_length=16, timesteps=8)
    with tempfile.TemporaryDirectory() as folder:
        made = Trainer1D(
            diffusion, dataset=Dataset1D(torch.rand(8, 4, 16)), train_batch_size=4, train_num_steps=2, num_samples=1,
            gradient_accumulate_every=1, save_and_sample_every=2, amp=False, results_folder=folder,
        )  # fmt: skip
        made.train()
        saved = torch.load(f"{folder}/model-1.pt", weights_only=False)
    return [made.step, saved["step"], sum(p.double().abs().sum() for p in diffusion.parameters()).item()]


main()
