"""Trees of containers, attention kernels, DLPack: modules that programs import beside the main ones."""

from collections import OrderedDict, defaultdict, namedtuple

import torch
from torch.utils._pytree import *
from torch.utils._pytree import tree_leaves, tree_map_only

P = namedtuple("P", "a b")
t = {"x": (1, [2, None]), "p": P(3, OrderedDict(q=4)), "d": defaultdict(list, z=5), "s": {6}}
print(tree_map(lambda x: (x,), t))
l, s = tree_flatten(t)
print(l, s.num_leaves, tree_unflatten(l, s) == t, s == tree_flatten(t)[1], tree_map_only(int, lambda x: x + 1, t))
print(tree_map(lambda a, b: a + b, [1, (2,)], [10, (20,)]), tree_leaves((1, {"b": 2, "a": 3})))
from torch.nn.attention import SDPBackend, sdpa_kernel

with sdpa_kernel(SDPBackend.MATH):
    print(
        torch.nn.functional.scaled_dot_product_attention(
            torch.ones(1, 1, 2, 2), torch.ones(1, 1, 2, 2), torch.ones(1, 1, 2, 2)
        )
    )
from torch.nn.modules.utils import _pair, _triple

print(_pair(3), _pair([1, 2]), _triple(1))
from torch.utils.dlpack import from_dlpack, to_dlpack

print(from_dlpack(to_dlpack(torch.arange(3))))
