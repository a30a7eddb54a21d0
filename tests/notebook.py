"""A notebook, executed: ``python tests/notebook.py OUT.html`` writes its page and prints what the cells show."""

from __future__ import annotations

import json
import sys
from pathlib import Path

CELLS = [
    "import rushlight as torch\ntorch.ones(2, 2)",
    """import time
model = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.Tanh(), torch.nn.Linear(3, 1))
with torch.inspect.watch(model, None, live=True) as watch:
    for _ in range(3):
        loss = model(torch.ones(4, 2)).square().mean()
        loss.backward()
        watch._written = 0.0  # long ago
        watch.step(loss)""",
    "watch",
    "model",
    """import pathlib
source = pathlib.Path("weights.bin").absolute()
source.write_bytes(bytes(1 << 20))
torch.hub.download_url_to_file(source.as_uri(), "copy.bin")""",
]


def main(path: str) -> None:
    import nbformat
    from nbconvert import HTMLExporter
    from nbconvert.preprocessors import ExecutePreprocessor

    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in CELLS])
    ExecutePreprocessor(timeout=300, kernel_name="python3").preprocess(notebook, {"metadata": {"path": "."}})
    Path(path).write_text(HTMLExporter().from_notebook_node(notebook)[0], encoding="utf-8")
    print(json.dumps([[output.get("data", dict(output)) for output in cell.outputs] for cell in notebook.cells]))


if __name__ == "__main__":
    main(*sys.argv[1:])
