"""A target that goes away before, during and after the staging for a job. Its output has the words of the daemon's job."""
import os
import re
import shutil
import signal

import pytest

from gate import Gate
from node import Daemon, wait_until

CONFIG = """version: 1
targets: {{rose: {{address: 10.0.0.5}}}}
volumes: {{gone: {{target: rose, subsystem: data, mount: {folder}/mnt}}}}
cache: {{path: {folder}/cache, capacity: 64MiB, keep_free: 0}}
datasets:
  remote: {{volume: gone, path: data}}
  kept: {{volume: gone, path: data, offline: allow}}
simulation:
  targets:
    rose: {{state: down}}
  events:
    - {{after: signal, target: rose, state: up}}
    - {{after: signal, target: rose, state: down}}
    - {{after: signal, target: rose, state: up}}
    - {{after: signal, target: rose, state: down, controllers: removed}}
    - {{after: signal, target: rose, state: up}}
"""
COUNT = 'ls "$SPARK_STAGE_{}" | wc -l'


class SimulatedDaemon(Daemon):
    """A simulated host on the socket of a node's own daemon, which is stopped."""
    how = "--sim"

    def __init__(self, node):
        self.host, self.folder, self.socket = node.host, node.daemon.folder / "simulated", node.daemon.socket
        shutil.rmtree(self.folder, ignore_errors=True)  # of an earlier test
        (self.folder / "mnt/data").mkdir(parents=True)
        (self.folder / "mnt/data/0.bin").write_bytes(os.urandom(100_000))
        self.config = self.folder / "try.yaml"
        self.config.write_text(CONFIG.format(folder=self.folder))
        self.log = open(self.folder / "log", "ab")
        self.steps, self.old_jobs = 0, set()
        self.start()

    def step(self):
        self.steps += 1
        os.kill(self.pid(), signal.SIGUSR1)
        wait_until(lambda: self.log_text().count("simulation: ") >= self.steps, f"took step {self.steps}")

    def becomes(self, state):
        wait_until(lambda: self.ask("GET", "/v1/status")[1]["volumes"][0]["state"] == state, f"the volume is {state}")


@pytest.fixture
def simulated(cluster):
    node = cluster.nodes["n1"]
    node.daemon.stop()
    running = SimulatedDaemon(node)
    yield running
    running.stop()
    node.daemon.start()


def says_what_the_job_says(process, daemon, state):
    """Reads the output until a line has the reason of the daemon's job."""
    seen = set()
    while line := process.stdout.readline():
        seen.update((job["progress"] or {}).get("reason") for job in daemon.jobs())
        if f"volume gone is {state} since 20" in line and any(reason and line.strip().endswith(reason) for reason in seen):
            assert re.search(r"spark-stage: n1: \w+: stalled", line), line
            return
    raise AssertionError(f"no line says that the volume is {state}: {seen}")


def finish(process):
    output = process.communicate(timeout=120)[0]
    return process.returncode, output


def test_a_target_that_goes_away_before_during_and_after_a_staging(cluster, simulated):
    began, go = cluster.work / "began", cluster.work / "go"
    for file in (began, go):
        file.unlink(missing_ok=True)
    script = f"touch {began}; while ! test -e {go}; do sleep 0.1; done; {COUNT.format('REMOTE')}"
    with Gate(simulated.folder / "mnt/data/0.bin") as gate:
        job = cluster.start("srun", "-w", "n1", "--stage=remote", "sh", "-c", script)
        says_what_the_job_says(job, simulated, "waiting")
        simulated.step()
        gate.wait_for(1)
        simulated.step()
        says_what_the_job_says(job, simulated, "stalled")
        simulated.step()
    wait_until(began.exists, "the task begins")
    assert len(simulated.jobs()) == 1, "one job"
    simulated.step()
    simulated.becomes("lost")
    other = cluster.start("srun", "-w", "n1", "--stage=remote", "sh", "-c", COUNT.format("REMOTE"))
    says_what_the_job_says(other, simulated, "lost")
    go.touch()
    code, output = finish(job)
    assert (code, output.split()[-1]) == (0, "1"), "a job that runs keeps its copy: " + output
    simulated.step()
    code, output = finish(other)
    assert (code, output.split()[-1]) == (0, "1"), output


def test_the_output_of_a_job_with_an_old_copy_says_so(cluster, simulated):
    simulated.step()
    simulated.becomes("ready")
    start = lambda: cluster.start("srun", "-w", "n1", "--stage=kept", "sh", "-c", COUNT.format("KEPT"))  # noqa: E731
    assert finish(start())[0] == 0
    for _ in range(3):
        simulated.step()
    simulated.becomes("lost")
    code, output = finish(start())
    assert code == 0 and "1" in output.split(), output
    assert "spark-stage: n1: warning: the copy of kept was not compared with its source: volume gone is lost since 20" in output, output
