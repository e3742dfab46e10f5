"""The volumes of a pod, and their fate when the driver or the daemon ends, or kubelet's deadline passes."""
import os
import signal
import subprocess
from pathlib import Path

import grpc
import pytest

from driver import wait_until

ABORTED = grpc.StatusCode.ABORTED


def mount_of(pod):
    """Its options in mountinfo; None if nothing is mounted."""
    lines = [line.split() for line in Path("/proc/self/mountinfo").read_text().splitlines()]
    found = [fields[5].split(",") for fields in lines if fields[4] == str(pod.target)]
    assert len(found) <= 1, found
    return found[0] if found else None


def codes(pod):
    return {code for code, _ in pod.events}


def has_its_data(pod, daemon, dataset="imagenet"):
    source = daemon.folder / "source" / dataset / "0.bin"
    return (pod.target / "0.bin").read_bytes() == source.read_bytes()


def test_a_pod_reads_the_dataset_and_can_change_nothing(driver, daemon, kubelet):
    pod = kubelet.start_pod("u1")
    assert pod.mounted.wait(30), (pod.events, driver.log_text())
    assert has_its_data(pod, daemon)
    assert {"ro", "nosuid", "nodev"} <= set(mount_of(pod))
    with pytest.raises(OSError):
        (pod.target / "new").write_bytes(b"x")
    assert daemon.leases() == {(pod.volume, "imagenet")}
    row = next(row for row in daemon.ask("GET", "/v1/datasets")[1]["datasets"] if row["name"] == "imagenet")
    assert row["leases"][0]["holder"] == "pod team-b/pod-u1"
    pod.remove()
    assert pod.gone.wait(30), pod.events
    assert mount_of(pod) is None and not daemon.leases()


def test_the_driver_registers_with_kubelet(driver, kubelet):
    info = kubelet.register()
    assert (info.type, info.name, list(info.supported_versions)) == ("CSIPlugin", "stage.spark-stage.io", ["1.0.0"])
    assert info.endpoint == str(kubelet.folder / "plugins/stage.spark-stage.io/csi.sock")
    assert kubelet.node == "n1"
    for socket in (info.endpoint, next((kubelet.folder / "plugins_registry").glob("*.sock"))):
        assert os.stat(socket).st_mode & 0o077 == 0, "root alone may ask"


def test_a_driver_refused_by_kubelet_ends(driver, kubelet):
    kubelet.notify(next((kubelet.folder / "plugins_registry").glob("*.sock")), False, "the name is taken")
    assert driver.process.wait(30) == 1
    assert "kubelet refused the driver: the name is taken" in driver.log_text()


def test_events_of_a_waiting_pod_report_the_progress_of_its_dataset(driver, daemon, kubelet, closed):
    pod = kubelet.start_pod("u1")
    wait_until(lambda: len(pod.events) >= 2, "two calls end before kubelet's deadline", 60)
    assert codes(pod) == {ABORTED}, pod.events
    assert all(sentence.startswith("imagenet: ") for _, sentence in pod.events), pod.events
    assert daemon.leases() == {(pod.volume, "imagenet")}, "held while it is staged"
    closed.open()
    assert pod.mounted.wait(30), pod.events
    assert has_its_data(pod, daemon)


def test_a_pod_whose_target_is_away_waits_in_one_job_and_its_events_have_the_reason(driver, daemon, kubelet):
    pod = kubelet.start_pod("u1", "remote")
    wait_until(lambda: len(pod.events) >= 3, "three calls end before kubelet's deadline", 60)
    assert codes(pod) == {ABORTED}, pod.events
    assert all(sentence.startswith("remote: stalled: volume scratch is ") for _, sentence in pod.events), pod.events
    assert [job["state"] for job in daemon.stagings()] == ["running"]
    assert daemon.stagings()[0]["progress"]["reason"].startswith("volume scratch is ")


def test_pods_with_one_dataset_share_a_staging_and_end_independently(driver, daemon, kubelet, closed):
    first, second = kubelet.start_pod("u1"), kubelet.start_pod("u2")
    wait_until(lambda: daemon.leases() == {(first.volume, "imagenet"), (second.volume, "imagenet")}, "each has a lease")
    first.remove()
    assert first.gone.wait(30), (first.events, driver.log_text())
    assert daemon.leases() == {(second.volume, "imagenet")}, "a pod that is removed ends its own wait alone"
    closed.open()
    assert second.mounted.wait(30), second.events
    assert has_its_data(second, daemon)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_a_running_pod_is_not_affected_by_the_end_of_the_driver_or_the_daemon(driver, daemon, kubelet, number):
    pod = kubelet.start_pod("u1")
    assert pod.mounted.wait(30), pod.events
    with open(pod.target / "0.bin", "rb") as file:
        assert driver.end(number) == (0 if number == signal.SIGTERM else -9)
        daemon.kill()
        assert mount_of(pod) and has_its_data(pod, daemon) and len(file.read()) == 200_000
        daemon.start()
        driver.start()
    pod.publish()  # like a restarted kubelet
    assert has_its_data(pod, daemon)
    assert daemon.leases() == {(pod.volume, "imagenet")}


def test_a_driver_killed_while_a_pod_waits_continues_after_its_restart(driver, daemon, kubelet, closed):
    pod = kubelet.start_pod("u1")
    closed.wait_for(1)
    driver.end()
    wait_until(lambda: grpc.StatusCode.UNAVAILABLE in codes(pod), "kubelet notices")
    driver.start()
    closed.open()
    assert pod.mounted.wait(60), pod.events
    assert has_its_data(pod, daemon)


def test_a_daemon_killed_while_a_pod_waits_continues_after_its_restart(driver, daemon, kubelet, closed):
    pod = kubelet.start_pod("u1")
    closed.wait_for(1)
    daemon.kill()
    daemon.start()
    closed.open()
    assert pod.mounted.wait(60), (pod.events, driver.log_text())
    assert has_its_data(pod, daemon)


def test_sigterm_ends_a_driver_with_waiting_calls(driver, kubelet, closed):
    pod = kubelet.start_pod("u1")
    closed.wait_for(1)
    driver.end(signal.SIGTERM)
    assert pod.worker.is_alive() and not pod.mounted.is_set()
    closed.open()


def test_a_pod_is_removed_even_without_the_daemon(driver, daemon, kubelet):
    pod = kubelet.start_pod("u1")
    assert pod.mounted.wait(30), pod.events
    daemon.kill()
    pod.remove()
    assert pod.gone.wait(60), pod.events
    assert mount_of(pod) is None
    daemon.start()
    driver.end()
    driver.start()
    wait_until(lambda: not daemon.leases(), "the lease ends when the pods are compared")


def test_the_lease_of_a_pod_that_was_deleted_by_force_ends(driver, daemon, kubelet):
    pod, other = kubelet.start_pod("u1"), kubelet.start_pod("u2", "models")
    assert pod.mounted.wait(30) and other.mounted.wait(30), (pod.events, other.events)
    driver.end()
    subprocess.run(["umount", pod.target], check=True)
    kubelet.pods.remove(pod)
    pod.forget()
    driver.start()
    wait_until(lambda: daemon.leases() == {(other.volume, "models")}, "the lease of the pod that runs stays")


def test_an_unreadable_record_of_kubelet_keeps_only_its_own_lease(driver, daemon, kubelet):
    pod, other = kubelet.start_pod("u1"), kubelet.start_pod("u2", "models")
    assert pod.mounted.wait(30) and other.mounted.wait(30), (pod.events, other.events)
    driver.end()
    (other.folder / "vol_data.json").write_text("")
    subprocess.run(["umount", pod.target], check=True)
    kubelet.pods.remove(pod)
    pod.forget()
    driver.start()
    wait_until(lambda: daemon.leases() == {(other.volume, "models")}, "the lease of the deleted pod ends")


def test_a_dataset_is_for_the_namespaces_that_are_listed(driver, daemon, kubelet):
    refused = kubelet.start_pod("u1", "secret", namespace="team-b")
    wait_until(lambda: refused.events, "it is refused")
    code, sentence = refused.events[0]
    assert code == grpc.StatusCode.PERMISSION_DENIED and "namespace team-b" in sentence
    allowed = kubelet.start_pod("u2", "secret", namespace="team-a")
    assert allowed.mounted.wait(30), allowed.events
    assert daemon.leases() == {(allowed.volume, "secret")}


def test_files_that_a_pod_writes_to_an_output_are_in_its_folder_on_the_node(driver, daemon, kubelet):
    pod = kubelet.start_pod("u1", namespace="team-a", attributes={"output": "run7"})
    assert pod.mounted.wait(30), (pod.events, driver.log_text())
    assert {"rw", "nosuid", "nodev"} <= set(mount_of(pod))
    (pod.target / "step-1").mkdir()
    (pod.target / "step-1/weights").write_bytes(b"x" * 1000)
    driver.end()
    driver.start()
    pod.publish()  # like a restarted kubelet
    pod.remove()
    assert pod.gone.wait(30), pod.events
    assert (daemon.folder / "out/step-1/weights").read_bytes() == b"x" * 1000
    assert mount_of(pod) is None
    # The daemon knows the checkpoint, though its volume is unavailable.
    daemon.wait_until(lambda: daemon.ask("GET", "/v1/outputs/run7")[1]["latest_local"] == "step-1", "saw the checkpoint")


def test_a_missing_output_folder_is_an_event_of_the_pod(driver, kubelet):
    pod = kubelet.start_pod("u1", namespace="team-a", attributes={"output": "absent"})
    wait_until(lambda: pod.events, "it is refused")
    assert pod.events[0][0] == grpc.StatusCode.NOT_FOUND and "does it exist" in pod.events[0][1], pod.events


@pytest.mark.parametrize("attributes, code, words", [
    ({"dataset": "imagnet"}, grpc.StatusCode.NOT_FOUND, "did you mean 'imagenet'?"),
    ({"dataset": "imagenet", "output": "run7"}, grpc.StatusCode.INVALID_ARGUMENT, "both 'dataset' and 'output'"),
    ({"output": "run7"}, grpc.StatusCode.PERMISSION_DENIED, "namespace team-b"),
    ({"output": "private"}, grpc.StatusCode.PERMISSION_DENIED, "namespace team-b"),
    ({"dataset": "v:any/path"}, grpc.StatusCode.INVALID_ARGUMENT, "a path on a volume"),
    ({"dataset": "huge"}, grpc.StatusCode.RESOURCE_EXHAUSTED, "huge")])
def test_a_refused_request_is_an_event_of_the_pod(driver, daemon, kubelet, attributes, code, words):
    pod = kubelet.start_pod("u1", attributes=attributes)
    wait_until(lambda: pod.events, "it is refused")
    assert pod.events[0][0] == code and words in pod.events[0][1], pod.events
    wait_until(lambda: not daemon.leases(), "a request that failed holds nothing")
