"""``torch.profiler``: what is seen, when, and that nothing of it stays behind."""

from __future__ import annotations

import json
import os
import sys

import pytest

import rushlight
from rushlight import nn
from rushlight.autograd import mode, overriding
from rushlight.nn.module import Module
from rushlight.profiler import ProfilerActivity, profile, record_function, schedule, tensorboard_trace_handler


@pytest.fixture(autouse=True)
def nothing_stays_behind():
    before = mode.active, mode.state.interceptors, overriding.watching, overriding.state.modes, Module.__call__
    yield
    assert mode.state.profile is None
    assert (
        mode.active,
        mode.state.interceptors,
        overriding.watching,
        overriding.state.modes,
        Module.__call__,
    ) == before


def names(events):
    return [event.name for event in events]


def test_ranges_contain_operators():
    with profile() as prof, record_function("outer"), record_function("inner"):
        rushlight.ones(2) * 2
    outer, inner, ones, mul = prof.events()
    assert names([outer, inner, ones, mul]) == ["outer", "inner", "aten::ones", "aten::mul"]
    assert mul.cpu_parent is inner and inner.cpu_parent is outer and outer.cpu_parent is None
    assert outer.cpu_time_total >= inner.cpu_time_total >= mul.cpu_time_total > 0
    assert prof.events().self_cpu_time_total == pytest.approx(outer.cpu_time_total)


def test_an_error_closes_its_events():
    with profile() as prof:
        with pytest.raises(RuntimeError), record_function("wrong"):
            rushlight.ones(2) @ rushlight.ones(3)
        rushlight.ones(2)
    assert prof.events()[-1].name == "aten::ones" and prof.events()[-1].cpu_parent is None


def test_one_profile_at_a_time():
    with profile(), pytest.raises(RuntimeError, match="already enabled"):
        profile().start()


def test_a_decorated_function_and_no_profile():
    @record_function("work")
    def work():
        return rushlight.ones(1)

    work()
    with profile() as prof:
        work()
        work()
    assert prof.key_averages()[0].key == "work" and prof.key_averages()[0].count == 2


def test_schedule_and_handler(tmp_path):
    seen = []

    def ready(prof):
        seen.append((prof.step_num, [e.trace_name for e in prof.events() if e.name == "ProfilerStep*"]))

    plan = schedule(wait=1, warmup=1, active=2, repeat=2, skip_first=1)
    with profile(schedule=plan, on_trace_ready=ready) as prof:
        for _ in range(11):
            rushlight.ones(1)
            prof.step()
    assert seen == [(5, ["ProfilerStep#3", "ProfilerStep#4"]), (9, ["ProfilerStep#7", "ProfilerStep#8"])]
    with profile(on_trace_ready=tensorboard_trace_handler(str(tmp_path), "me", use_gzip=True)):
        rushlight.ones(1)
    assert [name.startswith("me.") and name.endswith(".pt.trace.json.gz") for name in os.listdir(tmp_path)] == [True]


def test_trace_has_operators_modules_ranges_and_arrows(tmp_path):
    model = nn.Sequential(nn.Linear(3, 4), nn.ReLU())
    with profile(with_modules=True, record_shapes=True) as prof, record_function("step"):
        model(rushlight.ones(2, 3)).sum().backward()
    prof.export_chrome_trace(str(tmp_path / "trace.json"))
    lines = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    by_kind = {}
    for line in lines:
        by_kind.setdefault(line.get("cat"), []).append(line)
    assert {"nn.Module: Sequential_0", "nn.Module: Linear_0"} <= {line["name"] for line in by_kind["python_function"]}
    assert [line["name"] for line in by_kind["user_annotation"]] == ["step"]
    addmm = next(line for line in by_kind["cpu_op"] if line["name"] == "aten::addmm")
    assert addmm["args"]["Input Dims"] == [[2, 3], [4, 3], [4]]
    assert addmm["args"]["Module Hierarchy"] == "Sequential_0.Linear_0"
    backward = next(line for line in by_kind["cpu_op"] if line["name"] == "AddmmBackward0")
    assert backward["args"]["Sequence number"] == addmm["args"]["Sequence number"]
    arrows = {(line["ph"], line["ts"]) for line in by_kind["fwdbwd"] if line["id"] == addmm["args"]["Sequence number"]}
    assert arrows == {("s", addmm["ts"]), ("f", backward["ts"])}


def test_stacks(tmp_path):
    with profile(with_stack=True) as prof:
        rushlight.ones(2) + 1
    assert prof.events()[0].stack[0].endswith("test_stacks") and "test_profiler.py(" in prof.events()[0].stack[0]
    prof.export_stacks(str(tmp_path / "stacks"))
    assert "test_stacks" in (tmp_path / "stacks").read_text()
    assert "Source Location" in prof.key_averages(group_by_stack_n=1).table()
    with profile() as plain:
        pass
    with pytest.raises(AssertionError, match="with_stack"):
        plain.export_stacks(str(tmp_path / "none"))


def test_memory_is_counted_and_given_back():
    with profile(profile_memory=True) as prof:
        kept = rushlight.ones(256) + 1
        with record_function("temporary"):
            (kept * 2).sum()
        del kept
    events = {event.name: event for event in prof.events()}
    assert events["aten::add"].cpu_memory_usage == 1024
    assert events["temporary"].cpu_memory_usage == 0 and events["aten::mul"].cpu_memory_usage == 1024
    assert sum(event.self_cpu_memory_usage for event in prof.events()) == 0
    assert events["[memory]"].cpu_memory_usage == -1024


def test_loader_and_optimizer_have_rows():
    layer = nn.Linear(2, 1)
    optimizer = rushlight.optim.Adam(layer.parameters())
    data = rushlight.utils.data.DataLoader(rushlight.ones(4, 2), batch_size=2)
    with profile() as prof:
        for batch in data:
            optimizer.zero_grad()
            layer(batch).sum().backward()
            optimizer.step()
    counts = {average.key: average.count for average in prof.key_averages()}
    assert counts["enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"] == 3
    assert counts["Optimizer.step#Adam.step"] == counts["Optimizer.zero_grad#Adam.zero_grad"] == 2


def test_a_compiled_function_is_one_row():
    pytest.importorskip("jax")

    def double(x):
        return (x * 2).sum()

    compiled = rushlight.compile(double)
    with profile() as prof:
        for _ in range(3):
            compiled(rushlight.ones(3))
    assert {event.name for event in prof.events()} == {
        "aten::ones",
        "compiled: test_a_compiled_function_is_one_row.<locals>.double",
    }
    assert compiled.compilations == 1


def test_lines_of_jax_come_on_our_clock():
    from rushlight.cuda.profiler import _MARK, _NO_PROCESS, on_our_clock

    def name(kind, name, **ids):
        return {"ph": "M", "name": kind, "args": {"name": name}, **ids}

    lines = [
        name("process_name", "/device:GPU:0", pid=1),
        name("thread_name", "Stream #7(compute)", pid=1, tid=7),
        name("thread_name", "XLA Modules", pid=1, tid=8),
        name("process_name", "/host:CPU", pid=2),
        {"ph": "X", "name": f"{_MARK} 0", "pid": 2, "tid": 1, "ts": 1.0, "dur": 0.1},
        {"ph": "X", "name": f"{_MARK} 1", "pid": 2, "tid": 1, "ts": 4.0, "dur": 0.1},
        {"ph": "X", "name": "fusion", "pid": 1, "tid": 7, "ts": 5.0, "dur": 2.0},
        {"ph": "X", "name": "the whole module", "pid": 1, "tid": 8, "ts": 5.0, "dur": 2.0},
        {"ph": "X", "name": "python", "pid": 2, "tid": 1, "ts": 6.0, "dur": 1.0},
    ]
    moved, on_device = on_our_clock(lines, [(90.0, 99.0), (99.5, 100.5)])
    assert on_device == [("fusion", 101.0, 2.0)]
    assert [line["ts"] for line in moved if "ts" in line] == [101.0, 101.0, 102.0]
    assert {line["pid"] for line in moved} == {_NO_PROCESS + 1, _NO_PROCESS + 2}


@pytest.mark.usefixtures("by_xla")
def test_what_xla_does_is_in_table_and_trace(tmp_path):
    pytest.importorskip("jax")
    weight = rushlight.ones(200, 200)
    compiled = rushlight.compile(lambda x: (x @ weight).tanh().sum())
    for _ in range(2):
        compiled(weight)
    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as prof:
        for _ in range(3):
            compiled(weight).item()
    (program,) = (average for average in prof.key_averages() if average.key.startswith("compiled: "))
    assert (program.count, program.device_time_total) == (3, 0)
    on_device = [event for event in prof.events() if event.is_on_device]
    assert on_device and sum(event.device_time for event in on_device) > 0
    ours = [event.time_range for event in prof.events() if not event.is_on_device]
    begun, ended = ours[0].start - 1e6, ours[-1].end + 1e6  # clocks that were not brought together are hours apart
    assert all(begun < event.time_range.start < ended for event in on_device)
    assert " time avg" in prof.key_averages().table(sort_by="self_device_time_total").split("CPU time avg")[1]
    prof.export_chrome_trace(str(tmp_path / "trace.json"))
    lines = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    assert sum(line["name"] == on_device[0].name and line["ph"] == "X" for line in lines) == sum(
        event.name == on_device[0].name for event in on_device
    )


def test_without_a_profiler_of_devices_the_cpu_is_profiled(monkeypatch):
    jax = pytest.importorskip("jax")

    def refuse(*args, **options):
        raise RuntimeError("none on this platform")

    def profiled(warning):
        with pytest.warns(UserWarning, match=warning), profile(activities=list(ProfilerActivity)) as prof:
            rushlight.ones(1)
        return names(prof.events())

    with monkeypatch.context() as patch:
        patch.setattr(jax.profiler, "start_trace", refuse)
        assert profiled("did not start, devices are not traced: none on this platform") == ["aten::ones"]
    with monkeypatch.context() as patch:
        patch.setitem(sys.modules, "jax", None)
        assert profiled("CUDA is not available, disabling CUDA profiling") == ["aten::ones"]
    with monkeypatch.context() as patch:
        patch.setattr(jax.profiler, "stop_trace", lambda stop=jax.profiler.stop_trace: (stop(), refuse()))
        assert profiled("did not write its trace: none on this platform") == ["aten::ones"]


def test_collection_can_pause():
    with profile() as prof:
        prof.toggle_collection_dynamic(False, [ProfilerActivity.CPU])
        rushlight.ones(1)
        prof.toggle_collection_dynamic(True, [ProfilerActivity.CPU])
        rushlight.zeros(1)
    assert names(prof.events()) == ["aten::zeros"]


def test_what_does_nothing_says_so():
    with pytest.warns(UserWarning, match="does nothing here"), rushlight.autograd.profiler.emit_nvtx():
        pass
    with pytest.raises(AssertionError, match="must be initialized"):
        profile().events()
    with pytest.raises(RuntimeError, match="didn't finish"):
        rushlight.autograd.profiler.profile().table()
