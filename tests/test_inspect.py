"""summary, graph and watch: what they count and draw, and the page in a real browser."""

from __future__ import annotations

import html
import json
import os
import re
import shutil
import subprocess
import sys
import types
import xml.etree.ElementTree as xml
from pathlib import Path

import numpy as np
import pytest

import rushlight
from rushlight import inspect, nn
from rushlight.inspect.watch import _page as page_of

# -- summary -----------------------------------------------------------------------------------------------------------


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 8))
        self.head = nn.Linear(8, 3)

    def forward(self, x):
        return self.head(self.body(x))


def test_summary_counts_each_module_once():
    found = inspect.summary(Net(), input_size=(5, 6))
    rows = {(row.depth, row.name): row for row in found.rows}
    assert [row.kind for row in found.rows] == ["Net", "Sequential", "Linear", "ReLU", "Linear", "Linear"]
    assert rows[2, "0"].parameters == 6 * 8 + 8 and rows[2, "0"].mult_adds == 5 * 6 * 8
    assert rows[1, "head"].shapes == [(5, 3)] and rows[0, ""].parameters == 0
    assert found.total_params == sum(row.parameters for row in found.rows) == sum(p.numel() for p in Net().parameters())
    assert found.total_mult_adds == 5 * (6 * 8 + 8 * 8 + 8 * 3)
    assert found.output_bytes == 4 * 5 * (8 + 8 + 8 + 3)


def test_summary_draws_a_tree():
    lines = str(inspect.summary(Net(), input_size=(5, 6))).splitlines()
    assert [line.split("  ")[0].rstrip() for line in lines[2:8]] == [
        "Net", "├─ body: Sequential", "│", "│", "│", "└─ head: Linear",
    ]  # fmt: skip
    assert "[5, 8]" in lines[4] and lines[-3] == "Parameters: 155 (620 B), of which 155 are trained"


def test_summary_counts_products_wherever_they_are():
    class Product(nn.Module):
        def forward(self, a, b):
            return a @ b + nn.functional.linear(a, b.T)

    found = inspect.summary(Product(), (rushlight.ones(2, 3), rushlight.ones(3, 4)))
    assert found.total_mult_adds == 2 * (2 * 3 * 4)


@pytest.mark.parametrize(
    ("model", "size", "expected"),
    [
        (lambda: nn.Conv2d(4, 6, 3, groups=2, padding=1), (2, 4, 5, 5), 2 * 6 * 25 * 2 * 9),
        (lambda: nn.ConvTranspose2d(4, 6, 2), (1, 4, 5, 5), 4 * 25 * 6 * 4),
        (lambda: nn.LSTM(4, 8, 2), (5, 2, 4), 10 * (4 * 32 + 8 * 32) + 10 * (8 * 32 + 8 * 32)),
        (lambda: nn.Bilinear(3, 4, 5), [(2, 3), (2, 4)], None),
    ],
)
def test_mult_adds(model, size, expected):
    found = inspect.summary(model(), input_size=size)
    assert found.total_mult_adds == expected if expected else found.total_mult_adds > 0


def test_summary_counts_weights_of_modules_that_are_not_called():
    attention = nn.MultiheadAttention(8, 2)
    found = inspect.summary(attention, (rushlight.ones(3, 1, 8),) * 3)
    assert found.rows[0].parameters == found.total_params == 3 * 64 + 24 + 64 + 8


def test_summary_leaves_the_model_as_it_was():
    model = nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4), nn.Dropout())
    model[2].eval()
    before = {k: v.clone() for k, v in model.state_dict().items()}
    state = rushlight.get_rng_state()
    inspect.summary(model, input_size=(3, 4))
    assert [m.training for m in model.modules()] == [True, True, True, False]
    assert all(rushlight.equal(v, before[k]) for k, v in model.state_dict().items())
    assert rushlight.equal(rushlight.get_rng_state(), state)
    assert all(m._hooks is None or m._hooks.calls_nothing() for m in model.modules())


def test_summary_of_a_module_called_twice():
    layer = nn.Linear(4, 4)
    found = inspect.summary(nn.Sequential(layer, layer), input_size=(1, 4))
    assert [row.parameters for row in found.rows] == [0, 20, 0] and found.total_params == 20
    assert "(above)" in str(found) and found.total_mult_adds == 32


def test_summary_without_input_and_as_html():
    found = inspect.summary(Net())
    assert "Output shape" not in str(found) and found.total_params == 155
    xml.fromstring(f"<div>{found._repr_html_().replace('<br>', '<br/>')}</div>")


def test_summary_of_modules_in_each_other_takes_time_in_proportion():
    model = nn.Linear(1, 1)
    for _ in range(60):  # twice as many ways to the innermost at each level
        model = nn.Sequential(model, nn.Sequential(model))
    found = inspect.summary(model)
    assert len(found.rows) == 1 + 3 * 60 and found.total_params == 2 == sum(row.parameters for row in found.rows)
    assert sum(row.repeated for row in found.rows) == 60
    around = nn.Module()
    around.inner = nn.Module()
    around.inner.outer = around
    assert [row.repeated for row in inspect.summary(around).rows] == [False, False, True]


def test_summary_shows_names_on_one_line():
    model = nn.Module()
    model.add_module("\x1b[2J\n", nn.Linear(1, 1))
    model.add_module("n" * 10_000, nn.Linear(1, 1))
    lines = str(inspect.summary(model)).splitlines()
    assert len(lines) == 7 and "\\x1b[2J\\n: Linear" in lines[3] and max(map(len, lines)) < 150


def test_summary_wants_a_module():
    with pytest.raises(TypeError, match="must be a Module, not function"):
        inspect.summary(rushlight.sin)


# -- graph -------------------------------------------------------------------------------------------------------------


def boxes(svg):
    """(left, right, top) of every box, and all texts."""
    root = xml.fromstring(svg)
    space = "{http://www.w3.org/2000/svg}"
    rects = [{k: float(r.get(k)) for k in ("x", "y", "width")} for r in root.iter(space + "rect")]
    return [(r["x"], r["x"] + r["width"], r["y"]) for r in rects], [t.text for t in root.iter(space + "text")]


def test_graph_of_a_tensor_names_nodes_and_parameters():
    pytest.importorskip("igraph")
    model = Net()
    picture = inspect.graph(model(rushlight.ones(2, 6)).sum(), model)
    _, texts = boxes(picture.svg)
    assert {"body.0.weight", "head.bias", "Relu", "Sum", "[8, 6]"} <= set(texts)
    assert repr(picture) == f"<Picture: {picture.count} nodes>"


def test_boxes_of_a_large_graph_do_not_overlap():
    pytest.importorskip("igraph")
    leaves = [rushlight.ones(2, requires_grad=True) for _ in range(12)]
    values = list(leaves)
    for i in range(90):
        values.append(values[i % len(values)] * values[(7 * i + 3) % len(values)])
    picture = inspect.graph(sum(values[12:]))
    found, _ = boxes(picture.svg)
    assert picture.count > 150
    for left, right, top in found:
        others = [b for b in found if b[2] == top and b != (left, right, top)]
        assert all(right <= b[0] or left >= b[1] for b in others)


def test_weight_and_bias_are_neighbours():
    pytest.importorskip("igraph")

    class Residual(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.second, self.skip = (nn.Linear(3, 3) for _ in range(3))

        def forward(self, x):
            return self.second(rushlight.relu(self.first(x))) + self.skip(x)

    model = nn.Sequential(*[Residual() for _ in range(4)])
    root = xml.fromstring(inspect.graph(model(rushlight.ones(2, 3)).sum(), model).svg)
    texts = root.iter("{http://www.w3.org/2000/svg}text")
    where = {
        t.text: (float(t.get("x")), float(t.get("y"))) for t in texts if t.text.startswith(("0.", "1.", "2.", "3."))
    }
    for name, (x, y) in where.items():
        if name.endswith("weight"):
            bias = where[name.replace("weight", "bias")]
            assert bias[1] == y and not any(x < place[0] < bias[0] for place in where.values() if place[1] == y)


def test_graph_stops_at_the_limit():
    pytest.importorskip("igraph")
    x = rushlight.ones(1, requires_grad=True)
    y = x
    for _ in range(30):
        y = y * 2
    picture = inspect.graph(y, limit=10)
    assert picture.count == 10 and "21 more nodes are not drawn" in picture.svg


class Residual(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(3, 3), nn.Linear(3, 3)

    def forward(self, x):
        return rushlight.relu(self.b(rushlight.relu(self.a(x))) + x)


def test_a_graph_folds_by_module(tmp_path):
    pytest.importorskip("igraph")
    model = nn.Sequential(nn.Linear(2, 3), nn.Sequential(Residual(), Residual()), nn.Linear(3, 1))
    loss = model(rushlight.ones(4, 2)).sum()
    whole = inspect.graph(loss, model)
    first, second = (inspect.graph(loss, model, depth=d) for d in (1, 2))
    assert first.count < second.count < whole.count
    assert ">1<" in first.svg and "Sequential, " in first.svg and ">1.0<" not in first.svg
    assert ">1.0<" in second.svg and ">1.1<" in second.svg and "Residual, " in second.svg and ">0<" in second.svg
    with pytest.raises(ValueError, match="'depth' needs the model"):
        inspect.graph(loss, depth=1)


def test_a_module_with_others_in_between_is_not_folded():
    """Shared weights before and after another module: one box for both calls would be a circle."""
    pytest.importorskip("igraph")
    model = nn.ModuleDict({"shared": nn.Linear(2, 2), "other": nn.Linear(2, 2)})
    loss = model["shared"](model["other"](model["shared"](rushlight.ones(1, 2)))).sum()
    picture = inspect.graph(loss, model, depth=1)
    assert ">other<" in picture.svg and ">shared<" not in picture.svg and ">shared.weight<" in picture.svg


_FRAME_VISIT = """
<script>
addEventListener("load", () => {
  const page = document.querySelector("iframe").contentDocument, out = document.createElement("pre");
  const title = page.getElementById("title").textContent, plots = page.querySelectorAll("#loss svg path").length > 0;
  out.id = "report"; out.textContent = JSON.stringify({problems, title, plots});
  document.body.append(out);
});
</script>
"""
_GRAPH_VISIT = """
<script>
const report = {levels: [...$("level").options].map(o => o.text), start: level};
choose(figures.length - 1);
report.scale = picture().getScreenCTM().a;
choose(report.start);
$("search").value = "residual"; search();
report.found = document.querySelectorAll("g.found").length;
const before = picture().getAttribute("viewBox");
$("in").click();
report.zoomed = picture().getAttribute("viewBox") !== before;
choose(figures.length - 1);
report.shown = figures.filter(f => f.getBoundingClientRect().height > 100).length;
$("all").click();
report.back = picture().getAttribute("viewBox") === whole[level].join(" ");
report.problems = problems;
const out = document.createElement("pre");
out.id = "report"; out.textContent = JSON.stringify(report);
document.body.append(out);
</script>
"""


def test_a_graph_as_a_page_that_folds_zooms_and_searches(tmp_path, browser):
    pytest.importorskip("igraph")
    model = nn.Sequential(nn.Linear(2, 3), nn.Sequential(Residual(), Residual()), nn.Linear(3, 1))
    inspect.graph(model(rushlight.ones(4, 2)).sum(), model).save(tmp_path / "page.html")
    seen = browser(tmp_path / "page.html", visit=_GRAPH_VISIT)
    assert seen["problems"] == [] and seen["levels"][0] == "modules, depth 1" and seen["levels"][-1].startswith("all ")
    assert seen["zoomed"] and seen["shown"] == 1 and seen["back"] and seen["scale"] > 0.6  # so that it can be read


def test_graph_of_a_model(tmp_path):
    shared = nn.Linear(2, 2)
    picture = inspect.graph(nn.Sequential(shared, nn.Sequential(shared, nn.ReLU())))
    _, texts = boxes(picture.svg)
    assert picture.count == 5 and "1: Sequential" in texts and "shared, see above" in texts
    picture.save(tmp_path / "model.svg")
    assert (tmp_path / "model.svg").read_text(encoding="utf-8") == picture.svg


def test_graph_refuses():
    with pytest.raises(RuntimeError, match="does not require gradients"):
        inspect.graph(rushlight.ones(2))
    with pytest.raises(TypeError, match="expected a Tensor or a Module, got int"):
        inspect.graph(3)


def test_notebooks_show_pictures():
    x = rushlight.ones(2, requires_grad=True)
    assert "<svg" in Net()._repr_html_()
    text = x._repr_html_()
    assert text.endswith(">tensor([1., 1.], requires_grad=True)</pre>") and "monospace !important" in text
    pytest.importorskip("igraph")
    assert "graph of 2 nodes" in (x * 2)._repr_html_() and "&lt;MulBackward0&gt;" in (x * 2)._repr_html_()


# -- watch -------------------------------------------------------------------------------------------------------------


def train(model, steps, path=None, every=1):
    optimizer = rushlight.optim.SGD(model.parameters(), lr=0.1)
    x, y = rushlight.randn(16, 6), rushlight.randn(16, 3)
    with inspect.watch(model, path, every=every) as watch:
        for _ in range(steps):
            optimizer.zero_grad()
            loss = nn.functional.mse_loss(model(x), y)
            loss.backward()
            optimizer.step()
            watch.step(loss, twice=2 * loss)
    return watch


def test_watch_records_outputs_gradients_and_parameters():
    model = Net()
    watch = train(model, 5)
    assert watch.steps == [0, 1, 2, 3, 4] and watch.losses[0] > watch.losses[-1]
    assert watch.metrics["twice"] == pytest.approx([2 * v for v in watch.losses])
    record = watch.records["body.0"]
    assert len(record.activation.points) == len(record.gradient.points) == 5 and None not in record.gradient.points
    gradient, weight = record.parameters["weight"].points[-1]
    assert gradient == pytest.approx(model.body[0].weight.grad.norm().item(), rel=1e-4) and weight > 0
    low, high, counts = record.activation.histograms[0]
    assert low < high and sum(counts) == 16 * 8
    assert all(m._hooks is None or m._hooks.calls_nothing() for m in model.modules())


def test_watch_changes_no_number():
    rushlight.manual_seed(1)
    watched = train(Net(), 4).losses
    rushlight.manual_seed(1)
    model = Net()
    optimizer = rushlight.optim.SGD(model.parameters(), lr=0.1)
    x, y = rushlight.randn(16, 6), rushlight.randn(16, 3)
    for expected in watched:
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(x), y)
        assert loss.item() == expected
        loss.backward()
        optimizer.step()


def test_evaluation_within_a_step_does_not_count():
    model = nn.Linear(2, 2)
    with inspect.watch(model, None) as watch:
        model(rushlight.ones(1, 2)).sum().backward()
        with rushlight.no_grad():
            model(1000 * rushlight.ones(1, 2))
        watch.step()
    assert watch.records[""].activation.points[0].max < 10


def test_watch_sees_dead_units():
    model = nn.Sequential(nn.Linear(6, 4), nn.ReLU(), nn.Linear(4, 3))
    with rushlight.no_grad():
        model[0].bias[:3] = -1000
    assert train(model, 1).records["1"].activation.points[0].dead == 0.75


class Poison(nn.Module):
    def __init__(self, when):
        super().__init__()
        self.calls, self.when = 0, when

    def forward(self, x):
        self.calls += 1
        return x * float("nan") if self.calls == self.when else x


def test_watch_names_the_module_that_made_the_first_nan():
    model = nn.Sequential(nn.Linear(6, 4), nn.Sequential(nn.ReLU(), Poison(3)), nn.Linear(4, 3))
    watch = train(model, 5, every=10)  # also in steps that are not recorded
    assert watch.first_nan == {
        "step": 2, "module": "1.1", "where": "forward", "what": "NaN", "why": "its output, from finite inputs"
    }  # fmt: skip


def test_watch_blames_the_weights_where_they_are_to_blame():
    model = Net()
    with rushlight.no_grad():
        model.head.weight[0, 0] = float("inf")
    assert train(model, 1).first_nan["why"] == "its parameters, which an update has made so"


def test_watch_finds_a_nan_that_backward_makes():
    model = nn.Sequential(nn.Linear(6, 3), nn.Identity())
    with inspect.watch(model, None) as watch:
        model(rushlight.zeros(2, 6)).mul(0).sqrt().sum().backward()
        watch.step()
    assert watch.first_nan["where"] == "backward" and watch.losses == [None]


def test_long_runs_are_thinned_out():
    model = nn.Linear(1, 1)
    with inspect.watch(model, None) as watch:
        for _ in range(1000):
            model(rushlight.ones(1, 1))
            watch.step(1.0)
    assert watch.every == 4 and watch.steps == list(range(0, 1000, 4)) and len(watch.losses) == 250
    assert len(watch.records[""].activation.points) == 250 and len(watch.histogram_steps) < 24
    assert len(watch.records[""].activation.histograms) == len(watch.histogram_steps)


def test_the_page_is_written_when_training_fails(tmp_path):
    model = Net()
    with pytest.raises(ZeroDivisionError), inspect.watch(model, tmp_path / "page.html") as watch:
        model(rushlight.ones(1, 6))
        watch.step(1.0)
        raise ZeroDivisionError
    assert (tmp_path / "page.html").exists() and not watch._handles


def test_the_page_needs_nothing_from_outside(tmp_path):
    train(Net(), 3, tmp_path / "page.html")
    text = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "{{DATA}}" not in text and not re.search(r"(?:src|href)\s*=|@import|fetch\(|https?://(?!www\.w3\.org)", text)


# -- watch never hurts, and never misleads -----------------------------------------------------------------------------

EXTREMES = [
    0.0, 1e-45, -1e-30, 1.0, 3e38, -3e38, float("inf"), float("-inf"), float("nan"), 1e38, 16777216.0, 1.0000001,
]  # fmt: skip


class Odd(nn.Module):
    """Gives whatever it is told to, of any kind."""

    def __init__(self, make):
        super().__init__()
        self.make = make

    def forward(self, x):
        return self.make(x)


@pytest.mark.parametrize(
    "make",
    [
        lambda x: rushlight.ones(3, 4),  # no spread at all
        lambda x: rushlight.tensor([[3e38, -3e38]]) * x[0, 0],
        lambda x: rushlight.tensor([1e308, -1e308], dtype=rushlight.float64) + x[0, 0].double(),
        lambda x: x * float("nan"),
        lambda x: x / 0,
        lambda x: x > 0,
        lambda x: x.long(),
        lambda x: rushlight.complex(x, x * float("inf")),
        lambda x: x[:0],
        lambda x: x.sum(),
        lambda x: (x.half() * 60000, {"other": [x]}),
        lambda x: None,
        lambda x: x.to_sparse(),
        lambda x: rushlight.full((4,), 1.0, dtype=rushlight.bfloat16) * (1 + 1e-7),
    ],
)
def test_watch_takes_any_output(make, tmp_path):
    model = nn.Sequential(nn.Linear(2, 2), Odd(make))
    with inspect.watch(model, tmp_path / "page.html") as watch:
        for loss in (1.0, float("inf"), rushlight.ones(2), "no number", None):
            found = model(rushlight.ones(3, 2))
            if isinstance(found, rushlight.Tensor) and found.requires_grad and not found.is_complex():
                found.to_dense().sum().backward() if found.is_sparse else found.sum().backward()
            watch.step(loss, accuracy=loss)
    assert len(watch.losses) == 5 and (tmp_path / "page.html").stat().st_size > 1000
    json.dumps(watch.to_dict(), allow_nan=False)


def diverging(seed):
    """A training run of random layers, sizes and numbers that ends badly more often than not."""
    import random

    chance = random.Random(seed)
    layers = [nn.Linear(3, 4)]
    for _ in range(chance.randrange(1, 4)):
        kind = chance.choice([nn.Sigmoid, nn.ReLU, nn.Tanh, nn.Softplus, nn.Identity, nn.Softsign, nn.ELU])
        layers += [kind(), nn.Linear(4, 4)]
    model = nn.Sequential(*layers)
    with rushlight.no_grad():
        for p in model.parameters():
            p.mul_(chance.choice([1.0, 1e3, 1e18, 1e38, 0.0]))
            if chance.random() < 0.2:
                p.view(-1)[0] = chance.choice(EXTREMES)
    model = model.to(chance.choice([rushlight.float32, rushlight.float64, rushlight.float16]))
    optimizer = rushlight.optim.SGD(model.parameters(), lr=chance.choice([0.1, 1e4, 1e30]))
    power = chance.choice([1, 2, 8])
    with inspect.watch(model, None, every=chance.choice([1, 2])) as watch:
        for _ in range(chance.randrange(2, 6)):
            x = rushlight.full((2, 3), chance.choice(EXTREMES)).to(next(model.parameters()).dtype)
            optimizer.zero_grad()
            loss = model(x).pow(power).mean()
            loss.backward()
            optimizer.step()
            watch.step(loss, extreme=chance.choice(EXTREMES))
    return watch


def test_watch_raises_in_none_of_200_diverging_runs():
    bad = 0
    for seed in range(200):
        rushlight.manual_seed(seed)
        watch = diverging(seed)
        json.dumps(watch.to_dict(), allow_nan=False)
        assert not watch.notes, (seed, watch.notes)
        bad += watch.first_nan is not None
    assert bad > 50  # they do diverge


def test_an_infinite_loss_is_reported_as_such():
    model = nn.Linear(2, 1)
    with inspect.watch(model, None) as watch:
        for step in range(4):
            out = model(rushlight.ones(1, 2))
            loss = out.sum() * (float("inf") if step == 2 else 1.0)
            loss.backward()
            watch.step(loss)
    assert watch.first_nan == {
        "step": 2, "module": "", "where": "loss", "what": "infinity", "why": "computed from finite outputs of the model"
    }  # fmt: skip


def test_a_dead_relu_and_gradients_of_zero_raise_alarms():
    model = nn.Sequential(nn.Linear(6, 4), nn.ReLU(), nn.Linear(4, 3))
    with rushlight.no_grad():
        model[0].bias.fill_(-1000)
    watch = train(model, 3)
    assert watch.alarms() == [
        "The output is exactly zero since step 0: “1” (ReLU).",
        "The gradient of the output is exactly zero since step 0: “0” (Linear).",
    ]
    assert train(Net(), 3).alarms() == []


def test_a_module_called_twice_counts_both_calls():
    class Twice(nn.Module):
        def __init__(self):
            super().__init__()
            self.second, self.first = nn.Identity(), nn.Identity()

        def forward(self, x):
            return self.second(self.first(x) + self.first(10 * x))

    model = Twice()
    x = rushlight.tensor([[1.0, 2.0]], requires_grad=True)
    with inspect.watch(model, None) as watch:
        model(x).sum().backward()
        watch.step()
    point = watch.records["first"].activation.points[0]
    both = np.array([1.0, 2.0, 10.0, 20.0])
    assert (point.calls, point.count, point.min, point.max) == (2, 4, 1.0, 20.0)
    assert point.mean == pytest.approx(both.mean()) and point.std == pytest.approx(both.std())
    low, high, counts = watch.records["first"].activation.histograms[0]
    assert (low, high, sum(counts)) == (1.0, 20.0, 4)
    assert watch.records["first"].gradient.points[0].calls == 2
    assert [name for name, _ in watch._in_order()] == ["first", "second", ""]


def test_without_a_step_the_page_says_so(tmp_path):
    model = nn.Linear(2, 1)
    with inspect.watch(model, tmp_path / "page.html") as watch:
        for _ in range(3):
            model(rushlight.ones(1, 2)).sum().backward()
    assert list(watch.notes) == ["step() was never called: all that happened is shown as one step"]
    assert watch.records[""].activation.points[0].calls == 3
    assert "step() was never called" in (tmp_path / "page.html").read_text(encoding="utf-8")


def test_watch_sees_into_compiled_steps():
    pytest.importorskip("jax")

    def run(compiled):
        rushlight.manual_seed(0)
        model = nn.Sequential(nn.Linear(3, 4), nn.ReLU())
        optimizer = rushlight.optim.SGD(model.parameters(), lr=0.1)

        def step(x):
            optimizer.zero_grad()
            loss = model(x).square().mean()
            loss.backward()
            optimizer.step()
            return loss

        step = rushlight.compile(step) if compiled else step
        with inspect.watch(model, None) as watch:
            for i in range(5):
                watch.step(step(rushlight.randn(5, 3) * (float("nan") if i == 4 else 1.0)))
        return watch

    ours, plain = run(True), run(False)
    for name, record in plain.records.items():
        for kind in ("activation", "gradient"):
            for a, b in zip(getattr(ours.records[name], kind).points[:4], getattr(record, kind).points[:4]):
                assert (a.count, a.dead) == (b.count, pytest.approx(b.dead))
                assert [a.mean, a.std, a.min, a.max] == pytest.approx([b.mean, b.std, b.min, b.max], abs=1e-5)
        for own, norms in record.parameters.items():
            for a, b in zip(ours.records[name].parameters[own].points[:4], norms.points[:4]):
                assert a == pytest.approx(b, rel=1e-4)
        first, second = ours.records[name].activation.histograms[2], record.activation.histograms[2]
        assert first[:2] == pytest.approx(second[:2], abs=1e-4) and sum(first[2]) == sum(second[2])
    assert (
        (ours.first_nan["step"], ours.first_nan["module"])
        == (4, "0")
        == (
            plain.first_nan["step"],
            plain.first_nan["module"],
        )
    )


# -- live, and several runs --------------------------------------------------------------------------------------------


def page_data(text):
    return json.loads(text.split('id="data">', 1)[1].split("</script>", 1)[0])


def test_the_page_is_written_while_training_runs(tmp_path):
    path, model = tmp_path / "page.html", nn.Linear(2, 1)
    with inspect.watch(model, path) as watch:
        for i in range(3):
            model(rushlight.ones(1, 2)).sum().backward()
            watch._written = 0.0  # long ago
            watch.step(1.0)
            data = page_data(path.read_text(encoding="utf-8"))
            assert data["running"] and data["steps"] == list(range(i + 1))
    assert not page_data(path.read_text(encoding="utf-8"))["running"]


def test_live_serves_the_page_to_this_machine(capsys):
    import urllib.error
    import urllib.request

    model = nn.Linear(2, 1)
    with inspect.watch(model, None, live=True) as watch:
        model(rushlight.ones(1, 2)).sum().backward()
        watch._written = 0.0
        watch.step(1.0)
        address = watch.address
        assert capsys.readouterr().out == f"watch: {address}\n" and address.startswith("http://127.0.0.1:")
        with urllib.request.urlopen(address, timeout=60) as answer:
            data = page_data(answer.read().decode())
        assert data["running"] and data["steps"] == [0]
        asked = urllib.request.Request(address, headers={"Host": "elsewhere.example:80"})
        with pytest.raises(urllib.error.HTTPError, match="404"):
            urllib.request.urlopen(asked, timeout=60)
    assert watch._server is None


def test_a_notebook_shows_the_page_in_a_frame(tmp_path, browser):
    watch = train(Net(), 3)
    shown = watch._repr_html_()
    assert shown.startswith('<iframe srcdoc="') and shown.count('"') == 4
    inner = html.unescape(shown.split('"')[1])
    assert page_data(inner)["steps"] == [0, 1, 2]
    (tmp_path / "frame.html").write_text(f"<html><body>{shown}</body></html>", encoding="utf-8")
    seen = browser(tmp_path / "frame.html", visit=_FRAME_VISIT)
    assert seen == {"problems": [], "title": "Net", "plots": True}


@pytest.fixture
def cell(monkeypatch):
    """What a notebook's cell shows, place by place: an IPython that only remembers."""
    places = []

    class Place(list):
        def update(self, content, raw):
            self.append(content)

    def display(content, raw, display_id):
        places.append(Place([content]))
        return places[-1]

    ipython, shown = types.ModuleType("IPython"), types.ModuleType("IPython.display")
    ipython.get_ipython = lambda: types.SimpleNamespace(kernel=object())
    shown.display = display
    monkeypatch.setitem(sys.modules, "IPython", ipython)
    monkeypatch.setitem(sys.modules, "IPython.display", shown)
    return places


def test_a_live_page_is_below_the_cell(cell, capsys):
    model = nn.Linear(2, 1)
    with inspect.watch(model, None, live=True) as watch:
        for _ in range(2):
            model(rushlight.ones(1, 2)).sum().backward()
            watch._written = 0.0
            watch.step(1.0)
    (place,) = cell
    pages = [page_data(html.unescape(content["text/html"].split('"')[1])) for content in place]
    assert [(page["steps"], page["running"]) for page in pages] == [
        ([], True),
        ([0], True),
        ([0, 1], True),
        ([0, 1], False),
    ]
    assert capsys.readouterr().out == "" and watch.address is None


def test_a_download_is_a_bar_below_the_cell(cell, tmp_path, capfd):
    (tmp_path / "weights").write_bytes(bytes(300_000))
    rushlight.hub.download_url_to_file((tmp_path / "weights").as_uri(), str(tmp_path / "copy"))
    (place,) = cell
    assert [content["text/plain"] for content in place] == ["43% of 0.3 MB", "87% of 0.3 MB", "100% of 0.3 MB"]
    assert place[0]["text/html"] == '<progress value="131072" max="300000"></progress> 43% of 0.3 MB'
    assert capfd.readouterr() == ("", "")


def test_an_executed_notebook(tmp_path):
    """The same in a real kernel, by nbconvert."""
    pytest.importorskip("nbconvert", reason="nbconvert is not installed: no notebook is executed")
    pytest.importorskip("ipykernel", reason="ipykernel is not installed: no notebook is executed")
    root = Path(__file__).parents[1]
    command = [sys.executable, root / "tests" / "notebook.py", "page.html"]
    environment = {**os.environ, "PYTHONPATH": str(root)}
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
    (tensor,), (live,), (watch,), (model,), (bar,) = json.loads(done.stdout)
    assert "monospace !important" in tensor["text/html"] and "<svg" in model["text/html"]
    for shown in (live, watch):
        assert page_data(html.unescape(shown["text/html"].split('"')[1]))["steps"] == [0, 1, 2]
    assert bar["text/plain"] == "100% of 1.0 MB"


def test_runs_side_by_side(tmp_path, browser):
    for i in range(2):
        train(Net(), 5 + i, tmp_path / f"{i}.html")
    third = train(Net(), 3)
    third.name = "third"
    inspect.compare([tmp_path / "0.html", tmp_path / "1.html", third], tmp_path / "all.html")
    data = page_data((tmp_path / "all.html").read_text(encoding="utf-8"))
    assert [len(run["steps"]) for run in data["runs"]] == [5, 6, 3] and data["runs"][2]["run"] == "third"
    (tmp_path / "no.html").write_text("nothing")
    with pytest.raises(ValueError, match="is not a page that watch wrote"):
        inspect.compare([tmp_path / "no.html"], tmp_path / "x.html")
    seen = browser(tmp_path / "all.html")
    assert seen["problems"] == [] and seen["lossPaths"] == 3 and seen["runs"] == 3


# -- the page in a browser ---------------------------------------------------------------------------------------------

_VISITOR = """
<script>
window.problems = [];
addEventListener("error", e => problems.push(e.message));
</script>
"""
_CLICKS = """
<script>
// Is a text cut off at the edge of its card, or printed over another one of its picture?
function look() {
  for (const svg of document.querySelectorAll("section svg")) {
    const card = svg.closest("section").getBoundingClientRect(), texts = [...svg.querySelectorAll("text")];
    const boxes = texts.map(t => t.getBoundingClientRect());
    boxes.forEach((a, i) => {
      if (a.left < card.left || a.right > card.right) problems.push("cut off: " + texts[i].textContent);
      boxes.slice(0, i).forEach((b, j) => {
        const wide = Math.min(a.right, b.right) - Math.max(a.left, b.left);
        const high = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
        if (wide > 1 && high > 3) problems.push("on top: " + texts[i].textContent + " / " + texts[j].textContent);
      });
    });
  }
}
const report = {title: document.title, alarm: document.getElementById("alarm").textContent, visits: []};
for (const button of document.querySelectorAll("#tree button")) {
  button.scrollIntoView({block: "center"});
  const box = button.getBoundingClientRect();
  const hit = document.elementFromPoint(box.left + box.width / 2, box.top + box.height / 2);
  if (!button.contains(hit)) problems.push("covered: " + button.dataset.path);
  hit.click();
  report.visits.push([button.dataset.path, button.getAttribute("aria-current"),
    document.querySelector("#module h2").firstChild.textContent.trim(),
    document.querySelectorAll("#module svg").length]);
  look();
}
const rows = document.querySelectorAll("#flow g[data-path]");
report.flow = [...rows].map(g => [g.dataset.path, g.querySelectorAll("[data-tip]").length]);
rows[0].querySelector("text").dispatchEvent(new MouseEvent("click", {bubbles: true}));
report.afterFlow = document.querySelector("#tree [aria-current=true]").dataset.path;
report.runs = document.querySelectorAll("#run option").length;
report.lossPaths = document.querySelectorAll("#loss path").length;
report.tips = ["#loss svg", "#metrics svg"].map(place => {
  const move = new MouseEvent("mousemove", {bubbles: true, clientX: 700, clientY: 200});
  document.querySelector(place)?.dispatchEvent(move);
  return document.getElementById("tip").textContent;
});
const loss = () => document.getElementById("loss").innerHTML, linear = loss();
document.getElementById("scale").click();
report.logarithmic = loss() !== linear && loss().includes("<path");
look();
const page = () => getComputedStyle(document.body).backgroundColor;
report.pages = [page()];
document.getElementById("theme").click();
report.pages.push(page());
report.wide = document.documentElement.scrollWidth > innerWidth;
report.problems = problems;
const out = document.createElement("pre");
out.id = "report"; out.textContent = JSON.stringify(report);
document.body.append(out);
</script>
"""


@pytest.fixture
def browser(tmp_path):
    """``browser(page)``: the report of a visit that clicks through the page in headless Chromium."""
    program = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if program is None:
        pytest.skip("no Chromium is installed: the page is not opened in a browser")

    def open_(page, width=1200, visit=_CLICKS):
        if not isinstance(page, Path):  # an address: what is seen in the end
            return dump(width, page)
        text = page.read_text(encoding="utf-8")
        visited = tmp_path / "visited.html"
        text = text.replace("<body>", "<body>" + _VISITOR, 1).replace("</body>", visit + "</body>", 1)
        visited.write_text(text, encoding="utf-8")
        dom = dump(width, visited.as_uri())
        return json.loads(html.unescape(re.search(r'<pre id="report">(.*?)</pre>', dom, re.S).group(1)))

    def dump(width, address):
        command = [program, "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path / 'profile'}"]
        command += [f"--window-size={width},900", "--virtual-time-budget=9000", "--dump-dom", address]
        return subprocess.run(command, capture_output=True, text=True, timeout=120, check=True).stdout

    return open_


def test_a_browser_follows_the_live_page(browser):
    """Each time the page is asked for another step is done; after the third training is over."""
    model, seen = nn.Linear(2, 1), []
    with inspect.watch(model, None, live=True) as watch:
        address, server = watch.address, watch._server

        class Training(type(server)):
            @property
            def page(self):
                model(rushlight.ones(1, 2)).sum().backward()
                watch.step(1.0)
                seen.append(watch.step_count)
                return page_of({**watch.to_dict(), "running": watch.step_count < 3})

            @page.setter
            def page(self, value):
                """What watch itself would show."""

        server.__class__ = Training
        dom = browser(address)
    assert seen == [1, 2, 3]
    assert re.search(r'id="subtitle"[^>]*>3 steps in', dom) and re.search(r'id="live"[^>]*hidden', dom)


def test_click_through_the_page(tmp_path, browser):
    train(Net(), 30, tmp_path / "page.html")
    seen = browser(tmp_path / "page.html")
    assert seen["problems"] == [] and seen["title"] == "Net – rushlight watch" and seen["alarm"] == ""
    assert [v[:2] for v in seen["visits"]] == [
        [path, "true"] for path in ("", "body", "body.0", "body.1", "body.2", "head")
    ]
    assert [v[2] for v in seen["visits"]] == ["Net", "body", "body.0", "body.1", "body.2", "head"]
    assert (
        all(v[3] >= 4 for v in seen["visits"]) and seen["visits"][2][3] == 6
    )  # outputs, gradients; with weights, more
    assert [path for path, _ in seen["flow"]] == ["body.0", "body.1", "body.2", "head"]
    assert all(cells == 30 for _, cells in seen["flow"]) and seen["afterFlow"] == "body.0"
    assert seen["lossPaths"] >= 1 and "loss: " in seen["tips"][0] and "twice: " in seen["tips"][1]
    assert seen["logarithmic"]
    assert seen["pages"][0] != seen["pages"][1] and not seen["wide"]


def test_the_page_shows_the_nan(tmp_path, browser):
    model = nn.Sequential(nn.Linear(6, 4), Poison(2), nn.Linear(4, 3))
    train(model, 3, tmp_path / "page.html")
    seen = browser(tmp_path / "page.html")
    assert seen["problems"] == []
    assert seen["alarm"] == "NaN first in step 1, forward, at module “1” (Poison): its output, from finite inputs."


def test_the_page_on_a_narrow_screen(tmp_path, browser):
    train(Net(), 130, tmp_path / "page.html")
    seen = browser(tmp_path / "page.html", width=500)  # Chromium's windows are not narrower
    assert seen["problems"] == [] and not seen["wide"]


def test_layers_are_what_has_gradients_but_no_parts_that_have(tmp_path, browser):
    """MultiheadAttention never calls its out_proj: it is a layer itself."""
    model = nn.ModuleDict({"attention": nn.MultiheadAttention(4, 2), "out": nn.Linear(4, 1)})
    with inspect.watch(model, tmp_path / "page.html") as watch:
        for _ in range(2):
            x = rushlight.randn(3, 2, 4)
            model["out"](model["attention"](x, x, x)[0]).sum().backward()
            watch.step(1.0)
    assert [path for path, _ in browser(tmp_path / "page.html")["flow"]] == ["attention", "out"]


def test_names_cannot_end_the_page(tmp_path):
    class Odd(nn.Module):
        def __init__(self):
            super().__init__()
            self.add_module("<!--<script>", nn.Linear(2, 2))
            self.add_module("</script>", nn.Linear(2, 2))

        def forward(self, x):
            for child in self.children():
                x = child(x)
            return x

    net = Odd()
    with inspect.watch(net, None) as watch:
        net(rushlight.ones(1, 2)).sum().backward()
        watch.step(loss=1.0)
    watch.save(tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text()
    data = page.split('id="data">', 1)[1].split("</script>", 1)[0]
    assert "<" not in data
    paths = [module["path"] for module in json.loads(data)["modules"]]
    assert "<!--<script>" in paths and "</script>" in paths
    assert [p.name for p in tmp_path.iterdir()] == ["page.html"]
