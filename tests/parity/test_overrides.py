"""``__torch_function__`` beside PyTorch: which function is asked for, and the class of what comes back, by table."""

import hooks
import pytest
import torch

import rushlight

OPERATORS = """
x + 1 | 1 + x | p + x | x + p | 1 - x | p - x | x - 1 | p * x | 2 ** x | x ** 2 | x / 2 | 2 / x | p / x |
x @ x.T | x < 1 | x >= p | p > x | -x | abs(x) | x[0] | x[:, 1] | x[x > 0] | x == x | x != p | ~(x > 0) |
x % 2 | x // 2
"""
METHODS = """
p.add(x) | x.sum() | x.mean(0) | x.view(-1) | x.reshape(3, 2) | x.t() | x.split(1) | x.max(0) | x.unbind() |
x.float() | x.double() | x.to('cpu') | x.cpu() | x.clone() | x.detach() | x.new_zeros(2) | x.new_tensor([1.]) |
x.size() | x.dim() | x.numel() | x.tolist() | x.numpy() | x.stride() | x.is_contiguous() | x.type() |
x.softmax(0) | x.expand(2, 3) | x.detach().add_(1) | x.detach().zero_() | x.detach().mul_(2) |
x.requires_grad_() | x.item | x.exp() | x.chunk(3, 1) | x.masked_fill(x > 0, 0.) | x.as_subclass(torch.Tensor) |
x.contiguous() | x.cumsum(0) | x.flatten() | x.unsqueeze(0)
"""
PROPERTIES = (
    "x.shape | x.dtype | x.device | x.requires_grad | x.grad | x.T | x.mT | x.data | x.ndim | x.is_leaf | x.real"
)
FUNCTIONS = """
torch.add(p, x) | torch.add(x, 1) | torch.stack([p, x]) | torch.cat([x, p]) | torch.zeros_like(x) |
torch.sum(x) | torch.einsum('ij->i', x) | torch.where(x > 0, x, p) | torch.allclose(x, p) |
torch.is_floating_point(x) | torch.softmax(x, 0) | torch.linalg.norm(x) | torch.fft.fft(x) |
torch.is_tensor(x) | torch.tensor(x) | torch.as_tensor(x) | torch.empty(2) |
torch.add(x, 1, out=torch.empty(2, 3)) | torch.sort(x) | torch.matmul(x, p.T) | torch.clamp(x, 0) |
torch.full((2,), 1.) | F.relu(x) | F.linear(p, x) | F.gelu(x) | F.mse_loss(x, p) | F.softmax(x, 0) |
F.dropout(x, 0.) | F.layer_norm(x, (3,)) | F.cross_entropy(x, torch.tensor([0, 1])) |
F.conv1d(x[None], torch.ones(2, 2, 1)) | torch.nn.Linear(3, 2)(x) | torch.nn.ReLU()(x) | torch.nn.Parameter(x) |
torch.autograd.grad((y := x.detach().requires_grad_()).sum(), y)
"""
TABLE = [e.strip() for part in (OPERATORS, METHODS, PROPERTIES, FUNCTIONS) for e in part.split("|")]
KINDS = ["Plain", "Child", "Disabled", "Unwrapping", "Refusing"]
# Asked for by the name of another place: torch.einsum.
NAMES_DIFFER = {"torch.einsum('ij->i', x)"}


def world(library):
    class Plain(library.Tensor):
        pass

    class Child(Plain):
        pass

    class Disabled(library.Tensor):
        __torch_function__ = library._C._disabled_torch_function_impl

    class Unwrapping(library.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            with library._C.DisableTorchFunctionSubclass():
                return func(*args, **(kwargs or {}))

    class Refusing(library.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return NotImplemented

    class Logging(library.Tensor):
        log: list = []

        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            cls.log.append(
                (library.overrides.resolve_name(func), [t.__name__ for t in types if t is not library.Tensor])
            )
            return super().__torch_function__(func, types, args, kwargs)

    classes = {c.__name__: c for c in (Plain, Child, Disabled, Unwrapping, Refusing, Logging)}
    return {"torch": library, "F": library.nn.functional, "p": library.ones(2, 3), **classes}


OURS, THEIRS = world(rushlight), world(torch)


def evaluate(names, kind, expression):
    x = names["torch"].tensor([[1.0, -2.0, 3.0], [0.5, 2.5, -1.5]]).as_subclass(names[kind])
    names["Logging"].log.clear()
    try:
        return shape_of(eval(expression, {**names, "x": x}))
    except (TypeError, RuntimeError) as error:
        return type(error).__mro__[-4]


def shape_of(result):
    if isinstance(result, (tuple, list)) and not hasattr(result, "numel"):
        return type(result).__name__, [shape_of(r) for r in result]
    return type(result).__name__.replace("builtin_function_or_method", "method"), tuple(getattr(result, "shape", ()))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("expression", TABLE)
@pytest.mark.filterwarnings("ignore")
def test_results_have_pytorchs_class(kind, expression):
    assert evaluate(OURS, kind, expression) == evaluate(THEIRS, kind, expression)


@pytest.mark.parametrize("expression", [e for e in TABLE if e not in NAMES_DIFFER])
@pytest.mark.filterwarnings("ignore")
def test_the_same_functions_are_asked_for(expression):
    evaluate(OURS, "Logging", expression)
    evaluate(THEIRS, "Logging", expression)
    assert OURS["Logging"].log == THEIRS["Logging"].log


DUCKS = """
torch.add(d, 1) | torch.add(p, d) | torch.stack([d, d]) | torch.mean(d) | torch.sum(d, dim=1) | F.relu(d) |
F.linear(p, d) | p + d | d.__class__ | torch.matmul(p, d) | torch.cat([p, d]) | torch.linalg.norm(d) |
torch.is_tensor(d) | torch.exp(d)
"""


@pytest.mark.parametrize("expression", [e.strip() for e in DUCKS.split("|")])
def test_ducks(expression):
    answers = []
    for names in (OURS, THEIRS):

        class Duck:
            @classmethod
            def __torch_function__(cls, func, types, args=(), kwargs=None):
                return "answered", len(args), [t.__name__ for t in types]

        result = eval(expression, {**names, "d": Duck()})
        answers.append(result.__name__ if isinstance(result, type) else result)
    assert answers[0] == answers[1]


MODES = """
torch.ones(2) | p + 1 | p.add(1) | p.shape | F.relu(p) | torch.tensor(1) | torch.arange(3) | torch.randn(2) |
p[0] | p.sum() | torch.nn.functional.linear(p, p) | torch.nn.init.zeros_(torch.empty(2)) | torch.is_tensor(p) |
torch.linalg.norm(p) | 2 * p | -p
"""


@pytest.mark.parametrize("expression", [e.strip() for e in MODES.split("|")])
def test_modes(expression):
    assert seen_by_modes(OURS, expression) == seen_by_modes(THEIRS, expression)


def seen_by_modes(names, expression):
    """(mode, function) of every call in two nested modes, and none after them."""
    library, log = names["torch"], []

    class Mode(library.overrides.TorchFunctionMode):
        def __init__(self, tag):
            self.tag = tag

        def __torch_function__(self, func, types, args=(), kwargs=None):
            log.append((self.tag, library.overrides.resolve_name(func)))
            return func(*args, **(kwargs or {}))

    with Mode("outer"), Mode("inner"):
        eval(expression, names)
    eval(expression, names)
    inside = ("torch.Tensor.zero_", "torch.Tensor.fill_", None)  # how an initializer does it
    return [(tag, name) for tag, name in log if name not in inside]


@pytest.mark.filterwarnings("ignore")
def test_every_overridable_function_reaches_the_hook():
    compared, found = hooks.differences()
    assert compared > 1200 and not found


_OF_BOTH = {
    "theirs + ours": lambda a, b: a + b,
    "ours + theirs": lambda a, b: b + a,
    "a function of theirs": lambda a, b: torch.matmul(a, b),
    "a function of ours": lambda a, b: rushlight.nn.functional.linear(a, b),
    "their Python": lambda a, b: torch.nn.functional.relu(b),
    "a subclass of theirs": lambda a, b: torch.nn.Parameter(a).add(b),
    "a subclass of ours": lambda a, b: b.as_subclass(type("Own", (rushlight.Tensor,), {})) * a,
}


@pytest.mark.parametrize("name", _OF_BOTH)
def test_tensors_of_both_libraries_do_not_go_together(name):
    """Each library would ask the other's tensors for their ``__torch_function__``, which calls the first again."""
    with pytest.raises(TypeError):
        _OF_BOTH[name](torch.ones(2, 2), rushlight.ones(2, 2))
