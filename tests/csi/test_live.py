"""A pod that starts before its dataset is complete (now: "true")."""
import hashlib
import signal
import subprocess
from pathlib import Path

import grpc
import pytest

from driver import wait_until

NOW = {"dataset": "imagenet", "now": "true"}
PATIENCE_S = 60


def mounts_of(folder):
    """Of each mount at or below the folder, its type."""
    lines = [line.split() for line in Path("/proc/self/mountinfo").read_text().splitlines()]
    return [fields[fields.index("-") + 1] for fields in lines if (fields[4] + "/").startswith(f"{folder}/")]


def start_to_hash(pod):
    """Not in this process: one that waits for a view ends only with the daemon's help."""
    return subprocess.Popen(["sha256sum", pod.target / "0.bin"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def digest(daemon):
    return hashlib.sha256((daemon.folder / "source/imagenet/0.bin").read_bytes()).hexdigest()


def said_by(reader):
    return reader.communicate(timeout=PATIENCE_S)[0].split()[0]


@pytest.fixture(autouse=True)
def no_reader_is_left(daemon):
    yield
    # A daemon that is killed takes its views with it: their readers get an error.
    if daemon.process.poll() is None:
        daemon.kill()
        daemon.start()


def state(daemon):
    return next(row["state"] for row in daemon.ask("GET", "/v1/datasets")[1]["datasets"] if row["name"] == "imagenet")


def test_a_pod_starts_at_once_and_reads_what_arrives(driver, daemon, kubelet, closed):
    pod = kubelet.start_pod("u1", attributes=NOW)
    assert pod.mounted.wait(30), (pod.events, driver.log_text(), daemon.log_text())
    assert state(daemon) == "live" and mounts_of(pod.target) == ["fuse.spark-stage"]
    assert daemon.leases() == {(pod.volume, "imagenet")}
    reader = start_to_hash(pod)
    closed.wait_for(1)
    assert reader.poll() is None, "it waits"
    closed.open()
    assert said_by(reader) == digest(daemon)
    wait_until(lambda: state(daemon) == "ready", "the copy is complete")
    assert said_by(start_to_hash(pod)) == digest(daemon), "through the view"
    later = kubelet.start_pod("u2", attributes=NOW)
    assert later.mounted.wait(30), later.events
    assert mounts_of(later.target) == mounts_of(daemon.folder / "cache/data")[:1], "one that starts later has the copy"
    assert driver.end() == -signal.SIGKILL
    driver.start()
    pod.publish()  # like a restarted kubelet
    assert said_by(start_to_hash(pod)) == digest(daemon)
    pod.remove()
    assert pod.gone.wait(30), pod.events
    assert daemon.leases() == {(later.volume, "imagenet")}
    later.remove()
    assert later.gone.wait(30), later.events
    wait_until(lambda: not mounts_of(daemon.folder / "cache/.live"), "the view has ended")


def test_a_pod_that_is_removed_ends_the_view_and_the_staging(driver, daemon, kubelet, closed):
    pod = kubelet.start_pod("u1", attributes=NOW)
    assert pod.mounted.wait(30), (pod.events, driver.log_text())
    closed.wait_for(1)
    pod.remove()
    assert pod.gone.wait(30), pod.events
    wait_until(lambda: not mounts_of(daemon.folder / "cache/.live"), "the view has ended")
    assert not daemon.leases()
    wait_until(lambda: state(daemon) == "absent", "so has the staging")


def test_a_pod_whose_view_has_lost_its_daemon_can_be_removed(driver, daemon, kubelet, closed):
    pod = kubelet.start_pod("u1", attributes=NOW)
    assert pod.mounted.wait(30), (pod.events, driver.log_text())
    reader = start_to_hash(pod)
    closed.wait_for(1)
    daemon.kill()
    assert reader.wait(PATIENCE_S) != 0, "an error, not zeros"
    daemon.start()
    pod.remove()
    assert pod.gone.wait(60), (pod.events, driver.log_text())


@pytest.mark.parametrize("attributes, words", [
    ({"dataset": "imagenet", "now": "yes"}, "now is 'yes'"),
    ({"dataset": "imagenet", "now": ""}, "now is ''"),
    ({"output": "run7", "now": "true"}, "'now' is for a dataset")])
def test_another_value_is_refused(driver, daemon, kubelet, attributes, words):
    pod = kubelet.start_pod("u1", namespace="team-a", attributes=attributes)
    wait_until(lambda: pod.events, "it is refused")
    assert pod.events[0][0] == grpc.StatusCode.INVALID_ARGUMENT and words in pod.events[0][1], pod.events
    assert not daemon.leases()
