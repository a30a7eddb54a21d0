"""``torch.onnx``: models as ONNX files.

An operator's forward function is written against a namespace ``xp``. Here that namespace emits ONNX nodes
(``namespace.py``), so most operators export themselves; a table has those that ONNX has a node for.
"""

from ..compat import missing as _missing
from .exporter import ONNXProgram, export, is_in_onnx_export
from .graph import OnnxExporterError

__all__ = ["ONNXProgram", "OnnxExporterError", "export", "is_in_onnx_export"]


def __dir__():
    return __all__


__getattr__ = _missing(__name__)
