"""The command line: ``rushlight run | launch | check | summary`` …; a script's name alone runs it."""

from __future__ import annotations

import argparse
import sys

from . import bench, cache, check, launch, quickstart, run, summary, typings

COMMANDS = {
    "run": run,
    "launch": launch,
    "check": check,
    "summary": summary,
    "quickstart": quickstart,
    "bench": bench,
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
    parser = _parser()
    args = parser.parse_args(argv)
    if args.command is None:
        parser.print_help()
        return
    try:
        status = COMMANDS[args.command].main(args)
    except Mistake as mistake:
        status = fail(str(mistake))
    raise SystemExit(status)


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
    """argparse prints the usage before an error; here an error is one line."""

    def error(self, message):
        raise SystemExit(fail(f"{message} (see {self.prog} --help)"))


def _did_you_mean(word: str) -> str:
    import difflib

    close = difflib.get_close_matches(word, COMMANDS, n=1)
    return f"; did you mean '{close[0]}'?" if close else f"; there are {', '.join(COMMANDS)}"
