import tempfile

import torch
from harness import main, section
from safetensors import safe_open
from safetensors.torch import load, load_file, load_model, save, save_file, save_model


@section
def files():
    tensors = {"a": torch.randn(2, 3), "b": torch.arange(4), "c": torch.randn(3).bfloat16()}
    with tempfile.NamedTemporaryFile(suffix=".safetensors") as file:
        save_file(tensors, file.name, metadata={"format": "pt"})
        back = load_file(file.name)
        with safe_open(file.name, framework="pt") as opened:
            names, part = sorted(opened.keys()), opened.get_slice("a")[:, 1:]
    return [back, names, part, load(save(tensors))["c"]]


@section
def models():
    model = torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.Linear(3, 3))
    model[1].weight = model[0].weight
    with tempfile.NamedTemporaryFile(suffix=".safetensors") as file:
        save_model(model, file.name)
        again = torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.Linear(3, 3))
        again[1].weight = again[0].weight
        missing, unexpected = load_model(again, file.name)
    return [again(torch.ones(1, 3)), sorted(missing), sorted(unexpected)]


main()
