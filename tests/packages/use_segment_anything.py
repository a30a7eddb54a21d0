import numpy as np
import torch
from harness import main, section
from segment_anything import SamPredictor
from segment_anything.modeling import ImageEncoderViT, MaskDecoder, PromptEncoder, Sam, TwoWayTransformer


def small():
    encoder = ImageEncoderViT(
        img_size=64, patch_size=16, embed_dim=32, depth=2, num_heads=2, out_chans=32, window_size=2,
        global_attn_indexes=(1,), use_rel_pos=True,
    )  # fmt: skip
    prompts = PromptEncoder(embed_dim=32, image_embedding_size=(4, 4), input_image_size=(64, 64), mask_in_chans=8)
    decoder = MaskDecoder(
        transformer_dim=32,
        transformer=TwoWayTransformer(depth=2, embedding_dim=32, num_heads=2, mlp_dim=64),
        iou_head_hidden_dim=32,
    )
    return Sam(encoder, prompts, decoder).eval()


def image():
    return (np.random.rand(48, 64, 3) * 255).astype("uint8")


@section
def points_and_boxes():
    predictor = SamPredictor(small())
    predictor.set_image(image())
    masks, scores, logits = predictor.predict(
        np.array([[20, 20], [40, 30]]), np.array([1, 0]), box=np.array([5, 5, 50, 40])
    )
    return [masks.sum((1, 2)), scores, logits.mean((1, 2))]


@section
def batched():
    model = small()
    inputs = [
        {"image": torch.rand(3, 64, 64) * 255, "original_size": (48, 48), "boxes": torch.tensor([[4.0, 4, 30, 30]])}
    ]
    found = model(inputs, multimask_output=False)[0]
    return [found["masks"].sum((2, 3)), found["iou_predictions"], found["low_res_logits"].mean((2, 3))]


@section
def gradients():
    model = small()
    found = model.mask_decoder(
        model.image_encoder(torch.randn(1, 3, 64, 64)),
        model.prompt_encoder.get_dense_pe(),
        *model.prompt_encoder(None, torch.tensor([[[4.0, 4, 30, 30]]]), None),
        True,
    )
    found[0].square().mean().backward()
    return [found[1], model.image_encoder.patch_embed.proj.weight.grad.flatten()[:5]]


main()
