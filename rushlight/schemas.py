"""Schemas of operators: the line ``ns::name(Tensor x, int n=3) -> Tensor`` read, and printed as PyTorch prints it."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

from .device import device

__all__ = ["AliasInfo", "Argument", "FunctionSchema", "Type", "parse_schema"]


@dataclass(frozen=True)
class Type:
    """The type of an argument: ``Optional[List[int]]``; ``written`` is the schema's word for it, ``int[]?``."""

    name: str  # TensorType, ListType …
    text: str
    written: str = field(compare=False)
    element: Type | None = None

    def __str__(self) -> str:
        return self.text

    __repr__ = __str__

    def kind(self) -> str:
        return self.name

    def getElementType(self) -> Type:
        if self.element is None:
            raise AttributeError(f"{self.name} has no element type")
        return self.element


@dataclass(frozen=True)
class AliasInfo:
    """Which memory an argument may share, before and after the call, and whether it is written.

    The sets are names that the schema gives to memory. A list has none itself, its elements have.
    """

    is_write: bool
    before_set: set
    after_set: set
    written: str = ""

    def __str__(self) -> str:
        return self.written


_NOTHING: Any = object()


@dataclass(frozen=True, repr=False)
class Argument:
    """One argument, or result, of an operator."""

    name: str
    type: Type
    N: int | None = None  # the length of a list that one number may stand for
    default: Any = _NOTHING
    kwarg_only: bool = False
    alias_info: AliasInfo | None = None

    @property
    def default_value(self):
        return None if self.default is _NOTHING else self.default

    def has_default_value(self) -> bool:
        return self.default is not _NOTHING

    @property
    def real_type(self) -> Type:
        return self.type

    @property
    def is_write(self) -> bool:
        return self.alias_info is not None and self.alias_info.is_write

    @property
    def is_out(self) -> bool:
        return self.kwarg_only and self.is_write

    def _line(self) -> str:
        written = self.type.written
        if self.alias_info is not None:
            end = re.match(r"\w+", written).end()  # type: ignore[union-attr]
            written = f"{written[:end]}{self.alias_info}{written[end:]}"
        line = f"{written} {self.name}" if self.name else written
        return line if self.default is _NOTHING else f"{line}={self._default_text()}"

    def _default_text(self) -> str:
        value = self.default
        if value and self.N is not None and self.N > 1 and self.type.written.startswith("int") and len(set(value)) == 1:
            return str(value[0])
        return _text_of(value)


@dataclass(frozen=True)
class FunctionSchema:
    """What an operator takes and returns."""

    name: str
    overload_name: str
    arguments: list
    returns: list
    varargs: bool = False
    varreturns: bool = False

    @property
    def is_mutable(self) -> bool:
        return any(a.is_write for a in self.arguments)

    def __str__(self) -> str:
        parts: list[str] = []
        for a in self.arguments:
            if a.kwarg_only and "*" not in parts:
                parts.append("*")
            parts.append(a._line())
        results = [r._line() for r in self.returns] + ["..."] * self.varreturns
        returned = results[0] if len(results) == 1 and not self.varreturns else f"({', '.join(results)})"
        overload = f".{self.overload_name}" if self.overload_name else ""
        return f"{self.name}{overload}({', '.join(parts + ['...'] * self.varargs)}) -> {returned}"

    __repr__ = __str__

    def __hash__(self) -> int:
        return hash(str(self))

    def __eq__(self, other) -> bool:
        return isinstance(other, FunctionSchema) and str(self) == str(other)


def _text_of(value) -> str:
    if isinstance(value, float):
        text = f"{value:.17g}"
        return text if re.search(r"[.en]", text) else text + "."
    if isinstance(value, str):
        return '"' + re.sub(r"""(["'\\])""", r"\\\1", value) + '"'
    return f"[{', '.join(map(_text_of, value))}]" if isinstance(value, list) else str(value)


# -- reading -----------------------------------------------------------------------------------------------------------

_TOKEN = re.compile(
    r"""\s*(?:(?P<number>-?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)|(?P<string>"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*')"""
    r"""|(?P<ident>[A-Za-z_]\w*)|(?P<arrow>->)|(?P<dots>\.\.\.)|(?P<colons>::)|(?P<sign>\S))"""
)
_TYPES = {
    "Tensor": "TensorType Tensor", "int": "IntType int", "SymInt": "IntType int", "float": "FloatType float",
    "bool": "BoolType bool", "SymBool": "SymBoolType bool", "str": "StringType str", "Scalar": "NumberType number",
    "Device": "DeviceObjType Device", "ScalarType": "IntType int", "Layout": "IntType int",
    "MemoryFormat": "IntType int", "Generator": "GeneratorType Generator", "complex": "ComplexType complex",
    "Storage": "StorageType Storage", "Stream": "StreamObjType Stream", "QScheme": "QSchemeType QScheme",
    "Any": "AnyType Any",
}  # fmt: skip
_NUMBERED = {"strided": 0, "contiguous_format": 0, "preserve_format": 1, "channels_last": 2, "channels_last_3d": 3}
# The numbers that PyTorch's files and schemas give to dtypes.
_DTYPE_NUMBERS = {
    "uint8": 0, "int8": 1, "int16": 2, "int32": 3, "int64": 4, "float16": 5, "float32": 6, "float64": 7,
    "complex32": 8, "complex64": 9, "complex128": 10, "bool": 11, "bfloat16": 15, "long": 4, "float": 6, "double": 7,
}  # fmt: skip


def parse_schema(text: str) -> FunctionSchema:
    """Read a schema.

    >>> from rushlight.schemas import parse_schema
    >>> parse_schema("ns::f(Tensor(a!) x, *, float by=2) -> ()")
    ns::f(Tensor(a!) x, *, float by=2.) -> ()
    """
    return _Reader(text).schema()


class _Reader:
    def __init__(self, text: str):
        self.text, self.tokens, place = text, [], 0
        while found := _TOKEN.match(text, place):
            self.tokens.append((found.lastgroup, found[found.lastgroup or 0], found.start(found.lastgroup or 0)))
            place = found.end()
        self.place = 0

    def schema(self) -> FunctionSchema:
        name = self.take("ident")
        if self.took("::"):
            name += "::" + self.take("ident")
        overload = self.take("ident") if self.took(".") else ""
        if self.next()[1] != "(":
            self.fail("eof")
        arguments, varargs = self.arguments()
        self.take("arrow")
        if self.next()[1] == "(":
            returns, varreturns = self.arguments()
        else:
            returns, varreturns = [self.argument(False, named=False)], False
        if self.next()[0] != "eof":
            self.fail("eof")
        schema = FunctionSchema(name, overload, arguments, returns, varargs, varreturns)
        _check_order(schema)
        return schema

    def arguments(self) -> tuple[list, bool]:
        named = self.place and self.tokens[self.place - 1][0] != "arrow"
        self.take("(")
        found: list[Argument] = []
        only = False
        while self.next()[1] != ")":
            if self.took("..."):
                self.take(")")
                return found, True
            if self.took("*"):
                only = True
            else:
                found.append(self.argument(only, named))
            if not self.took(","):
                break
        self.take(")")
        return found, False

    def argument(self, only: bool, named=True) -> Argument:
        kind, alias, length = self.type()
        name = self.take("ident") if named or self.next()[0] == "ident" else ""
        default = self.default(kind, length) if self.took("=") else _NOTHING
        return Argument(name, kind, length, default, only, alias)

    def type(self) -> tuple[Type, AliasInfo | None, int | None]:
        word = self.take("ident")
        if word not in _TYPES:
            self.place -= 1
            self.fail_here(
                "\nunknown type specifier. Common valid schema types include Tensor, SymInt, int, float, bool, Scalar; "
                "for a full list, please see "
                "https://github.com/pytorch/pytorch/blob/main/aten/src/ATen/native/README.md#func :"
            )
        name, text = _TYPES[word].split()
        kind, alias, length = Type(name, text, word), None, None
        if self.next()[1] == "(":
            alias = self.alias()
        while True:
            if self.took("["):
                length = int(self.take("number")) if self.next()[0] == "number" else None
                self.take("]")
                if alias is not None:
                    alias = AliasInfo(alias.is_write, set(), set(), alias.written)
                kind = Type("ListType", f"List[{kind}]", f"{kind.written}[{'' if length is None else length}]", kind)
            elif self.took("?"):
                kind = Type("OptionalType", f"Optional[{kind}]", kind.written + "?", kind)
            else:
                return kind, alias, length

    def alias(self) -> AliasInfo:
        self.take("(")
        before = self.names()
        write = self.took("!")
        after = self.names() if self.took("->") else before
        self.take(")")
        text = "|".join(sorted(before)) + "!" * write
        return AliasInfo(
            write, before, after, f"({text})" if after is before else f"({text} -> {'|'.join(sorted(after))})"
        )

    def names(self) -> set:
        found = set()
        while True:
            found.add("*" if self.took("*") else self.take("ident"))
            if not self.took("|"):
                return found

    def default(self, kind: Type, length: int | None):
        if self.took("None"):
            return None
        inner = kind.element if kind.name == "OptionalType" and kind.element is not None else kind
        if inner.name == "ListType" and inner.element is not None:
            if not self.took("["):
                return [self.constant(inner.element)] * (length or 1)
            values = []
            while self.next()[1] != "]":
                values.append(self.constant(inner.element))
                if not self.took(","):
                    break
            self.take("]")
            return values
        return self.constant(inner)

    def constant(self, kind: Type):
        group, word, _ = self.next()
        self.place += 1
        if group == "string":
            value: Any = re.sub(r"\\(.)", r"\1", word[1:-1])
            return device(value) if kind.name == "DeviceObjType" else value
        if word in ("True", "False"):
            return word == "True"
        if group == "ident":
            return self.numbered(kind, word)
        if group != "number":
            self.place -= 1
            self.fail("number")
        return float(word) if kind.name == "FloatType" or re.search(r"[.eE]", word) else int(word)

    def numbered(self, kind: Type, word: str) -> int:
        """A name that stands for a number."""
        if kind.written == "ScalarType" and word in _DTYPE_NUMBERS:
            return _DTYPE_NUMBERS[word]
        if kind.written in ("Layout", "MemoryFormat") and word in _NUMBERED:
            return _NUMBERED[word]
        self.fail_here("\ninvalid numeric default value:")
        raise AssertionError

    def next(self) -> tuple:
        return self.tokens[self.place] if self.place < len(self.tokens) else ("eof", "eof", None)

    def took(self, word: str) -> bool:
        if self.next()[1] != word:
            return False
        self.place += 1
        return True

    def take(self, wanted: str) -> str:
        group, word, _ = self.next()
        if wanted not in (group, word):
            self.fail(wanted)
        self.place += 1
        return word

    def fail(self, wanted: str) -> None:
        group, word, _ = self.next()
        self.fail_here(f"expected {wanted} but found '{word if group == 'sign' else group}' here:")

    def fail_here(self, why: str) -> None:
        _, word, start = self.next()
        mark = "" if start is None else f"\n{' ' * start}{'~' * len(word)} <--- HERE\n"
        raise RuntimeError(f"{why}\n{self.text}{mark}")


def _check_order(schema: FunctionSchema) -> None:
    seen = False
    for a in schema.arguments:
        if seen and not (a.has_default_value() or a.kwarg_only):
            raise RuntimeError(
                f"Non-default positional argument follows default argument. Parameter {a.name} in {schema}"
            )
        seen = seen or a.has_default_value()
