"""Tools around modules and their parameters, under PyTorch's names."""

from . import rnn as rnn
