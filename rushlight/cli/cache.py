"""Say where compiled programs are kept, and how much there is; ``--clear`` deletes them."""

from __future__ import annotations

import argparse
import shutil

from ..config import cache_folder


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--clear", action="store_true", help="delete what is kept")


def main(args: argparse.Namespace) -> int:
    folder = cache_folder()
    if folder is None:
        print("nothing is kept: RUSHLIGHT_CACHE is 0, or there is no home folder")
        return 0
    folder /= "xla"
    sizes = [file.stat().st_size for file in folder.rglob("*") if file.is_file()] if folder.exists() else []
    print(f"{folder}: {len(sizes)} files, {sum(sizes) / 1e6:.1f} MB")
    if args.clear and folder.exists():
        shutil.rmtree(folder)
        print("deleted")
    return 0
