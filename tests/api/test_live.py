"""A dataset that is read while it is staged (`--now`), on this host's FUSE."""
import hashlib
import mmap
import os
import random
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from live_jobs import MIB, Holder, begin, begun, row, server_of, workers
from simulated import CLIENT
from staged import PATIENCE_S, PROGRAM
from view_helpers import DEADLINE_S, Manager, abort, early, reader


@pytest.fixture
def shards(daemon):
    """Two shards of 24 MiB in the dataset imagenet; returns their content by name."""
    content = {}
    for name in ("a", "b"):
        content[name] = random.Random(name).randbytes(24 * MIB)
        (daemon.folder / "imagenet/train" / name).write_bytes(content[name])
    return content


@pytest.fixture(autouse=True)
def no_mount_is_left(daemon):
    """Nor a reader: at the deadline the views' connections end."""
    begun.clear()
    deadline = threading.Timer(DEADLINE_S, lambda: abort(begun))
    deadline.start()
    yield
    deadline.cancel()
    daemon.stop()
    daemon.log = open(daemon.folder / "log", "ab")
    daemon.start()  # removes what one that was killed has left
    mounts = Path("/proc/self/mounts").read_text()
    assert str(daemon.folder / "cache/.live") not in mounts, mounts


def test_a_job_reads_while_it_is_staged(daemon, shards):
    with Holder() as pid:
        live = begin(daemon, pid)
        assert (live["state"], live["files"]) == ("live", 23)
        assert live["bytes"] > 48 * MIB
        path = Path(live["path"])
        assert row(daemon)["state"] == "live" and row(daemon)["path"] == live["path"]
        assert [one["pid"] for one in row(daemon)["leases"]] == [pid]
        early = open(path / "train/b", "rb")
        mapped = mmap.mmap(early.fileno(), 0, prot=mmap.PROT_READ)
        assert mapped[20 * MIB:20 * MIB + 100] == shards["b"][20 * MIB:20 * MIB + 100]
        for name, content in shards.items():
            assert (path / "train" / name).read_bytes() == content
        assert sorted(os.listdir(path / "train")) == sorted(os.listdir(daemon.folder / "imagenet/train"))
        daemon.wait_until(lambda: row(daemon)["state"] == "ready", "was staged")
        daemon.wait_until(lambda: os.stat(path).st_dev != os.fstat(early.fileno()).st_dev, "showed the copy")
        assert os.path.samefile(path / "train/a", Path(row(daemon)["path"]) / "train/a"), "new opens get the copy"
        with pytest.raises(OSError):
            (path / "train/new").write_text("x")
        early.seek(0)
        assert early.read() == shards["b"], "what was open goes on working"
        assert mapped[:] == shards["b"]
        assert [one["pid"] for one in row(daemon)["leases"]] == [pid]
        assert daemon.ask("POST", "/v1/datasets/imagenet/evict")[1]["error"]["kind"] == "refused", "it is leased"
        mapped.close()
        early.close()
    daemon.wait_until(lambda: not path.exists(), "ended the view")
    assert row(daemon)["state"] == "ready"
    assert row(daemon)["leases"] == []


def test_run_begins_at_once(daemon, shards):
    script = "import os, sys, hashlib; p = os.environ['SPARK_STAGE_IMAGENET']; " \
             "print(p); print(hashlib.sha256(open(p + '/train/b', 'rb').read()).hexdigest())"
    ran = subprocess.run([CLIENT, "run", "--now", "imagenet", "--", sys.executable, "-c", script], capture_output=True, text=True,
                         timeout=PATIENCE_S, env=os.environ | {"SPARK_STAGE_SOCKET": str(daemon.socket)}, check=False)
    assert ran.returncode == 0, ran.stderr
    path, digest = ran.stdout.split()
    assert digest == hashlib.sha256(shards["b"]).hexdigest()
    assert "/.live/" in path
    assert "reads of the rest wait" in ran.stderr


def test_readers_do_not_notice_a_killed_server(daemon, shards):
    with Holder() as pid:
        path = Path(begin(daemon, pid)["path"])
        readers = [reader(path / "train" / "ab"[i % 2], daemon.folder / "imagenet/train" / "ab"[i % 2], i, 60) for i in range(4)]
        for _ in range(3):
            time.sleep(0.3)
            killed = server_of(daemon)
            os.kill(killed, signal.SIGKILL)
            daemon.wait_until(lambda killed=killed: server_of(daemon) not in (None, killed), "started the next one")
        assert [one.end() for one in readers] == [{"right": 60, "wrong": []}] * 4


def test_readers_wait_while_the_copy_begins_again(daemon, shards):
    with Holder() as pid:
        path = Path(begin(daemon, pid, max_rate=4 * MIB)["path"])
        waiting = subprocess.Popen(["sha256sum", path / "train/b"], stdout=subprocess.PIPE, text=True)
        time.sleep(0.5)
        assert daemon.ask("POST", "/v1/stagings", {"datasets": ["imagenet"]})[0] == 202  # without a limit
        assert waiting.communicate(timeout=PATIENCE_S)[0].split()[0] == hashlib.sha256(shards["b"]).hexdigest()
        assert (path / "train/a").read_bytes() == shards["a"]


def test_a_killed_copy_fails_what_is_missing(daemon, shards):
    with Holder() as pid:
        path = Path(begin(daemon, pid, max_rate=MIB)["path"])
        [copying] = workers(daemon, "stage")
        os.kill(copying, signal.SIGKILL)
        with pytest.raises(OSError):
            (path / "train/b").read_bytes()
        daemon.wait_until(lambda: row(daemon)["state"] == "failed", "has failed")
        assert "ended without an answer" in row(daemon)["reason"]


def test_the_view_ends_with_its_job(daemon, shards):
    with Holder() as pid:
        path = Path(begin(daemon, pid, max_rate=MIB)["path"])
        waiting = subprocess.Popen(["cat", path / "train/b"], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        time.sleep(0.3)
        assert waiting.poll() is None
    _, said = waiting.communicate(timeout=PATIENCE_S)
    assert "Input/output error" in said
    daemon.wait_until(lambda: not path.exists(), "ended the view")
    daemon.wait_until(lambda: row(daemon)["state"] == "absent", "ended the staging")


def test_a_source_that_changes_fails_its_file(daemon, shards):
    with Holder() as pid:
        path = Path(begin(daemon, pid, max_rate=4 * MIB)["path"])
        early = os.open(path / "train/b", os.O_RDONLY)
        (daemon.folder / "imagenet/train/b").write_bytes(os.urandom(24 * MIB))
        assert (path / "train/a").read_bytes() == shards["a"]
        with pytest.raises(OSError):
            (path / "train/b").read_bytes()
        assert "train/b: it has changed" in (row(daemon)["reason"] or "")
        assert "train/b: it has changed" in daemon.log_text()
        daemon.wait_until(lambda: row(daemon)["state"] == "ready", "published the copy")
        with pytest.raises(OSError):
            os.pread(early, MIB, 20 * MIB)
        os.close(early)


def test_a_daemon_that_is_killed_leaves_no_reader_waiting(daemon, shards):
    with Holder() as pid:
        path = Path(begin(daemon, pid, max_rate=MIB)["path"])
        waiting = subprocess.Popen(["cat", path / "train/b"], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        time.sleep(0.3)
        daemon.process.kill()
        daemon.process.wait()
        waiting.communicate(timeout=PATIENCE_S)
        assert waiting.returncode == 1
        daemon.start()
        daemon.wait_until(lambda: not path.exists(), "removed what was left")


@pytest.fixture
def managed(daemon):
    """The daemon with a service manager; returns a function that kills it, by which signal, and starts it again."""
    manager = Manager(daemon.folder)
    daemon.end()
    plain, daemon.command = daemon.command, manager.within() + daemon.command
    daemon.start()

    def restart(by):
        time.sleep(0.1)  # the manager takes in what has been sent
        daemon.process.send_signal(by)
        daemon.process.wait(PATIENCE_S)
        daemon.start()

    yield restart
    daemon.command = plain
    manager.end()


@pytest.mark.parametrize("by", [signal.SIGTERM, signal.SIGKILL])
def test_readers_do_not_notice_a_daemon_that_is_restarted(daemon, shards, managed, by):
    source = daemon.folder / "imagenet/train"
    with Holder() as pid:
        path = Path(begin(daemon, pid, max_rate=4 * MIB)["path"])
        before = early(path / "train/a", source / "a")
        waiting = subprocess.Popen(["sha256sum", path / "train/b"], stdout=subprocess.PIPE, text=True)
        time.sleep(0.5)
        managed(by)
        assert row(daemon)["path"] == str(path)
        assert waiting.communicate(timeout=PATIENCE_S)[0].split()[0] == hashlib.sha256(shards["b"]).hexdigest()
        daemon.wait_until(lambda: row(daemon)["state"] == "ready", "was staged")
        managed(by)
        assert reader(path / "train/b", source / "b", 1, 20).end() == {"right": 20, "wrong": []}
        before.tell()
        assert before.end() == {"read": True, "mapped": True}
    daemon.wait_until(lambda: not path.exists(), "ended the view")


def test_readers_do_not_notice_a_walk_of_kills():
    """SPARK_LIVE_KILLS: how many; SPARK_LIVE_SEED: which. `live_walk.py --help` tells more."""
    count = os.environ.get("SPARK_LIVE_KILLS", "15")
    done = subprocess.run([sys.executable, Path(__file__).with_name("live_walk.py"), "--seed", os.environ.get("SPARK_LIVE_SEED", "1"), "--count", count],
                          capture_output=True, text=True, timeout=120 + 10 * int(count), check=False)
    print(done.stdout)
    assert done.returncode == 0, done.stdout + done.stderr


def mounts_below(folder):
    return [line for line in Path("/proc/self/mounts").read_text().splitlines() if f" {folder}/" in line]


def test_a_daemon_with_another_cache_removes_the_mount_of_the_former(daemon, shards):
    with Holder() as pid:
        begin(daemon, pid, max_rate=MIB)
        daemon.end()
        assert mounts_below(daemon.folder / "cache/.live")
        daemon.config.write_text(daemon.config.read_text().replace(f"{daemon.folder}/cache,", f"{daemon.folder}/cache2,"))
        daemon.process = subprocess.Popen(daemon.command, stdout=daemon.log, stderr=subprocess.STDOUT)
        daemon.wait_until(lambda: "cache2: it is not the folder" in daemon.log_text(), "refuses a cache that its catalog does not know")
    daemon.wait_until(lambda: daemon.ask("POST", "/v1/cache/reset", {"forget": True})[0] == 202, "sees that the lease has ended")
    daemon.wait_until(lambda: not mounts_below(daemon.folder / "cache/.live"), "removed what was left")
    daemon.wait_until(daemon.answers, "has opened its cache")


def test_a_release_removes_the_mount_of_a_daemon_that_has_ended(daemon, shards):
    with Holder() as pid:
        begin(daemon, pid, max_rate=MIB)
        daemon.end()
        assert mounts_below(daemon.folder / "cache/.live")
        # It does so for every cache of the host: only in a mount namespace of its own.
        release = f'"{PROGRAM}" release --copies && cat /proc/self/mounts'
        left = subprocess.run(["unshare", "--mount", "sh", "-c", release], check=True, capture_output=True, text=True, timeout=PATIENCE_S)
        assert f"{daemon.folder}/cache/.live" not in left.stdout
        daemon.start()


def test_a_release_of_the_copies_is_refused_while_their_daemon_runs(daemon):
    """A job could write to the copy that it is served."""
    done = subprocess.run(["unshare", "--mount", PROGRAM, "--socket", daemon.socket, "release", "--copies"], capture_output=True, text=True,
                          timeout=PATIENCE_S, check=False)
    assert done.returncode == 7 and "spark-staged is running" in done.stderr, done


def test_a_cache_that_cannot_be_opened_ends_the_readers_of_the_former(daemon, shards, managed):
    with Holder() as pid:
        path = Path(begin(daemon, pid, max_rate=MIB)["path"])
        waiting = subprocess.Popen(["cat", path / "train/b"], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        time.sleep(0.3)
        daemon.process.kill()
        daemon.process.wait()
        before = daemon.config.read_text()
        (daemon.folder / "no-folder").write_text("")
        daemon.config.write_text(before.replace(f"{daemon.folder}/cache,", f"{daemon.folder}/no-folder,"))
        daemon.process = subprocess.Popen(daemon.command, stdout=daemon.log, stderr=subprocess.STDOUT)
        said = waiting.communicate(timeout=2 * PATIENCE_S)[1]  # it tries for 30 s
        assert waiting.returncode == 1, said
        assert "a live view of an earlier daemon ends" in daemon.log_text()
        daemon.end()
        daemon.config.write_text(before)
        daemon.start()


def test_what_is_staged_already_is_served_as_it_is(daemon):
    daemon.finish("/v1/stagings", {"datasets": ["imagenet"]})
    with Holder() as pid:
        assert begin(daemon, pid)["state"] == "ready"


def test_a_view_needs_a_lease(daemon):
    status, error = daemon.ask("POST", "/v1/stagings", {"datasets": ["imagenet"], "now": True})
    assert status == 400, error
    assert "needs a lease" in error["error"]["what"]
