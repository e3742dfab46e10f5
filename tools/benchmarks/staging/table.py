"""Converts raw data points to Markdown."""
import statistics

from contenders import OURS
from machine import GIB, MIB

_FIELDS = ("seconds", "cpu_seconds", "machine_cpu_seconds", "memfree_drop_bytes", "peak_rss_bytes")
_SMALL_FILE = MIB // 4   # below this mean size, files per second are more meaningful than bytes per second


def medians(points):
    """set → contender → field → median; "low" and "high" are the fastest and the slowest run."""
    runs = {}
    for point in points:
        runs.setdefault(point["set"], {}).setdefault(point["contender"], []).append(point)
    return {made: {name: {field: statistics.median(run[field] for run in of) for field in _FIELDS}
                   | {"low": min(run["seconds"] for run in of), "high": max(run["seconds"] for run in of)}
                   for name, of in by_name.items()}
            for made, by_name in runs.items()}


def markdown(header, rows):
    """Aligned, so that the Markdown source is readable, too; all columns except the first are right-aligned."""
    widths = [max(len(row[column]) for row in [header, *rows]) for column in range(len(header))]

    def line(cells):
        aligned = [cell.rjust(width) for cell, width in zip(cells[1:], widths[1:])]
        return "| " + " | ".join([cells[0].ljust(widths[0]), *aligned]) + " |"
    rule = ["-" * widths[0], *("-" * (width - 1) + ":" for width in widths[1:])]
    return "\n".join([line(header), line(rule), *(line(row) for row in rows)])


def _rate(content, seconds):
    if content["bytes"] < content["files"] * _SMALL_FILE:
        return f"{content['files'] / seconds:,.0f}"
    return f"{content['bytes'] / seconds / GIB:.2f}"


def _row(name, one, content, ours):
    ratio = f"{one['seconds'] / ours['seconds']:.2f}" if ours and name != OURS else ""
    return [name, f"{one['seconds']:.2f}", f"{one['low']:.2f}-{one['high']:.2f}", _rate(content, one["seconds"]), ratio,
            f"{one['cpu_seconds']:.2f}", f"{one['machine_cpu_seconds']:.2f}",
            f"{one['memfree_drop_bytes'] / MIB:,.0f}", f"{one['peak_rss_bytes'] / MIB:,.0f}"]


def of_set(content, by_name, remarks, order):
    """A set's heading, its table in the order of the contenders, and remarks about some of them."""
    unit = "files/s" if content["bytes"] < content["files"] * _SMALL_FILE else "GiB/s"
    header = ["contender", "s", "min-max", unit, "× ours", "CPU s", "all CPU", "MemFree-", "RSS"]
    ours = by_name.get(OURS)
    rows = [_row(name, by_name[name], content, ours) for name in order if name in by_name]
    lines = [f"### {content['title']}", "",
             f"{content['files']:,} files, {content['bytes'] / GIB:.2f} GiB"]
    if rows:
        lines += ["", markdown(header, rows)]
    if remarks:
        lines += ["", *(f"- {name}: {'; '.join(words)}" for name, words in remarks.items())]
    return "\n".join(lines)


def of_verdicts(verdicts):
    return "### It must reach\n\n" + markdown(
        ["work", "wanted", "measured", ""], [[one.what, one.wanted, one.measured, one.verdict] for one in verdicts])


LEGEND = """\
s: median wall time until the copy is durable; min-max: fastest and slowest run; × ours: this time / spark-stage's;
CPU s: user and system of the contender; all CPU: of the whole machine meanwhile; MemFree-: how far free memory
fell, MiB; RSS: of its largest process, MiB. fio reads the source and writes the target at once: the reference."""
