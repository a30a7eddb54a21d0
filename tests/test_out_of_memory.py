"""Eager code on an accelerator runs late, so memory runs out late: what a step was to write is as it was before it."""

import io

import pytest

pytest.importorskip("jax")
import rushlight as torch
from rushlight import nn, optim
from rushlight.engine.deferred import recording
from rushlight.engine.xla import devices


@pytest.fixture
def room(monkeypatch):
    """{"bytes": how much the device has left}: enough for the moments of an optimizer, not for the training steps."""
    room = {"bytes": 1 << 40}
    for module in (devices, recording):
        monkeypatch.setattr(module, "memory", lambda place: (1000, 1000 + room["bytes"]))
    return room


class Training:
    def __init__(self, optimizer=optim.Adam):
        torch.manual_seed(0)
        self.model = nn.Sequential(nn.Linear(8, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Linear(16, 4)).to("xla")
        self.optimizer = optimizer(self.model.parameters(), lr=0.01)
        self.data = torch.randn(6, 1024, 8).to("xla")

    def step(self, i):
        self.optimizer.zero_grad()
        loss = self.model(self.data[i]).square().mean()
        loss.backward()
        self.optimizer.step()
        return loss

    def state(self):
        values = [*self.model.state_dict().values()]
        for state in self.optimizer.state.values():
            values += state.values()
        return [t.detach().cpu().numpy() for t in values]


def agree(ours, theirs):
    assert len(ours) == len(theirs)
    return all((a == b).all() for a, b in zip(ours, theirs))


@pytest.mark.parametrize("done", [0, 1, 3])
@pytest.mark.parametrize("failing", [1, 3])
def test_steps_that_do_not_fit_were_never_made(room, done, failing):
    training, expected = Training(), Training()
    for i in range(done):
        training.step(i).item()
        expected.step(i).item()
    before = training.state()
    room["bytes"] = 16_000
    for _ in range(failing):  # nobody looks in between
        loss = training.step(4)
    with pytest.raises(torch.OutOfMemoryError, match=r"step that test_out_of_memory.py:\d+ ends, which was not made"):
        loss.item()
    with pytest.raises(torch.OutOfMemoryError):
        loss.item()  # it has no value, however often one asks
    room["bytes"] = 1 << 40
    after = training.state()
    assert agree(after[: len(before)], before)
    assert all((a == 0).all() for a in after[len(before) :])  # moments that the first step made
    file = io.BytesIO()
    torch.save([training.model.state_dict(), training.optimizer.state_dict()], file)
    assert training.step(5).item() == expected.step(5).item()
    assert agree(training.state(), expected.state())
