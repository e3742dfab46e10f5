"""Compares stage-out with what people use to send a checkpoint away: cp -a and rsync.

Each copies one checkpoint of 64 shards from one drive to another, cold, in turns, and is done when its copy is durable. Ours is
the daemon's own worker, at the priority that it has while a job holds a dataset; it reads once with direct I/O, hashes, flushes
and publishes with one rename. A reader with direct I/O on the checkpoint's drive stands for the job that trains on: what it
loses is measured too, against the same reader alone. Ends with 1 if --require is given and a goal was missed.
"""
import argparse
import json
import os
import statistics
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
MOST_LOSS = 0.05      # of the reader
MOST_MEMFREE = 300 * MIB
READ = MIB            # of one read of the reader
OURS = "stage-out"


def contenders(source, target):
    request = json.dumps({"source": f"{source}/step-1000", "root": target, "mount": "", "path": "run7/step-1000", "uid": 0})
    copy = f"{target}/step-1000"
    return {
        OURS: f"echo {quote(request)} | ionice -c 3 nice -n 19 {PROGRAM} worker stage-out >/dev/null",
        "cp": f"cp -a {source}/step-1000 {copy} && sync -f {copy}",
        "rsync": f"rsync -a --whole-file {source}/step-1000/ {copy} && sync -f {copy}",
    }


class Reader(threading.Thread):
    """Reads a file of the checkpoint's drive again and again, past the page cache; counts bytes."""

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

    def during(self, work):
        """The rate in bytes per second meanwhile, and what the work gave."""
        self.start()
        began = time.monotonic()
        result = work()
        seconds = time.monotonic() - began
        self.over.set()
        self.join()
        return self.bytes / seconds, result


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


def one_run(drives, command, with_reader):
    drives.empty_target()
    drives.cold()
    if not with_reader:
        return None, measure.run(command)
    return Reader(f"{drives.source}/reader").during(lambda: measure.run(command))


def measure_all(drives, rounds):
    """{name: [(reader's rate or None, Measured)…]}, and the reader's rates alone."""
    found = {name: [] for name in contenders(drives.source, drives.target)}
    alone = []
    for _ in range(rounds):
        drives.cold()
        alone.append(Reader(f"{drives.source}/reader").during(lambda: time.sleep(2))[0])
        for name, command in contenders(drives.source, drives.target).items():
            for with_reader in (False, True):
                rate, run = one_run(drives, command, with_reader)
                if run.status != 0:
                    raise Problem(f"{name}: {run.errors or run.output or run.status}")
                found[name].append((rate, run))
    return found, statistics.median(alone)


def show(found, alone, size):
    """Prints the table; whether every goal was met."""
    print(f"{'':<10} {'s':>7} {'GiB/s':>6} {'x ours':>7} {'CPU s':>6} {'MemFree- MiB':>13} {'reader loses':>13}")
    ours = statistics.median(run.seconds for rate, run in found[OURS] if rate is None)
    goals = []
    for name, runs in found.items():
        quiet = [run for rate, run in runs if rate is None]
        seconds = statistics.median(run.seconds for run in quiet)
        drop = statistics.median(run.memfree_drop_bytes for run in quiet)
        loss = 1 - statistics.median(rate for rate, _ in runs if rate is not None) / alone
        print(f"{name:<10} {seconds:>7.2f} {size / GIB / seconds:>6.2f} {seconds / ours:>7.2f} "
              f"{statistics.median(run.cpu_seconds for run in quiet):>6.2f} {drop / MIB:>13.0f} {loss:>12.1%}", flush=True)
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
    parser.add_argument("--require", action="store_true", help="exit status 1 for a missed goal")
    options = parser.parse_args()
    if os.geteuid() != 0:
        sys.exit("bench-stage-out: needs root, for drives of its own and to drop caches")
    size = int(options.gib * GIB)
    machine.adopt_orphans()
    drives = None
    try:
        drives = (Folders(options.source, options.target, 2 * size) if options.source
                  else LoopDrives(size + size // 8 + GIB, 2 * size))
        drives.empty_source([])
        fill(drives.source, size)
        drives.empty_target()
        print(f"a checkpoint of {SHARDS} shards, {options.gib:g} GiB; {drives.kind}; {os.cpu_count()} CPUs")
        met = show(*measure_all(drives, options.rounds), size)
    except Problem as problem:
        sys.exit(f"bench-stage-out: {problem}")
    finally:
        if drives:
            drives.close()
    return 1 if options.require and not met else 0


if __name__ == "__main__":
    sys.exit(main())
