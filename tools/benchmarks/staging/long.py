"""The two measurements that take minutes: memory with a million files, and repeated work after kill -9."""
import json
import os

import check
import machine
import measure
import rounds
from machine import MIB, Problem
from sets import MILLION, SETS

_COPY_S = 12   # slows the copy so that half of it is much longer than the 2 s of work that may be lost


def _prepare(drives, made, scale, tell):
    tell(f"{made.name}: making {made.title}")
    drives.empty_source(made.mkfs)
    folder = os.path.join(drives.source, made.name)
    made.fill(folder, scale)
    drives.empty_target()
    drives.cold()
    return rounds.content_of(made, folder)


def _must_work(what, measured):
    if measured.status != 0:
        raise Problem(f"{what} failed: {measured.errors or measured.status}")


def million(drives, ours, scale, tell):
    """One copy of very many files."""
    content = _prepare(drives, MILLION, scale, tell)
    _, _, command = rounds.shell(ours, MILLION, drives)
    measured = measure.run(command)
    _must_work("spark-stage with a million files", measured)
    tell(f"{content['files']:,} files: {measured.seconds:.1f} s, peak {measured.peak_rss_bytes / MIB:,.0f} MiB, "
         f"MemFree -{measured.memfree_drop_bytes / MIB:,.0f} MiB")
    return content | {"seconds": measured.seconds, "cpu_seconds": measured.cpu_seconds,
                      "peak_rss_bytes": measured.peak_rss_bytes, "memfree_drop_bytes": measured.memfree_drop_bytes}


def killed(drives, ours, name, scale, tell):
    """kill -9 at half the time, then another run. The bytes copied twice are the bytes read from the source's drive beyond
    the set's size; they include metadata, so the real result is slightly better."""
    made = SETS[name]
    content = _prepare(drives, made, scale, tell)
    source, dest, command = rounds.shell(ours, made, drives)
    rate = content["bytes"] / _COPY_S
    counted = [machine.bytes_read(source)]
    first = measure.run(rounds.throttled(command, rate), kill_after_s=_COPY_S / 2)
    if first.status == 0:
        raise Problem(f"the copy of {name} was done before it could be killed: --max-rate did not slow it down")
    counted.append(machine.bytes_read(source))
    second = measure.run(rounds.throttled(command, rate))
    _must_work(f"spark-stage after kill -9 on {name}", second)
    counted.append(machine.bytes_read(source))
    wrong, _ = machine.apart(check.compare, source, dest)
    if wrong:
        raise Problem(f"the copy of {name} after kill -9 is not one: {wrong}")
    answer = content | {"resumed_bytes": json.loads(second.output)["resumed_bytes"], "copied_twice_s": None}
    if None not in counted:
        answer["read_before_kill_bytes"] = counted[1] - counted[0]
        answer["copied_twice_bytes"] = max(0, counted[2] - counted[0] - content["bytes"])
        answer["copied_twice_s"] = answer["copied_twice_bytes"] / rate
        tell(f"{name}: killed after {first.seconds:.1f} s and {answer['read_before_kill_bytes'] / MIB:,.0f} MiB, "
             f"{answer['resumed_bytes'] / MIB:,.0f} MiB taken over, {answer['copied_twice_bytes'] / MIB:,.0f} MiB "
             f"read twice: {answer['copied_twice_s']:.1f} s of work")
    return answer


def run(drives, ours, scale, tell):
    return {"killed": {name: killed(drives, ours, name, scale, tell) for name in ("large", "small")},
            "million": million(drives, ours, scale, tell)}
