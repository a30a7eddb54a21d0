import torch
from harness import main, section, train
from tensordict import TensorDict
from tensordict.nn import TensorDictModule
from torchrl.data import LazyTensorStorage, TensorDictReplayBuffer
from torchrl.data.tensor_specs import Bounded, Categorical, Composite, Unbounded
from torchrl.modules import MLP, ActorValueOperator, NormalParamExtractor, ProbabilisticActor, TanhNormal, ValueOperator
from torchrl.objectives import ClipPPOLoss, DQNLoss, SoftUpdate
from torchrl.objectives.value import GAE


def steps():
    return TensorDict(
        {
            "observation": torch.randn(2, 5, 3),
            "action": torch.rand(2, 5, 2) - 0.5,
            "action_log_prob": -torch.rand(2, 5),
            "next": {
                "observation": torch.randn(2, 5, 3),
                "reward": torch.randn(2, 5, 1),
                "done": torch.zeros(2, 5, 1, dtype=torch.bool),
                "terminated": torch.zeros(2, 5, 1, dtype=torch.bool),
            },
        },
        [2, 5],
    )


def policy():
    net = torch.nn.Sequential(MLP(3, 4, num_cells=[16]), NormalParamExtractor())
    module = TensorDictModule(net, in_keys=["observation"], out_keys=["loc", "scale"])
    return ProbabilisticActor(module, in_keys=["loc", "scale"], distribution_class=TanhNormal, return_log_prob=True)


@section
def acting():
    td = policy()(TensorDict({"observation": torch.randn(4, 3)}, [4]))
    return [td["action"], td["action_log_prob"]]


@section
def advantages():
    value = ValueOperator(MLP(3, 1, num_cells=[8]), in_keys=["observation"])
    td = GAE(gamma=0.99, lmbda=0.95, value_network=value)(steps())
    return [td["advantage"], td["value_target"]]


@section
def proximal_policy():
    actor, value = policy(), ValueOperator(MLP(3, 1, num_cells=[8]), in_keys=["observation"])
    loss_of, td = ClipPPOLoss(actor, value), steps()

    def loss():
        GAE(gamma=0.9, lmbda=0.9, value_network=value)(td)
        losses = loss_of(td)
        return losses["loss_objective"] + losses["loss_critic"] + losses["loss_entropy"]

    return train(torch.optim.Adam(loss_of.parameters(), lr=3e-3), loss, 3)


@section
def q_learning():
    from torchrl.modules import QValueActor

    actor = QValueActor(MLP(3, 4, num_cells=[8]), in_keys=["observation"], spec=Categorical(4))
    loss_of, td = DQNLoss(actor, action_space="categorical", delay_value=True), steps().reshape(-1)
    td["action"] = torch.randint(4, (10,))
    loss_of.make_value_estimator(gamma=0.9)
    update, optimizer, found = SoftUpdate(loss_of, eps=0.9), torch.optim.SGD(loss_of.parameters(), lr=0.1), []
    for _ in range(3):
        loss = loss_of(td)["loss"]
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        update.step()
        found.append(loss.item())
    return found


@section
def replay():
    buffer = TensorDictReplayBuffer(storage=LazyTensorStorage(20), batch_size=4)
    buffer.extend(steps().reshape(-1))
    return [len(buffer), buffer.sample()["next", "reward"]]


@section
def specs():
    spec = Composite(x=Unbounded((3,)), y=Bounded(-1, 1, (2,)), z=Categorical(5, (2,)))
    td = spec.rand()
    return [td["x"], td["y"], td["z"], spec.is_in(td), spec["y"].project(torch.tensor([3.0, -0.5]))]


@section
def shared_trunk():
    common = TensorDictModule(MLP(3, 8, num_cells=[8]), in_keys=["observation"], out_keys=["hidden"])
    head = TensorDictModule(
        torch.nn.Sequential(MLP(8, 4, num_cells=[]), NormalParamExtractor()),
        in_keys=["hidden"],
        out_keys=["loc", "scale"],
    )
    actor = ProbabilisticActor(head, in_keys=["loc", "scale"], distribution_class=TanhNormal)
    both = ActorValueOperator(common, actor, ValueOperator(MLP(8, 1, num_cells=[]), in_keys=["hidden"]))
    td = both(steps()[:, 0])
    return [td["action"], td["state_value"]]


main()
