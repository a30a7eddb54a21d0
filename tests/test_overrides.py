"""Subclasses, modes and other classes that answer for functions; beside PyTorch in parity/test_overrides.py."""

import copy
import pickle
import threading

import pytest

import rushlight as torch
from rushlight import overrides


class Named(torch.Tensor):
    pass


class Log(overrides.TorchFunctionMode):
    def __init__(self):
        self.names = []

    def __torch_function__(self, func, types, args=(), kwargs=None):
        self.names.append(overrides.resolve_name(func))
        return func(*args, **(kwargs or {}))


def named(*values):
    return torch.tensor(values).as_subclass(Named)


def test_a_subclass_goes_through_operators_views_copies_and_pickles():
    x = named(1.0, 2.0)
    x.note = "kept"
    for made in (x + 1, torch.ones(2) * x, x[0], x.view(1, 2), x.max(0).values, torch.stack([x, x]), x.clone()):
        assert type(made) is Named
    assert x.add_(1) is x
    for made in (copy.copy(x), copy.deepcopy(x), pickle.loads(pickle.dumps(x))):
        assert type(made) is Named and made.note == "kept" and made.tolist() == [2.0, 3.0]


def test_gradients_flow_through_a_subclass():
    x = named(1.0, 2.0).requires_grad_()
    (x * x).sum().backward()
    assert x.grad.tolist() == [2.0, 4.0] and type(x.grad) is torch.Tensor
    (g,) = torch.autograd.grad((x**3).sum(), x, create_graph=True)
    assert type(g) is Named and torch.autograd.grad(g.sum(), x)[0].tolist() == [6.0, 12.0]


def test_a_parameter_of_a_subclass_trains():
    class Scale(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.factor = torch.nn.Parameter(named(2.0))

    module = Scale()
    assert type(module.factor) is Named and isinstance(module.factor, torch.nn.Parameter)
    optimizer = torch.optim.SGD(module.parameters(), lr=0.5)
    module.factor.sum().backward()
    optimizer.step()
    assert module.factor.tolist() == [1.5]
    assert list(module.state_dict()) == ["factor"]


def test_modes_nest_and_end():
    outer, inner = Log(), Log()
    with outer:
        with inner:
            torch.ones(2).add(1)
        torch.ones(2) + 1
    torch.ones(2)
    assert inner.names == ["torch.ones", "torch.Tensor.add"]
    assert outer.names == ["torch.ones", "torch.Tensor.add"] * 2
    assert "__getattribute__" not in vars(torch.Tensor) and not overrides._len_torch_function_stack()


def test_a_mode_belongs_to_its_thread():
    log = Log()
    with log:
        thread = threading.Thread(target=lambda: torch.ones(2) + 1)
        thread.start()
        thread.join()
    assert log.names == []


def test_a_mode_that_fails_is_left():
    class Failing(overrides.TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            raise ValueError("no")

    with pytest.raises(ValueError, match="no"), Failing():
        torch.ones(2)
    assert (torch.ones(2) + 1).tolist() == [2.0, 2.0]


def test_a_class_that_is_no_tensor_answers_and_errors_of_others_stay():
    class Duck:
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return func

    assert torch.add(Duck(), 1) is torch.add
    assert torch.nn.functional.relu(Duck()) is torch.nn.functional.relu
    with pytest.raises(TypeError, match="must be Tensor, not object"):
        torch.add(object(), 1)


def test_functions_of_ones_own_may_be_overridden():
    @overrides.wrap_torch_function(lambda x: (x,))
    def twice(x):
        return x * 2

    class Seen(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return "seen" if func is twice else super().__torch_function__(func, types, args, kwargs)

    assert twice(torch.ones(1).as_subclass(Seen)) == "seen"
    assert twice(torch.ones(1)).tolist() == [2.0]


def test_every_overridable_function_has_a_name():
    functions = overrides.get_overridable_functions()
    assert {torch, torch.nn.functional, torch.Tensor} <= set(functions)
    for space, members in functions.items():
        for f in members:
            assert overrides.resolve_name(f), (space, f)
    assert torch.add in overrides.get_testing_overrides() and torch.is_tensor in overrides.get_ignored_functions()


def test_device_contexts_give_factories_a_device():
    from rushlight.utils._device import DeviceContext

    with DeviceContext("cpu") as context:
        assert torch.ones(2).device == context.device
