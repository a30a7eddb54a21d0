"""The layers, one family per file; each file's ``__all__`` becomes a name of ``nn``."""

from .activation import *
from .adaptive import *
from .attention import *
from .batchnorm import *
from .conv import *
from .distance import *
from .dropout import *
from .embedding import *
from .flatten import *
from .fold import *
from .instancenorm import *
from .linear import *
from .loss import *
from .normalization import *
from .padding import *
from .pooling import *
from .rnn import *
from .transformer import *
from .vision import *
