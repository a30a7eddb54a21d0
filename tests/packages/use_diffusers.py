import tempfile

import torch
from diffusers import (
    AutoencoderKL,
    DDIMScheduler,
    DDPMPipeline,
    DDPMScheduler,
    DPMSolverMultistepScheduler,
    UNet2DConditionModel,
    UNet2DModel,
)
from diffusers.training_utils import EMAModel
from harness import main, section


def unet():
    return UNet2DModel(
        sample_size=8, in_channels=1, out_channels=1, layers_per_block=1, block_out_channels=(8, 16), norm_num_groups=4,
        down_block_types=("DownBlock2D", "AttnDownBlock2D"), up_block_types=("AttnUpBlock2D", "UpBlock2D"),
    )  # fmt: skip


@section
def unet_training():
    model, scheduler = unet(), DDPMScheduler(num_train_timesteps=50)
    ema = EMAModel(model.parameters(), decay=0.9)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    losses = []
    for _ in range(3):
        x, noise, t = torch.randn(2, 1, 8, 8), torch.randn(2, 1, 8, 8), torch.randint(50, (2,))
        predicted = model(scheduler.add_noise(x, noise, t), t).sample
        loss = torch.nn.functional.mse_loss(predicted, noise)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        ema.step(model.parameters())
        losses.append(loss.item())
    return [losses, ema.shadow_params[0].mean()]


@section
def sampling():
    model, results = unet().eval(), []
    for kind in (DDPMScheduler, DDIMScheduler, DPMSolverMultistepScheduler):
        scheduler = kind(num_train_timesteps=50)
        scheduler.set_timesteps(4)
        x = torch.randn(1, 1, 8, 8)
        with torch.no_grad():
            for t in scheduler.timesteps:
                x = scheduler.step(model(x, t).sample, t, x).prev_sample
        results.append(x[0, 0, 0])
    return results


@section
def pipeline():
    pipe = DDPMPipeline(unet(), DDPMScheduler(num_train_timesteps=10))
    pipe.set_progress_bar_config(disable=True)
    images = pipe(
        batch_size=1, num_inference_steps=3, generator=torch.Generator().manual_seed(0), output_type="np"
    ).images
    return images[0, 0, :, 0]


@section
def autoencoder():
    model = AutoencoderKL(block_out_channels=(8,), norm_num_groups=4, latent_channels=2, sample_size=8)
    x = torch.randn(1, 3, 8, 8)
    posterior = model.encode(x).latent_dist
    loss = (model.decode(posterior.sample()).sample - x).square().mean() + posterior.kl().mean() * 1e-3
    loss.backward()
    return [loss, model.encoder.conv_in.weight.grad.abs().mean()]


@section
def conditional():
    model = UNet2DConditionModel(
        sample_size=8, in_channels=2, out_channels=2, layers_per_block=1, block_out_channels=(8, 16), norm_num_groups=4,
        cross_attention_dim=12, attention_head_dim=4, down_block_types=("CrossAttnDownBlock2D", "DownBlock2D"),
        up_block_types=("UpBlock2D", "CrossAttnUpBlock2D"),
    )  # fmt: skip
    out = model(torch.randn(1, 2, 8, 8), torch.tensor([3]), encoder_hidden_states=torch.randn(1, 5, 12)).sample
    return out[0, 0]


@section
def save_and_load():
    model = unet().eval()
    x, t = torch.randn(1, 1, 8, 8), torch.tensor([5])
    with tempfile.TemporaryDirectory() as folder, torch.no_grad():
        model.save_pretrained(folder)
        return [UNet2DModel.from_pretrained(folder).eval()(x, t).sample[0, 0, 0], model(x, t).sample[0, 0, 0]]


main()
