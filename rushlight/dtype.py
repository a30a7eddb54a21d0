"""Another name for the module ``dtypes``: the package attribute ``rushlight.dtype`` is PyTorch's class."""

import sys

from . import dtypes

sys.modules[__name__] = dtypes
