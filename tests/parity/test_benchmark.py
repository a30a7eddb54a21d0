"""``utils.benchmark`` shows measurements as PyTorch's does."""

from __future__ import annotations

import pytest
import torch.utils.benchmark as theirs

import rushlight.utils.benchmark as ours


def measured(library, times, count=100, **options):
    spec = library.TaskSpec(stmt="f(x)", setup=options.pop("setup", "pass"), **options)
    return library.Measurement(number_per_run=count, raw_times=[t * count for t in times], task_spec=spec)


@pytest.mark.parametrize(
    ("times", "options"),
    [
        ([1e-6, 1.1e-6, 1.2e-6, 1.05e-6, 5e-6], {}),
        ([2e-3] * 12, {"label": "L", "sub_label": "s", "description": "d", "num_threads": 2}),
        ([1.5, 2, 1], {"setup": "x = 1"}),
        ([1.5], {"count": 3, "setup": "x = 1\ny = 2"}),
        ([1e-9, 2e-9, 3e-9], {"label": "L"}),
    ],
)
def test_a_measurement(times, options):
    a, b = measured(ours, times, **options), measured(theirs, times, **options)
    assert repr(a).splitlines()[1:] == repr(b).splitlines()[1:]
    for name in ("median", "mean", "iqr"):
        assert getattr(a, name) == pytest.approx(getattr(b, name), abs=1e-15)
    for name in ("title", "env", "as_row_name", "has_warnings", "significant_figures", "number_per_run"):
        assert getattr(a, name) == getattr(b, name), name


@pytest.mark.parametrize("trimmed", [False, True])
def test_a_table(trimmed):
    shown = []
    for library in (ours, theirs):
        table = library.Compare(
            measured(library, [n * c * 1e-6] * 5, label="mult", sub_label=f"n={n}", description=d, num_threads=t)
            for n in (1, 20) for d, c in (("ours", 15), ("theirs", 30)) for t in (1, 2)
        )  # fmt: skip
        if trimmed:
            table.trim_significant_figures()
        shown.append(str(table))
    assert shown[0] == shown[1]
