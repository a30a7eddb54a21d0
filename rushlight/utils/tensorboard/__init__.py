"""``SummaryWriter``, by the library tensorboardX: ``pip install rushlight[tensorboard]``."""

from __future__ import annotations

import numpy as np

from ...tensor import Tensor

try:
    import tensorboardX
except ImportError as e:
    raise ImportError(
        "rushlight.utils.tensorboard writes its files by tensorboardX, which is not installed: "
        "pip install 'rushlight[tensorboard]' (or pip install tensorboardX)"
    ) from e

__all__ = ["FileWriter", "SummaryWriter"]

FileWriter = tensorboardX.FileWriter


def __dir__():
    return __all__


def _with_arrays(name: str):
    """A method of tensorboardX's writer that takes tensors too."""
    original = getattr(tensorboardX.SummaryWriter, name)

    def method(self, *args, **kwargs):
        kwargs.pop("new_style", None)  # PyTorch's; there is one style
        return original(self, *map(_array, args), **{key: _array(value) for key, value in kwargs.items()})

    method.__name__, method.__doc__ = name, original.__doc__
    return method


class SummaryWriter(tensorboardX.SummaryWriter):
    """Writes scalars, images, histograms … for TensorBoard to show. Tensors are taken as they are."""

    def __init__(
        self, log_dir=None, comment="", purge_step=None, max_queue=10, flush_secs=120, filename_suffix=""
    ) -> None:
        super().__init__(
            logdir=None if log_dir is None else str(log_dir),
            comment=comment,
            purge_step=purge_step,
            max_queue=max_queue,
            flush_secs=flush_secs,
            filename_suffix=filename_suffix,
        )
        self.log_dir = self.logdir

    def get_logdir(self) -> str:
        return self.logdir

    def add_graph(self, model, input_to_model=None, verbose=False, use_strict_trace=True) -> None:
        """Not written: TensorBoard's graphs are PyTorch's traced code, which rushlight does not have."""
        raise NotImplementedError(
            "add_graph needs PyTorch's tracer; rushlight.inspect draws the graph of a rushlight model"
        )


_KINDS = ("audio", "embedding", "histogram", "hparams", "image", "image_with_boxes", "images", "mesh")
for _name in (*_KINDS, "pr_curve", "scalar", "scalars", "video"):
    setattr(SummaryWriter, f"add_{_name}", _with_arrays(f"add_{_name}"))


def _array(value):
    """Tensors as NumPy arrays, also inside dicts and lists; bfloat16, which NumPy lacks, as float32."""
    if isinstance(value, Tensor):
        array = value.detach().cpu().numpy() if value.dtype.itemsize != 2 else value.detach().float().cpu().numpy()
        return array.item() if array.ndim == 0 else np.asarray(array)
    if isinstance(value, dict):
        return {key: _array(v) for key, v in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(_array(v) for v in value)
    return value
