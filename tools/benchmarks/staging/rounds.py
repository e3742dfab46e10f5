"""Runs every contender on every set, in rounds with different orders, with cold caches before each run."""
import dataclasses
import os
import random
import shlex
import stat

import check
import contenders
import machine
import measure


class Results:
    def __init__(self):
        self.points = []      # one per run: set, contender, round, and the measurements
        self.content = {}     # set → {"title", "files", "bytes"}
        self.remarks = {}     # (set, contender) → remark about it
        self.failed = set()   # (set, contender): not a copy, or an error

    def add(self, made, contender, number, measured):
        values = dataclasses.asdict(measured)
        del values["output"], values["errors"], values["status"]
        self.points.append({"set": made.name, "contender": contender.name, "round": number} | values)

    def remark(self, made, contender, words):
        self.remarks.setdefault((made.name, contender.name), []).append(words)

    def fail(self, made, contender, words):
        self.failed.add((made.name, contender.name))
        self.points = [point for point in self.points
                       if (point["set"], point["contender"]) != (made.name, contender.name)]
        self.remark(made, contender, f"failed: {words}")


def _count(folder):
    """(files, bytes); files with several hard links count once."""
    seen = {}
    for inside, _, files in os.walk(folder):
        for name in files:
            status = os.lstat(os.path.join(inside, name))
            if stat.S_ISREG(status.st_mode):
                seen[status.st_ino] = status.st_size
    return len(seen), sum(seen.values())


def content_of(made, folder):
    files, size = machine.apart(_count, folder)
    return {"title": made.title, "files": files, "bytes": size}


def shell(contender, made, drives):
    """(source, dest, command) for a run on the drives."""
    source, dest = os.path.join(drives.source, made.name), os.path.join(drives.target, made.name)
    return source, dest, contender.command(made, source, dest)


def _once(drives, made, contender, change_rng):
    """One run: (measurement, the reason why it does not count or None, source, dest)."""
    drives.empty_target()
    source, dest, command = shell(contender, made, drives)
    if made.restage and contender.copies:
        before = measure.run(command)
        if before.status != 0:
            return before, before.errors or f"exit status {before.status}", source, dest
        if made.change:
            made.change(source, change_rng)
    drives.cold()
    measured = measure.run(command)
    if contender.name == contenders.CEILING and measured.status == 0:
        measured.seconds = contenders.fio_seconds(measured.output)
    why = (measured.errors.splitlines() or [f"exit status {measured.status}"])[-1] if measured.status else None
    return measured, why, source, dest


def run(drives, sets, taking_part, rounds, scale, tell):
    """Runs everything; `tell` is called with a line for each run."""
    results = Results()
    plan = [(made, [one for one in taking_part if one.takes_part(made)]) for made in sets]
    total, done = rounds * sum(len(who) for _, who in plan), 0
    for made, who in plan:
        tell(f"{made.name}: making {made.title}")
        drives.empty_source(made.mkfs)
        folder = os.path.join(drives.source, made.name)
        made.fill(folder, scale)
        results.content[made.name] = content_of(made, folder)
        change_rng = random.Random(made.name)
        for number in range(1, rounds + 1):
            for contender in random.Random(number).sample(who, len(who)):
                done += 1
                label = f"[{done:3}/{total}] {made.name:9} round {number}  {contender.name:11}"
                if (made.name, contender.name) in results.failed:
                    continue
                measured, why, source, dest = _once(drives, made, contender, change_rng)
                losses = []
                if not why and number == 1 and contender.copies:
                    why, losses = machine.apart(check.compare, source, dest)
                if why:
                    results.fail(made, contender, why)
                    tell(f"{label} failed: {why}")
                    continue
                if losses:
                    results.remark(made, contender, "not kept: " + ", ".join(losses))
                results.add(made, contender, number, measured)
                tell(f"{label} {measured.seconds:7.2f} s  CPU {measured.cpu_seconds:6.2f} s  "
                     f"MemFree -{measured.memfree_drop_bytes / 2**20:,.0f} MiB  "
                     f"peak {measured.peak_rss_bytes / 2**20:,.0f} MiB")
    return results


def throttled(command, bytes_per_second):
    return f"{command} --max-rate {shlex.quote(f'{max(1, int(bytes_per_second) // 1024)}KiB/s')}"
