"""Datasets, samplers and the DataLoader."""

from .dataset import *
