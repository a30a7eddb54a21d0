"""Spawned processes end without taking anything down: PyTorch's threads sometimes abort a process that ends.

As ``worlds/ending.py`` does for scripts. What such a process ends with stays: an exception is an exit code of 1.
"""

import os
import sys

if "--multiprocessing-fork" in sys.orig_argv:
    import multiprocessing.spawn

    run = multiprocessing.spawn._main

    def run_and_end(*arguments):
        code = run(*arguments)  # has called what was registered, and said what went wrong
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)

    multiprocessing.spawn._main = run_and_end
