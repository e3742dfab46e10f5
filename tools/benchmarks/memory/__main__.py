"""Measures what the memory of staged copies costs, with `cache.page_cache: leave` and with `drop`, in turns.

A real daemon stages a dataset of a few large files. In each round and with each setting, a reader reads the whole copy
through the page cache and ends; MemFree and Cached are noted before, at its end, and 10 s later. Two more readers show what
a running one loses: one reads the files once, cold, the other reads one file again and again from memory, and has it open.
Needs root, and a folder (--folder) on a drive with room for twice the dataset. Exits with 1 if --require is given and a goal was missed.
"""
import argparse
import http.client
import json
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
PROGRAM = ROOT / "build/release/daemon/spark-staged"
GIB, MIB = 1 << 30, 1 << 20
FILES = 4
AFTER_S = 10
MOST_KEPT = 256 * MIB  # of MemFree, 10 s after the reader has ended
MOST_LOSS = 0.02       # of a running reader's rate
SETTINGS = ("leave", "drop")


class Connection(http.client.HTTPConnection):
    def __init__(self, path):
        super().__init__("localhost")
        self.path = str(path)

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.connect(self.path)


class Daemon:
    def __init__(self, folder):
        self.folder, self.config, self.socket = folder, folder / "config.yaml", folder / "api.sock"
        self.write("leave")
        self.process = subprocess.Popen([PROGRAM, "--config", self.config, "--socket", self.socket, "--state-dir", folder / "state"],
                                        stdout=open(folder / "log", "wb"), stderr=subprocess.STDOUT)
        end = time.monotonic() + 30
        while not self.answers():
            if time.monotonic() > end or self.process.poll() is not None:
                sys.exit((folder / "log").read_text())
            time.sleep(0.1)

    def write(self, setting):
        self.config.write_text(f"version: 1\ncache: {{path: {self.folder}/cache, keep_free: 0, page_cache: {setting}}}\n"
                               f"datasets: {{big: {{path: {self.folder}/big}}}}\n")

    def ask(self, method, path, body=None):
        connection = Connection(self.socket)
        connection.request(method, path, None if body is None else json.dumps(body))
        answer = connection.getresponse()
        text = answer.read()
        if answer.status >= 400:
            sys.exit(text.decode())
        return text

    def answers(self):
        try:
            connection = Connection(self.socket)
            connection.request("GET", "/v1/datasets")
            return connection.getresponse().status == 200  # not while it opens its cache
        except OSError:
            return False

    def stage(self):
        job = json.loads(self.ask("POST", "/v1/stagings", {"datasets": ["big"]}))
        events = self.ask("GET", f"/v1/jobs/{job['id']}/events").splitlines()
        return json.loads(events[-1])["result"]["datasets"][0]["path"]

    def use(self, setting):
        self.write(setting)
        self.ask("POST", "/v1/reload")
        time.sleep(3)  # the process that watches the memory starts

    def stop(self):
        self.process.terminate()
        self.process.wait(30)


def memory():
    lines = dict(line.split(":") for line in Path("/proc/meminfo").read_text().splitlines())
    return {name: int(lines[name].split()[0]) * 1024 for name in ("MemFree", "Cached")}


def fill(folder, size):
    folder.mkdir()
    block = os.urandom(16 * MIB)
    for number in range(FILES):
        with open(folder / f"shard-{number}", "wb", buffering=0) as file:
            left = size // FILES
            while left > 0:
                left -= file.write(block[:left])
    os.sync()


def forget(folder):
    for path in Path(folder).iterdir():
        with open(path, "rb") as file:
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


READER = """
import sys, time
begin, total = time.monotonic(), 0
buffer = bytearray(1 << 20)
for path in sys.argv[2:]:
    with open(path, "rb", buffering=0) as file:
        while True:
            got = file.readinto(buffer)
            total += got
            if not got and time.monotonic() - begin >= float(sys.argv[1]): break
            if not got: file.seek(0)
print(total / (time.monotonic() - begin))
"""


def rate_of(seconds, *paths):
    """Bytes per second of a program that reads the files, each again and again until so many seconds have passed."""
    done = subprocess.run([sys.executable, "-c", READER, str(seconds), *paths], capture_output=True, text=True, check=True)
    return float(done.stdout)


def one_round(daemon, copy, setting, warm_s):
    paths = sorted(str(path) for path in Path(copy).iterdir())
    daemon.use(setting)
    forget(copy)
    time.sleep(1)
    before = memory()
    cold = rate_of(0, *paths)
    at_end = memory()
    time.sleep(AFTER_S)
    after = memory()
    rate_of(0, paths[0])
    warm = rate_of(warm_s, paths[0])
    forget(copy)
    return {"setting": setting, "cold_bytes_per_second": cold, "warm_bytes_per_second": warm,
            "held_at_end": before["MemFree"] - at_end["MemFree"], "held_after": before["MemFree"] - after["MemFree"],
            "cached_after": after["Cached"] - before["Cached"]}


def show(rounds):
    """The table; whether all goals are met."""
    middle = {setting: {key: statistics.median(one[key] for one in rounds if one["setting"] == setting)
                        for key in rounds[0] if key != "setting"} for setting in SETTINGS}
    print(f"{'':34}{'leave':>14}{'drop':>14}")
    for key, words, unit, name in (("held_at_end", "MemFree lost, reader has just ended", MIB, "MiB"),
                                   ("held_after", f"MemFree lost, {AFTER_S} s later", MIB, "MiB"),
                                   ("cached_after", f"Cached gained, {AFTER_S} s later", MIB, "MiB"),
                                   ("cold_bytes_per_second", "a reader, cold", MIB, "MiB/s"),
                                   ("warm_bytes_per_second", "a reader of one open file, warm", MIB, "MiB/s")):
        print(f"{words:34}" + "".join(f"{middle[setting][key] / unit:>8.0f} {name:5}" for setting in SETTINGS))
    losses = {kind: 1 - middle["drop"][f"{kind}_bytes_per_second"] / middle["leave"][f"{kind}_bytes_per_second"]
              for kind in ("cold", "warm")}
    print("a running reader loses: " + ", ".join(f"{kind} {loss:.1%}" for kind, loss in losses.items()))
    met = middle["drop"]["held_after"] <= MOST_KEPT and all(loss <= MOST_LOSS for loss in losses.values())
    print(f"goals (at most {MOST_KEPT // MIB} MiB, at most {MOST_LOSS:.0%}): {'met' if met else 'MISSED'}")
    return met


def main():
    parser = argparse.ArgumentParser(prog="bench-memory", description=__doc__)
    parser.add_argument("--gib", type=float, default=8, help="size of the dataset")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--warm", type=float, default=10, help="seconds of the reader from memory")
    parser.add_argument("--folder", help="on the drive to use")
    parser.add_argument("--json", metavar="FILE")
    parser.add_argument("--require", action="store_true")
    options = parser.parse_args()
    if os.geteuid() != 0:
        sys.exit("bench-memory: run it as root")
    with tempfile.TemporaryDirectory(prefix="bench-memory-", dir=options.folder) as name:
        folder = Path(name)
        fill(folder / "big", int(options.gib * GIB))
        daemon = Daemon(folder)
        try:
            copy = daemon.stage()
            forget(folder / "big")
            rounds = []
            for number in range(options.rounds):
                for setting in SETTINGS if number % 2 == 0 else reversed(SETTINGS):
                    rounds.append(one_round(daemon, copy, setting, options.warm))
                    print(json.dumps(rounds[-1]), file=sys.stderr, flush=True)
        finally:
            daemon.stop()
            subprocess.run(["umount", "--quiet", folder / "cache/data"], check=False)
    if options.json:
        Path(options.json).write_text(json.dumps(rounds, indent=1) + "\n")
    met = show(rounds)
    return 1 if options.require and not met else 0


if __name__ == "__main__":
    sys.exit(main())
