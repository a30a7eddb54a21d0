"""compile is never stale: whatever changes between two calls, the compiled function gives what the eager one gives."""

from __future__ import annotations

import contextlib
import itertools
import os
import random
import types
import warnings

import numpy as np
import pytest

import rushlight as torch
from rushlight import nn, optim
from rushlight.nn import functional as F

pytestmark = pytest.mark.usefixtures("either_way")

SCALE: float
NUMBERS: list
TABLE: dict
FUNCTION: types.FunctionType
MODEL: nn.Module
OPTIMIZER: optim.Optimizer


class Norm(nn.Module):
    """A layer with everything a forward may read: numbers, flags, lists, a dict, a plain tensor, a buffer."""

    shift = 0.0

    def __init__(self):
        super().__init__()
        self.factor, self.flag, self.items, self.table = 1.0, False, [1.0, 2.0], {"a": 1.0}
        self.plain = torch.ones(3)
        self.register_buffer("buffer", torch.ones(3))
        self.config = types.SimpleNamespace(k=1.0)

    def forward(self, x):
        x = x * self.factor + self.shift + self.items[0] * self.table["a"] * self.config.k
        return (x * self.plain + self.buffer) * (2.0 if self.flag else 1.0)


class Setup:
    """A model, an optimizer and what else a function may depend on; ``step``, ``forward`` and ``evaluate`` use it."""

    def __init__(self, wrap):
        torch.manual_seed(0)
        self.model = nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3), Norm(), nn.Linear(3, 2))
        self.optimizer = optim.SGD(self.model.parameters(), lr=0.1, momentum=0.9)
        self.x, self.y = torch.randn(4, 2), torch.randn(4, 2)
        self.number, self.numbers, self.function = 1.0, [1.0, 2.0], torch.tanh
        model, optimizer, scale, box = self.model, self.optimizer, [1.0], self
        rate, table, activation = 1.0, {"a": 1.0}, torch.tanh
        set_globals()

        def forward(x):
            x = box.function(model(x)) * box.number * box.numbers[0] * scale[0] * rate * table["a"]
            return FUNCTION(activation(MODEL(x)) * SCALE * NUMBERS[0] * TABLE["a"])

        def step(x, y):
            optimizer.zero_grad()
            OPTIMIZER.zero_grad()
            loss = F.mse_loss(forward(x), y)
            loss.backward()
            optimizer.step()
            OPTIMIZER.step()
            return loss

        def rebind(**values):
            nonlocal model, optimizer, rate, activation
            model, optimizer = values.get("model", model), values.get("optimizer", optimizer)
            rate, activation = values.get("rate", rate), values.get("activation", activation)

        self.scale, self.table, self.rebind, self.wrap = scale, table, rebind, wrap
        self.step, self.forward = wrap(step), wrap(forward)
        self.undo = contextlib.ExitStack()  # what is switched on for all functions

    def hook(self, handle):
        self.undo.callback(handle.remove)

    def run(self, mode):
        try:
            if mode == "step":
                return [self.step(self.x, self.y).item()]
            with torch.no_grad() if mode == "evaluate" else contextlib.nullcontext():
                result = self.forward(self.x).detach()
        except RuntimeError as error:
            return [str(error)]
        return [str(result.dtype), result.double().numpy().tolist()]

    def state(self):
        models = (self.model, MODEL)
        tensors = [t for m in models for t in (*m.state_dict().values(), *(p.grad for p in m.parameters()))]
        tensors += [v for s in self.optimizer.state.values() for v in s.values()]
        return [None if t is None else t.detach().numpy().tolist() for t in tensors]


def set_globals():
    """As they are before any change."""
    global SCALE, NUMBERS, TABLE, FUNCTION, MODEL, OPTIMIZER
    SCALE, NUMBERS, TABLE, FUNCTION = 1.0, [1.0], {"a": 1.0}, torch.sin
    MODEL = nn.Linear(2, 2)
    OPTIMIZER = optim.SGD(MODEL.parameters(), lr=0.1)


def first(s) -> nn.Linear:
    return s.model[0]


def patched(self, x):
    return x * 3


CHANGES = {
    "child replaced": lambda s: s.model.__setitem__(2, nn.Tanh()),
    "child appended": lambda s: s.model.append(nn.Tanh()),
    "child deleted": lambda s: s.model.__delitem__(2),
    "child inserted": lambda s: s.model.insert(1, nn.Sigmoid()),
    "children reordered": lambda s: s.model._modules.update({"1": s.model[2], "2": s.model[1]}),
    "child shared": lambda s: s.model.__setitem__(2, s.model[1]),
    "child set by name": lambda s: setattr(s.model, "2", nn.Identity()),
    "child in the table": lambda s: s.model._modules.__setitem__("2", nn.Identity()),
    "parameter data": lambda s: setattr(first(s).weight, "data", torch.full((3, 2), 0.5)),
    "parameter replaced": lambda s: setattr(first(s), "weight", nn.Parameter(torch.full((3, 2), 0.5))),
    "parameter in the table": lambda s: first(s)._parameters.__setitem__("weight", nn.Parameter(torch.ones(3, 2))),
    "parameter removed": lambda s: setattr(first(s), "bias", None),
    "parameter frozen": lambda s: first(s).weight.requires_grad_(False),
    "parameter written": lambda s: first(s).weight.data.fill_(0.3),
    "parameter written through an alias": lambda s: first(s).weight.detach().fill_(0.3),
    "buffer replaced": lambda s: setattr(s.model[2], "buffer", torch.full((3,), 2.0)),
    "buffer written": lambda s: s.model[2].buffer.fill_(2.0),
    "plain tensor replaced": lambda s: setattr(s.model[2], "plain", torch.full((3,), 2.0)),
    "plain tensor written": lambda s: s.model[2].plain.fill_(2.0),
    "plain tensor written as NumPy": lambda s: s.model[2].plain.numpy().fill(2.0),
    "number of a module": lambda s: setattr(s.model[2], "factor", 2.0),
    "number in a module's dict": lambda s: s.model[2].__dict__.__setitem__("factor", 2.0),
    "flag of a module": lambda s: setattr(s.model[2], "flag", True),
    "list of a module": lambda s: s.model[2].items.__setitem__(0, 3.0),
    "list of a module replaced": lambda s: setattr(s.model[2], "items", [5.0]),
    "dict of a module": lambda s: s.model[2].table.__setitem__("a", 3.0),
    "object of a module": lambda s: setattr(s.model[2].config, "k", 3.0),
    "class attribute shadowed": lambda s: setattr(s.model[2], "shift", 3.0),
    "eps of a norm": lambda s: setattr(s.model[1], "eps", 0.5),
    "momentum of a norm": lambda s: setattr(s.model[1], "momentum", 0.9),
    "statistics of a norm": lambda s: setattr(s.model[1], "track_running_stats", False),
    "eval": lambda s: s.model.eval(),
    "eval of a child": lambda s: s.model[1].eval(),
    "forward patched": lambda s: setattr(s.model[2], "forward", types.MethodType(patched, s.model[2])),
    "forward hook": lambda s: s.model[2].register_forward_hook(lambda m, a, o: o * 2),
    "forward pre-hook": lambda s: s.model[2].register_forward_pre_hook(lambda m, a: (a[0] * 2,)),
    "backward hook": lambda s: s.model[3].register_full_backward_hook(lambda m, i, o: (i[0] * 2,)),
    "tensor hook": lambda s: first(s).weight.register_hook(lambda g: g * 2),
    "post-accumulate hook": lambda s: first(s).weight.register_post_accumulate_grad_hook(lambda p: p.grad.mul_(2)),
    "attribute of the function's object": lambda s: setattr(s, "number", 2.0),
    "list of the function's object": lambda s: s.numbers.__setitem__(0, 2.0),
    "function called": lambda s: setattr(s, "function", torch.sigmoid),
    "closure's number": lambda s: s.rebind(rate=2.0),
    "closure's list": lambda s: s.scale.__setitem__(0, 2.0),
    "closure's dict": lambda s: s.table.__setitem__("a", 2.0),
    "closure's function": lambda s: s.rebind(activation=torch.sigmoid),
    "closure's model": lambda s: s.rebind(model=nn.Linear(2, 2)),
    # With a large eps: the gradient of a bias before a norm is nothing but rounding, which Adam would make large.
    "closure's optimizer": lambda s: s.rebind(optimizer=optim.Adam(s.model.parameters(), lr=0.1, eps=1.0)),
    "global number": lambda s: globals().__setitem__("SCALE", 3.0),
    "global list": lambda s: NUMBERS.__setitem__(0, 2.0),
    "global dict": lambda s: TABLE.__setitem__("a", 2.0),
    "global function": lambda s: globals().__setitem__("FUNCTION", torch.cos),
    "global model": lambda s: globals().__setitem__("MODEL", nn.Linear(2, 2)),
    "global optimizer": lambda s: globals().__setitem__("OPTIMIZER", optim.SGD(MODEL.parameters(), lr=1.0)),
    "gradient assigned": lambda s: setattr(first(s).weight, "grad", torch.full((3, 2), 2.0)),
    "gradients forgotten": lambda s: s.optimizer.zero_grad(),
    "lr": lambda s: s.optimizer.param_groups[0].__setitem__("lr", 0.5),
    "momentum": lambda s: s.optimizer.param_groups[0].__setitem__("momentum", 0.5),
    "no momentum": lambda s: s.optimizer.param_groups[0].__setitem__("momentum", 0.0),
    "nesterov": lambda s: s.optimizer.param_groups[0].__setitem__("nesterov", True),
    "weight decay": lambda s: s.optimizer.param_groups[0].__setitem__("weight_decay", 0.1),
    "maximize": lambda s: s.optimizer.param_groups[0].__setitem__("maximize", True),
    "parameter taken out": lambda s: s.optimizer.param_groups[0]["params"].pop(),
    "parameters replaced": lambda s: s.optimizer.param_groups[0].__setitem__("params", [first(s).weight]),
    "parameter group added": lambda s: s.optimizer.add_param_group({"params": [s.model[2].buffer], "lr": 1.0}),
    "optimizer state cleared": lambda s: s.optimizer.state.clear(),
    "optimizer state replaced": lambda s: [v.update(momentum_buffer=None) for v in s.optimizer.state.values()],
    "momentum written": lambda s: [v["momentum_buffer"].fill_(1.0) for v in s.optimizer.state.values()],
    "optimizer loaded": lambda s: s.optimizer.load_state_dict(s.optimizer.state_dict()),
    "another optimizer's state loaded": lambda s: s.optimizer.load_state_dict(
        optim.SGD(s.model.parameters(), lr=0.2, momentum=0.5).state_dict()
    ),
    "model loaded": lambda s: s.model.load_state_dict({k: v * 0.5 for k, v in s.model.state_dict().items()}),
    "step pre-hook": lambda s: s.optimizer.register_step_pre_hook(lambda o, a, k: first(s).weight.data.mul_(0.5)),
    "step hook": lambda s: s.optimizer.register_step_post_hook(lambda o, a, k: first(s).weight.data.mul_(0.5)),
    "default dtype": lambda s: torch.set_default_dtype(torch.float64),
    "deterministic": lambda s: torch.use_deterministic_algorithms(True),
    "matmul precision": lambda s: torch.set_float32_matmul_precision("medium"),
    "autocast": lambda s: s.undo.enter_context(torch.autocast("cpu", dtype=torch.bfloat16)),
    "grad mode": lambda s: s.undo.enter_context(torch.set_grad_enabled(False)),
    "inference mode": lambda s: s.undo.enter_context(torch.inference_mode()),
    "global forward hook": lambda s: s.hook(nn.modules.module.register_module_forward_hook(lambda m, a, o: o * 1.5)),
    "global forward pre-hook": lambda s: s.hook(
        nn.modules.module.register_module_forward_pre_hook(lambda m, a: (a[0] * 1.5,))
    ),
    "global backward hook": lambda s: s.hook(
        nn.modules.module.register_module_full_backward_hook(
            lambda m, i, o: tuple(g if g is None else g * 2 for g in i)
        )
    ),
    "global step hook": lambda s: s.hook(
        optim.optimizer.register_optimizer_step_post_hook(lambda o, a, k: first(s).bias.data.mul_(0.5))
    ),
    "input in place": lambda s: s.x.mul_(2.0),
    "other shape": lambda s: (setattr(s, "x", s.x[:3].clone()), setattr(s, "y", s.y[:3].clone())),
    "input that needs gradients": lambda s: setattr(s, "x", s.x.clone().requires_grad_()),
}


def outcome(wrap, mode, change):
    """Three calls, the change, three calls: all results, and all state in the end."""
    s = Setup(wrap)
    try:
        results = [s.run(mode) for _ in range(3)]
        CHANGES[change](s)
        results += [s.run(mode) for _ in range(3)]
        return results, s.state()
    finally:
        s.undo.close()
        torch.set_default_dtype(torch.float32)
        torch.use_deterministic_algorithms(False)
        torch.set_float32_matmul_precision("highest")


def check_equal(a, b, rtol=2e-4, path=""):
    if isinstance(a, (list, tuple)):
        assert len(a) == len(b), path
        for i, (x, y) in enumerate(zip(a, b)):
            check_equal(x, y, rtol, f"{path}[{i}]")
    elif a is None or isinstance(a, str):
        assert a == b, path
    else:
        np.testing.assert_allclose(a, b, rtol=rtol, atol=rtol / 10, err_msg=path)


def cases():
    """(how a program runs, change, mode): what is looked at between calls is the same for both ways to run it.

    So XLA's programs are tried in the mode that has all the others in it; in all with ``RUSHLIGHT_PARITY=all``.
    """
    for change, mode in itertools.product(CHANGES, ("step", "forward", "evaluate")):
        yield "played", change, mode
        if mode == "step" or os.environ.get("RUSHLIGHT_PARITY") == "all":
            yield "xla", change, mode


@pytest.mark.parametrize(("either_way", "change", "mode"), [*cases()], indirect=["either_way"])
def test_a_change_between_calls(change, mode):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        rtol = 5e-2 if change == "autocast" else 2e-4  # bfloat16; the dtypes are compared too
        check_equal(outcome(torch.compile, mode, change), outcome(lambda f: f, mode, change), rtol)


# -- gradients -------------------------------------------------------------------------------------------------------


class Leaves:
    """Two leaves, a spare tensor and a box; the functions below work on them."""

    def __init__(self):
        self.p, self.q = torch.ones(2, requires_grad=True), torch.full((2,), 2.0, requires_grad=True)
        self.spare, self.flat, self.kept = torch.full((2,), 4.0), torch.zeros(4), []
        self.optimizer = optim.SGD([self.p, self.q], lr=0.1, momentum=0.9)

    def backward(self, x):
        (self.p * self.p * self.q * x).sum().backward()

    def step(self, x):
        self.optimizer.zero_grad()
        self.backward(x)
        self.optimizer.step()

    def accumulated(self, x):
        self.backward(x)
        self.optimizer.step()

    def moved(self, x):
        self.p.grad = self.spare
        self.backward(x)

    def swapped(self, x):
        self.p.grad, self.q.grad = self.q.grad, self.p.grad
        self.backward(x)

    def forgotten(self, x):
        self.backward(x)
        if self.p.grad is not None:
            self.spare.copy_(self.p.grad)
        self.p.grad = None

    def replaced(self, x):
        old = self.p.grad
        if old is not None:
            old.mul_(0.5)
        self.p.grad = None
        self.backward(x)
        return old

    def in_a_bucket(self, x):
        self.p.grad = self.flat[:2]
        self.backward(x)

    def one_for_both(self, x):
        self.p.grad = self.q.grad = x * 1
        self.backward(x)

    def with_a_graph(self, x):
        self.p.grad = None
        (self.p * self.p * self.p * x).sum().backward(create_graph=True)

    def state(self):
        found = (self.p, self.q, self.p.grad, self.q.grad, self.spare, self.flat, *self.kept)
        return [None if t is None else t.tolist() for t in found] + [self.p.grad is self.q.grad]

    def keep(self):
        self.kept.append(self.p.grad)

    def give(self):
        self.kept.append(torch.full((2,), 3.0))
        self.p.grad = self.kept[-1]

    def share(self):
        self.p.grad = self.q.grad

    def lay(self):
        self.p.grad = self.flat[2:]


BETWEEN = {
    "given": Leaves.give,
    "kept": Leaves.keep,
    "forgotten": lambda s: setattr(s.p, "grad", None),
    "copied": lambda s: setattr(s.p, "grad", s.p.grad if s.p.grad is None else s.p.grad.clone()),
    "shared": Leaves.share,
    "in a bucket": Leaves.lay,
    "frozen": lambda s: s.p.requires_grad_(False),
    "frozen and forgotten": lambda s: s.p.requires_grad_(False).__setattr__("grad", None),
}


FUNCTIONS = [
    "step",
    "accumulated",
    "moved",
    "swapped",
    "forgotten",
    "replaced",
    "in_a_bucket",
    "one_for_both",
    "with_a_graph",
]


def gradients(wrap, name):
    """Calls of a function with changes before the second and after the third and each further three."""
    s, draw, out = Leaves(), random.Random(name), []
    function = wrap(getattr(s, name))
    for i, change in enumerate(draw.sample([*BETWEEN], 5)):
        for k in range(3 if i else 1):
            result = function(torch.full((2,), 1.0 + k))
            out.append([s.state(), None if result is None else result.tolist()])
        if name == "with_a_graph":
            out.append(torch.autograd.grad(s.p.grad.sum(), s.p)[0].tolist())
        if name != "with_a_graph" or "frozen" not in change:
            BETWEEN[change](s)
    return out


@pytest.mark.parametrize("name", FUNCTIONS)
def test_gradients_are_what_they_are_in_eager_code(name):
    """Which tensors have one, which tensor it is, and who else has it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert gradients(torch.compile, name) == gradients(lambda f: f, name)


# -- who is who ------------------------------------------------------------------------------------------------------


class Known:
    """Tensors by the letters of calls; ``w`` is also what functions know without being given it."""

    def __init__(self):
        self.w, self.x, self.y = torch.full((2,), 3.0), torch.ones(2), torch.full((2,), 5.0)
        self.v, self.p = self.w[:1], torch.full((2,), 2.0, requires_grad=True)
        self.g = torch.ones(2)
        self.g.grad = torch.full((2,), 7.0)

    def read(self, a, b):
        return a * 2 + b * self.w

    def written_argument(self, a, b):
        a.add_(1)
        return a * b + self.w

    def written_state(self, a, b):
        self.w.mul_(2)
        return a - b * self.w

    def bound(self, a, b):
        self.y = self.y * 0.5 + a
        return self.y + b

    def backwards(self, a, b):
        p = self.p
        (p * a + b * b).sum().backward()
        return p.grad * 2

    def looked_at(self, a, b):
        return a + b if a.grad is None else a + a.grad


MIXED = "xx xx xx xy xy yx ww wx xw ww vx xv vw wv xx yy xy ww"
CALLS = {
    "read": MIXED,
    "written_argument": MIXED,
    "written_state": MIXED,
    "bound": MIXED,
    "looked_at": "xy xy xy gx gx gx xg xy gg xy",
    "backwards": "xy xy xy px px pp pp pp xp xy",
}


@pytest.mark.parametrize("name", CALLS)
def test_arguments_that_are_one_tensor_or_known_anyway(name):
    """f(x, x) and then f(x, y); a tensor of the function's own, or a view of it, as an argument."""

    def outcome(wrap):
        s, out = Known(), []
        function = wrap(getattr(s, name))
        for a, b in CALLS[name].split():
            result = function(getattr(s, a), getattr(s, b))
            tensors = (result, s.w, s.x, s.y, s.v, s.p, s.p.grad)
            out.append([None if t is None else t.detach().tolist() for t in tensors])
        return out

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        check_equal(outcome(torch.compile), outcome(lambda f: f))


@pytest.mark.parametrize("name", ["accumulated", "written"])
def test_a_gradient_that_is_an_argument_too(name):
    p, y = None, None

    def accumulated(a):
        (p * 1).sum().backward()
        return a * 2

    def written(a):
        a.add_(1)
        p.data.sub_(p.grad)
        return p * 2

    def outcome(wrap, function):
        nonlocal p, y
        p, y, out = torch.ones(2, requires_grad=True), torch.full((2,), 3.0), []
        function = wrap(function)
        for new, a in [(1, "y"), (0, "y"), (0, "y"), (1, "g"), (0, "g"), (1, "g"), (0, "y"), (1, "y"), (0, "g")]:
            if new:
                p.grad = torch.full((2,), 0.5)
            out.append([function(y if a == "y" else p.grad).tolist(), p.tolist(), p.grad.tolist(), y.tolist()])
        return out

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        function = locals()[name]
        assert outcome(torch.compile, function) == outcome(lambda f: f, function)


# -- state that a function binds, returns, or sees another way -------------------------------------------------------


class Stateful:
    """Functions of ``x`` with state of every kind. In double precision: what they keep is compared after many steps."""

    def __init__(self):
        torch.manual_seed(0)
        self.model = nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2)).double()
        self.model.register_buffer("mean", torch.zeros(2, dtype=torch.float64))
        self.last, self.table = self.model.mean.clone(), {"mean": self.model.mean.clone()}
        self.optimizer = optim.SGD(self.model.parameters(), lr=0.1, momentum=0.9)
        self.whole = torch.arange(4, dtype=torch.float64)
        self.part, self.kept = self.whole[1:3], []

    def binds_a_buffer(self, x):
        self.model.mean = self.model.mean * 0.9 + x.mean(0).detach()
        return self.model[0](x) + self.model.mean

    def binds_an_entry(self, x):
        self.table["mean"] = self.table["mean"] * 0.9 + x.mean(0).detach()
        return self.model[0](x) + self.table["mean"]

    def binds_an_attribute(self, x):
        self.last = self.last * 0.9 + x.mean(0).detach()
        return self.model[0](x) + self.last

    def returns_a_parameter(self, x):
        self._train(x)
        return self.model[0].weight

    def returns_a_buffer(self, x):
        self.model(x)
        return self.model[1].running_mean

    def returns_a_momentum(self, x):
        self._train(x)
        return self.optimizer.state[self.model[0].weight]["momentum_buffer"]

    def returns_a_gradient(self, x):
        self._train(x)
        return self.model[0].weight.grad

    def reads_a_view(self, x):
        self.whole.add_(1)
        return x * self.part

    def writes_a_view(self, x):
        self.part.mul_(2)
        return x * self.whole[:2]

    def reaches_a_gradient(self, x):
        with torch.enable_grad():
            (self.model[0].bias * x).sum().backward()
        return x * 2

    def returns_what_it_is_given(self, x):
        return x

    def _train(self, x):
        with torch.enable_grad():
            self.optimizer.zero_grad()
            self.model(x.detach()).square().sum().backward()
            self.optimizer.step()

    def changed(self, i, result):
        """What somebody does after the call ``i``."""
        if i == 2:
            with torch.no_grad():
                result.mul_(0.5)
        if i == 3:
            self.model.mean, self.last, self.table["mean"] = self.last + 1, self.last * 2, self.last - 1
            self.whole.fill_(2.0)

    def state(self):
        optimizer = [v for s in self.optimizer.state.values() for v in s.values()]
        gradients = [p.grad for p in self.model.parameters()]
        found = [*self.model.state_dict().values(), *gradients, *optimizer, self.last, self.table["mean"]]
        found += [self.whole, self.part, *self.kept]
        return [None if t is None else t.detach().tolist() for t in found]

    def outcome(self, wrap, name, mode):
        function, out = wrap(getattr(self, name)), []
        for i in range(6):
            x = (torch.arange(6, dtype=torch.float64).reshape(3, 2) * (i + 1)).requires_grad_(mode == "step")
            with torch.no_grad() if mode == "evaluate" else contextlib.nullcontext():
                result = function(x)
            if mode == "step" and result.grad_fn is not None:
                result.sum().backward()
            self.kept.append(result)
            self.changed(i, result)
            out.append([None if x.grad is None else x.grad.tolist(), self.state()])
        return out


@pytest.mark.parametrize("mode", ["step", "forward", "evaluate"])
@pytest.mark.parametrize("name", [n for n in vars(Stateful) if n.startswith(("binds", "re", "writes"))])
def test_state_behaves_as_in_eager_code(name, mode):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        compiled, eager = Stateful().outcome(torch.compile, name, mode), Stateful().outcome(lambda f: f, name, mode)
    check_equal(compiled, eager, 1e-7)


# -- random programs -------------------------------------------------------------------------------------------------


def random_program(seed, wrap):
    """A training program with random changes between its calls.

    In double precision: some are so badly conditioned that in single precision the order of a sum shows in the end.
    """
    draw = random.Random(seed)
    torch.set_default_dtype(torch.float64)
    s, out = Setup(wrap), []
    names = [n for n in CHANGES if n not in ("autocast", "default dtype", "parameter group added")]
    try:
        for _ in range(draw.randint(3, 7)):
            mode = draw.choice(["step", "step", "forward", "evaluate"])
            for _ in range(draw.randint(1, 4)):
                out.append(s.run(mode))
            name = draw.choice(names)
            try:
                CHANGES[name](s)
            except Exception as error:
                out.append([float(len(type(error).__name__))])
    except Exception as error:
        out.append(f"{type(error).__name__}")
    finally:
        s.undo.close()
        torch.set_default_dtype(torch.float32)
        torch.use_deterministic_algorithms(False)
        torch.set_float32_matmul_precision("highest")
    return out, s.state()


def check_program(seed):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        got, want = random_program(seed, torch.compile), random_program(seed, lambda f: f)
    check_random(got, want)


def check_random(a, b):
    if isinstance(a, (list, tuple)):
        assert len(a) == len(b)
        for x, y in zip(a, b):
            check_random(x, y)
    elif isinstance(a, float) and isinstance(b, float):
        np.testing.assert_allclose(a, b, rtol=1e-6, atol=1e-7)
    else:
        assert a == b


@pytest.mark.parametrize("seed", range(int(os.environ.get("RUSHLIGHT_COMPILE_PROGRAMS", "20"))))
def test_random_training_programs(seed):
    """All of them: ``RUSHLIGHT_COMPILE_PROGRAMS=2000 pytest -n 2 tests/test_compile_changes.py -k random``."""
    check_program(seed)
