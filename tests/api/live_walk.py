"""A seeded walk of kills while four readers compare every byte: of the daemon, of the process that answers for the view, of the one that
copies, and of the first two at once. A copy that was published is compared as a whole. Needs root, /dev/fuse and loop devices.

A round is one view: a job holds it, readers read in four ways, kills come at random. A kill of the copy fails the staging, so it ends its
round; from then on, and only then, readers may get an error. Some rounds go on after the copy has been published; the next round begins
with an empty cache or with what is left. Exits with 1 if a byte was wrong, an error came that nothing explains, or a reader hung.
"""
import argparse
import errno
import json
import mmap
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from live_jobs import MIB, workers
from staged import Daemon
from throttle import SlowDrive
from view_helpers import Helper, Manager, abort, connections, is_told, mounts_on

BLOCK = 64 << 10
RATE = 10 * MIB  # of the source: the copy takes five seconds, and more with kills
READERS = 4
SMALL_FILES = 2000  # beside those that are read: enough for threads to be added and taken off
PATIENCE_S = 60
AFTER_THE_COPY = ("EIO", "SIGBUS")
MOST_OF_A_KILL_S = 60  # of the whole walk, on the average
NAME = "slow"


def kill(pids):
    """How many were there."""
    done = 0
    for pid in pids:
        try:
            os.kill(pid, signal.SIGKILL)
            done += 1
        except ProcessLookupError:
            pass
    return done


class World:
    def __init__(self, folder, seed, deadline_s):
        self.folder, content = folder, folder / "content"
        train = content / "train"
        train.mkdir(parents=True)
        for name, size in [("a", 24 * MIB), ("b", 24 * MIB), *((f"{number}.jpg", 30_000 + number) for number in range(40)),
                           *((f"{number}.txt", 500 + number) for number in range(SMALL_FILES))]:
            (train / name).write_bytes(random.Random(f"{seed} {name}").randbytes(size))
        self.content = train
        self.drive = SlowDrive(folder, content, RATE)
        self.manager = Manager(folder, deadline_s)
        self.daemon = Daemon(folder, within=[*self.drive.throttle.within(), *self.manager.within()],
                             datasets=f"  {NAME}: {{path: {self.drive.mount}/train}}\n")

    def row(self):
        return next(one for one in self.daemon.ask("GET", "/v1/datasets")[1]["datasets"] if one["name"] == NAME)

    def kill_daemon(self, with_server=False, again_after=None):
        """It is started again. `again_after`: seconds after which it is killed once more. Returns how many were killed."""
        first = [self.daemon.process.pid, *(workers(self.daemon, "serve-view") if with_server else [])]
        done = kill(reversed(first) if with_server else first)
        self.daemon.process.wait(PATIENCE_S)
        if again_after is not None:
            starting = subprocess.Popen(self.daemon.command, stdout=self.daemon.log, stderr=subprocess.STDOUT, **self.daemon.how)
            time.sleep(again_after)
            starting.kill()
            starting.wait(PATIENCE_S)
        self.daemon.start()
        return done

    def differences(self, copy):
        """Of the published copy, by its bytes; at most three."""
        there, right = ({path.name: path.read_bytes() for path in Path(folder).iterdir()} for folder in (copy, self.content))
        return [f"{name}: {'other bytes' if name in there else 'missing'}" for name in right if there.get(name) != right[name]][:3]

    def evidence(self, view):
        pid = self.daemon.process.pid
        workers = subprocess.run(["ps", "--ppid", str(pid), "-o", "pid,stat,wchan:24,etimes,args"], capture_output=True, text=True, check=False).stdout
        return f"{self.row()}\n{workers}mounted: {mounts_on(view)}\nconnections kept by the daemon: " + ", ".join(
            os.readlink(one) for one in Path(f"/proc/{pid}/fd").iterdir() if "fuse" in os.readlink(one))

    def end(self):
        self.daemon.stop()
        self.manager.end()
        self.drive.end()


class Walk:
    def __init__(self, world, seed, count):
        self.world, self.dice, self.count = world, random.Random(seed), count
        self.kills, self.errors, self.violations = Counter(), Counter(), []
        self.rounds = self.reads = self.wrong = self.published = 0
        self.longest = 0.0

    def go(self):
        while sum(self.kills.values()) < self.count and not self.violations:
            self.rounds += 1
            self.round()

    def round(self):
        holder, readers, view = subprocess.Popen(["sleep", "100000"]), [], None
        try:
            self.begin_empty_or_not()
            job = self.world.daemon.finish("/v1/stagings", {"datasets": [NAME], "hold": holder.pid, "now": True})
            if job["result"]["datasets"][0]["state"] != "live":
                return  # the rest of an earlier round was complete before the view could answer
            view = job["result"]["datasets"][0]["path"]
            readers = [Helper("walk", view, self.world.content, self.dice.random(), program=__file__) for _ in range(READERS)]
            killed_at = self.kill_some()
            for one in readers:
                one.tell()
            for one in readers:
                self.note(one.end(PATIENCE_S), killed_at)
        except (AssertionError, subprocess.TimeoutExpired, ValueError) as problem:  # ValueError: a reader ended without its summary
            self.violations.append(f"round {self.rounds}: {type(problem).__name__}: {str(problem)[:200]}\n{self.world.evidence(view)}")
            if view:
                abort(connections(view))
        finally:
            for one in [*(reader.process for reader in readers), holder]:
                one.kill()
                one.wait(PATIENCE_S)
            self.world.daemon.wait_until(lambda: not view or not mounts_on(view), "ended the view")

    def begin_empty_or_not(self):
        world = self.world
        world.daemon.wait_until(lambda: world.row()["state"] in ("absent", "ready", "failed"), "ended the staging")
        if self.rounds == 1:
            return
        if world.row()["state"] == "ready" or self.dice.random() < 0.5:
            status, job = world.daemon.ask("POST", f"/v1/datasets/{NAME}/evict")
            if status == 202:
                world.daemon.exchange("GET", f"/v1/jobs/{job['id']}/events")

    def kill_some(self):
        """When the copy was killed; None: it was not."""
        daemon, left = self.world.daemon, self.dice.randrange(4, 24)
        time.sleep(self.dice.uniform(0.2, 3))  # some of it comes
        for step in range(left):
            # One that is killed within a second of its start counts as none, and without one for 30 s a view ends.
            daemon.wait_until(lambda: workers(daemon, "serve-view"), "started the next process")
            time.sleep(self.dice.uniform(1.2, 2) if step % 4 == 0 else self.dice.expovariate(2))
            what = self.dice.choices(["server", "daemon", "both", "daemon twice", "copy"], [10, 5, 4, 1, 2])[0]
            killed_at = time.monotonic()
            if what == "server":
                self.kills[what] += kill(workers(daemon, "serve-view"))
            elif what == "copy" and kill(workers(daemon, "stage")):
                self.kills[what] += 1
                time.sleep(self.dice.uniform(0.2, 1))
                return killed_at
            elif what == "both":
                self.kills[what] += self.world.kill_daemon(with_server=True) > 1
            elif what.startswith("daemon"):
                self.world.kill_daemon(again_after=self.dice.uniform(0, 0.3) if what == "daemon twice" else None)
                self.kills["daemon"] += 2 if what == "daemon twice" else 1
            if sum(self.kills.values()) >= self.count:
                break
        row = self.world.row()
        if row["state"] == "ready":
            self.published += 1
            self.violations += [f"round {self.rounds}: the copy: {one}" for one in self.world.differences(row["path"])]
        return None

    def note(self, said, killed_at):
        self.reads += said["reads"]
        self.wrong += len(said["wrong"])
        self.longest = max(self.longest, said["longest"])
        self.violations += [f"round {self.rounds}: wrong bytes: {one}" for one in said["wrong"]]
        for at, kind in said["errors"]:
            self.errors[kind] += 1
            if killed_at is None or at < killed_at or kind not in AFTER_THE_COPY:
                self.violations.append(f"round {self.rounds}: {kind} {'without a kill of the copy' if killed_at is None else f'{at - killed_at:.3f} s after it'}")

    def show(self):
        print(f"{sum(self.kills.values())} kills in {self.rounds} rounds ({', '.join(f'{kind} {count}' for kind, count in self.kills.most_common())}; "
              f"{self.published} rounds ended after the publication); {self.reads:,} reads, {self.wrong} wrong bytes; errors after a kill of the copy: "
              f"{dict(self.errors) or 'none'}; longest wait {self.longest:.1f} s")
        for one in self.violations[:20]:
            print(f"FAILED: {one}")


# --- a reader ---

def _kept(file, at, wanted):
    os.posix_fadvise(file, at, BLOCK, os.POSIX_FADV_DONTNEED)  # the view has to answer again
    got = os.pread(file, BLOCK, at)
    # A read of several pages of which one fails is short, and the next one fails.
    while got and len(got) < len(wanted) and (more := os.pread(file, len(wanted) - len(got), at + len(got))):
        got += more
    return got


def _fresh(path, at, wanted):
    with open(path, "rb", buffering=0) as file:
        return _kept(file.fileno(), at, wanted)


def _direct(path, at, _wanted):
    file, buffer = os.open(path, os.O_RDONLY | os.O_DIRECT), mmap.mmap(-1, BLOCK)
    try:
        return buffer[:os.preadv(file, [buffer], at)]
    finally:
        os.close(file)


def _mapped(path, at, wanted):
    """In a process of its own, which SIGBUS would end."""
    child = os.fork()
    if child == 0:
        try:
            with open(path, "rb", buffering=0) as file, mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ) as mapped:
                os._exit(mapped[at:at + BLOCK] != wanted)
        except OSError as failure:
            os._exit(failure.errno)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if status < 0:
        raise OSError(0, signal.Signals(-status).name)
    if status > 1:
        raise OSError(status, os.strerror(status))
    return wanted if status == 0 else b"a map shows other bytes"


def read_until_told(view, content, seed):
    dice, right = random.Random(seed), {path.name: path.read_bytes() for path in Path(content).iterdir()}
    names = list(right)
    kept = {name: os.open(f"{view}/{name}", os.O_RDONLY) for name in ("a", "b", "7.jpg")}
    reads, wrong, errors, longest, came = 0, [], [], 0.0, []
    while not is_told():
        way = dice.choice([_kept, _kept, _fresh, _direct, _mapped])
        name = dice.choice(list(kept) if way is _kept else ["a", "b", dice.choice(names)])
        at = dice.randrange(max(1, len(right[name]) - BLOCK)) // 4096 * 4096
        if came and dice.random() < 0.8:  # most reads are of what is here, else all would wait all the time
            name, at = dice.choice(came)
            way = _fresh if way is _kept and name not in kept else way
        wanted = right[name][at:at + BLOCK]
        began = time.monotonic()
        try:
            got = way(kept[name] if way is _kept else f"{view}/{name}", at, wanted)
            came.append((name, at))
            if got != wanted:
                wrong.append([way.__name__, name, at, len(got), "other bytes" if any(got) else "zeros, or none"])
        except OSError as failure:
            errors.append([time.monotonic(), errno.errorcode.get(failure.errno, str(failure.strerror))])
            time.sleep(0.05)
        longest = max(longest, time.monotonic() - began)
        reads += 1
        time.sleep(0.002)
    print(json.dumps({"reads": reads, "wrong": wrong[:5], "errors": errors[:1000], "longest": longest}))


def main():
    if sys.argv[1:2] == ["walk"]:
        return read_until_told(*sys.argv[2:])
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=100, help="of kills")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="spark-live-walk-") as folder:
        world = World(Path(folder), options.seed, options.count * MOST_OF_A_KILL_S)
        walked = Walk(world, options.seed, options.count)
        try:
            walked.go()
        finally:
            walked.show()
            if walked.violations:
                said = [line for line in world.daemon.log_text().splitlines() if "live view" in line or "error" in line]
                print("\n".join(said[-30:]))
            world.end()
    return 1 if walked.violations else 0


if __name__ == "__main__":
    sys.exit(main())
