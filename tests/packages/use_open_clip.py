import tempfile

import open_clip
import torch
from harness import main, section
from open_clip.loss import ClipLoss, SigLipLoss

VISION = {"image_size": 32, "layers": 2, "width": 64, "head_width": 32, "patch_size": 8}
TEXT = {"context_length": 16, "vocab_size": 200, "width": 32, "heads": 2, "layers": 2}


def clip(**vision):
    return open_clip.CLIP(embed_dim=24, vision_cfg={**VISION, **vision}, text_cfg=TEXT)


def words(batch=4):
    return torch.randint(1, 199, (batch, 16))


@section
def training():
    model, measure, losses = clip(), ClipLoss(), []
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    for _ in range(3):
        image, text, scale = model(torch.randn(4, 3, 32, 32), words())
        loss = measure(image, text, scale)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


@section
def zero_shot():
    model = clip().eval()
    with torch.no_grad():
        image = model.encode_image(torch.randn(2, 3, 32, 32), normalize=True)
        text = model.encode_text(words(3), normalize=True)
        return [image[:, :6], text[:, :6], (100 * image @ text.T).softmax(-1)]


@section
def resnet():
    model = clip(layers=[1, 1, 1, 1], width=16, image_size=64, patch_size=None).train()
    image, text, scale = model(torch.randn(4, 3, 64, 64), words())
    loss = ClipLoss()(image, text, scale)
    loss.backward()
    return [loss.item(), model.visual.conv1.weight.grad.abs().sum()]


@section
def sigmoid_loss():
    model = open_clip.CustomTextCLIP(embed_dim=24, vision_cfg=VISION, text_cfg=TEXT, init_logit_bias=-10.0)
    loss = SigLipLoss()(*model(torch.randn(4, 3, 32, 32), words()))
    loss.backward()
    return [loss.item(), model.logit_bias.grad]


@section
def captions():
    decoder = {"context_length": 15, "vocab_size": 200, "layers": 1, "heads": 2, "width": 32, "ls_init_value": None}
    vision = {**VISION, "attentional_pool": True, "attn_pooler_heads": 2, "output_tokens": True}
    text = {**TEXT, "embed_cls": True, "output_tokens": True}
    made = open_clip.CoCa(embed_dim=32, multimodal_cfg=decoder, text_cfg=text, vision_cfg=vision)
    for p in made.parameters():  # some are left as the memory was
        torch.nn.init.normal_(p, std=0.05)
    found = made(torch.randn(2, 3, 32, 32), words(2)[:, :15])
    return [found["logits"].square().mean(), found["logits"][0, 0, :5]]


@section
def tokens():
    return open_clip.tokenize(["a candle of rush and fat", "it burns for half an hour"])[:, :10]


@section
def save_and_load():
    model, x = clip().eval(), torch.randn(1, 3, 32, 32)
    with tempfile.NamedTemporaryFile(suffix=".pt") as file, torch.no_grad():
        torch.save({"state_dict": model.state_dict()}, file.name)
        again = clip().eval()
        open_clip.load_checkpoint(again, file.name)
        return [(again.encode_image(x) - model.encode_image(x)).abs().max(), again.encode_image(x)[0, :5]]


@section
def by_name():
    model, _, transform = open_clip.create_model_and_transforms("ViT-S-32-alt", load_weights=False)
    return [sum(p.numel() for p in model.parameters()), len(transform.transforms), list(model.visual.image_size)]


main()
