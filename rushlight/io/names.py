"""Where things live in PyTorch: files name classes by PyTorch's import paths, so that both sides find their own."""

from __future__ import annotations

import functools
import importlib

__all__ = ["names_of", "ours", "theirs"]

# PyTorch's file of each layer: what a whole saved module is called by.
_LAYER_FILES = {
    "activation": "CELU ELU GELU GLU Hardshrink Hardsigmoid Hardswish Hardtanh LeakyReLU LogSigmoid LogSoftmax Mish "
    "MultiheadAttention PReLU RReLU ReLU ReLU6 SELU SiLU Sigmoid Softmax Softmax2d Softmin Softplus Softshrink "
    "Softsign Tanh Tanhshrink Threshold",
    "adaptive": "AdaptiveLogSoftmaxWithLoss",
    "batchnorm": "BatchNorm1d BatchNorm2d BatchNorm3d LazyBatchNorm1d LazyBatchNorm2d LazyBatchNorm3d SyncBatchNorm",
    "channelshuffle": "ChannelShuffle",
    "container": "Container ModuleDict ModuleList ParameterDict ParameterList Sequential",
    "conv": "Conv1d Conv2d Conv3d ConvTranspose1d ConvTranspose2d ConvTranspose3d LazyConv1d LazyConv2d LazyConv3d "
    "LazyConvTranspose1d LazyConvTranspose2d LazyConvTranspose3d",
    "distance": "CosineSimilarity PairwiseDistance",
    "dropout": "AlphaDropout Dropout Dropout1d Dropout2d Dropout3d FeatureAlphaDropout",
    "flatten": "Flatten Unflatten",
    "fold": "Fold Unfold",
    "instancenorm": "InstanceNorm1d InstanceNorm2d InstanceNorm3d LazyInstanceNorm1d LazyInstanceNorm2d "
    "LazyInstanceNorm3d",
    "lazy": "LazyModuleMixin",
    "linear": "Bilinear Identity LazyLinear Linear NonDynamicallyQuantizableLinear",
    "linear_cross_entropy_options": "LinearCrossEntropyOptions",
    "loss": "BCELoss BCEWithLogitsLoss CTCLoss CosineEmbeddingLoss CrossEntropyLoss GaussianNLLLoss "
    "HingeEmbeddingLoss HuberLoss KLDivLoss L1Loss LinearCrossEntropyLoss MSELoss MarginRankingLoss "
    "MultiLabelMarginLoss MultiLabelSoftMarginLoss MultiMarginLoss NLLLoss NLLLoss2d PoissonNLLLoss SmoothL1Loss "
    "SoftMarginLoss TripletMarginLoss TripletMarginWithDistanceLoss",
    "module": "Module",
    "normalization": "CrossMapLRN2d GroupNorm LayerNorm LocalResponseNorm RMSNorm",
    "padding": "CircularPad1d CircularPad2d CircularPad3d ConstantPad1d ConstantPad2d ConstantPad3d ReflectionPad1d "
    "ReflectionPad2d ReflectionPad3d ReplicationPad1d ReplicationPad2d ReplicationPad3d ZeroPad1d ZeroPad2d ZeroPad3d",
    "pixelshuffle": "PixelShuffle PixelUnshuffle",
    "pooling": "AdaptiveAvgPool1d AdaptiveAvgPool2d AdaptiveAvgPool3d AdaptiveMaxPool1d AdaptiveMaxPool2d "
    "AdaptiveMaxPool3d AvgPool1d AvgPool2d AvgPool3d FractionalMaxPool2d FractionalMaxPool3d LPPool1d LPPool2d "
    "LPPool3d MaxPool1d MaxPool2d MaxPool3d MaxUnpool1d MaxUnpool2d MaxUnpool3d",
    "rnn": "GRU GRUCell LSTM LSTMCell RNN RNNBase RNNCell RNNCellBase",
    "sparse": "Embedding EmbeddingBag",
    "transformer": "Transformer TransformerDecoder TransformerDecoderLayer TransformerEncoder TransformerEncoderLayer",
    "upsampling": "Upsample UpsamplingBilinear2d UpsamplingNearest2d",
}
_PACKAGE = __package__.partition(".")[0]


def theirs(thing) -> tuple[str, str] | None:
    """PyTorch's module and name for a class or function of this package; None for what has no place there."""
    module, name = getattr(thing, "__module__", None) or "", getattr(thing, "__qualname__", "")
    if module.split(".")[0] != _PACKAGE:
        return None
    if module.startswith(
        (f"{_PACKAGE}.nn.layers", f"{_PACKAGE}.nn.containers", f"{_PACKAGE}.nn.module", f"{_PACKAGE}.nn.lazy")
    ):
        file = _layer_files().get(name)
        return (f"torch.nn.modules.{file}", name) if file else None
    if (module, name) in _EXCEPTIONS:
        return _EXCEPTIONS[module, name], name
    if module.startswith(f"{_PACKAGE}.nn.functional"):
        return "torch.nn.functional", name
    if module.startswith(f"{_PACKAGE}.ops."):
        return None if name.startswith("_") else ("torch", name)  # how tensors of a subclass are restored is our own
    return "torch" + module.removeprefix(_PACKAGE), name


def ours(module: str, name: str):
    """What PyTorch calls ``module.name``, here; None if there is no such thing."""
    parts = module.split(".")
    if parts[0] != "torch":
        return None
    module = _HIDDEN.get(module, module)
    found = None
    if module.startswith("torch.nn.modules."):  # the files of layers are others here, but nn has them all
        found = _member("torch.nn", name)
    return _member(module, name) if found is None else found


def names_of(thing) -> list[str]:
    """The full names by which a file may mean a class or function: its own, and PyTorch's."""
    place = theirs(thing)
    return [f"{thing.__module__}.{thing.__qualname__}", *([".".join(place)] if place else [])]


_EXCEPTIONS = {
    (f"{_PACKAGE}.tensor", "Tensor"): "torch",
    (f"{_PACKAGE}.tensor", "Size"): "torch",
    (f"{_PACKAGE}.device", "device"): "torch",
    (f"{_PACKAGE}.random", "Generator"): "torch._C",
    (f"{_PACKAGE}.nn.saving", "_IncompatibleKeys"): "torch.nn.modules.module",
    (f"{_PACKAGE}.optim.adam", "AdamW"): "torch.optim.adamw",
    (f"{_PACKAGE}.optim.adafactor", "Adafactor"): "torch.optim",
    (f"{_PACKAGE}.optim.muon", "Muon"): "torch.optim",
}


_HIDDEN = {"torch._C": "torch", "torch._C._nn": "torch.nn.functional"}  # where PyTorch's functions written in C++ live


def _member(module: str, name: str):
    found = _import(_PACKAGE + module.removeprefix("torch"))
    if found is None and "." in module:  # a class whose file has another name here: torch.optim.adamw
        found = _import(_PACKAGE + module.rpartition(".")[0].removeprefix("torch"))
    for part in name.split("."):
        found = getattr(found, part, None)
    return found


@functools.cache
def _layer_files() -> dict[str, str]:
    return {name: file for file, names in _LAYER_FILES.items() for name in names.split()}


def _import(module: str):
    try:
        return importlib.import_module(module)
    except ImportError:
        return None
