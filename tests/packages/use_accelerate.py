import tempfile

import torch
from accelerate import Accelerator, init_empty_weights
from accelerate.utils import set_seed
from harness import main, section


def parts():
    model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1))
    x = torch.randn(16, 4)
    data = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(x, x.sum(1, keepdim=True)), batch_size=4)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    return model, optimizer, data, torch.optim.lr_scheduler.LinearLR(optimizer, total_iters=4)


@section
def training():
    set_seed(3)
    accelerator = Accelerator(cpu=True)
    model, optimizer, data, schedule = accelerator.prepare(*parts())
    losses = []
    for x, y in data:
        loss = (model(x) - y).square().mean()
        accelerator.backward(loss)
        accelerator.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        optimizer.zero_grad()
        losses.append(accelerator.gather(loss.detach()).mean())
    return losses


@section
def accumulation():
    accelerator = Accelerator(cpu=True, gradient_accumulation_steps=2)
    model, optimizer, data, _ = accelerator.prepare(*parts())
    losses = []
    for x, y in data:
        with accelerator.accumulate(model):
            loss = (model(x) - y).square().mean()
            accelerator.backward(loss)
            optimizer.step()
            optimizer.zero_grad()
            losses.append(loss.item())
    return losses


@section
def state():
    accelerator = Accelerator(cpu=True)
    model, optimizer, data, _ = accelerator.prepare(*parts())
    for x, y in data:
        accelerator.backward((model(x) - y).square().mean())
        optimizer.step()
    with tempfile.TemporaryDirectory() as folder:
        before = model(torch.ones(1, 4))
        accelerator.save_state(folder)
        with torch.no_grad():
            for p in model.parameters():
                p.zero_()
        accelerator.load_state(folder)
    return [before, model(torch.ones(1, 4))]


@section
def empty_weights():
    whole = parts()[0]
    with tempfile.NamedTemporaryFile(suffix=".bin") as file:
        torch.save(whole.state_dict(), file.name)
        with init_empty_weights():
            empty = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1))
        device = empty[0].weight.device.type
        empty.load_state_dict(torch.load(file.name), assign=True)
    return [device, empty(torch.ones(1, 4)), whole(torch.ones(1, 4))]


main()
