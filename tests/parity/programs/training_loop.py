"""Transfer-learning style loop: DataParallel, schedulers, random_split, checkpoints."""

import torch
import torch.backends.cudnn as cudnn
import torch.nn as nn
import torch.optim as optim
from torch.optim import lr_scheduler
from torch.utils.data import DataLoader, TensorDataset, random_split

cudnn.benchmark = True
torch.backends.cudnn.deterministic = True
torch.use_deterministic_algorithms(True)
device = torch.device("cuda:0" if torch.cuda.is_available() else "cpu")
print(device, torch.cuda.device_count(), torch.backends.mps.is_available())
torch.manual_seed(0)
if torch.cuda.is_available():
    torch.cuda.manual_seed_all(0)
X = torch.randn(200, 10)
y = (X.sum(1) > 0).long()
ds = TensorDataset(X, y)
train, val, test = random_split(ds, [140, 30, 30], generator=torch.Generator().manual_seed(42))
tr2, va2 = random_split(ds, [0.8, 0.2])
print(len(train), len(val), len(test), len(tr2), train.indices[:5])
loaders = {
    "train": DataLoader(train, 16, shuffle=True, num_workers=0, pin_memory=False, drop_last=True),
    "val": DataLoader(val, 30),
}


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.f = nn.Sequential(
            nn.Linear(10, 32), nn.BatchNorm1d(32), nn.ReLU(inplace=True), nn.Dropout(p=0.2), nn.Linear(32, 2)
        )
        for m in self.modules():
            if isinstance(m, nn.Linear):
                nn.init.kaiming_normal_(m.weight, mode="fan_out", nonlinearity="relu")
                nn.init.constant_(m.bias, 0)

    def forward(self, x):
        return self.f(x)


model = nn.DataParallel(Net()).to(device)
print(model)
criterion = nn.CrossEntropyLoss(label_smoothing=0.1)
opt = optim.SGD(model.parameters(), lr=0.1, momentum=0.9, nesterov=True, weight_decay=1e-4)
sched = lr_scheduler.CosineAnnealingLR(opt, T_max=5)
plateau = lr_scheduler.ReduceLROnPlateau(opt, "min", patience=1)
best = 0.0
for epoch in range(5):
    for phase in ["train", "val"]:
        model.train() if phase == "train" else model.eval()
        rl, rc, n = 0.0, 0, 0
        for inp, lab in loaders[phase]:
            inp, lab = inp.to(device, non_blocking=True), lab.to(device)
            opt.zero_grad(set_to_none=True)
            with torch.set_grad_enabled(phase == "train"):
                out = model(inp)
                _, preds = torch.max(out, 1)
                loss = criterion(out, lab)
                if phase == "train":
                    loss.backward()
                    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
                    opt.step()
            rl += loss.item() * inp.size(0)
            rc += torch.sum(preds == lab.data)
            n += inp.size(0)
        if phase == "train":
            sched.step()
        acc = rc.double() / n
        print(f"{phase} Loss: {rl / n:.4f} Acc: {acc:.4f}", sched.get_last_lr())
        if phase == "val" and acc > best:
            best = acc
            torch.save({"epoch": epoch, "state_dict": model.state_dict(), "opt": opt.state_dict()}, "ck.pth")
ck = torch.load("ck.pth", map_location="cpu")
print(ck["epoch"], list(ck["state_dict"])[:3], best, ck["opt"]["param_groups"][0]["lr"])
model.module.load_state_dict({k.replace("module.", ""): v for k, v in ck["state_dict"].items()})
print(sum(p.numel() for p in model.parameters() if p.requires_grad), opt)
