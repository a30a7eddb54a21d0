"""Several of these scripts, one after the other in the same processes: a start of PyTorch takes seconds.

Each has a world, a folder and warnings of its own; a line with its name comes before its lines.
"""

import os
import runpy
import sys
import warnings
from pathlib import Path

import torch

meeting, folder = os.environ["MEETING"], Path.cwd()
for script in sys.argv[1:]:
    os.environ["MEETING"] = f"{meeting} of {script}"
    (folder / script).mkdir(exist_ok=True)
    os.chdir(folder / script)
    torch.manual_seed(0)
    print("script", script)
    with warnings.catch_warnings():
        runpy.run_path(str(Path(__file__).with_name(script)), run_name="__main__")
