"""nn.Module where PyTorch cannot be asked: our own promises, PyTorch's bugs, other engines."""

import copy
import gc
import pickle
import weakref

import pytest

import rushlight as torch
from rushlight import nn
from rushlight.nn import module as machinery
from rushlight.nn.module import epoch


class Scale(nn.Module):
    def __init__(self):
        super().__init__()
        self.factor = nn.Parameter(torch.tensor(2.0))

    def forward(self, x, *, plus=0):
        return x * self.factor + plus


class Fails(nn.Module):
    def forward(self, x, **kwargs):
        raise ValueError("forward says no")


# -- one source of truth ---------------------------------------------------------------------------------------------


def test_the_tables_are_the_truth():
    m = Scale()
    other = nn.Parameter(torch.tensor(5.0))
    m._parameters["factor"] = other
    assert m.factor is other
    m._parameters["added"] = other
    assert m.added is other
    del m._parameters["factor"]
    with pytest.raises(AttributeError, match="'Scale' object has no attribute 'factor'"):
        _ = m.factor
    m.factor = 3
    assert m.factor == 3
    assert "factor" in m.__dict__


def test_an_instance_attribute_comes_before_the_table():
    m = Scale()
    m.__dict__["factor"] = "mine"
    assert m.factor == "mine"
    del m.__dict__["factor"]
    assert isinstance(m.factor, nn.Parameter)


def test_readers_are_not_seen_on_the_class():
    Scale()
    assert not hasattr(Scale, "factor")
    with pytest.raises(AttributeError, match="type object 'Scale' has no attribute 'factor'"):
        _ = Scale.factor
    m = Scale()
    assert "factor" in dir(m)
    del m.factor
    assert "factor" not in dir(m)
    assert not hasattr(m, "factor")


def test_a_name_may_be_different_things_in_instances_of_one_class():
    class Any(nn.Module):
        def __init__(self, value):
            super().__init__()
            self.value = value

    parameter, buffer, child = nn.Parameter(torch.ones(1)), nn.Buffer(torch.ones(1)), nn.Identity()
    for value in (parameter, buffer, child, 3, None):
        assert Any(value).value is value


def test_class_attributes_and_properties_stay():
    class Tied(nn.Linear):
        @property
        def weight(self):
            return "property"

    m = nn.Linear(1, 1)
    m.__class__ = Tied
    assert m.weight == "property"


def test_keys_of_a_parameter_dict_leave_no_trace_in_its_class():
    nn.ParameterDict({"some_key": torch.ones(1)})
    assert "some_key" not in vars(nn.ParameterDict)


# -- hooks -----------------------------------------------------------------------------------------------------------


def test_a_module_without_hooks_has_no_hooks_object():
    m = Scale()
    m(torch.ones(1))
    assert "_hooks" not in m.__dict__
    m.register_forward_hook(lambda *_: None)
    assert "_hooks" in m.__dict__


def test_global_hook_with_kwargs_and_always_call_gets_its_arguments_when_forward_raises():
    # PyTorch calls it without kwargs there.
    seen = []
    handle = machinery.register_module_forward_hook(
        lambda module, args, kwargs, output: seen.append((args, kwargs, output)), with_kwargs=True, always_call=True
    )
    try:
        with pytest.raises(ValueError, match="forward says no"):
            Fails()(1, plus=2)
    finally:
        handle.remove()
    assert seen == [((1,), {"plus": 2}, None)]


def test_removed_global_hooks_leave_the_fast_path():
    handle = machinery.register_module_forward_hook(lambda *_: None)
    nn.Identity()(1)
    assert machinery.everyone.present
    handle.remove()
    nn.Identity()(1)
    assert not machinery.everyone.present


def test_private_tables_can_be_written():
    m, seen = nn.Identity(), []
    m._forward_hooks[123456789] = lambda module, args, output: seen.append(output)
    m(1)
    m._forward_hooks.clear()
    m(2)
    m._forward_pre_hooks = type(m._forward_hooks)({5: lambda module, args: (10,)})
    assert m(3) == 10
    assert seen == [1]
    machinery._global_forward_hooks[987654321] = lambda module, args, output: -output
    try:
        assert nn.Identity()(4) == -4
    finally:
        machinery._global_forward_hooks.clear()
    assert nn.Identity()(4) == 4


def test_a_handle_keeps_no_module_alive():
    m = nn.Identity()
    handle, alive = m.register_forward_hook(lambda *_: None), weakref.ref(m)
    del m
    gc.collect()
    assert alive() is None
    handle.remove()


def test_full_backward_hooks_on_xla():
    pytest.importorskip("jax")
    m = nn.Linear(2, 1, bias=False).to("xla")
    torch.nn.init.ones_(m.weight)
    seen = []

    def hook(module, grad_input, grad_output):
        seen.append((grad_input[0].tolist(), grad_output[0].tolist()))
        return (grad_input[0] * 2,)

    m.register_full_backward_hook(hook)
    m.register_full_backward_pre_hook(lambda module, grad_output: (grad_output[0] * 3,))
    x = torch.ones(1, 2, device="xla", requires_grad=True)
    m(x).sum().backward()
    assert seen == [([[3.0, 3.0]], [[3.0]])]
    assert x.grad.tolist() == [[6.0, 6.0]]
    assert m.weight.grad.tolist() == [[3.0, 3.0]]
    with pytest.raises(RuntimeError, match="Output 0 of BackwardHookFunction is a view"):
        m(x).add_(1)


def test_views_of_a_watched_output_cannot_be_written():
    m = nn.Identity()
    m.register_full_backward_hook(lambda *_: None)
    with pytest.raises(RuntimeError, match="is a view and is being modified inplace"):
        m(torch.ones(2, requires_grad=True) * 1)[0].add_(1)


# -- the counter for compiled code -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "change",
    [
        lambda m: m.eval(),
        lambda m: setattr(m, "training", False),
        lambda m: m.register_forward_hook(lambda *_: None),
        lambda m: m.register_full_backward_hook(lambda *_: None),
        lambda m: m._forward_hooks,
        lambda m: setattr(m, "w", nn.Parameter(torch.ones(1))),
        lambda m: setattr(m, "factor", None),
        lambda m: delattr(m, "factor"),
        lambda m: m.register_buffer("b", torch.ones(1)),
        lambda m: m.add_module("c", nn.Identity()),
        lambda m: setattr(m, "c", nn.Identity()),
        lambda m: m.double(),
        lambda m: machinery.register_module_forward_hook(lambda *_: None).remove(),
        lambda m: m.factor.register_hook(lambda g: g),
    ],
)
def test_changes_are_counted(change):
    m = Scale()
    before = epoch.value
    change(m)
    assert epoch.value > before


def test_what_changes_nothing_is_not_counted():
    m = Scale()
    before = epoch.value
    m(torch.ones(1))
    m.train()
    m.plain = 3
    list(m.parameters())
    m.state_dict()
    assert epoch.value == before


# -- copies ----------------------------------------------------------------------------------------------------------


def keep(module, args, output):
    return output


def test_state_has_the_tables_under_pytorchs_names():
    m = nn.Linear(1, 1)
    assert "_hooks" not in m.__getstate__()
    m.register_forward_hook(keep, with_kwargs=False)
    state = m.__getstate__()
    assert "_hooks" not in state
    assert list(state["_forward_hooks"].values()) == [keep]
    assert len(pickle.loads(pickle.dumps(m))._forward_hooks) == 1


def test_state_of_a_pytorch_module_loads():
    state = {**nn.Linear(2, 1).__getstate__(), "_forward_hooks": {}, "_backward_hooks": {}, "_compiled_call_impl": None}
    m = nn.Linear.__new__(nn.Linear)
    m.__setstate__(state)
    assert "_hooks" not in m.__dict__
    assert m(torch.ones(1, 2)).shape == (1, 1)


def test_a_copy_of_a_deep_model_is_its_own():
    m = nn.Sequential(*[nn.Linear(1, 1) for _ in range(50)])
    copied = copy.deepcopy(m)
    with torch.no_grad():
        copied[3].weight.zero_()
    assert m[3].weight.item() != 0


# -- containers, conversion ------------------------------------------------------------------------------------------


def test_module_list_inserts_as_a_list_does():
    # PyTorch raises KeyError for a negative index, and has moved half of the modules by then.
    a, b, c = nn.Identity(), nn.Flatten(), nn.Linear(1, 1)
    layers = nn.ModuleList([a, b])
    layers.insert(-1, c)
    assert list(layers) == [a, c, b]
    assert list(layers._modules) == ["0", "1", "2"]
    layers.insert(99, nn.Identity())
    assert list(layers._modules) == ["0", "1", "2", "3"]
    with pytest.raises(TypeError, match="int is not a Module subclass"):
        layers.insert(0, 3)
    assert len(layers) == 4


def test_unknown_devices_are_named():
    for name in ("xpu", "mtia", "ipu"):
        with pytest.raises(AssertionError, match=name.upper()):
            getattr(Scale(), name)()
    with pytest.raises(RuntimeError, match="nonsense"):
        Scale().to("nonsense")
    with pytest.raises(TypeError, match="invalid combination of arguments"):
        Scale().to([])


def test_parameters_are_replaced_on_conversion_only_if_asked():
    m = Scale()
    factor = m.factor
    m.double()
    assert m.factor is factor
    torch.__future__.set_overwrite_module_params_on_conversion(True)
    try:
        m.factor.grad = torch.tensor(1.0, dtype=torch.float64)
        m.float()
        assert m.factor is not factor
        assert m.factor.grad.dtype == torch.float32
    finally:
        torch.__future__.set_overwrite_module_params_on_conversion(False)


def test_to_xla_and_back_keeps_parameters_values_and_gradients():
    pytest.importorskip("jax")
    m = nn.Linear(2, 1)
    m.register_buffer("count", torch.zeros(1, dtype=torch.int64))
    m(torch.ones(1, 2)).sum().backward()
    weight, values, state = m.weight, m.weight.tolist(), copy.deepcopy(m.state_dict())
    m.to("xla")
    assert m.weight is weight
    assert [t.device.type for t in (m.weight, m.weight.grad, m.count)] == ["xla"] * 3
    assert m.weight.tolist() == values
    m.zero_grad(set_to_none=False)
    assert m.weight.grad.tolist() == [[0.0, 0.0]]
    with torch.no_grad():
        m.weight.zero_()
    assert repr(m.load_state_dict(state)) == "<All keys matched successfully>"
    assert m.weight.device.type == "xla"
    assert copy.deepcopy(m).cpu().weight.tolist() == values


def test_a_tensor_without_gradient_passes_a_backward_hook_as_itself():
    class Counts(nn.Module):
        def forward(self, x, count):
            count += 1
            return x * 2

    m, count = Counts(), torch.zeros(1)
    m.register_full_backward_hook(lambda *_: None)
    m(torch.ones(1, requires_grad=True), count)
    assert count.item() == 1


def test_a_deep_tree_is_walked_without_recursion():
    m = nn.Module()
    top = m
    for _ in range(5000):
        m.child = nn.Module()
        m = m.child
    assert sum(1 for _ in top.modules()) == 5001


def test_uninitialized_parameters_refuse_ops():
    with pytest.raises(ValueError, match="Attempted to use an uninitialized parameter"):
        nn.UninitializedParameter() + 1
    assert repr(pickle.loads(pickle.dumps(nn.UninitializedParameter()))) == "<UninitializedParameter>"


def test_compile_is_called_in_the_modules_place():
    m = Scale()
    m._compiled_call_impl = lambda *args, **kwargs: "compiled"
    assert m(1) == "compiled"
    assert m._call_impl(torch.ones(1)).item() == 2
    assert pickle.loads(pickle.dumps(m))(torch.ones(1)).item() == 2


def test_a_getattr_of_ones_own_sees_members_too():
    """Also where a class above has been read before, or only is later."""

    class Above(nn.Module):
        def __init__(self):
            super().__init__()
            self.weight, self.child = nn.Parameter(torch.ones(2)), nn.ReLU()

    class Asks(Above):
        def __getattr__(self, name):
            seen.append(name)
            return super().__getattr__(name)

    class Fixed(Asks):
        child = property(lambda self: "mine")

    seen = []
    assert Above().weight is not None
    for cls in (Asks, type("AsksToo", (Asks,), {}), Fixed):
        m = cls()
        seen.clear()
        assert m.weight is m._parameters["weight"] and "weight" in seen
    assert Fixed.child.fget(m) == "mine" and m.child is not None
    above = Above()
    above.later = nn.Parameter(torch.ones(1))
    m = Asks()
    m.later = nn.Parameter(torch.zeros(1))
    seen.clear()
    assert m.later.item() == 0 and "later" in seen and above.later.item() == 1


# -- errors that say where they come from ----------------------------------------------------------------------------


def raised(call):
    with pytest.raises(Exception) as caught:
        call()
    return caught.value


class Body(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList([nn.Linear(2, 2), nn.Linear(2, 3), nn.Linear(2, 2)])

    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return x


def test_an_error_names_the_module_that_failed():
    import pickle
    import traceback

    error = raised(lambda: nn.Sequential(nn.Identity(), nn.Sequential(Body()))(torch.ones(1, 2)))
    note = "in 1.0.blocks.2: Linear(in_features=2, out_features=2, bias=True)"
    assert error.__notes__ == [note] and str(error) == "mat1 and mat2 shapes cannot be multiplied (1x3 and 2x2)"
    shown = "".join(traceback.format_exception(error))
    assert "During handling" not in shown and shown.endswith(f"(1x3 and 2x2)\n{note}\n")
    copied = pickle.loads(pickle.dumps(error))
    assert copied.__notes__ == [note] and type(copied.__notes__[0]) is str


def test_notes_of_others_are_kept_and_a_stranger_starts_a_path():
    stranger = nn.Sequential(nn.Linear(3, 3))

    class Outer(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner, self.other = nn.Identity(), [stranger]

        def forward(self, x):
            try:
                return self.other[0](self.inner(x))
            except RuntimeError as error:
                error.add_note("mine")
                raise

    model = nn.ModuleDict({"outer": Outer()})
    error = raised(lambda: model["outer"](torch.ones(1, 2)))
    assert error.__notes__[-1] == "mine" or "mine" in error.__notes__
    assert any(note.startswith("in 0: Linear(") for note in error.__notes__)


def test_a_call_of_its_own_is_no_path_and_hooks_are_inside():
    assert not hasattr(raised(lambda: nn.Linear(3, 4)(torch.ones(2, 5))), "__notes__")
    model = nn.Sequential(nn.ReLU())
    model[0].register_forward_hook(lambda *_: 1 / 0)
    assert raised(lambda: model(torch.ones(1))).__notes__ == ["in 0: ReLU()"]


def test_a_module_that_cannot_be_looked_into_fails_as_it_does():
    class Broken(nn.Module):
        def extra_repr(self):
            raise KeyError("extra_repr")

        def forward(self):
            raise ValueError("mine")

    class Holder(nn.Module):
        def __init__(self):
            super().__init__()
            self.child = Broken()

        def forward(self):
            return self.child()

    error = raised(Holder())
    assert str(error) == "mine" and not hasattr(error, "__notes__")
