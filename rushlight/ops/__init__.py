"""Every operator, one family per file; importing this attaches them to ``Tensor`` and fills ``PUBLIC``."""

from . import arithmetic, exponential, trigonometry, rounding, bounds, comparison, selection, bits
from . import complex_numbers, copies
from . import special, linalg, reduce, shape, join, index, rearrange, scatter
from . import scan, sort, statistics
from . import conv, pool, resize
from . import decompositions, einsum, fft
from . import creation, convert, interop, windows
from . import random
from . import operators
from . import activation, embedding, loss, norm
from . import attention, rnn
from . import lobpcg, quantize, segments, sparse
from .public import PUBLIC
from ..autograd.op import differentiable as _xp
from ..engine.numpy import namespace as _numpy
from ..engine.numpy.kernels import chains as _chains

_chains.chain_rules(lambda name: getattr(_xp, name).op.rules.values(), _numpy)

__all__ = list(PUBLIC)


def __getattr__(name):
    """An operator; or, as in ``torch.ops``, a namespace of operators (``aten``, those of a program's own)."""
    if name in PUBLIC:
        return PUBLIC[name]
    if name.startswith("_") and name != "_c10d_functional":
        raise AttributeError(f"rushlight.ops has no operator '{name}'")
    from .. import library

    return library.load_library if name == "load_library" else library.namespace(name)
