"""Print a model's layers, output shapes, parameters and multiply-adds."""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import os
import sys


def arguments(parser) -> None:
    parser.add_argument(
        "model", metavar="module:factory", help="a module's name or a file, and what makes the model in it"
    )
    parser.usage = "rushlight summary module:factory [--input SIZE[:DTYPE] ...] [--depth N]"
    parser.add_argument(
        "--input",
        metavar="SIZE[:DTYPE]",
        action="append",
        type=_input,
        help="an input of the model, such as 1,3,32,32 or 8,16:int64; once for each. Integers are zeros",
    )
    parser.add_argument("--depth", type=_depth, metavar="N", help="show modules down to this depth; all are counted")


def main(args) -> int:
    from .. import compat, inspect
    from . import Mistake
    from .run import show

    if args.model.count(":") != 1:
        raise Mistake(f"'{args.model}' does not say what makes the model: write module:factory, such as train.py:Net")
    place, name = args.model.split(":")
    compat.install()
    sizes = None if args.input is None else [size for size, _ in args.input]
    dtypes = None if args.input is None else [dtype for _, dtype in args.input]
    try:
        module = _load(place)
        if not hasattr(module, name):
            raise Mistake(f"'{place}' has no '{name}'{compat.nearest(module, name)}")
        model = _model(getattr(module, name), args.model)
        print(inspect.summary(model, input_size=sizes, dtype=dtypes, depth=args.depth))
    except Mistake:
        raise
    except Exception as error:
        return show(error)
    return 0


def _model(made, given: str):
    """A model as it is, or what its class or factory makes."""
    from ..nn import Module
    from . import Mistake

    if isinstance(made, Module):
        return made
    if not callable(made):
        raise Mistake(f"'{given}' is a {type(made).__name__}, not a Module, nor does calling it make one")
    model = made()
    if not isinstance(model, Module):
        raise Mistake(f"'{given}' made a {type(model).__name__}, not a Module")
    return model


def _input(text: str):
    """``8,16:int64`` -> its size and dtype; without one, the model's."""
    from .. import __dict__ as names
    from ..dtypes import dtype as Dtype

    size, colon, word = text.partition(":")
    found = names.get(word)
    if colon and not isinstance(found, Dtype):
        raise argparse.ArgumentTypeError(f"'{word}' is not a dtype: write 8,16:int64")
    try:
        sizes = tuple(int(part) for part in size.replace("x", ",").split(","))
    except ValueError:
        sizes = (-1,)
    if min(sizes) < 0:
        raise argparse.ArgumentTypeError(f"'{size}' is not a size: write numbers with commas, such as 1,3,32,32")
    return sizes, found if colon else None


def _depth(text: str) -> int:
    if not text.isdigit():
        raise argparse.ArgumentTypeError(f"'{text}' is not a depth: write 0, 1, 2, ...")
    return int(text)


def _load(place: str):
    from . import Mistake

    sys.path.insert(0, os.getcwd())
    if not place.endswith(".py"):
        try:
            return importlib.import_module(place)
        except ModuleNotFoundError as error:
            if error.name is None or not place.startswith(error.name):
                raise
            raise Mistake(f"no module named '{place}'") from None
    if not os.path.isfile(place):
        raise Mistake(f"cannot read '{place}': No such file or directory")
    sys.path.insert(0, os.path.dirname(os.path.abspath(place)))
    spec = importlib.util.spec_from_file_location(os.path.basename(place).removesuffix(".py"), place)
    assert spec is not None and spec.loader is not None  # a file's spec always has both
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module
