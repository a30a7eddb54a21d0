import os
import tempfile

import torch
from harness import main, section
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from torch.utils.tensorboard import SummaryWriter


@section
def scalars():
    with tempfile.TemporaryDirectory() as folder:
        with SummaryWriter(folder) as writer:
            for i in range(3):
                writer.add_scalar("loss", torch.tensor(1.0 / (i + 1)), i)
            writer.add_histogram("weights", torch.linspace(-1, 1, 50), 0)
            writer.add_image("picture", torch.rand(3, 4, 4), 0)
            writer.add_text("note", "hello", 0)
        events = EventAccumulator(folder)
        events.Reload()
        tags = events.Tags()
        return [[e.value for e in events.Scalars("loss")], tags["histograms"], tags["images"], len(os.listdir(folder))]


@section
def tensorboard_x():
    import tensorboardX

    with tempfile.TemporaryDirectory() as folder:
        with tensorboardX.SummaryWriter(folder) as writer:
            writer.add_scalar("a", torch.tensor(2.5), 0)
            writer.add_histogram("h", torch.linspace(0, 1, 9), 0)
            writer.add_image("i", torch.rand(3, 4, 4), 0)
        events = EventAccumulator(folder)
        events.Reload()
        return [events.Scalars("a")[0].value, events.Tags()["histograms"]]


main()
