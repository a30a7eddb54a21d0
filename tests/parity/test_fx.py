"""fx beside PyTorch: the code and text of traced modules, errors, changed graphs."""

import collections
import operator

import pytest
import torch

import rushlight

Pair = collections.namedtuple("Pair", "a b")


def small(m):
    """A module with most kinds of nodes, of either package."""
    nn, F = m.nn, m.nn.functional

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = nn.Sequential(nn.Linear(4, 4), nn.ReLU())
            self.scale = nn.Parameter(m.ones(4))
            self.register_buffer("shift", m.zeros(4))

        def forward(self, x: m.Tensor, mask=None, *, power=2.0) -> m.Tensor:
            h = F.relu(self.layers(x + self.scale).clamp(min=0.0, max=1.0))
            h = m.cat([h, h], dim=1)
            h = h.view(h.shape[0], -1)[:, 1:] + h.size(0) - self.shift[0]
            w = F.softmax(F.dropout(h, 0.1, self.training), dim=-1)
            w = w.mean(dim=1, keepdim=True) * 2 - 1 / w
            w += 1
            values, places = m.max(w, 1)
            weights = F.linear(x, self.layers[0].weight, bias=self.layers[0].bias)
            kept = w > 3
            return (
                {"a": -w, "b": (weights, power)},
                values @ w.T,
                ~kept,
                w.float().to(m.float64),
                w**2,
                2**w,
                places.dtype,
            )

    return Block()


def pictures(m):
    nn, F = m.nn, m.nn.functional

    class Pictures(nn.Module):
        def __init__(self):
            super().__init__()
            self.features = nn.Sequential(nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2), nn.GELU(), nn.MaxPool2d(2))
            self.head = nn.Linear(2, 3)

        def forward(self, x):
            x = self.features(x)
            x = F.interpolate(F.max_pool2d(F.gelu(x), 2), scale_factor=2)
            x = F.adaptive_avg_pool2d(F.avg_pool2d(x, 1), 1)
            x = F.layer_norm(m.flatten(x, 1), (2,))
            return (
                F.log_softmax(self.head(x), 1),
                m.zeros(x.shape[0]),
                m.ones(2),
                abs(x),
                F.pad(x, (1, 1)),
                x[..., None],
            )

    return Pictures()


MODULES = {
    "small": small,
    "pictures": pictures,
    "sequential": lambda m: m.nn.Sequential(m.nn.Linear(2, 3), m.nn.ReLU(), m.nn.Sequential(m.nn.Dropout())),
    "transformer": lambda m: m.nn.Sequential(m.nn.TransformerEncoderLayer(4, 2), m.nn.LayerNorm(4)),
}


@pytest.mark.parametrize("name", MODULES)
def test_the_text_of_modules(name):
    ours, theirs = (m.fx.symbolic_trace(MODULES[name](m)) for m in (rushlight, torch))
    assert ours.code == theirs.code
    assert str(ours.graph) == str(theirs.graph)
    assert str(ours) == str(theirs)
    assert list(ours.state_dict()) == list(theirs.state_dict())


FUNCTIONS = {
    "branch": lambda m: lambda x: x if x.sum() > 0 else -x,
    "len": lambda m: lambda x: len(x),
    "loop": lambda m: lambda x: [y + 1 for y in x],
    "int": lambda m: lambda x: int(x),
    "range": lambda m: lambda x: range(x),
    "contains": lambda m: lambda x: 1 in x,
    "format": lambda m: lambda x: f"{x}",
    "method": lambda m: lambda x: x.no_such(1).shape,
    "call": lambda m: lambda x: x(1, a=2),
    "named tuple": lambda m: lambda x: Pair(x, 1),
    "attribute": lambda m: lambda x: x.shape[-1] + x.ndim,
    "constant": lambda m: lambda x: x + m.ones(2),
    "nested": lambda m: lambda x: {"a": [x, (x, 1.5, None, "text", True)]},
    "set": lambda m: lambda x: {x},
    "and": lambda m: lambda x: x & 1 | 2 ^ x << 1,
    "in place": lambda m: lambda x: x.add_(1).mul_(x),
    "dtype": lambda m: lambda x: x.to(m.float16, copy=True).type(m.long),
    "infinity": lambda m: lambda x: x.masked_fill(x > 0, float("-inf")),
    "reflected": lambda m: lambda x: (3 - x, 3 // x, 3 % x, 3 @ x, m.ones(2) + x),
    "several": lambda m: lambda x, y=2, *, z=None: m.where(x > y, x, y),
    "unbind": lambda m: lambda x: m.stack(x.unbind(0), dim=-1),
    "einsum": lambda m: lambda x: m.einsum("ij,jk->ik", x, x),
    "einsum of a list": lambda m: lambda x: m.einsum("ij,jk->ik", [x, x]),
    "einsum of sublists": lambda m: lambda x: m.einsum(x, [0, 1], x, [1, 2], [0, 2]),
    "assert": lambda m: lambda x: m._assert(x.shape[0] == 2, "two"),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_text_of_functions(name):
    outcomes = []
    for m in (rushlight, torch):
        try:
            outcomes.append(m.fx.symbolic_trace(FUNCTIONS[name](m)).code)
        except Exception as error:
            outcomes.append((type(error).__name__, str(error).replace("rushlight.", "torch.")))
    assert outcomes[0] == outcomes[1]


def test_stars_unpacking_and_values_that_are_known():
    def stars(*args, **kwargs):
        return args[0] + kwargs["a"]

    def unpack(x):
        first, second = x
        return first + second

    def times(x, n):
        return x * n if n > 2 else x

    for function, known in ((stars, None), (unpack, None), (times, {"n": 3})):
        ours, theirs = (m.fx.symbolic_trace(function, concrete_args=known).code for m in (rushlight, torch))
        assert ours == theirs


def build(m):
    graph = m.fx.Graph()
    x = graph.placeholder("x")
    relu = graph.call_function(m.relu, (x,))
    graph.output(graph.call_method("neg", (relu,)))
    return graph, x, relu


def patterns(m):
    return lambda x: m.relu(x) + 1, lambda x: m.tanh(x)


def test_changing_a_graph():
    texts = []
    for m in (rushlight, torch):
        graph, x, relu = build(m)
        said = [str(graph), str(x.users), str(relu.all_input_nodes), str(relu.next), str(relu.prev), len(graph.nodes)]
        with pytest.raises(RuntimeError) as caught:
            graph.erase_node(relu)
        said.append(str(caught.value))
        with graph.inserting_after(relu):
            added = graph.call_function(operator.add, (relu, 1))
        relu.replace_all_uses_with(added)
        added.args = (relu, 1)
        graph.lint()
        with graph.inserting_before(added):
            dead = graph.call_method("exp", (relu,))
        said += [str(graph), str(list(reversed(graph.nodes))), dead.name]
        module = m.fx.GraphModule(m.nn.Module(), graph)
        said += [
            module.code,
            module(m.ones(2)).tolist(),
            graph.eliminate_dead_code(),
            module.recompile() is not None,
            module.code,
        ]

        class Sigmoids(m.fx.Transformer):
            def call_function(self, target, args, kwargs, m=m):
                return super().call_function(m.sigmoid if target is m.relu else target, args, kwargs)

        said += [Sigmoids(module).transform().code, m.fx.Interpreter(module).run(m.ones(2)).tolist()]
        found = m.fx.replace_pattern(module, *patterns(m))
        said += [len(found), found[0].anchor.name, module.code]
        texts.append(said)
    assert texts[0] == texts[1]


def test_functions_of_proxies_made_by_hand():
    """No node but the function's: what it reads of its arguments leaves none."""
    texts = []
    for m in (rushlight, torch):
        graph = m.fx.Graph()
        tracer = m.fx.proxy.GraphAppendingTracer(graph)
        x, y = [m.fx.Proxy(graph.placeholder(name), tracer) for name in "xy"]
        graph.output(m.einsum("ij,jk->ik", x, m.chain_matmul(x, m.cat([x, y]))).node)
        texts.append(str(graph))
    assert texts[0] == texts[1]


def test_bad_graphs():
    texts = []
    for m in (rushlight, torch):
        graph, x, relu = build(m)
        relu.append(x)  # used before it is there
        with pytest.raises(RuntimeError) as caught:
            graph.lint()
        texts.append(str(caught.value))
    assert texts[0][:60] == texts[1][:60]


def test_shapes():
    from torch.fx.passes.shape_prop import ShapeProp as Theirs

    from rushlight.fx.passes.shape_prop import ShapeProp

    found = []
    for m, prop in ((rushlight, ShapeProp), (torch, Theirs)):
        traced = m.fx.symbolic_trace(m.nn.Sequential(m.nn.Linear(3, 2), m.nn.ReLU()))
        prop(traced).propagate(m.ones(4, 3))
        found.append([str(n.meta["tensor_meta"]) for n in traced.graph.nodes])
    assert found[0] == found[1]
