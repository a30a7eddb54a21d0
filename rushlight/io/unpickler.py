"""A reader of pickles that runs nothing but what it was told is safe.

It is an interpreter of pickle's opcodes (protocols 0 to 5) with an allow-list: a name in the file that ``find_global``
does not know is an error, and what may be called is called through a ``Builder``, which checks the arguments. Work and
memory are in proportion to the length of the pickle: nothing is allocated by a number in the file, keys that would be
slow to hash or made to collide are refused, and so is a result nested deeper than Python itself can handle. Messages
quote a line of the file at most: a value that refers to itself many times over takes forever to print.
"""

from __future__ import annotations

import struct
import threading
from collections import Counter, OrderedDict
from pickle import UnpicklingError
from typing import Protocol

__all__ = ["Unpickler", "UnpicklingError"]

MAX_DEPTH = 400  # of containers within containers: printing or copying more would overflow Python's stack
_KEY_PARTS = 64  # of one dictionary key
_ALIKE = 16  # keys that may have the same hash: chance gives one, numbers some
_PLAIN_INT = 1 << 60  # larger ones can be made to collide in a dictionary
_MARK = object()
_CLEAR = (UnpicklingError, MemoryError, OSError, RuntimeError)  # errors that say what is wrong


class Builder(Protocol):
    """What the unpickler asks for everything that is not a plain Python value."""

    def find_global(self, module: str, name: str): ...

    def call(self, function, args: tuple): ...

    def new(self, cls, args: tuple, kwargs: dict): ...

    def build(self, instance, state) -> None: ...

    def persistent(self, identity): ...


class Unpickler:
    """Reads one pickle from ``data`` (bytes or a mapped file) at ``place``; afterwards ``place`` is behind it."""

    def __init__(self, data, builder: Builder, place: int = 0, encoding: str = "utf-8"):
        self.data, self.builder, self.place, self.encoding = data, builder, place, encoding
        self.stack: list = []
        self.memo: dict[int, object] = {}

    def load(self):
        try:
            result = self._run()
            _check_depth(result)
            return result
        except Exception as error:
            if isinstance(error, _CLEAR) and not isinstance(error, RecursionError):
                raise
            where = f"byte {self.place} of the pickle"
            raise UnpicklingError(f"the file is corrupted: {where} does not make sense ({_said(error)})") from error
        finally:
            _seen.keys.clear()

    def _run(self):
        data, table = self.data, _OPCODES
        while True:
            if self.place >= len(data):
                raise UnpicklingError("the file is truncated: pickle data ends in the middle")
            opcode = data[self.place]
            self.place += 1
            if opcode == 46:  # STOP
                return self._pop()
            method = table.get(opcode)
            if method is None:
                raise UnpicklingError(f"the file is corrupted or not a checkpoint: unknown pickle opcode {opcode}")
            method(self)

    # -- reading the arguments of opcodes ----------------------------------------------------------------------------

    def _take(self, count: int) -> bytes:
        end = self.place + count
        if count < 0 or end > len(self.data):
            raise UnpicklingError("the file is truncated or corrupted: pickle data ends in the middle of a value")
        part = bytes(self.data[self.place : end])
        self.place = end
        return part

    def _number(self, form: str, count: int):
        return struct.unpack(form, self._take(count))[0]

    def _line(self) -> str:
        """Text up to the end of the line, as opcodes of protocol 0 have it."""
        line = self._take(self.data.find(b"\n", self.place) - self.place).decode("utf-8")
        self._take(1)
        return line

    # -- the stack ---------------------------------------------------------------------------------------------------

    def _pop(self):
        if not self.stack:
            raise UnpicklingError("the file is corrupted: the pickle takes more values than it has")
        value = self.stack.pop()
        if value is _MARK:
            raise UnpicklingError("the file is corrupted: a mark in place of a value")
        return value

    def _top(self):
        value = self._pop()
        self.stack.append(value)
        return value

    def _to_mark(self) -> list:
        """The values since the last mark, taken off together with it."""
        stack = self.stack
        for i in range(len(stack) - 1, -1, -1):
            if stack[i] is _MARK:
                values = stack[i + 1 :]
                del stack[i:]
                return values
        raise UnpicklingError("the file is corrupted: the pickle misses a mark")

    # -- opcodes: values ---------------------------------------------------------------------------------------------

    def _push_text(self, count: int) -> None:
        self.stack.append(self._take(count).decode("utf-8", "surrogatepass"))

    def _push_bytes(self, count: int) -> None:
        self.stack.append(self._take(count))

    def _push_old_string(self, count: int) -> None:
        data = self._take(count)
        self.stack.append(data if self.encoding == "bytes" else data.decode(self.encoding))

    def _push_long(self, count: int) -> None:
        self.stack.append(int.from_bytes(self._take(count), "little", signed=True))

    def _push_int_line(self) -> None:
        line = self._line()
        self.stack.append({"00": False, "01": True}[line] if line in ("00", "01") else int(line))

    def _push_quoted(self) -> None:
        line = self._line()
        if len(line) < 2 or line[0] != line[-1] or line[0] not in "'\"" or "\\" in line:
            raise UnpicklingError("the file is corrupted: a string without its quotes")
        self.stack.append(line[1:-1])

    # -- opcodes: containers -----------------------------------------------------------------------------------------

    def _append(self) -> None:
        value = self._pop()
        self._list().append(value)

    def _appends(self) -> None:
        values = self._to_mark()
        self._list().extend(values)

    def _list(self) -> list:
        target = self._top()
        if not isinstance(target, list):
            raise UnpicklingError(f"the file is corrupted: appends to a {type(target).__name__}")
        return target

    def _set_item(self) -> None:
        value, key = self._pop(), self._pop()
        self._set_items_of([key, value])

    def _set_items_of(self, values: list) -> None:
        target = self._top()
        if not isinstance(target, dict) or len(values) % 2:
            raise UnpicklingError(f"the file is corrupted: sets items of a {type(target).__name__}")
        for key, value in zip(values[::2], values[1::2]):
            target[checked_key(key)] = value

    def _add_items(self) -> None:
        values, target = self._to_mark(), self._top()
        if not isinstance(target, set):
            raise UnpicklingError(f"the file is corrupted: adds items to a {type(target).__name__}")
        target.update(map(checked_key, values))

    def _make_dict(self) -> None:
        values = self._to_mark()
        self.stack.append({})
        self._set_items_of(values)

    def _tuple_of(self, count: int) -> None:
        self.stack.append(tuple(reversed([self._pop() for _ in range(count)])))

    # -- opcodes: names and calls ------------------------------------------------------------------------------------

    def _global(self) -> None:
        module, name = self._line(), self._line()
        self.stack.append(self.builder.find_global(module, name))

    def _stack_global(self) -> None:
        name, module = self._pop(), self._pop()
        if type(name) is not str or type(module) is not str:
            raise UnpicklingError("the file is corrupted: a class whose name is no text")
        self.stack.append(self.builder.find_global(module, name))

    def _reduce(self) -> None:
        args, function = self._arguments(), self._pop()
        self.stack.append(self.builder.call(function, args))

    def _new(self) -> None:
        args, cls = self._arguments(), self._pop()
        self.stack.append(self.builder.new(cls, args, {}))

    def _new_with_keywords(self) -> None:
        kwargs, args, cls = self._pop(), self._arguments(), self._pop()
        if type(kwargs) is not dict or not all(type(key) is str for key in kwargs):
            raise UnpicklingError("the file is corrupted: keyword arguments that are no dict")
        self.stack.append(self.builder.new(cls, args, kwargs))

    def _arguments(self) -> tuple:
        args = self._pop()
        if not isinstance(args, tuple):
            raise UnpicklingError(f"the file is corrupted: a call with a {type(args).__name__} for arguments")
        return args

    def _build(self) -> None:
        state = self._pop()
        self.builder.build(self._top(), state)

    def _persistent(self) -> None:
        self.stack.append(self.builder.persistent(self._pop()))

    # -- opcodes: the memo -------------------------------------------------------------------------------------------

    def _put(self, index: int) -> None:
        self.memo[index] = self._top()

    def _get(self, index: int) -> None:
        if index not in self.memo:
            raise UnpicklingError(f"the file is corrupted: the pickle refers to value {index}, which it does not have")
        self.stack.append(self.memo[index])

    def _protocol(self) -> None:
        version = self._number("<B", 1)
        if version > 5:
            raise UnpicklingError(f"unsupported pickle protocol {version}")


def _pushing(value):
    return lambda self: self.stack.append(value)


def _counted(method, form: str, count: int):
    """An opcode followed by a number that says how long its value is, or which value of the memo it means."""
    return lambda self: method(self, self._number(form, count))


def _read(form: str, count: int):
    return lambda self: self.stack.append(self._number(form, count))


_U = Unpickler
_OPCODES = {
    ord(code): method
    for code, method in {
        "(": _pushing(_MARK), "N": _pushing(None), ")": _pushing(()), "\x88": _pushing(True), "\x89": _pushing(False),
        "]": lambda self: self.stack.append([]), "}": lambda self: self.stack.append({}),
        "\x8f": lambda self: self.stack.append(set()),
        "J": _read("<i", 4), "K": _read("<B", 1), "M": _read("<H", 2), "G": _read(">d", 8),
        "\x8a": _counted(_U._push_long, "<B", 1), "\x8b": _counted(_U._push_long, "<i", 4),
        "I": _U._push_int_line, "L": lambda self: self.stack.append(int(self._line().rstrip("L"))),
        "F": lambda self: self.stack.append(float(self._line())), "V": lambda self: self.stack.append(self._line()),
        "S": _U._push_quoted, "T": _counted(_U._push_old_string, "<i", 4), "U": _counted(_U._push_old_string, "<B", 1),
        "X": _counted(_U._push_text, "<I", 4), "\x8c": _counted(_U._push_text, "<B", 1),
        "\x8d": _counted(_U._push_text, "<Q", 8),
        "B": _counted(_U._push_bytes, "<I", 4), "C": _counted(_U._push_bytes, "<B", 1),
        "\x8e": _counted(_U._push_bytes, "<Q", 8),
        "\x96": lambda self: self.stack.append(bytearray(self._take(self._number("<Q", 8)))),
        "a": _U._append, "e": _U._appends, "s": _U._set_item, "u": lambda self: self._set_items_of(self._to_mark()),
        "\x90": _U._add_items, "d": _U._make_dict, "l": lambda self: self.stack.append(self._to_mark()),
        "\x91": lambda self: self.stack.append(frozenset(map(checked_key, self._to_mark()))),
        "t": lambda self: self.stack.append(tuple(self._to_mark())),
        "\x85": lambda self: self._tuple_of(1), "\x86": lambda self: self._tuple_of(2),
        "\x87": lambda self: self._tuple_of(3),
        "0": lambda self: self.stack.pop() and None, "1": lambda self: self._to_mark() and None,
        "2": lambda self: self.stack.append(self._top()),
        "c": _U._global, "\x93": _U._stack_global, "R": _U._reduce, "\x81": _U._new, "\x92": _U._new_with_keywords,
        "b": _U._build, "Q": _U._persistent,
        "q": _counted(_U._put, "<B", 1), "r": _counted(_U._put, "<I", 4),
        "p": lambda self: self._put(int(self._line())),
        "\x94": lambda self: self._put(len(self.memo)),
        "h": _counted(_U._get, "<B", 1), "j": _counted(_U._get, "<I", 4),
        "g": lambda self: self._get(int(self._line())),
        "\x80": _U._protocol, "\x95": lambda self: self._number("<Q", 8),
    }.items()
}  # fmt: skip


def checked_key(key):
    """A dictionary key or set member, if it is quick to hash and compare: a file could make it take forever."""
    kind = type(key)
    if kind is str or kind is bytes or (kind is int and -_PLAIN_INT < key < _PLAIN_INT):
        return key
    pending, parts = [key], 0
    while pending:
        part = pending.pop()
        parts += 1
        if isinstance(part, (tuple, frozenset)):
            pending.extend(part)
        elif isinstance(part, int) and not -_PLAIN_INT < part < _PLAIN_INT:
            raise UnpicklingError("the file uses a huge number as a key: corrupted or malicious")
        if parts + len(pending) > _KEY_PARTS:
            raise UnpicklingError(f"the file uses a key of more than {_KEY_PARTS} parts: corrupted or malicious")
    others = _seen.keys.setdefault(hash(key), [])
    if key not in others:
        others.append(key)
        if len(others) > _ALIKE:  # hashes of numbers and tuples of them can be computed backwards, those of text not
            raise UnpicklingError("the file has keys made to have the same hash: corrupted or malicious")
    return key


class _Seen(threading.local):
    """The keys other than text and whole numbers of the file that this thread reads, by their hash."""

    def __init__(self):
        self.keys: dict[int, list] = {}


_seen = _Seen()


def brief(value) -> str:
    """A value for a message: text and numbers by their beginning, anything else by its type only."""
    if isinstance(value, (str, bytes)):
        return repr(value[:60]) + ("..." if len(value) > 60 else "")
    if isinstance(value, int) and abs(value) >= _PLAIN_INT:
        return "a huge number"
    return repr(value) if value is None or isinstance(value, (int, float)) else f"a {type(value).__name__}"


def _said(error: Exception) -> str:
    """An error's name and text, if that is short to make."""
    plain = all(isinstance(part, (str, int, type(None))) for part in error.args) or isinstance(error, UnicodeError)
    return f"{type(error).__name__}: {str(error)[:200]}" if plain else type(error).__name__


def _check_depth(root) -> None:
    """Refuse what has a way down deeper than MAX_DEPTH: from what is below upwards, without recursion."""
    height: dict[int, int] = {}  # of each container that is done; 0 while it is on the way down
    path = [(root, _containers(root))] if isinstance(root, _CONTAINERS) else []
    while path:
        value, below = path[-1]
        if id(value) not in height:
            height[id(value)] = 0
        child = next((part for part in below if id(part) not in height), None)
        if child is not None:
            path.append((child, _containers(child)))
        else:
            height[id(value)] = 1 + max([height[id(part)] for part in _containers(value)], default=0)
            path.pop()
        if len(path) > MAX_DEPTH or height[id(value)] > MAX_DEPTH:
            raise UnpicklingError(f"the file nests containers more than {MAX_DEPTH} deep: corrupted or malicious")


_CONTAINERS = (list, tuple, dict, set, frozenset)


def _containers(value):
    """The containers directly within a container, empty ones apart."""
    return (part for part in _parts(value) if isinstance(part, _CONTAINERS) and (part or hasattr(part, "__dict__")))


def _parts(value):
    if not isinstance(value, dict):
        yield from value
        return
    yield from value
    yield from value.values()
    if isinstance(value, (OrderedDict, Counter)):
        yield from value.__dict__.values()
