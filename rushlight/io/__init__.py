"""Checkpoints on disk: PyTorch's files and safetensors, both ways, safe by default."""
