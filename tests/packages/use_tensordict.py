import tempfile

import torch
from harness import main, section, train
from tensordict import LazyStackedTensorDict, MemoryMappedTensor, TensorDict, tensorclass
from tensordict.nn import ProbabilisticTensorDictModule, TensorDictModule, TensorDictParams, TensorDictSequential


def data():
    return TensorDict({"x": torch.randn(4, 3), "more": {"y": torch.randn(4, 2, 2)}}, batch_size=[4])


@section
def indexing_and_shapes():
    td = data()
    td["flag"] = torch.arange(4) > 1
    td[1] = td[0]
    both = torch.cat([td, td[2:]], 0)
    parts = both.split(2)
    return [td[td["flag"]]["x"], both.shape, parts[2]["more", "y"], td.unsqueeze(1).expand(4, 2).reshape(8)["x"]]


@section
def arithmetic():
    td = data().exclude("flag")
    sums = (td * 2 + td).apply(lambda t: t.square().mean(), batch_size=[])
    return [sums["x"], sums["more", "y"], td.norm()["x"], (td - td.clone()).abs().sum()["more"]["y"]]


@section
def modules():
    net = TensorDictSequential(
        TensorDictModule(torch.nn.Linear(3, 8), in_keys=["x"], out_keys=["h"]),
        TensorDictModule(torch.nn.Tanh(), in_keys=["h"], out_keys=["h"]),
        TensorDictModule(torch.nn.Linear(8, 2), in_keys=["h"], out_keys=["out"]),
    )
    td, optimizer = data(), torch.optim.Adam(net.parameters(), lr=1e-2)
    goal = td["more", "y"].sum(-1)
    return [train(optimizer, lambda: (net(td)["out"] - goal).square().mean(), 4), net(x=td["x"])]


@section
def probabilistic():
    net = TensorDictSequential(
        TensorDictModule(lambda x: (x[..., :1], x[..., 1:2].exp()), in_keys=["x"], out_keys=["loc", "scale"]),
        ProbabilisticTensorDictModule(
            in_keys=["loc", "scale"],
            out_keys=["action"],
            distribution_class=torch.distributions.Normal,
            return_log_prob=True,
            default_interaction_type="random",
        ),
    )
    td = net(data())
    return [td["action"], td["action_log_prob"]]


@section
def functional_ensemble():
    models = [torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.ReLU(), torch.nn.Linear(4, 1)) for _ in range(3)]
    weights = torch.stack([TensorDict.from_module(model) for model in models])

    def call(params, x):
        with params.to_module(models[0]):
            return models[0](x)

    return torch.vmap(call, (0, None))(weights, torch.randn(5, 3))


@section
def mapped():
    td = data()
    halves = torch.vmap(lambda t: t.apply(lambda v: v.sum() / 2))(td)
    return [halves["x"], halves["more", "y"], torch.vmap(lambda t, k: t["x"] * k, (0, None))(td, torch.tensor(3.0))]


@section
def parameters():
    params = TensorDictParams(TensorDict({"w": torch.randn(3, 2), "b": torch.zeros(2)}, []))
    loss = (torch.ones(2, 3) @ params["w"] + params["b"]).square().sum()
    loss.backward()
    return [loss, params["w"].grad, params["b"].grad, len(list(params.parameters()))]


@section
def memory_mapped():
    td = data()
    with tempfile.TemporaryDirectory() as folder:
        td.memmap(folder)
        again = TensorDict.load_memmap(folder)
        kind = isinstance(again["x"], MemoryMappedTensor)
        return [kind, again["x"] + 0, again["more", "y"] + 0]


@section
def lazy_stack():
    lazy = LazyStackedTensorDict(TensorDict({"a": torch.ones(2)}, []), TensorDict({"a": torch.zeros(3)}, []))
    return [lazy[0]["a"], lazy[1]["a"], lazy.batch_size]


@tensorclass
class Pair:
    left: torch.Tensor
    right: torch.Tensor


@section
def classes():
    pair = Pair(torch.randn(3, 2), torch.randn(3), batch_size=[3])
    stacked = torch.stack([pair, pair * 2])
    return [stacked.left, stacked[1].right, stacked.shape]


main()
