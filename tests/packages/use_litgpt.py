import tempfile

import torch
from harness import main, section
from litgpt import GPT, Config
from litgpt.generate.base import generate
from litgpt.lora import GPT as LoraGPT
from litgpt.lora import Config as LoraConfig
from litgpt.lora import mark_only_lora_as_trainable, merge_lora_weights
from litgpt.utils import chunked_cross_entropy, num_parameters

SIZES = {"n_layer": 2, "n_head": 4, "n_embd": 32, "block_size": 16, "padded_vocab_size": 64, "vocab_size": 64}


def steps(model, count=3):
    trained = [p for p in model.parameters() if p.requires_grad]
    optimizer, losses = torch.optim.AdamW(trained, lr=1e-2), []
    for _ in range(count):
        tokens = torch.randint(0, 64, (2, 16))
        loss = chunked_cross_entropy(model(tokens[:, :-1]), tokens[:, 1:], chunk_size=8)
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(trained, 1.0)
        optimizer.step()
        losses.append(loss.item())
    return losses


@section
def pythia():
    return steps(GPT(Config.from_name("pythia-14m", **SIZES)))


@section
def llama():
    return steps(GPT(Config.from_name("Llama-3.2-1B", **SIZES, n_query_groups=2, intermediate_size=48)))


@section
def gemma():
    return steps(GPT(Config.from_name("Gemma-2b", **SIZES, n_query_groups=1, head_size=8, intermediate_size=48)))


@section
def mixture_of_experts():
    return steps(
        GPT(Config.from_name("Mixtral-8x7B-v0.1", **SIZES, n_query_groups=2, intermediate_size=48, n_expert=4))
    )


@section
def generation():
    model = GPT(Config.from_name("pythia-14m", **SIZES)).eval()
    model.set_kv_cache(batch_size=1)
    prompt = torch.tensor([1, 2, 3])
    greedy = generate(model, prompt, 10, temperature=0.0)
    model.clear_kv_cache()
    model.set_kv_cache(batch_size=1)
    return [greedy, generate(model, prompt, 10, temperature=0.9, top_k=20, top_p=0.9)]


@section
def low_rank():
    config = LoraConfig.from_name(
        "pythia-14m", **SIZES, lora_r=4, lora_alpha=8, lora_dropout=0.0, lora_query=True, lora_value=True, lora_mlp=True
    )
    model = LoraGPT(config)
    mark_only_lora_as_trainable(model)
    losses, tokens = steps(model), torch.randint(0, 64, (1, 8))
    with torch.no_grad():
        before = model.eval()(tokens)
        merge_lora_weights(model)
        return [
            losses,
            num_parameters(model, requires_grad=True),
            (model(tokens) - before).abs().max(),
            before[0, 0, :5],
        ]


@section
def save_and_load():
    model = GPT(Config.from_name("pythia-14m", **SIZES)).eval()
    tokens = torch.randint(0, 64, (1, 8))
    with tempfile.NamedTemporaryFile(suffix=".pth") as file, torch.no_grad():
        torch.save(model.state_dict(), file.name)
        with torch.device("meta"):
            again = GPT(model.config).eval()
        state = torch.load(file.name, mmap=True, weights_only=True)
        again.load_state_dict(state, assign=True)
        again.cos, again.sin = again.rope_cache(device="cpu")
        return [(again(tokens) - model(tokens)).abs().max(), model(tokens)[0, 0, :5]]


main()
