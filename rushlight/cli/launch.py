"""Start a script in several processes, with torchrun's options."""

from __future__ import annotations


def arguments(parser) -> None:
    from ..distributed.run import get_args_parser

    parser.usage = "rushlight launch [options] script.py [arguments of the script ...]"
    get_args_parser(parser)


def main(args) -> int:
    from ..distributed.run import run

    return run(args)
