"""How a live view ends while programs wait in it: all of them end within seconds, no mount is left, and the next staging goes on."""
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from live_jobs import MIB, Holder, begin, row, server_of, workers
from staged import PATIENCE_S
from test_live import no_mount_is_left, shards  # noqa: F401  fixtures
from view_helpers import abort, connections, mounts_on, once

WITHIN_S = 10
PIECE = 8 * MIB


class Waiting:
    """Readers of missing bytes, and one with a map; they have to end with an error."""

    def __init__(self, path):
        self.readers = {way: once(path / "train/b", at * PIECE, way) for at, way in enumerate(("read", "direct", "map"))}
        time.sleep(0.5)
        assert all(one.process.poll() is None for one in self.readers.values()), "they did not wait"

    def end(self):
        began, found = time.monotonic(), {}
        for way, one in self.readers.items():
            try:
                out, _ = one.process.communicate(timeout=WITHIN_S)
            except subprocess.TimeoutExpired:
                found[way] = "hangs"
                continue
            found[way] = out.split('"errno": ')[1].split(",")[0] if one.process.returncode == 0 else one.process.returncode
        print(f"{found} after {time.monotonic() - began:.2f} s")
        assert found["map"] == -signal.SIGBUS and {found["read"], found["direct"]} <= {"5", "107", "103"}, found  # EIO, ENOTCONN, ECONNABORTED


def next_stage_is_right(daemon, shards):
    copy = Path(daemon.finish("/v1/stagings", {"datasets": ["imagenet"]})["result"]["datasets"][0]["path"])
    for name, content in shards.items():
        assert (copy / "train" / name).read_bytes() == content


def released(daemon, _path, lease):
    assert daemon.ask("DELETE", f"/v1/leases/{lease}")[0] == 200


def unmounted_by_force(_daemon, path, _lease):
    subprocess.run(["umount", "--force", path], capture_output=True, timeout=PATIENCE_S, check=False)  # busy; it aborts first


def aborted(_daemon, path, _lease):
    abort(connections(path))


def stopped(daemon, _path, _lease):
    daemon.end()


@pytest.mark.parametrize("ended", [released, unmounted_by_force, aborted, stopped], ids=lambda one: one.__name__)
def test_all_readers_end(daemon, shards, ended):
    with Holder() as pid:
        live = begin(daemon, pid, max_rate=MIB)
        path = Path(live["path"])
        waiting = Waiting(path)
        assert daemon.ask("POST", "/v1/datasets/imagenet/evict")[1]["error"]["kind"] == "refused"
        ended(daemon, path, live["lease"])
        waiting.end()
        if daemon.process.poll() is not None:
            daemon.start()
    daemon.wait_until(lambda: not mounts_on(path), "removed the mount")
    daemon.wait_until(lambda: row(daemon)["state"] in ("absent", "failed", "ready"), "ended the staging")
    next_stage_is_right(daemon, shards)


@pytest.mark.parametrize("by", [signal.SIGKILL, signal.SIGTERM], ids=["killed", "stopped"])
def test_all_readers_end_with_a_daemon_that_drops_pages(daemon, shards, by):
    """To drop a page, the kernel waits for the answer to its read, and SIGKILL does not end that wait."""
    with Holder() as pid:
        path = Path(begin(daemon, pid)["path"])
        reader = subprocess.Popen([sys.executable, "-c", READS_WHEN_TOLD, path / "train/b"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        reader.stdout.readline()  # it is open before it is complete
        daemon.wait_until(lambda: row(daemon).get("bytes_here", 0) > 24 * MIB, "copied")
        os.kill(server_of(daemon), signal.SIGSTOP)
        time.sleep(0.5)  # until all of its threads have stopped
        reader.stdin.write(b"\n")
        reader.stdin.flush()
        daemon.wait_until(lambda: workers(daemon, "drop-pages"), "began to drop pages")
        time.sleep(0.5)
        assert stat_of(workers(daemon, "drop-pages")[0]) == "D"
        daemon.process.send_signal(by)
        daemon.process.wait(WITHIN_S)
        assert reader.wait(WITHIN_S) == 1


READS_WHEN_TOLD = "import os, sys; f = os.open(sys.argv[1], 0); print(flush=True); sys.stdin.readline(); os.pread(f, 1 << 20, 0)"


def stat_of(pid):
    return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]


@pytest.fixture
def small_drive(daemon):
    """The cache is on a file system of 64 MiB."""
    daemon.end()
    cache = daemon.folder / "cache"
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64m", "none", cache], check=True)
    shutil.rmtree(daemon.folder / "state")  # the catalog knows the former folder
    daemon.start()
    yield cache
    daemon.end()
    subprocess.run(["umount", "--lazy", "--recursive", cache], check=True)
    shutil.rmtree(daemon.folder / "state")
    daemon.start()


def test_a_drive_that_becomes_full_ends_all_readers(daemon, shards, small_drive):
    """A file that another program writes there takes the room of what is missing, if that is not taken already."""
    with Holder() as pid:
        path = Path(begin(daemon, pid, max_rate=4 * MIB)["path"])
        free = os.statvfs(small_drive)
        filled = subprocess.run(["fallocate", "-l", str(free.f_bavail * free.f_bsize - 2 * MIB), small_drive / "other"], check=False)
        ran = subprocess.run(["cat", path / "train/b"], capture_output=True, timeout=PATIENCE_S, check=False)
        print(f"filled {filled.returncode == 0}: cat {ran.returncode}, {row(daemon)}")
        if ran.returncode == 0:
            assert ran.stdout == shards["b"]
        else:
            assert b"Input/output error" in ran.stderr
            daemon.wait_until(lambda: row(daemon)["state"] == "failed", "failed")
            assert re.search("are free in|No space left on device", row(daemon)["reason"]), row(daemon)
    (small_drive / "other").unlink()
    next_stage_is_right(daemon, shards)
