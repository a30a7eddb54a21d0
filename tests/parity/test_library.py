"""Operators of a program's own, beside PyTorch's: their schemas, what ``opcheck`` finds, what a write counts."""

import re

import pytest
import torch

import rushlight
from rushlight.schemas import parse_schema

THEIRS = torch._C  # as it is before another test puts rushlight in its place
SCHEMAS = [
    "ns::f.over(Tensor(a!) self, *, Scalar alpha=1, int[2] size, Tensor? w=None, float f=1e-5) -> (Tensor(a!) o, int)",
    "f(Tensor(a -> b) x, Tensor(*) y) -> Tensor", "f(Tensor x, *, int y) -> (Tensor, ...)", "f(Tensor x) -> (Tensor)",
    "f() -> ()", "f(int? a, float[]? b, Device d, ScalarType? t, Generator? g) -> Tensor[]",
    "f(Tensor(a!)[] xs, ...) -> Tensor", "f(Tensor x) -> Tensor y", "f(float x=100000000000000000000) -> ()",
    "f(int[2] x=0, int[] y=[1,2], bool[3] z=True, SymInt[3] k=1) -> ()", "f(ScalarType? x=long) -> ()",
    'f(str x="a\\"b", Scalar y=2., MemoryFormat m=contiguous_format) -> ()',
    "f(Tensor) -> Tensor", "f(Tensor x)", "", "f(Tensor x, Foo y) -> ()", "f(Tensor x", "f(float x=inf) -> ()",
    "1f(Tensor x) -> Tensor", "f(Tensor x) -> Tensor extra stuff", "f(Tensor? x=[]) -> Tensor",
    "f(Tensor(a!|b) x) -> ()",
]  # fmt: skip


def read(parse, text):
    try:
        schema = parse(text)
    except RuntimeError as error:
        return str(error)
    arguments = [
        (a.name, str(a.type), a.default_value, a.has_default_value(), a.kwarg_only, a.N, a.is_out, _sets(a.alias_info))
        for a in schema.arguments
    ]
    returns = [(r.name, str(r.type), _sets(r.alias_info)) for r in schema.returns]
    return str(schema), schema.name, schema.overload_name, schema.is_mutable, arguments, returns


def _sets(info):
    return info and (info.is_write, info.before_set, info.after_set)


@pytest.mark.parametrize("text", SCHEMAS)
def test_schema(text):
    assert read(parse_schema, text) == read(THEIRS.parse_schema, text)


def test_schemas_of_aten():
    """Those that name no type of TorchScript's own."""
    texts = [str(s) for s in THEIRS._jit_get_all_schemas() if str(s).startswith("aten::_")]
    texts = [t for t in texts if not re.search(r"Dict|\bt\d?\b|\]\(|RNN|Future|Stream|Any", t)]
    assert len(texts) > 500
    wrong = [t for t in texts if read(parse_schema, t) != read(THEIRS.parse_schema, t)]
    assert not wrong, wrong[:5]


def operators(torch, space):
    op = torch.library.custom_op

    def declare(name, mutates, function):
        annotations = dict.fromkeys(function.__code__.co_varnames[: function.__code__.co_argcount], torch.Tensor)
        function.__annotations__ = {**annotations, "return": None if mutates else torch.Tensor}
        return op(f"{space}::{name}", function, mutates_args=mutates)

    def thrice(x):
        x.add_(1)
        x.mul_(2)
        x[0] = 3

    return {
        "good": declare("good", (), lambda x: x * 2),
        "lie": declare("lie", (), lambda x: (x.add_(1), x.clone())[1]),
        "fake": declare("fake", (), lambda x: x * 2),
        "wrong": declare("wrong", (), lambda x: x * 2),
        "alias": declare("alias", (), lambda x: x.view(-1)),
        "thrice": declare("thrice", ("x",), thrice),
        "never": declare("never", ("x",), lambda x: None),
        "both": declare("both", ("x",), lambda x, y: (x.add_(y), None)[1]),
    }


def test_writes_are_counted():
    def versions(torch):
        ops = operators(torch, "versions")
        x = torch.zeros(3)
        part, seen = x[:2], []
        for name, args in (("both", (part, torch.ones(2))), ("thrice", (x,)), ("never", (x,)), ("lie", (x,))):
            ops[name](*args)
            seen.append((x._version, part._version, x.tolist()))
        leaf = torch.zeros(3, requires_grad=True)
        ops["thrice"](leaf)
        return seen, leaf._version, [str(ops[n]._opoverload._schema) for n in ops]

    assert versions(rushlight) == versions(torch)


def test_opcheck():
    def found(torch):
        ops = operators(torch, "opcheck")
        for name in ("good", "lie", "alias"):
            ops[name].register_fake(lambda x: torch.empty_like(x))
        ops["wrong"].register_fake(lambda x: x.new_empty(5))
        ops["good"].register_autograd(lambda ctx, g: g * 2)
        check = torch.library.opcheck
        seen = {}
        for name in ("good", "lie", "fake", "wrong"):
            for wanted in (True, False):
                x = torch.ones(3, requires_grad=wanted)
                results = check(ops[name], (x,), raise_exception=False)
                seen[name, wanted] = {k: v if isinstance(v, str) else type(v).__name__ for k, v in results.items()}
        for arguments in (
            {"op": ops["lie"], "test_utils": "test_schema"},
            {"op": ops["good"], "test_utils": ("other",)},
        ):
            with pytest.raises(Exception) as raised:
                check(args=(torch.ones(3),), **arguments)
            seen[str(arguments["test_utils"])] = type(raised.value).__name__, str(raised.value)
        return seen

    ours, theirs = found(rushlight), found(torch)
    assert ours == theirs


def test_what_cannot_be_a_schema():
    def messages(torch):
        tensor = torch.Tensor

        def unreturned(x: tensor): ...
        def several(*x: tensor) -> tensor: ...
        def number(x: int) -> tensor: ...
        def plain(x: tensor) -> tensor: ...

        seen = []
        for function, mutates in ((unreturned, ()), (several, ()), (number, ("x",)), (plain, ("z",))):
            with pytest.raises(ValueError) as raised:
                torch.library.infer_schema(function, mutates_args=mutates)
            seen.append(str(raised.value).partition(" Got func")[0])
        op = torch.library.custom_op("messages::plain", plain, mutates_args=())
        for args, kwargs in (((), {}), ((torch.ones(1), 2), {}), ((torch.ones(1),), {"other": 2}), ((3,), {})):
            with pytest.raises(RuntimeError) as raised:
                op(*args, **kwargs)
            seen.append(str(raised.value))
        return seen, torch.library.get_ctx()

    ours, theirs = messages(rushlight), messages(torch)
    for mine, yours in zip(ours[0], theirs[0]):
        assert mine == yours
    assert ours[1] is theirs[1] is None
