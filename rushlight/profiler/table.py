"""Averages as a table of text, in PyTorch's columns."""

from __future__ import annotations

__all__ = ["build_table", "microseconds", "size"]

_UNITS = {"s": 1_000_000.0, "ms": 1_000.0, "us": 1.0}
_NUMBER = 12  # the width of a column of numbers
_GAP = "  "


def microseconds(time: float, unit: str | None = None) -> str:
    """``12.500us``, ``2.980ms``: in ``unit``, or in the one that fits."""
    unit = unit or ("s" if time >= _UNITS["s"] else "ms" if time >= _UNITS["ms"] else "us")
    if unit not in _UNITS:
        raise ValueError(f"Unknown time_unit {unit!r}. Expected one of: None, 's', 'ms', 'us'.")
    return f"{time / _UNITS[unit]:.3f}{unit}"


def size(bytes: int) -> str:
    """``1.18 MB``"""
    for power, unit in ((3, "GB"), (2, "MB"), (1, "KB")):
        if abs(bytes) >= 1024**power:
            return f"{bytes / 1024**power:.2f} {unit}"
    return f"{bytes} B"


def build_table(
    events,
    *,
    sort_by,
    row_limit,
    max_source,
    max_name,
    max_shapes,
    header,
    profile_memory,
    with_flops,
    use_device,
    top_level_events_only,
    time_unit,
) -> str:
    """See ``EventList.table``."""
    if not events:
        return ""
    on_device = use_device is not None and any(event.self_device_time_total > 0 for event in events)
    total = sum(event.self_cpu_time_total for event in events)
    device_total = sum(event.self_device_time_total for event in events if event.is_user_annotation is False)
    chosen = _chosen(events, sort_by, row_limit, top_level_events_only)

    name_width = _width([event.key for event in events], max_name)
    shapes = [str(event.input_shapes) for event in events if event.input_shapes]
    lines_of_code = [line for event in events for line in event.stack]
    columns = [
        ("Name", name_width, ">"),
        *((title, _NUMBER, ">") for title in _numbers(profile_memory, on_device, use_device)),
    ]
    if shapes:
        columns.append(("Input Shapes", _width([str(event.input_shapes) for event in events], max_shapes), ">"))
    flops = [event.flops for event in events if event.flops] if with_flops else []
    if flops:
        unit, thousand = _flops_unit(min(flops))
        columns.append((f"Total {unit}", _NUMBER, ">"))
    if lines_of_code:
        columns.append(("Source Location", _width(lines_of_code, max_source), "<"))

    rows = []
    for event in chosen:
        cells = [_shortened(event.key, max_name), *_times(event, total, time_unit)]
        if on_device:
            cells += _device_times(event, device_total, time_unit)
        if profile_memory:
            cells += [size(event.cpu_memory_usage), size(event.self_cpu_memory_usage)]
        cells.append(str(event.count))
        if shapes:
            cells.append(str(event.input_shapes)[: columns[len(cells)][1]])
        if flops:
            cells.append(f"{event.flops / thousand:.3f}" if event.flops else "--")
        if lines_of_code:
            empty = [""] * len(cells)
            source = [line[:max_source] for line in event.stack] or [""]
            rows += [[*cells, source[0]], *([*empty, line] for line in source[1:]), [*empty, ""]]
        else:
            rows.append(cells)
    return _laid_out(columns, rows, header, top_level_events_only) + _totals(
        total, device_total, on_device, use_device, time_unit
    )


def _flops_unit(smallest: float) -> tuple[str, float]:
    """``("MFLOPs", 1e6)``: the largest unit in which no count is below one."""
    power = 0
    while power < 5 and smallest >= 1000.0 ** (power + 1):
        power += 1
    return ["FLOPs", "KFLOPs", "MFLOPs", "GFLOPs", "TFLOPs", "PFLOPs"][power], 1000.0**power


def _numbers(profile_memory: bool, on_device: bool, use_device) -> list[str]:
    titles = ["Self CPU %", "Self CPU", "CPU total %", "CPU total", "CPU time avg"]
    if on_device:
        device = use_device.upper()
        titles += [f"Self {device}", f"Self {device} %", f"{device} total", f"{device} time avg"]
    if profile_memory:
        titles += ["CPU Mem", "Self CPU Mem"]
    return [*titles, "# of Calls"]


def _chosen(events, sort_by, row_limit, top_level_events_only) -> list:
    """The events that get a row, in its order."""
    if sort_by is not None:
        number = sort_by.replace("cuda", "device").replace("xpu", "device").replace("privateuse1", "device")
        events = sorted(events, key=lambda event: getattr(event, number), reverse=True)
    if top_level_events_only:
        events = [event for event in events if event.cpu_parent is None]
    return list(events) if row_limit < 0 else list(events)[:row_limit]


def _times(event, total, unit) -> list[str]:
    own, whole = event.self_cpu_time_total, event.cpu_time_total
    return [
        _share(own, total),
        microseconds(own, unit),
        _share(whole, total) if not event.is_async else "0.00%",
        microseconds(whole, unit),
        microseconds(event.cpu_time, unit),
    ]


def _device_times(event, total, unit) -> list[str]:
    own = event.self_device_time_total
    return [
        microseconds(own, unit),
        _share(own, total),
        microseconds(event.device_time_total, unit),
        microseconds(event.device_time, unit),
    ]


def _share(part: float, whole: float) -> str:
    return "NaN" if whole == 0 else f"{part * 100.0 / whole:.2f}%"


def _width(texts: list[str], most: int) -> int:
    return min(max(len(text) for text in texts) + 4, most)


def _shortened(name: str, most: int) -> str:
    return name[: most - 3] + "..." if len(name) >= most - 3 else name


def _laid_out(columns, rows, header, top_level_events_only) -> str:
    def line(cells) -> str:
        return "".join(f"{cell:{side}{width}}{_GAP}" for cell, (_, width, side) in zip(cells, columns)) + "\n"

    rule = "".join("-" * width + _GAP for _, width, _ in columns) + "\n"
    double = "=" * (sum(width + len(_GAP) for _, width, _ in columns) - len(_GAP)) + "\n"
    above = f"{double}{header}\n" if header is not None else ""
    if top_level_events_only:
        above += f"{double}This report only display top-level ops statistics\n"
    titles = line([title for title, _, _ in columns])
    return above + rule + titles + rule + "".join(map(line, rows)) + rule


def _totals(total, device_total, on_device, use_device, unit) -> str:
    text = f"Self CPU time total: {microseconds(total, unit)}\n"
    return text + (f"Self {use_device.upper()} time total: {microseconds(device_total, unit)}\n" if on_device else "")
