"""A target that goes away before, during and after the staging for a pod. The events have the words of the daemon's job."""
import os

import grpc
import pytest

import simulated
from driver import Daemon, wait_until
from gate import Gate

CONFIG = simulated.CONFIG + "  photos: {{path: {folder}/photos, offline: allow}}\n"
EVENTS = """  targets:
    rose: {state: down}
  events:
    - {after: signal, target: rose, state: up}
    - {after: signal, target: rose, state: down}
    - {after: signal, target: rose, state: up}
    - {after: signal, target: rose, state: down, controllers: removed}
    - {after: signal, target: rose, state: up}
"""


class SimulatedDaemon(simulated.Simulation):
    leases, stagings = Daemon.leases, Daemon.stagings


@pytest.fixture
def daemon(folder):
    for name in ("mnt/imagenet", "photos"):
        (folder / name).mkdir(parents=True)
        (folder / name / "0.bin").write_bytes(os.urandom(200_000))
    running = SimulatedDaemon(folder, EVENTS, CONFIG, user={})
    yield running
    running.stop()


def says_what_the_job_says(pod, daemon, state):
    seen = set()

    def holds():
        seen.update((job["progress"] or {}).get("reason") or "no reason" for job in daemon.stagings())
        told = [sentence for code, sentence in pod.events if code == grpc.StatusCode.ABORTED]
        return any(f"volume datasets is {state} since 20" in reason and sentence.endswith(f"stalled: {reason}")
                   for reason in seen for sentence in told)

    wait_until(holds, lambda: f"an event says why it waits: {pod.events}, the job: {seen}", 60)


def test_a_target_that_goes_away_before_during_and_after_a_staging(driver, daemon, kubelet):
    with Gate(daemon.folder / "mnt/imagenet/0.bin") as gate:
        pod = kubelet.start_pod("u1")
        says_what_the_job_says(pod, daemon, "waiting")
        daemon.step()
        gate.wait_for(1)
        daemon.step()
        says_what_the_job_says(pod, daemon, "stalled")
        assert len(daemon.stagings()) == 1, "one job, however often kubelet asks"
        daemon.step()
    assert pod.mounted.wait(60), (pod.events, driver.log_text())
    daemon.step()
    daemon.becomes("lost")
    assert (pod.target / "0.bin").stat().st_size == 200_000
    other = kubelet.start_pod("u2")
    says_what_the_job_says(other, daemon, "lost")
    daemon.step()
    assert other.mounted.wait(60), (other.events, driver.log_text())


def test_a_pod_gets_the_old_copy_that_its_dataset_allows_and_its_events_say_so(driver, daemon, kubelet):
    first = kubelet.start_pod("u1", "photos")
    assert first.mounted.wait(60), first.events
    (daemon.folder / "photos").rename(daemon.folder / "away")
    pod = kubelet.start_pod("u2", "photos")
    assert pod.mounted.wait(60), (pod.events, driver.log_text())
    assert [(code, sentence.startswith("photos: warning: the copy was not compared with its source: staging photos: opening "))
            for code, sentence in pod.events] == [(grpc.StatusCode.ABORTED, True)], pod.events
    assert daemon.leases() == {(first.volume, "photos"), (pod.volume, "photos")}
    assert "warning: the copy was not compared" in driver.log_text()
