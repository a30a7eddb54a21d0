"""Learns sine waves with two LSTM cells and L-BFGS, then goes on drawing waves it has not seen."""

import argparse

import numpy as np
import torch
import torch.nn as nn
import torch.optim as optim


class Sequence(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.width = width
        self.lstm1 = nn.LSTMCell(1, width)
        self.lstm2 = nn.LSTMCell(width, width)
        self.linear = nn.Linear(width, 1)

    def forward(self, input, future=0):
        outputs = []
        h_t, c_t, h_t2, c_t2 = (torch.zeros(input.size(0), self.width, dtype=input.dtype) for _ in range(4))
        for input_t in input.split(1, dim=1):
            h_t, c_t = self.lstm1(input_t, (h_t, c_t))
            h_t2, c_t2 = self.lstm2(h_t, (h_t2, c_t2))
            output = self.linear(h_t2)
            outputs += [output]
        for _ in range(future):  # its own output is the next input
            h_t, c_t = self.lstm1(output, (h_t, c_t))
            h_t2, c_t2 = self.lstm2(h_t, (h_t2, c_t2))
            output = self.linear(h_t2)
            outputs += [output]
        return torch.cat(outputs, dim=1)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=4)
    opt = parser.parse_args()
    np.random.seed(2)
    torch.manual_seed(0)
    starts = np.random.randint(-80, 80, 16).reshape(16, 1)
    data = np.sin((np.arange(60) + starts) / 5.0)
    input, target = torch.from_numpy(data[3:, :-1]), torch.from_numpy(data[3:, 1:])
    test_input, test_target = torch.from_numpy(data[:3, :-1]), torch.from_numpy(data[:3, 1:])

    seq = Sequence(12).double()
    criterion = nn.MSELoss()
    optimizer = optim.LBFGS(seq.parameters(), lr=0.8, max_iter=8)
    for step in range(opt.steps):
        print("STEP:", step)

        def closure():
            optimizer.zero_grad()
            loss = criterion(seq(input), target)
            print(f"loss: {loss.item():.6f}")
            loss.backward()
            return loss

        optimizer.step(closure)
        with torch.no_grad():
            pred = seq(test_input, future=20)
            loss = criterion(pred[:, :-20], test_target)
            print(f"test loss: {loss.item():.6f}")


if __name__ == "__main__":
    main()
