"""The goals of spark-stage, and whether they were met."""
import operator
from dataclasses import dataclass
from typing import Callable

from contenders import CEILING, OURS, WALK
from machine import MIB

_TRUE = {"≥": operator.ge, "≤": operator.le}


@dataclass(frozen=True)
class Verdict:
    what: str
    wanted: str
    measured: str
    verdict: str    # met | missed | not measured


@dataclass(frozen=True)
class _Target:
    what: str
    sign: str
    limit: float
    form: str             # format of a value
    value: Callable       # Numbers → value; KeyError: not measured


class _Numbers:
    """Medians by set, contender and field, and the results of the long measurements; KeyError for a missing measurement."""

    def __init__(self, medians, long):
        self._medians, self.long = medians, long

    def __call__(self, made, contender, field="seconds"):
        return self._medians[made][contender][field]

    def times(self, made, *others):
        """The speed relative to the best of the others."""
        there = [self(made, other) for other in others if other in self._medians[made]]
        if not there:
            raise KeyError(others)
        return min(there) / self(made, OURS)


def _beyond_walk(made):
    return lambda get: get(made, OURS) - get(made, WALK)


def _copied_twice(get):
    seconds = [one["copied_twice_s"] for one in get.long["killed"].values()]
    if None in seconds:
        raise KeyError("copied_twice_s")
    return max(seconds)


_TIMES, _SECONDS, _MIB = "{:.2f} ×", "{:.2f} s", "{:,.0f} MiB"
TARGETS = [
    _Target("3 × 1 GiB: the fio reference's slower side", "≥", 0.90, _TIMES, lambda get: get.times("large", CEILING)),
    _Target("3 × 1 GiB: rsync", "≥", 5, _TIMES, lambda get: get.times("large", "rsync")),
    _Target("3 × 1 GiB: cp", "≥", 2, _TIMES, lambda get: get.times("large", "cp")),
    _Target("20,000 files in 40 folders: rsync", "≥", 2, _TIMES, lambda get: get.times("small", "rsync")),
    _Target("20,000 files in 40 folders: cp", "≥", 2, _TIMES, lambda get: get.times("small", "cp")),
    _Target("20,000 files in 40 folders: the best parallel cp", "≥", 2, _TIMES,
            lambda get: get.times("small", "cp-x4", "cp-x8")),
    _Target("20,000 files in one folder: rsync", "≥", 1.5, _TIMES, lambda get: get.times("flat", "rsync")),
    _Target("600 files of 1 to 4 MB: the best parallel cp", "≥", 1.5, _TIMES,
            lambda get: get.times("medium", "cp-x4", "cp-x8")),
    _Target("restage, nothing changed: beyond the walk", "≤", 0.5, _SECONDS, _beyond_walk("unchanged")),
    _Target("restage, one file changed: beyond the walk", "≤", 1, _SECONDS, _beyond_walk("changed")),
    _Target("CPU per GiB, 3 × 1 GiB: of cp's", "≤", 0.15, _TIMES,
            lambda get: get("large", OURS, "cpu_seconds") / get("large", "cp", "cpu_seconds")),
    _Target("MemFree drop over 3 GiB", "≤", 300, _MIB, lambda get: get("large", OURS, "memfree_drop_bytes") / MIB),
    _Target("peak resident memory, 1,000,000 files", "≤", 200, _MIB,
            lambda get: get.long["million"]["peak_rss_bytes"] / MIB),
    _Target("kill -9 at half way: work copied twice", "≤", 2, _SECONDS, _copied_twice),
]


def judge(medians, long):
    numbers = _Numbers(medians, long)
    verdicts = []
    for target in TARGETS:
        wanted = f"{target.sign} {target.form.format(target.limit)}"
        try:
            value = target.value(numbers)
        except KeyError:
            verdicts.append(Verdict(target.what, wanted, "", "not measured"))
            continue
        met = _TRUE[target.sign](value, target.limit)
        verdicts.append(Verdict(target.what, wanted, target.form.format(value), "met" if met else "missed"))
    return verdicts
