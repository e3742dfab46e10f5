"""Compares stage-out with what people use to send a checkpoint away: cp -a and rsync.

Each copies one checkpoint of 64 shards from one drive to another, with a cold cache, in turns, and ends when its copy is
durable. Ours is the daemon's own worker, at its priority while a job holds a dataset; it reads once with direct I/O, hashes,
flushes and publishes with one rename. A reader with direct I/O on the checkpoint's drive represents the running job: its
loss is measured, too, compared with intervals in which the copy is stopped. Exits with 1 if --require is given and a goal
was missed.
"""
import argparse
import json
import os
import signal
import statistics
import subprocess
import sys
import threading
import time
from pathlib import Path
from shlex import quote

ROOT = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "tools/benchmarks/staging"))
import machine  # noqa: E402  needs the folder above
import measure  # noqa: E402
from drives import Folders, LoopDrives  # noqa: E402
from machine import GIB, MIB, Problem  # noqa: E402

SHARDS = 64
PROGRAM = ROOT / "build/release/daemon/spark-staged"
MOST_LOSS = 0.05      # of the reader's rate
MOST_MEMFREE = 300 * MIB
READ = MIB            # size of one read by the reader
TURN_S, MOST_TURNS = 0.25, 160
OURS = "stage-out"


def contenders(source, target, rates):
    def ours(rate):
        request = json.dumps({"source": f"{source}/step-1000", "root": target, "mount": "", "path": "run7/step-1000", "uid": 0,
                              "max_rate": rate * MIB})
        return f"echo {quote(request)} | ionice -c 3 nice -n 19 {PROGRAM} worker stage-out >/dev/null"

    copy = f"{target}/step-1000"
    return {
        OURS: ours(0),
        **{f"at {rate} MiB/s": ours(rate) for rate in rates},
        "cp": f"cp -a {source}/step-1000 {copy} && sync -f {copy}",
        "rsync": f"rsync -a --whole-file {source}/step-1000/ {copy} && sync -f {copy}",
    }


class Reader(threading.Thread):
    """Reads a file on the checkpoint's drive repeatedly, past the page cache; counts bytes."""

    def __init__(self, path):
        super().__init__(daemon=True)
        self.path, self.bytes, self.over = path, 0, threading.Event()

    def run(self):
        import mmap
        handle = os.open(self.path, os.O_RDONLY | os.O_DIRECT)
        buffer = mmap.mmap(-1, READ)
        size = os.fstat(handle).st_size
        at = 0
        while not self.over.is_set():
            self.bytes += os.preadv(handle, [buffer], at)
            at = (at + READ) % size
        os.close(handle)

    def loss_beside(self, command):
        """The lost share of the reader's rate while the command runs, compared with intervals in which the command is
        stopped: other load on this computer affects both equally. Ends the command once that is known, if it still runs."""
        self.start()
        child = subprocess.Popen(["setpriv", "--pdeathsig", "KILL", "--", "sh", "-c", command], stdout=subprocess.DEVNULL,
                                 start_new_session=True)
        read = {signal.SIGCONT: 0.0, signal.SIGSTOP: 0.0}
        spent = dict.fromkeys(read, 0.0)
        try:
            for turn in range(MOST_TURNS):
                order = signal.SIGSTOP if turn % 2 else signal.SIGCONT
                os.killpg(child.pid, order)
                before, began = self.bytes, time.monotonic()
                time.sleep(TURN_S)
                if child.poll() is not None:
                    break
                read[order] += self.bytes - before
                spent[order] += time.monotonic() - began
        finally:
            self.over.set()
            measure.end_group(child)
            measure.wait_all(child)  # including its children, which use the drives
            self.join()
        if not spent[signal.SIGSTOP]:
            raise Problem("the copy ended before the reader was measured - choose a larger checkpoint (--gib)")
        with_it, alone = (read[order] / spent[order] for order in (signal.SIGCONT, signal.SIGSTOP))
        return 1 - with_it / alone, alone


def fill(source, size):
    folder = Path(source, "step-1000")
    folder.mkdir()
    block = os.urandom(16 * MIB)
    for shard in range(SHARDS):
        with open(folder / f"__{shard}_0.distcp", "wb", buffering=0) as file:
            left = size // SHARDS
            while left > 0:
                left -= file.write(block[:left])
    with open(Path(source, "reader"), "wb", buffering=0) as file:
        for _ in range(16):
            file.write(block)
    os.sync()


def measure_all(drives, rounds, rates):
    """{name: [(the reader's loss, its rate without the copy, the copy without a reader)…]}"""
    found = {name: [] for name in contenders(drives.source, drives.target, rates)}
    for _ in range(rounds):
        for name, command in contenders(drives.source, drives.target, rates).items():
            drives.empty_target()
            drives.cold()
            run = measure.run(command)
            if run.status != 0:
                raise Problem(f"{name}: {run.errors or run.output or run.status}")
            drives.empty_target()
            drives.cold()
            found[name].append((*Reader(f"{drives.source}/reader").loss_beside(command), run))
    return found


def show(found, size):
    """Prints the table; returns whether every goal was met."""
    def of(runs, number):
        return statistics.median(number(*each) for each in runs)

    print(f"the reader alone: {statistics.median(alone for runs in found.values() for _, alone, _ in runs) / MIB:.0f} MiB/s")
    print(f"{'':<14} {'s':>7} {'GiB/s':>6} {'x ours':>7} {'CPU s':>6} {'MemFree- MiB':>13} {'reader loses':>13}")
    ours = of(found[OURS], lambda loss, alone, run: run.seconds)
    goals = []
    for name, runs in found.items():
        seconds = of(runs, lambda loss, alone, run: run.seconds)
        drop = of(runs, lambda loss, alone, run: run.memfree_drop_bytes)
        loss = of(runs, lambda loss, alone, run: loss)
        print(f"{name:<14} {seconds:>7.2f} {size / GIB / seconds:>6.2f} {seconds / ours:>7.2f} "
              f"{of(runs, lambda loss, alone, run: run.cpu_seconds):>6.2f} {drop / MIB:>13.0f} {loss:>12.1%}", flush=True)
        if name == OURS:
            goals = [("the reader loses", loss, MOST_LOSS), ("MemFree drops by MiB", drop / MIB, MOST_MEMFREE / MIB)]
    for what, value, most in goals:
        print(f"{what} {value:.3g}, at most {most:.3g}: {'met' if value <= most else 'MISSED'}")
    return all(value <= most for _, value, most in goals)


def main():
    parser = argparse.ArgumentParser(prog="bench-stage-out", description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--gib", type=float, default=4, help="size of the checkpoint (default 4; the record's is 16)")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--source", help="a folder of the drive that the checkpoint is on, instead of a drive in memory")
    parser.add_argument("--target", help="a folder of the drive that it is sent to")
    parser.add_argument("--images", help="a folder for the files that the loop drives are on, instead of memory")
    parser.add_argument("--rates", default="", help="MiB/s, with commas: stage-out with each --max-rate too")
    parser.add_argument("--scheduler", help="the I/O scheduler of the loop drive that the checkpoint is on (none, mq-deadline, bfq)")
    parser.add_argument("--require", action="store_true", help="exit status 1 for a missed goal")
    options = parser.parse_args()
    if options.scheduler and options.source:
        parser.error("--scheduler is for loop drives")
    if os.geteuid() != 0:
        sys.exit("bench-stage-out: needs root, for drives of its own and to drop caches")
    size = int(options.gib * GIB)
    machine.adopt_orphans()
    drives = None
    try:
        drives = (Folders(options.source, options.target, 2 * size) if options.source
                  else LoopDrives(size + size // 8 + GIB, 2 * size, options.images))
        drives.empty_source([])
        if options.scheduler:
            drives.schedule_source(options.scheduler)
        fill(drives.source, size)
        drives.empty_target()
        print(f"a checkpoint of {SHARDS} shards, {options.gib:g} GiB; {drives.kind}; {os.cpu_count()} CPUs")
        met = show(measure_all(drives, options.rounds, [int(rate) for rate in options.rates.split(",") if rate]), size)
    except Problem as problem:
        sys.exit(f"bench-stage-out: {problem}")
    finally:
        if drives:
            drives.close()
    return 1 if options.require and not met else 0


if __name__ == "__main__":
    sys.exit(main())
