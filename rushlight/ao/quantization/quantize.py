"""Models from float to codes: observe or train (``prepare``, ``prepare_qat``), then ``convert``; or dynamically.

Differs from PyTorch: the eager functions only, for Linear, Conv2d (with ReLU) and recurrent layers; graphs
(``prepare_fx``, ``quantize_pt2e``), embeddings and float16 weights are refused by name.
"""

from __future__ import annotations

import copy

from ... import dtypes
from ...nn import layers as _layers
from ...nn.containers import Sequential
from ...nn.layers.linear import NonDynamicallyQuantizableLinear
from ..nn import intrinsic, qat, quantized
from ..nn.intrinsic import qat as _intrinsic_qat
from ..nn.intrinsic import quantized as _intrinsic_quantized
from ..nn.quantized import dynamic
from .qconfig import default_dynamic_qconfig
from .stubs import DeQuantStub, QuantStub, QuantWrapper

__all__ = [
    "add_quant_dequant",
    "convert",
    "get_default_dynamic_quant_module_mappings",
    "get_default_qat_module_mappings",
    "get_default_qconfig_propagation_list",
    "get_default_static_quant_module_mappings",
    "get_observer_state_dict",
    "load_observer_state_dict",
    "prepare",
    "prepare_qat",
    "propagate_qconfig_",
    "quantize",
    "quantize_dynamic",
    "quantize_qat",
    "swap_module",
]

_DYNAMIC = {
    getattr(_layers, name): getattr(dynamic, name)
    for name in ["Linear", "LSTM", "GRU", "LSTMCell", "GRUCell", "RNNCell"]
}
_QAT = {
    _layers.Linear: qat.Linear,
    NonDynamicallyQuantizableLinear: qat.Linear,
    _layers.Conv2d: qat.Conv2d,
    intrinsic.LinearReLU: _intrinsic_qat.LinearReLU,
    intrinsic.ConvReLU2d: _intrinsic_qat.ConvReLU2d,
}
_STATIC = {
    QuantStub: quantized.Quantize,
    DeQuantStub: quantized.DeQuantize,
    _layers.Linear: quantized.Linear,
    NonDynamicallyQuantizableLinear: quantized.Linear,
    _layers.Conv2d: quantized.Conv2d,
    intrinsic.LinearReLU: _intrinsic_quantized.LinearReLU,
    intrinsic.ConvReLU2d: _intrinsic_quantized.ConvReLU2d,
    qat.Linear: quantized.Linear,
    qat.Conv2d: quantized.Conv2d,
    _intrinsic_qat.LinearReLU: _intrinsic_quantized.LinearReLU,
    _intrinsic_qat.ConvReLU2d: _intrinsic_quantized.ConvReLU2d,
    quantized.FloatFunctional: quantized.QFunctional,
}
# Whose outputs are observed although their codes are not made here: ``convert`` refuses them by name.
_OTHERS = """
    ELU Hardswish LeakyReLU PReLU ReLU6 BatchNorm2d BatchNorm3d Conv1d Conv3d ConvTranspose1d ConvTranspose2d
    ConvTranspose3d InstanceNorm1d InstanceNorm2d InstanceNorm3d GroupNorm LayerNorm GRU GRUCell LSTM LSTMCell RNNCell
    Embedding EmbeddingBag
"""
_REFUSED = {getattr(_layers, name) for name in _OTHERS.split()} - {_layers.ReLU6}


def quantize_dynamic(model, qconfig_spec=None, dtype=dtypes.qint8, mapping=None, inplace=False):
    """The model with int8 weights in its linear and recurrent layers; inputs become codes call by call.

    >>> model = rushlight.nn.Sequential(rushlight.nn.Linear(4, 2), rushlight.nn.ReLU())
    >>> rushlight.ao.quantization.quantize_dynamic(model, {rushlight.nn.Linear}, dtype=rushlight.qint8)
    Sequential(
      (0): DynamicQuantizedLinear(in_features=4, out_features=2, dtype=torch.qint8, qscheme=torch.per_tensor_affine)
      (1): ReLU()
    )
    """
    spec = _dynamic_spec(qconfig_spec, dtype)
    model = model if inplace else copy.deepcopy(model)
    model.eval()
    propagate_qconfig_(model, spec)
    convert(model, _DYNAMIC if mapping is None else mapping, inplace=True)
    return model


def _dynamic_spec(spec, dtype) -> dict:
    if isinstance(spec, dict):
        return spec
    if dtype is dtypes.float16:
        raise NotImplementedError("quantize_dynamic to torch.float16 is not here: use model.half(), or torch.qint8")
    if dtype is not dtypes.qint8:
        raise ValueError(f"Don't know how to quantize with default settings for {dtype}. Provide full qconfig please")
    return dict.fromkeys(_DYNAMIC if spec is None else spec, default_dynamic_qconfig)


def propagate_qconfig_(module, qconfig_dict=None, prepare_custom_config_dict=None) -> None:
    """Give every module its ``qconfig``: that of its name or type in the dict, or that of the module around it."""
    _propagate(module, {} if qconfig_dict is None else qconfig_dict, None, "")


def _propagate(module, given, outer, name) -> None:
    config = given.get(type(module), given.get(name, getattr(module, "qconfig", outer)))
    module.qconfig = config
    for child_name, child in module.named_children():
        _propagate(child, given, config, f"{name}.{child_name}" if name else child_name)


def prepare(model, inplace=False, allow_list=None, observer_non_leaf_module_list=None, prepare_custom_config_dict=None):
    """The model with an observer after each layer that has a ``qconfig``, to be calibrated with some inputs."""
    model = model if inplace else copy.deepcopy(model)
    propagate_qconfig_(model)
    _observe(model, get_default_qconfig_propagation_list() if allow_list is None else allow_list)
    return model


def prepare_qat(model, mapping=None, inplace=False):
    """The model with rounded weights and outputs, to be trained."""
    if not model.training:
        raise AssertionError("prepare_qat only works on models in training mode")
    model = model if inplace else copy.deepcopy(model)
    propagate_qconfig_(model)
    mapping = _QAT if mapping is None else mapping
    _swap_all(model, mapping)
    _observe(model, {*get_default_qconfig_propagation_list(), *mapping.values()})
    return model


def _observe(module, kinds) -> None:
    """Put an observer behind every layer of these kinds; a layer's own parts are not looked at."""
    for child in list(module.children()):
        if type(child) is _layers.Dropout or child.__class__ is DeQuantStub:
            continue
        if isinstance(child, quantized.FloatFunctional):
            config = getattr(child, "qconfig", None)
            if config:
                child.activation_post_process = config.activation()
        elif type(child) in kinds and type(child) is not Sequential:
            _observe_one(child)
        else:
            _observe(child, kinds)
    if not list(module.children()) and type(module) in kinds:
        _observe_one(module)


def _observe_one(module) -> None:
    if getattr(module, "qconfig", None) is None or hasattr(module, "activation_post_process"):
        return
    module.add_module("activation_post_process", module.qconfig.activation())
    module.register_forward_hook(_observed, prepend=True)


def _observed(module, input, output):
    return module.activation_post_process(output)


def convert(
    module,
    mapping=None,
    inplace=False,
    remove_qconfig=True,
    is_reference=False,
    convert_custom_config_dict=None,
    use_precomputed_fake_quant=False,
):
    """The model with codes for weights and outputs, from one that was observed or trained for it."""
    if is_reference:
        raise NotImplementedError("convert(is_reference=True) is not here")
    module = module if inplace else copy.deepcopy(module)
    static = mapping is None
    _swap_all(module, _STATIC if static else mapping, refuse=static)
    if remove_qconfig:
        for part in module.modules():
            part.__dict__.pop("qconfig", None)
    return module


def _swap_all(module, mapping, refuse=False) -> None:
    for name, child in list(module.named_children()):
        whole = type(child) in mapping
        if not whole and not isinstance(child, quantized.FloatFunctional):
            _swap_all(child, mapping, refuse)
        if refuse and type(child) in _REFUSED and getattr(child, "qconfig", None) is not None:
            raise NotImplementedError(
                f"convert: {type(child).__name__} ({name}) has no quantized form here; give it qconfig = None, or "
                "fuse it"
            )
        module._modules[name] = swap_module(child, mapping, {})


def swap_module(mod, mapping, custom_module_class_mapping, use_precomputed_fake_quant=False):
    """The counterpart of a module that has a ``qconfig``, or the module itself."""
    if getattr(mod, "qconfig", None) is None or type(mod) not in mapping:
        return mod
    made = mapping[type(mod)].from_float(mod)
    for hook in mod._forward_pre_hooks.values():
        made.register_forward_pre_hook(hook)
    for hook in mod._forward_hooks.values():
        if hook is not _observed:
            made.register_forward_hook(hook)
    return made


def quantize(model, run_fn, run_args, mapping=None, inplace=False):
    """Calibrate with ``run_fn(model, *run_args)`` and convert."""
    model = model if inplace else copy.deepcopy(model)
    model.eval()
    prepare(model, inplace=True)
    run_fn(model, *run_args)
    return convert(model, mapping, inplace=True)


def quantize_qat(model, run_fn, run_args, inplace=False):
    """Train with ``run_fn(model, *run_args)`` and convert."""
    model = model if inplace else copy.deepcopy(model)
    model.train()
    prepare_qat(model, inplace=True)
    run_fn(model, *run_args)
    return convert(model, inplace=True)


def add_quant_dequant(module):
    """The model with a ``QuantWrapper`` around each leaf that has a ``qconfig``."""
    if not list(module.children()) and getattr(module, "qconfig", None):
        return QuantWrapper(module)
    for name, child in module.named_children():
        module._modules[name] = add_quant_dequant(child)
    return module


def get_observer_state_dict(mod):
    """The entries of the state dict that observers have."""
    return type(mod.state_dict())((k, v) for k, v in mod.state_dict().items() if "activation_post_process" in k)


def load_observer_state_dict(mod, obs_dict) -> None:
    """Load what ``get_observer_state_dict`` gave."""
    _, unexpected = mod.load_state_dict(obs_dict, strict=False)
    if unexpected:
        raise Exception(f"unexpected keys in observer state dict: {unexpected}")


def get_default_static_quant_module_mappings() -> dict:
    """Layer -> layer from codes to codes."""
    return dict(_STATIC)


def get_default_qat_module_mappings() -> dict:
    """Layer -> layer with a rounded weight."""
    return dict(_QAT)


def get_default_dynamic_quant_module_mappings() -> dict:
    """Layer -> layer with weights of codes whose input is quantized on the way."""
    return dict(_DYNAMIC)


def get_default_qconfig_propagation_list() -> set:
    """The kinds of layers whose outputs are observed."""
    return {*_STATIC, *_QAT, *_DYNAMIC, *_REFUSED, _layers.ReLU6, _layers.Dropout, Sequential}
