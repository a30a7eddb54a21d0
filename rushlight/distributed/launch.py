"""``python -m torch.distributed.launch``: the older form of ``torch.distributed.run``.

A script is given ``--local-rank=N``, unless ``--use-env`` says that it looks into the environment.
"""

from __future__ import annotations

from .run import get_args_parser, run

__all__ = ["main"]


def main(args: list[str] | None = None) -> None:
    """``python -m torch.distributed.launch [options] script.py [arguments]``"""
    parser = get_args_parser()
    parser.add_argument("--use-env", "--use_env", action="store_true", help="no --local-rank then")
    parser.set_defaults(use_env=False)
    status = run(parser.parse_args(args))
    if status:
        raise SystemExit(status)


if __name__ == "__main__":
    main()
