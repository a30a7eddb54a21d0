"""fx without an oracle: traced modules compute the same, and survive copying, pickling and saving."""

import copy
import io
import pickle

import pytest

import rushlight
from rushlight import fx, nn, vision
from rushlight.vision.models.feature_extraction import create_feature_extractor, get_graph_node_names


def branching(x):
    return x if x.sum() > 0 else -x


fx.wrap("branching")


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(4, 8), nn.Linear(8, 2)
        self.register_buffer("shift", rushlight.ones(2))
        self.plain = rushlight.full((2,), 3.0)

    def forward(self, x, scale=2.0):
        x = branching(rushlight.relu(self.first(x))) * scale
        return self.second(x) + self.shift + self.plain + rushlight.ones(2)


@pytest.mark.parametrize("remade", [
    lambda g: g, copy.deepcopy, lambda g: pickle.loads(pickle.dumps(g)), lambda g: fx.Transformer(g).transform(),
    lambda g: saved(g), lambda g: fx.GraphModule(g, copy.deepcopy(g.graph)),
])  # fmt: skip
def test_a_traced_module_computes_the_same(remade):
    net, x = Net(), rushlight.randn(3, 4)
    traced = remade(fx.symbolic_trace(net))
    assert rushlight.equal(traced(x), net(x)) and rushlight.equal(traced(x, 3.0), net(x, 3.0))
    assert rushlight.equal(fx.Interpreter(traced).run(x), net(x))
    assert "branching" in traced.code and "first.weight" in traced.state_dict()
    traced(x).sum().backward()
    assert all(p.grad is not None for p in traced.parameters())


def saved(module):
    file = io.BytesIO()
    rushlight.save(module, file)
    file.seek(0)
    return rushlight.load(file, weights_only=False)


def test_weights_are_shared_until_copied():
    net = Net()
    traced = fx.symbolic_trace(net)
    assert traced.first.weight is net.first.weight
    assert copy.deepcopy(traced).first.weight is not net.first.weight


def test_nothing_stays_patched():
    before = nn.Module.__call__, nn.Module.__getattr__, branching
    with pytest.raises(fx.proxy.TraceError):
        fx.symbolic_trace(lambda x: 1 if x else 2)
    assert (nn.Module.__call__, nn.Module.__getattr__, branching) == before and not fx._symbolic_trace.is_fx_tracing()


def test_leaves_of_ones_own():
    class Flat(fx.Tracer):
        def is_leaf_module(self, m, path):
            return isinstance(m, nn.Sequential)

    model = nn.Sequential(nn.Sequential(nn.Linear(2, 2), nn.ReLU()), nn.Linear(2, 2))

    class Outer(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = model

        def forward(self, x):
            return self.inner(x)

    graph = Flat().trace(Outer())
    assert [n.target for n in graph.find_nodes(op="call_module")] == ["inner"]


def test_a_graph_can_be_edited_and_compiled():
    pytest.importorskip("jax")
    traced = fx.symbolic_trace(Net())
    (relu,) = traced.graph.find_nodes(op="call_function", target=rushlight.relu)
    relu.target = rushlight.tanh
    traced.graph.lint()
    traced.recompile()
    assert "torch.tanh(" in traced.code
    inner = fx.symbolic_trace(nn.Sequential(nn.Linear(4, 3), nn.Tanh()))
    x = rushlight.randn(2, 4)
    step = rushlight.compile(inner)
    step(x)
    assert rushlight.allclose(step(x), inner(x), atol=1e-6)


def test_missing_targets_are_named():
    graph = fx.Graph()
    graph.output(graph.call_module("nowhere", (graph.placeholder("x"),)))
    with pytest.raises(AttributeError, match="nowhere"):
        fx.GraphModule(nn.Module(), graph)
    with pytest.raises(RuntimeError, match="nowhere but that target was not provided"):
        fx.GraphModule({}, graph)


@pytest.mark.parametrize("name", ["resnet18", "mobilenet_v2", "squeezenet1_1"])
def test_models_of_vision(name):
    model = getattr(vision.models, name)().eval()
    x = rushlight.randn(1, 3, 64, 64)
    traced = fx.symbolic_trace(model)
    assert rushlight.equal(traced(x), model(x))


def test_feature_extraction():
    model = vision.models.resnet18().eval()
    train, evaluation = get_graph_node_names(model)
    assert train == evaluation and train[:5] == ["x", "conv1", "bn1", "relu", "maxpool"] and "layer1.0.relu_1" in train
    extractor = create_feature_extractor(model, {"layer1": "early", "layer4.1.relu_1": "late"})
    x = rushlight.randn(1, 3, 64, 64)
    found = extractor(x)
    assert list(found) == ["early", "late"] and not hasattr(extractor, "fc")
    expected = model.layer1(model.maxpool(model.relu(model.bn1(model.conv1(x)))))
    assert rushlight.equal(found["early"], expected)
    assert rushlight.equal(copy.deepcopy(extractor)(x)["late"], found["late"])
    with pytest.raises(ValueError, match="'nowhere' is not present"):
        create_feature_extractor(model, ["nowhere"])
