"""The command line: ``rushlight run | launch | check | summary`` …; a script's name alone runs it."""

from __future__ import annotations

import argparse
import os
import sys

from . import bench, cache, check, launch, quickstart, run, scale, summary, typings

COMMANDS = {
    "run": run,
    "launch": launch,
    "check": check,
    "summary": summary,
    "quickstart": quickstart,
    "bench": bench,
    "scale": scale,
    "typings": typings,
    "cache": cache,
}


def main(argv: list[str] | None = None) -> None:
    """Run one command; a mistake of the user's is one line on standard error and exit status 2."""
    argv = sys.argv[1:] if argv is None else argv
    if argv and argv[0] not in COMMANDS and not argv[0].startswith("-"):
        if not argv[0].endswith(".py"):
            raise SystemExit(fail(f"no command '{argv[0]}'{_did_you_mean(argv[0])}"))
        argv = ["run", *argv]
    if not argv:
        print(_WELCOME)
        return
    args = _parser().parse_args(argv)
    if args.command is None:  # options alone
        print(_WELCOME)
        return
    try:
        status = COMMANDS[args.command].main(args)
        sys.stdout.flush()
    except Mistake as mistake:
        status = fail(str(mistake))
    except BrokenPipeError:
        if args.command == "run":  # the program's own, and its to handle
            raise
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # nobody reads on, as in `rushlight … | head`
        status = 1
    raise SystemExit(status)


_WELCOME = """rushlight runs PyTorch programs on NumPy and XLA, without PyTorch.

  rushlight quickstart                       train on handwritten digits, in seconds, and look inside
  rushlight run train.py --epochs 3          run a PyTorch script as it is; rushlight train.py does too
  rushlight check train.py notes.ipynb src/  list the torch names they use that are not there, without running them
  rushlight summary net.py:Net --input 1,3,32,32    layers, output shapes, parameters, multiply-adds
  rushlight launch --nproc-per-node 2 train.py      several processes, with torchrun's options
  rushlight bench                            measure it beside PyTorch
  rushlight scale --params 70e9 --chips 4096        estimate, on paper, how a model trains on many chips
  rushlight typings                          make torch a name of rushlight for editors
  rushlight cache                            show and clear what is kept

In Python: import rushlight as torch. Options of a command: rushlight COMMAND --help."""


class Mistake(Exception):
    """Something the user can set right: shown as one line, without a traceback."""


def fail(message: str) -> int:
    print(f"rushlight: {message}", file=sys.stderr)
    return 2


def _parser() -> argparse.ArgumentParser:
    from .. import version

    parser = _Parser(prog="rushlight", description="PyTorch programs on NumPy and XLA.")
    parser.add_argument("--version", action="version", version=f"rushlight {version.rushlight}")
    commands = parser.add_subparsers(dest="command", metavar="command", parser_class=_Parser)
    for name, command in COMMANDS.items():
        text = str(command.__doc__).splitlines()[0].replace("``", "")
        command.arguments(commands.add_parser(name, help=text, description=text))
    return parser


class _Parser(argparse.ArgumentParser):
    """argparse prints the usage before an error; here an error is one line, and ends with what to write."""

    def error(self, message):
        if message.startswith("the following arguments are required"):
            usage = " ".join(self.format_usage().removeprefix("usage: ").split())
            raise SystemExit(fail(f"{self.prog.partition(' ')[2]}: something is missing; write {usage}"))
        raise SystemExit(fail(f"{message} (see {self.prog} --help)"))


def _did_you_mean(word: str) -> str:
    import difflib

    close = difflib.get_close_matches(word, COMMANDS, n=1)
    return f"; did you mean '{close[0]}'?" if close else f"; there are {', '.join(COMMANDS)}"
