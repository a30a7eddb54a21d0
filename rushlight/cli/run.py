"""Run a PyTorch script on rushlight: its ``import torch`` imports rushlight."""

from __future__ import annotations

import argparse
import importlib
import io
import os
import sys
import types


def arguments(parser) -> None:
    parser.usage = "rushlight run [-m] script.py [arguments of the script ...]"
    parser.add_argument("-m", dest="module", action="store_true", help="the script is a module's name, as in python -m")
    parser.add_argument("script", metavar="script.py")
    parser.add_argument("arguments", nargs=argparse.REMAINDER)


def main(args) -> int:
    from .. import compat

    compat.install()
    _install_in_children()
    spec = _module_spec(args.script) if args.module else None
    path = os.path.abspath(args.script if spec is None else str(spec.origin))
    code = _compiled(path, args.script)
    sys.argv = [args.script if spec is None else path, *args.arguments]
    if spec is None and not sys.flags.safe_path:
        sys.path[0] = os.path.dirname(os.path.realpath(path))  # where Python looks first when it runs the script itself
    return _execute(code, path, spec)


def _install_in_children() -> None:
    """Have Pythons that the script starts begin with ``children/sitecustomize.py``: launchers start scripts anew."""
    folder = os.path.join(os.path.dirname(os.path.abspath(__file__)), "children")
    paths = [p for p in os.environ.get("PYTHONPATH", "").split(os.pathsep) if p]
    if folder not in paths:
        os.environ["PYTHONPATH"] = os.pathsep.join([folder, *paths])


def _execute(code, path: str, spec) -> int:
    """Run as ``__main__``. What it raises is shown as Python would show it, without the frames that are ours."""
    module = types.ModuleType("__main__")
    module.__dict__.update(__file__=path, __cached__=None, __builtins__=__builtins__, __annotations__={})
    if spec is not None:
        module.__dict__.update(__spec__=spec, __package__=spec.parent, __loader__=spec.loader, __cached__=spec.cached)
    sys.modules["__main__"] = module  # pickle and multiprocessing look the script's functions up there
    try:
        exec(code, module.__dict__)  # noqa: S102 - what it is for
    except SystemExit:
        raise
    except BaseException as error:
        return show(error)
    return 0


def _compiled(path: str, given: str):
    from . import Mistake

    if os.path.isdir(path):
        raise Mistake(f"'{given}' is a folder, not a script")
    try:
        with io.open_code(path) as file:
            source = file.read()
    except OSError as error:
        raise Mistake(f"cannot read '{given}': {error.strerror}") from None
    try:
        return compile(source, path, "exec")
    except (SyntaxError, ValueError) as error:
        raise SystemExit(show(error)) from None


def _module_spec(name: str):
    import importlib.util

    from .. import compat
    from . import Mistake

    if sys.path[0] != "":
        sys.path.insert(0, os.getcwd())
    name = compat.our_name(name) or name  # torch.distributed.run is a file of ours
    try:
        spec = importlib.util.find_spec(name)
        if spec is not None and spec.submodule_search_locations is not None:
            spec = importlib.util.find_spec(f"{name}.__main__")
    except ModuleNotFoundError:
        spec = None
    if spec is None or not spec.origin:
        raise Mistake(f"no module named '{name}'")
    return spec


def show(error: BaseException) -> int:
    """Print the user's traceback; the exit status Python would give."""
    error.__traceback__ = _users_frames(error)
    _hide_inner_errors(error)
    sys.excepthook(type(error), error, error.__traceback__)
    sys.last_value = error  # as Python itself does: what runs at exit can tell that something failed
    if isinstance(error, KeyboardInterrupt):
        _end_interrupted()
    return 1


def _end_interrupted() -> None:
    """End by the signal itself, as Python does: a shell then stops the loop or script that started us, too."""
    import atexit
    import signal

    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    signal.raise_signal(signal.SIGINT)


def _hide_inner_errors(error: BaseException) -> None:
    """Leave out what an error of ours was made from: an exception that arose and ended inside rushlight."""
    context = error.__context__
    if context is None or error.__cause__ is not None:
        return
    _hide_inner_errors(context)
    library, tb = os.path.dirname(os.path.dirname(__file__)) + os.sep, context.__traceback__
    while tb is not None and tb.tb_frame.f_code.co_filename.startswith(library):
        tb = tb.tb_next
    error.__suppress_context__ |= tb is None


def _users_frames(error: BaseException):
    """The traceback without our frames at its top; for a name that is not there, without the hook's at its end."""
    from .. import compat

    frames, tb = [], error.__traceback__
    while tb is not None:
        frames.append(tb)
        tb = tb.tb_next
    files = [frame.tb_frame.f_code.co_filename for frame in frames]
    first, last = 0, len(frames)
    importing = ("<frozen importlib", importlib.__file__)
    while first < last and files[first].startswith((os.path.dirname(__file__), *importing)):
        first += 1
    if isinstance(error, ImportError | compat.MissingName):
        while first < last and files[last - 1].startswith((compat.__file__, *importing)):
            last -= 1
    if first == last:
        return None
    frames[last - 1].tb_next = None
    return frames[first]
