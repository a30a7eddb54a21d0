"""Writes the golden checkpoints beside it, with PyTorch: ``python tests/data/make_golden.py``."""

from __future__ import annotations

import pathlib
from collections import OrderedDict

import torch

HERE = pathlib.Path(__file__).parent
DTYPES = ["bool", "uint8", "int8", "int16", "int32", "int64", "float16", "bfloat16", "float32", "float64"]
DTYPES += ["complex64", "complex128"]


def main() -> None:
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Flatten(), torch.nn.Linear(4, 2))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
    model(torch.ones(2, 3)).sum().backward()
    optimizer.step()
    base = torch.arange(12.0).view(3, 4)
    values = {
        **{name: torch.arange(3).to(getattr(torch, name)) for name in DTYPES},
        "base": base,
        "row": base[1],
        "transposed": base.t(),
        "step": base[:, ::2],
        "expanded": torch.ones(1).expand(2, 3),
        "scalar": torch.tensor(2.5),
        "empty": torch.empty(0, 3),
        "parameter": torch.nn.Parameter(torch.ones(2)),
        "leaf": torch.ones(2, requires_grad=True),
        "conjugate": torch.tensor([1 + 2j]).conj(),
        "size": torch.Size([1, 2]),
        "dtype": torch.float16,
        "device": torch.device("cpu"),
        "plain": [1, -2, 2**40, 10**20, 0.5, True, None, "text", b"bytes", (1, 2), {"a", "b"}, 1j, bytearray(b"x")],
        "ordered": OrderedDict(a=1),
    }
    checkpoint = {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "values": values}
    torch.save(checkpoint, HERE / "checkpoint.pt")
    torch.save(checkpoint, HERE / "checkpoint_legacy.pt", _use_new_zipfile_serialization=False)
    torch.save(
        {"unsigned": torch.arange(3).to(torch.uint16), "storage": torch.ones(2).untyped_storage()}, HERE / "v3.pt"
    )
    torch.save(base, HERE / "protocol5.pt", pickle_protocol=5)
    torch.save(model, HERE / "module.pt")
    small = {"w": torch.arange(4.0), "b": torch.ones(2)}
    torch.save(small, HERE / "small.pt")
    torch.serialization.set_crc32_options(False)
    torch.save(small, HERE / "unchecked.pt")


if __name__ == "__main__":
    main()
