"""When live views begin and end: two of one dataset, and one whose request or daemon ends at a bad moment."""
import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from live_jobs import begun
from staged import PATIENCE_S
from test_live import MIB, Holder, begin, managed, mounts_below, no_mount_is_left, row, server_of, shards  # noqa: F401  fixtures
from view_helpers import connections, early


def worker_of(daemon, verb):
    children = Path(f"/proc/{daemon.process.pid}/task/{daemon.process.pid}/children").read_text().split()
    found = [int(pid) for pid in children if Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")[2:3] == [verb.encode()]]
    return found[0] if found else None


def change(daemon, name="b"):
    (daemon.folder / "imagenet/train" / name).write_bytes(os.urandom(24 * MIB))


def test_a_request_that_ends_before_its_view_answers_leaves_nothing(daemon, shards):
    for i in range(40_000):  # the process reads their list before it answers
        (daemon.folder / f"imagenet/train/{i}.empty").touch()
    with Holder() as pid:
        _, job = daemon.ask("POST", "/v1/stagings", {"datasets": ["imagenet"], "hold": pid, "now": True, "max_rate": MIB})
        daemon.wait_until(lambda: server_of(daemon), "started the process of the view")
        server = server_of(daemon)
        os.kill(server, signal.SIGSTOP)
        assert daemon.ask("GET", f"/v1/jobs/{job['id']}")[1]["state"] == "running", "the process has answered already"
        daemon.ask("DELETE", f"/v1/jobs/{job['id']}")
        daemon.wait_until(lambda: row(daemon)["state"] == "absent", "ended the staging")
        daemon.wait_until(lambda: server_of(daemon) is None, "ended the process")
        assert not mounts_below(daemon.folder / "cache/.live")
        assert not os.listdir(daemon.folder / "state/live")
        assert begin(daemon, pid)["state"] == "live"


def test_a_changed_dataset_has_a_view_of_its_own(daemon, shards, managed):
    old = daemon.folder / "old"
    old.write_bytes(shards["b"])
    with Holder() as pid, Holder() as other:
        first = Path(begin(daemon, pid, max_rate=32 * MIB)["path"])
        reader = early(first / "train/b", old)
        daemon.wait_until(lambda: row(daemon)["state"] == "ready", "was staged")
        change(daemon)
        live = begin(daemon, other, max_rate=MIB)
        assert live["state"] == "live" and Path(live["path"]) != first
        managed(signal.SIGTERM)
        assert (first / "train/b").read_bytes() == shards["b"]
        assert "b" in os.listdir(Path(live["path"]) / "train")
        reader.tell()
        assert reader.end() == {"read": True, "mapped": True}


def test_a_daemon_that_is_killed_at_the_publication_keeps_the_copy_of_its_job(daemon, shards, managed):
    with Holder() as pid:
        path = Path(begin(daemon, pid, max_rate=16 * MIB)["path"])
        os.kill(daemon.process.pid, signal.SIGSTOP)
        copies = daemon.folder / "cache/data/imagenet"
        end = time.monotonic() + PATIENCE_S
        while not (copies.exists() and any(one.name.isdigit() for one in copies.iterdir())) and time.monotonic() < end:
            time.sleep(0.05)
        time.sleep(1)  # it enters it, and tells nobody
        managed(signal.SIGKILL)
        daemon.wait_until(lambda: row(daemon)["state"] == "ready", "knows the copy")
        copy = Path(row(daemon)["path"])
        change(daemon)
        daemon.finish("/v1/stagings", {"datasets": ["imagenet"]})
        assert copy.exists(), "the job leases it"
        assert (path / "train/b").read_bytes() == shards["b"]


def test_an_open_file_keeps_its_copy_and_no_other_view_from_beginning(daemon, shards):
    with Holder() as pid:
        path = Path(begin(daemon, pid, max_rate=32 * MIB)["path"])
        beside = early(path / "train/b", daemon.folder / "imagenet/train/b")
        daemon.wait_until(lambda: row(daemon)["state"] == "ready", "was staged")
    daemon.wait_until(lambda: not mounts_below(daemon.folder / "cache/.live"), "ended the view")
    refused = daemon.finish("/v1/datasets/imagenet/evict")
    assert refused["state"] == "failed" and "open since it was staged" in refused["error"]["what"], refused
    change(daemon, "a")
    with Holder() as pid:
        assert begin(daemon, pid, max_rate=MIB)["state"] == "live"
        beside.tell()
        assert beside.end() == {"read": True, "mapped": True}


def test_what_is_here_can_be_read_while_the_copy_begins_again(daemon, shards):
    with Holder() as pid:
        path = Path(begin(daemon, pid, max_rate=4 * MIB)["path"])
        (path / "train/a").read_bytes()
        before = worker_of(daemon, "stage")
        daemon.ask("POST", "/v1/stagings", {"datasets": ["imagenet"]})  # without a limit
        daemon.wait_until(lambda: worker_of(daemon, "stage") not in (None, before), "began again")
        again = worker_of(daemon, "stage")
        os.kill(again, signal.SIGSTOP)  # as if its source hung
        try:
            first = subprocess.run(["head", "-c", str(MIB), path / "train/a"], capture_output=True, timeout=5, check=True)
            assert first.stdout == shards["a"][:MIB]
        finally:
            os.kill(again, signal.SIGCONT)


def test_a_job_of_two_datasets_begins_before_either_is_complete(daemon, shards):
    (daemon.folder / "models/big").write_bytes(os.urandom(12 * MIB))
    with Holder() as pid:
        job = daemon.finish("/v1/stagings", {"datasets": ["imagenet", "models"], "hold": pid, "now": True, "max_rate": MIB})
        got = job["result"]["datasets"]
        begun.extend(number for one in got for number in connections(one["path"], daemon.process.pid))
        assert [one["state"] for one in got] == ["live", "live"]


def test_a_lease_on_an_earlier_copy_keeps_no_staging(daemon, shards):
    with Holder() as pid:
        daemon.finish("/v1/stagings", {"datasets": ["imagenet"], "hold": pid})
        change(daemon)
        with Holder() as other:
            path = Path(begin(daemon, other, max_rate=MIB)["path"])
        daemon.wait_until(lambda: not path.exists(), "ended the view")
        daemon.wait_until(lambda: not daemon.ask("GET", "/v1/status")[1]["stages"], "ended the staging")
