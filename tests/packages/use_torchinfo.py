import torch
from harness import main, section
from torchinfo import summary


def net():
    nn = torch.nn
    return nn.Sequential(nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(), nn.Linear(4 * 36, 10))


@section
def table():
    return str(summary(net(), input_size=(2, 1, 8, 8), verbose=0))


@section
def columns():
    names = ("input_size", "output_size", "num_params", "kernel_size", "mult_adds", "trainable")
    return str(summary(net(), input_size=(2, 1, 8, 8), col_names=names, depth=2, verbose=0))


@section
def recurrent():
    found = summary(torch.nn.LSTM(4, 8, batch_first=True), input_size=(2, 5, 4), verbose=0)
    return [str(found), found.total_params, found.total_mult_adds]


main()
