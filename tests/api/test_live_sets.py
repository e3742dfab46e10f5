"""A source that changes while a live view of it is read: no job gets another set in its folder, and the next request a view of its own."""
import os
import random
import signal
import time
from pathlib import Path

import pytest

from live_jobs import MIB, Holder, begin, row, workers
from test_live import managed, no_mount_is_left, shards  # noqa: F401  fixtures
from view_helpers import early, mounts_on


def add_file(daemon):
    (daemon.folder / "imagenet/train/new").write_bytes(b"new" * 1000)


def replace(daemon):
    (daemon.folder / "imagenet/train/b").write_bytes(random.Random("other").randbytes(24 * MIB))


def staged_by_another(daemon, _restart):
    replace(daemon)
    add_file(daemon)
    daemon.ask("POST", "/v1/stagings", {"datasets": ["imagenet"]})


def configured_anew(daemon, _restart):
    other = daemon.folder / "other/train"
    other.mkdir(parents=True)
    (other / "b").write_bytes(random.Random("other").randbytes(24 * MIB))
    daemon.config.write_text(daemon.config.read_text().replace(f"{daemon.folder}/imagenet", f"{daemon.folder}/other"))
    daemon.process.send_signal(signal.SIGHUP)


def restarted(daemon, restart):
    replace(daemon)
    restart(signal.SIGTERM)


@pytest.mark.parametrize("changed", [staged_by_another, configured_anew, restarted], ids=lambda one: one.__name__)
def test_a_view_never_becomes_the_copy_of_another_set(daemon, shards, managed, changed):
    with Holder() as pid:
        live = begin(daemon, pid, max_rate=4 * MIB)
        path = Path(live["path"])
        changed(daemon, managed)
        daemon.wait_until(lambda: row(daemon)["state"] == "ready", "was staged")
        time.sleep(1)  # it is shown to the jobs of its own views
        with pytest.raises(OSError):
            (path / "train/b").read_bytes()
        assert len(mounts_on(path)) == 1, "nothing is mounted on the view"
        assert [one["id"] for one in row(daemon)["leases"]] == [live["lease"]]
    daemon.wait_until(lambda: not path.exists(), "ended the view")


def test_a_request_gets_no_view_that_is_about_to_fail(daemon, shards):
    """The set has changed, and another limit begins the copy again."""
    with Holder() as pid, Holder() as second, Holder() as third:
        first = Path(begin(daemon, pid, max_rate=4 * MIB)["path"])
        add_file(daemon)
        for holder in (second, third):
            path = Path(begin(daemon, holder, max_rate=8 * MIB)["path"])
            assert path != first
            assert "new" in os.listdir(path / "train")
            assert (path / "train/b").read_bytes() == shards["b"]
        with pytest.raises(OSError):
            (first / "train/b").read_bytes()


def test_a_view_of_an_earlier_walk_says_so(daemon, shards):
    with Holder() as pid, Holder() as other:
        assert begin(daemon, pid, max_rate=4 * MIB)["warnings"] == []
        add_file(daemon)
        live = begin(daemon, other, max_rate=4 * MIB)
        assert live["state"] == "live"
        [warning] = live["warnings"]
        assert live["walked_at"] in warning


def test_a_view_that_has_ended_begins_no_staging(daemon, shards, managed):
    """A program has a file of it open; the dataset was staged since, and a job leases that."""
    with Holder() as pid:
        path = Path(begin(daemon, pid, max_rate=8 * MIB)["path"])
        beside = early(path / "train/0.bin", daemon.folder / "imagenet/train/0.bin")
    daemon.wait_until(lambda: not mounts_on(path), "ended the view")
    daemon.wait_until(lambda: not daemon.ask("GET", "/v1/status")[1]["stages"], "ended the staging")
    with Holder() as pid:
        daemon.finish("/v1/stagings", {"datasets": ["imagenet"], "hold": pid})
        replace(daemon)
        managed(signal.SIGTERM)
        assert row(daemon)["generation"] == 1
        assert daemon.ask("GET", "/v1/status")[1]["stages"] == []
        beside.process.kill()
        beside.process.wait()


def test_a_lease_on_an_earlier_copy_keeps_no_view_of_an_earlier_daemon(daemon, shards, managed):
    with Holder() as pid:
        daemon.finish("/v1/stagings", {"datasets": ["imagenet"], "hold": pid})
        replace(daemon)
        with Holder() as other:
            path = Path(begin(daemon, other, max_rate=MIB)["path"])
            os.kill(daemon.process.pid, signal.SIGSTOP)
        managed(signal.SIGKILL)
        daemon.wait_until(lambda: not path.exists(), "ended the view")
        daemon.wait_until(lambda: not daemon.ask("GET", "/v1/status")[1]["stages"], "ended the staging")


def test_a_view_is_listed_beside_an_earlier_copy(daemon, shards):
    copy = daemon.finish("/v1/stagings", {"datasets": ["imagenet"]})["result"]["datasets"][0]["path"]
    replace(daemon)
    with Holder() as pid:
        path = begin(daemon, pid, max_rate=MIB)["path"]
        listed = row(daemon)
        assert (listed["state"], listed["path"], listed["live"]["path"]) == ("ready", copy, path)
        assert listed["live"]["bytes"] > 48 * MIB


def test_a_view_tells_what_it_does_not_show(daemon, shards):
    os.mkfifo(daemon.folder / "imagenet/train/pipe")
    (daemon.folder / "imagenet/train/out").symlink_to("/etc/hostname")
    with Holder() as pid:
        live = begin(daemon, pid, max_rate=MIB)
        assert (live["state"], live["skipped"], live["outside_links"]) == ("live", ["train/pipe (FIFO)"], 1)


def test_one_file_does_not_begin_again(daemon):
    """There is no view of it."""
    daemon.end()
    (daemon.folder / "one").write_bytes(os.urandom(12 * MIB))
    daemon.config.write_text(daemon.config.read_text().replace("datasets:\n", f"datasets:\n  one: {{path: {daemon.folder}/one}}\n"))
    daemon.start()
    daemon.ask("POST", "/v1/stagings", {"datasets": ["one"], "max_rate": 2 * MIB})
    daemon.wait_until(lambda: row(daemon, "one").get("progress", {}).get("phase") == "copying", "began to copy")
    before = workers(daemon, "stage")
    with Holder() as pid:
        daemon.ask("POST", "/v1/stagings", {"datasets": ["one"], "hold": pid, "now": True, "max_rate": 2 * MIB})
        time.sleep(1)
        assert workers(daemon, "stage") == before


@pytest.fixture
def linked(daemon):
    """The cache's path leads through a link."""
    daemon.end()
    daemon.config.write_text(daemon.config.read_text().replace(f"{daemon.folder}/cache,", f"{daemon.folder}/link/cache,"))
    (daemon.folder / "link").symlink_to(daemon.folder)
    daemon.start()


def test_a_copy_is_shown_in_a_cache_behind_a_link(daemon, linked, shards, managed):
    with Holder() as pid:
        path = Path(begin(daemon, pid)["path"])
        managed(signal.SIGTERM)
        assert row(daemon)["path"] == str(path)
        view = os.stat(path).st_dev
        daemon.wait_until(lambda: row(daemon)["state"] == "ready", "was staged")
        daemon.wait_until(lambda: os.stat(path).st_dev != view, "showed the copy")
        assert (path / "train/b").read_bytes() == shards["b"]
    daemon.wait_until(lambda: not path.exists(), "ended the view")
