"""The code in README and tutorial runs and prints what is printed there; so do the examples in docstrings."""

from __future__ import annotations

import doctest
import importlib
import importlib.util
import json
import os
import pathlib
import pkgutil
import re
import subprocess
import sys
import warnings

import numpy
import pytest

import rushlight

sys.path.insert(0, str(pathlib.Path(__file__).parent))

from worlds import environment

ROOT = pathlib.Path(__file__).parent.parent
PAGES = sorted([ROOT / "README.md", ROOT / "README.zh-CN.md", *(ROOT / "docs").rglob("*.md")])
TRANSLATED = ["tutorial.md", "migration.md"]  # in docs/ and docs/zh/
RUN = [ROOT / "README.md", ROOT / "README.zh-CN.md", *(ROOT / "docs" / name for name in TRANSLATED)]
LATER = {"rushlight.__main__", "rushlight.cli.train_digits"}  # these run when imported


def blocks(page: pathlib.Path, *languages: str):
    """(line, language, code) of the fenced blocks of a page."""
    text = page.read_text(encoding="utf-8")
    for found in re.finditer(r"^```(\w+)\n(.*?)^```", text, re.M | re.S):
        if found[1] in languages:
            yield text[: found.start()].count("\n") + 2, found[1], found[2]


@pytest.mark.parametrize("page", RUN, ids=lambda p: p.name)
def test_code_of_a_page(page, tmp_path, monkeypatch):
    pytest.importorskip("jax")
    monkeypatch.chdir(tmp_path)
    namespace: dict = {"__name__": "__main__"}
    found = list(blocks(page, "python", "pycon"))
    assert found
    for line, language, code in found:
        if language == "python":
            exec(compile("\n" * (line - 1) + code, str(page), "exec"), namespace)
        else:
            examples = doctest.DocTestParser().get_doctest(code, {}, page.name, str(page), line - 1)
            examples.globs = namespace  # the parser would have copied it
            run_examples(examples)


# The other pages with code: what stands before each of their blocks, to be run as one program.
OTHERS = {
    "docs/packages.md": [""],
    "docs/many.md": [
        "",
        """
class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.up, self.down = nn.Linear(8, 16), nn.Linear(16, 8)
    def forward(self, x):
        return x + self.down(self.up(x).relu())
model = nn.Sequential(Layer(), Layer())
model.layers = list(model)
""",
        """
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
model(torch.ones(4, 8)).sum().backward()
optimizer.step()
""",
    ],
    "docs/design/compile.md": [
        """
from torch.nn import functional as F
model = nn.Linear(3, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
"""
    ],
    "docs/design/operators.md": [
        """
losses = [step(torch.ones(4, 3), torch.zeros(4, dtype=torch.int64)).item() for _ in range(3)]
assert losses[2] < losses[0]
from rushlight.autograd import op
"""
    ],
}
AT_THE_END = """
w = torch.ones(2, 3, requires_grad=True)
project(torch.ones(4, 3), w).sum().backward()
assert w.grad.tolist() == [[4.0] * 3] * 2
print("all of it ran")
"""


def test_code_of_the_other_pages(tmp_path):
    pytest.importorskip("jax")
    known = {*RUN, *(ROOT / "docs" / "zh" / name for name in TRANSLATED), *(ROOT / "docs" / "reference").glob("*.md")}
    with_code = {page for page in PAGES if any(blocks(page, "python", "pycon"))}
    assert with_code - known == {ROOT / name for name in OTHERS}
    program = []
    for name, before in OTHERS.items():
        found = [code for _, _, code in blocks(ROOT / name, "python", "pycon")]
        assert len(found) == len(before)
        program += [text for both in zip(before, found) for text in both]
    (tmp_path / "program.py").write_text("\n".join([*program, AT_THE_END]), encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "rushlight", "launch", "--standalone", "--nproc-per-node=1", "program.py"],
        cwd=tmp_path,
        env=environment(XLA_FLAGS="--xla_force_host_platform_device_count=8", NPROC="32"),
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0 and done.stdout.endswith("all of it ran\n"), done.stdout + done.stderr


def run_examples(examples: doctest.DocTest) -> None:
    report: list[str] = []
    doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE).run(examples, out=report.append, clear_globs=False)
    assert not report, "".join(report)


def documented():
    """The docstrings with examples of all modules of the package, by name."""
    found = {}
    finder = doctest.DocTestFinder(exclude_empty=True)
    for info in pkgutil.walk_packages(rushlight.__path__, "rushlight."):
        if info.name in LATER:
            continue
        try:
            module = importlib.import_module(info.name)
        except ImportError:  # an extra that is not installed
            continue
        for examples in finder.find(module, info.name):
            if examples.examples:
                found[examples.name] = examples
    return found


DOCUMENTED = documented()


@pytest.mark.parametrize("name", sorted(DOCUMENTED))
def test_examples_in_docstrings(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    examples = DOCUMENTED[name]
    warnings.simplefilter("ignore")  # some are about what warns; pytest puts its filters back
    examples.globs = {"rushlight": rushlight, "nn": rushlight.nn, "F": rushlight.nn.functional, "numpy": numpy}
    run_examples(examples)


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_links_between_pages(page):
    text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.S)
    for target in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", text):
        if "://" not in target:
            assert (page.parent / target).exists(), f"{page.name} links to {target}"


def test_reference_is_in_step():
    """Every public callable is there once, with its arguments and a line; ``python tools/reference.py`` writes it."""
    done = subprocess.run(
        [sys.executable, ROOT / "tools" / "reference.py", "--check"],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("english", "chinese"),
    [("README.md", "README.zh-CN.md"), *((f"docs/{name}", f"docs/zh/{name}") for name in TRANSLATED)],
)
def test_translations_show_the_same_code(english, chinese):
    """But for comments: so a page that runs in English runs in Chinese too."""
    both = [
        [
            (language, re.sub(r"\s*#.*", "", code))
            for _, language, code in blocks(ROOT / name, "python", "pycon", "bash")
        ]
        for name in (english, chinese)
    ]
    assert both[0] and both[0] == both[1]


@pytest.mark.parametrize("name", TRANSLATED)
def test_translations_have_the_same_sections(name):
    english, chinese = (
        re.sub(r"```.*?```", "", (ROOT / "docs" / folder / name).read_text(encoding="utf-8"), flags=re.S)
        for folder in ("", "zh")
    )
    assert re.findall(r"^(#+) |^(\|)", english, re.M) == re.findall(r"^(#+) |^(\|)", chinese, re.M)


def test_commands_in_the_docs_exist():
    from rushlight.cli import COMMANDS

    named = {
        name
        for page in [*PAGES, ROOT / "CONTRIBUTING.md"]
        for _, _, code in blocks(page, "bash")
        for name in re.findall(r"(?:^|&& )rushlight (\S+)", code, re.M)
    }
    assert {"quickstart", "run", "check"} <= named <= set(COMMANDS)


def test_numbers_are_filled_in(tmp_path, monkeypatch):
    """``tools/readme_numbers.py`` finds its places in both READMEs."""
    spec = importlib.util.spec_from_file_location("readme_numbers", ROOT / "tools" / "readme_numbers.py")
    tool = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tool)
    (tmp_path / "docs").mkdir()
    for name in tool.PAGES:
        (tmp_path / name).write_text((ROOT / name).read_text(encoding="utf-8"), encoding="utf-8")
    rows = [{"name": name, "rushlight": 0.5, "torch": 1.0, "ratio": 2.0} for name in ["only in docs", *tool.ROWS]]
    machine = {"processor": "a CPU", "python": "3", "numpy": "2", "torch": "2.13"}
    (tmp_path / "bench.json").write_text(json.dumps({"machine": machine, "rows": rows}))
    monkeypatch.setattr(tool, "ROOT", tmp_path)
    monkeypatch.setattr("sys.argv", ["", "--bench", str(tmp_path / "bench.json"), "opdb=all of them", "optim=15 of 15"])
    tool.main()
    for name in tool.PAGES:
        text = (tmp_path / name).read_text(encoding="utf-8")
        assert f"| {tool.ROWS[-1]} | 0.5 | 1 | 2.00× |" in text
        assert ("only in docs" in text) == (name == "docs/measured.md")
        assert ("<!-- fill: opdb --> all of them |" in text) == name.startswith("README")


def test_readmes_show_the_same_numbers():
    def numbers(name):
        text = re.sub(r"```.*?```", "", (ROOT / name).read_text(encoding="utf-8"), flags=re.S)
        rows = [line for line in text.splitlines() if line.startswith("|")]
        return [re.findall(r"\d+(?:[.,/]\d+)*", row) for row in rows if re.search("[×/]", row)]

    english, chinese = numbers("README.md"), numbers("README.zh-CN.md")
    assert len(english) > 15
    assert [sorted(row) for row in english] == [sorted(row) for row in chinese]
