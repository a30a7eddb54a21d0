"""``torch.profiler`` beside PyTorch's: the same table of the same events, and the same rows for the same model."""

from __future__ import annotations

import collections
import warnings

import pytest
import torch
import torch.profiler
from torch.autograd import profiler_util

import rushlight
from rushlight.profiler import events as ours

# (name, start, end, memory, shapes, stack) of events that contain each other by their times.
EVENTS = [
    ("aten::linear", 0.0, 1500.25, 4096, [[2, 3], [4, 3], []], ["a.py(3): f", "b.py(14): main"]),
    ("aten::addmm", 100.0, 1400.0, 4096, [[2, 3]], []),
    ("aten::addmm", 1600.0, 1601.5, 16, [[2, 3]], []),
    (
        "a name that is longer than the column that is there for the names of rows",
        2000.0,
        3_000_000.0,
        -5 << 30,
        [[7]] * 30,
        [],
    ),
    ("mine", 4e6, 4e6, 3 << 20, [], []),
]


def event_lists(memory):
    theirs, mine = [], []
    for i, (name, start, end, used, shapes, stack) in enumerate(EVENTS):
        options = {"cpu_memory_usage": used, "input_shapes": shapes, "stack": stack}
        theirs.append(profiler_util.FunctionEvent(i, name, 1, start, end, **options))
        mine.append(ours.FunctionEvent(i, name, 1, start, end, **options))
    theirs = profiler_util.EventList(theirs, profile_memory=memory, use_device=None)
    theirs._build_tree()
    mine[0].append_cpu_child(mine[1])
    mine[1].set_cpu_parent(mine[0])
    return theirs, ours.EventList(mine, profile_memory=memory)


@pytest.mark.parametrize("memory", [False, True])
@pytest.mark.parametrize("group", [{}, {"group_by_stack_n": 1}, {"group_by_input_shapes": True}])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"sort_by": "cpu_time_total", "row_limit": 2},
        {"sort_by": "self_cpu_time_total", "row_limit": -1, "time_unit": "ms"},
        {"sort_by": "count", "header": "Title", "max_name_column_width": 15, "max_shapes_column_width": 20},
        {"sort_by": "cuda_time_total", "top_level_events_only": True},
    ],
)
def test_tables_are_equal(memory, group, options):
    theirs, mine = event_lists(memory)
    assert mine.key_averages(**group).table(**options) == theirs.key_averages(**group).table(**options)


def test_lists_are_equal():
    theirs, mine = event_lists(True)
    assert str(mine) == str(theirs)
    assert mine.self_cpu_time_total == theirs.self_cpu_time_total
    assert repr(mine.total_average()) == repr(theirs.total_average())
    assert [repr(e) for e in mine.key_averages()] == [repr(e) for e in theirs.key_averages()]
    assert ours.EventList([]).table() == profiler_util.EventList([], use_device=None).table()


@pytest.mark.parametrize("plan", [(1, 1, 2, 2, 1), (0, 1, 1, 0, 0), (2, 0, 3, 1, 4)])
def test_schedules_are_equal(plan):
    words = dict(zip(("wait", "warmup", "active", "repeat", "skip_first"), plan))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs, mine = torch.profiler.schedule(**words), rushlight.profiler.schedule(**words)
    assert [mine(i).name for i in range(30)] == [theirs(i).name for i in range(30)]


def step(lib, with_shapes):
    nn = lib.nn
    model = nn.Sequential(
        nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(128, 10)
    )
    optimizer = lib.optim.SGD(model.parameters(), lr=0.1)
    x, y = lib.randn(4, 3, 8, 8), lib.randint(0, 10, (4,))
    with lib.profiler.profile(activities=[lib.profiler.ProfilerActivity.CPU], record_shapes=with_shapes) as prof:
        with lib.profiler.record_function("forward"):
            out = model(x)
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(out, y) + (out**2).mean() * 0.1 + out.softmax(1).exp().sum()
        loss.backward()
        optimizer.step()
    return prof


def outermost(event):
    """Is it what the program called, not what that called?"""
    return event.cpu_parent is None or event.cpu_parent.name == "forward"


def test_a_model_has_the_same_rows():
    """What a program calls, its gradient rules, its ranges: names and counts."""
    theirs, mine = step(torch, False), step(rushlight, False)
    rows = [collections.Counter(e.name for e in p.events() if outermost(e)) for p in (theirs, mine)]
    evaluated = "autograd::engine::evaluate_function: "
    for name in ("TBackward0",):  # their linear layer has a node for the transposed weight
        del rows[0][evaluated + name]
    del rows[0]["aten::ones_like"]  # their first gradient is made by an operator
    assert rows[1] == rows[0]
    inside = {e.name for e in mine.events() if not outermost(e)} - {e.name for e in theirs.events()}
    assert inside == {"rushlight::followed"}  # an average that moves on, in one pass


def test_shapes_of_what_is_called():
    """PyTorch fills in defaults; of what both have, the shapes are equal."""
    theirs, mine = (
        {e.name: e.input_shapes for e in step(lib, True).events() if outermost(e)} for lib in (torch, rushlight)
    )
    for name in ("aten::conv2d", "aten::batch_norm", "aten::relu", "aten::linear", "aten::cross_entropy_loss"):
        given = [shape for shape in mine[name] if shape]
        assert given == [shape for shape in theirs[name] if shape]


FLOPS = {
    "products": lambda t, a, b: (a[0] @ b[0], t.addmm(b[0, 0], a[0], b[0]), a[0] @ b[0, :, 0]),
    "batches": lambda t, a, b: (a @ b, a[None] @ b[None], t.bmm(a, b), a @ b[0], t.baddbmm(b[:, :1], a, b)),
    "layers": lambda t, a, b: (t.nn.functional.linear(a, a[0]), t.nn.functional.linear(a[0], a[0], a[0, :, 0])),
    "convolutions": lambda t, a, b: (
        t.nn.functional.conv2d(a[None], b[:, :1, None, :2], stride=2, groups=2),
        t.nn.functional.conv1d(a, a),
    ),
    "elements": lambda t, a, b: (a + 1, a[0, 0] + a, a * a, 2 * a, a - a, a / 2, t.add(a, a, alpha=2), a.add_(1)),
}


@pytest.mark.parametrize("name", FLOPS)
def test_flops_are_equal(name):
    """Of the rows that both have; here a gradient rule's products have no row, and count as the rule's."""
    a, b = torch.randn(2, 3, 4), torch.randn(2, 4, 5)
    theirs, mine = [], []
    for lib, found in ((torch, theirs), (rushlight, mine)):
        with lib.profiler.profile(with_flops=True) as prof:
            FLOPS[name](lib, *(lib.tensor(x.numpy()) for x in (a, b)))
        found += [(e.name, e.flops) for e in prof.events() if e.flops]
    assert mine == theirs and len(mine) > 0


def test_flops_of_a_training_step_are_equal():
    totals = []
    for lib in (torch, rushlight):
        x, w, b = (lib.ones(*shape, requires_grad=True) for shape in ((2, 3), (4, 3), (4,)))
        with lib.profiler.profile(with_flops=True) as prof:
            h = lib.nn.functional.linear(x, w, b)
            (h * h).sum().backward()
        totals.append(sum(e.flops or 0 for e in prof.events()))
    assert totals[0] == totals[1] > 0


@pytest.mark.parametrize("count", [5, 1500, 3e6, 7e9, 2e12, 4e15, 9e18])
def test_tables_with_flops_are_equal(count):
    theirs, mine = event_lists(False)
    for events in (theirs, mine):
        events._with_flops = True
        events[1].flops, events[2].flops, events[3].flops = count, count / 3, count * 2
    assert mine.key_averages().table() == theirs.key_averages().table()


def test_older_profile():
    with rushlight.autograd.profiler.profile() as mine, torch.autograd.profiler.profile() as theirs:
        rushlight.ones(2).add(1)
        torch.ones(2).add(1)
    assert [e.name for e in mine.function_events] == ["aten::ones", "aten::add"]
    assert mine.table().splitlines()[1] == mine.key_averages().table().splitlines()[1]
    assert {e.name for e in mine.function_events} <= {e.name for e in theirs.function_events}
