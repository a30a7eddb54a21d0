"""Quantized tensors: codes of eight or 32 bits, and how they stand for numbers.

>>> q = rushlight.quantize_per_tensor(rushlight.tensor([0.0, 0.52, 1.0]), 0.1, 0, rushlight.qint8)
>>> q.dequantize()
tensor([0.0000, 0.5000, 1.0000])
"""

from .tensor import QuantizedTensor

__all__ = ["QuantizedTensor"]
