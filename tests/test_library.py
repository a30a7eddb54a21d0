"""Operators of a program's own."""

from __future__ import annotations

import pytest

import rushlight as torch
from rushlight.library import Library, custom_op, define, impl, infer_schema, register_autograd, register_fake


def test_custom_op_with_a_gradient():
    @custom_op("tests::scaled", mutates_args=())
    def scaled(x: torch.Tensor, by: float = 2.0, *, plus: int = 0) -> torch.Tensor:
        return x * by + plus

    def setup(ctx, inputs, keyword_only_inputs, output):
        ctx.by = inputs[1]

    scaled.register_autograd(lambda ctx, g: (g * ctx.by, None, None), setup_context=setup)
    x = torch.ones(2, requires_grad=True)
    y = torch.ops.tests.scaled(x, 3.0, plus=1)
    y.sum().backward()
    assert y.tolist() == [4.0, 4.0] and x.grad.tolist() == [3.0, 3.0]
    assert torch.ops.tests.scaled.default(x.detach()).tolist() == [2.0, 2.0]
    assert "GeneratedBackwardFor_tests_scaled_default" in y.grad_fn.name()


def test_without_a_formula_backward_says_so():
    @custom_op("tests::plain", mutates_args=())
    def plain(x: torch.Tensor) -> torch.Tensor:
        return x * 2

    y = plain(torch.ones(2, requires_grad=True))
    with pytest.raises(RuntimeError, match=r"Trying to backward through tests\.plain\.default but no autograd formula"):
        y.sum().backward()


def test_mutating_and_several_results():
    @custom_op("tests::filled", mutates_args={"x"})
    def filled(x: torch.Tensor, value: float) -> None:
        x.fill_(value)

    x = torch.zeros(2)
    assert filled(x, 5.0) is None and x.tolist() == [5.0, 5.0]

    @custom_op("tests::both", mutates_args=())
    def both(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return x + 1, x + 2

    both.register_autograd(lambda ctx, a, b: a + b)
    x = torch.zeros(1, requires_grad=True)
    a, b = both(x)
    (a + 2 * b).sum().backward()
    assert x.grad.tolist() == [3.0]


def test_define_and_impl():
    define("tests::doubled", "(Tensor x) -> Tensor")

    @impl("tests::doubled", "cpu")
    def doubled(x):
        return x * 2

    @register_fake("tests::doubled")
    def fake(x):
        return torch.empty_like(x)

    register_autograd("tests::doubled", lambda ctx, g: g * 2)
    x = torch.ones(1, requires_grad=True)
    torch.ops.tests.doubled(x).backward()
    assert x.grad.tolist() == [2.0]
    library = Library("tests", "FRAGMENT")
    library.define("tripled(Tensor x) -> Tensor")
    library.impl("tripled", lambda x: x * 3, "CPU")
    assert torch.ops.tests.tripled(torch.ones(1)).tolist() == [3.0]
    with pytest.raises(AttributeError, match="'_OpNamespace' 'tests' object has no attribute 'nothing'"):
        torch.ops.tests.nothing  # noqa: B018
    with pytest.raises(ValueError, match="namespace::name"):
        custom_op("bare", mutates_args=(), schema="(Tensor x) -> Tensor")(lambda x: x)
    with pytest.raises(NotImplementedError, match="Could not run 'tests::unfinished'"):
        define("tests::unfinished", "(Tensor x) -> Tensor")
        torch.ops.tests.unfinished(torch.ones(1))


def test_schemas():
    def f(
        x: torch.Tensor, y: torch.Tensor | None, sizes: list[int], flag: bool = True, *, name: str = "a"
    ) -> tuple[torch.Tensor, int]: ...

    assert infer_schema(f, mutates_args=("x",)) == (
        '(Tensor(a0!) x, Tensor? y, SymInt[] sizes, bool flag=True, *, str name="a") -> (Tensor, SymInt)'
    )
    with pytest.raises(ValueError, match="Parameter x must have a type annotation"):
        infer_schema(lambda x: x, mutates_args=())


def test_aten():
    assert torch.ops.aten.add(torch.ones(1), 1).tolist() == [2.0]
    assert torch.ops.aten.mm.default is torch.ops.aten.mm.default
    assert repr(torch.ops.aten.add.Tensor) == "<OpOverload(op='aten.add', overload='Tensor')>"
    with pytest.raises(NotImplementedError, match=r"torch\.ops\.aten\._to_copy_of_something is only a name"):
        torch.ops.aten._to_copy_of_something(1)
    with pytest.raises(OSError, match="cannot be loaded"):
        torch.ops.load_library("x.so")


def test_optimizers_that_never_call_init():
    class Wrapper(torch.optim.Optimizer):
        def __init__(self, optimizer):
            self.optimizer = optimizer

        def step(self):
            return self.optimizer.step()

    p = torch.nn.Parameter(torch.ones(1))
    p.grad = torch.ones(1)
    called = []
    wrapper = Wrapper(torch.optim.SGD([p], lr=0.5))
    wrapper.register_step_post_hook(lambda *_: called.append(1))
    wrapper.step()
    assert p.item() == 0.5 and called == [1]


def test_compiled_programs_run_operators_that_need_values():
    """Their Python runs at every call, whether or not there is a fake kernel."""
    pytest.importorskip("jax")

    @custom_op("tests::sorted_by_numpy", mutates_args=())
    def sorted_by_numpy(x: torch.Tensor) -> torch.Tensor:
        return torch.from_numpy(x.detach().numpy().copy()[::-1].copy())

    @custom_op("tests::added_by_numpy", mutates_args=("x",))
    def added_by_numpy(x: torch.Tensor) -> None:
        x.numpy()[...] += 1

    def step(x):
        added_by_numpy(x)
        return sorted_by_numpy(x) * 2

    compiled, x = torch.compile(step), torch.tensor([1.0, 5.0])
    with pytest.warns(UserWarning, match="cut"):
        results = [compiled(x).tolist() for _ in range(4)]
    assert results == [[12.0, 4.0], [14.0, 6.0], [16.0, 8.0], [18.0, 10.0]] and x.tolist() == [5.0, 9.0]
