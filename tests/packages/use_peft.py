import tempfile

import torch
from harness import main, section
from peft import IA3Config, LoraConfig, PeftModel, get_peft_model
from transformers import GPT2Config, GPT2LMHeadModel, logging

logging.set_verbosity_error()


def gpt2():
    return GPT2LMHeadModel(GPT2Config(n_embd=32, n_layer=2, n_head=4, n_positions=64, vocab_size=50))


def steps(model, count=3):
    x = torch.randint(3, 50, (2, 12))
    optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=1e-2)
    losses = []
    for _ in range(count):
        loss = model(input_ids=x, labels=x).loss
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.item())
    return losses


@section
def lora():
    model = get_peft_model(gpt2(), LoraConfig(r=4, lora_alpha=8, target_modules=["c_attn"], fan_in_fan_out=True))
    return [steps(model), list(model.get_nb_trainable_parameters())]


@section
def save_and_merge():
    base = gpt2()
    weights = {k: v.clone() for k, v in base.state_dict().items()}
    model = get_peft_model(base, LoraConfig(r=2, target_modules=["c_attn"], fan_in_fan_out=True))
    steps(model)
    x = torch.randint(3, 50, (1, 5))
    with tempfile.TemporaryDirectory() as folder, torch.no_grad():
        model.eval()
        before = model(input_ids=x).logits[0, -1, :5]
        model.save_pretrained(folder)
        fresh = gpt2()
        fresh.load_state_dict(weights)
        again = PeftModel.from_pretrained(fresh, folder).eval()
        loaded = again(input_ids=x).logits[0, -1, :5]
        merged = again.merge_and_unload()(input_ids=x).logits[0, -1, :5]
    return [before, loaded, merged]


@section
def ia3():
    config = IA3Config(target_modules=["c_attn", "mlp.c_proj"], feedforward_modules=["mlp.c_proj"], fan_in_fan_out=True)
    return steps(get_peft_model(gpt2(), config))


main()
