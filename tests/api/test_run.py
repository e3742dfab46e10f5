"""`spark-stage run` with a real daemon: the command takes the place of the client."""
import json
import os
import select
import signal
import subprocess
import sys

import pytest

from simulated import CLIENT

# Counts the SIGTERMs until a SIGUSR1 comes.
COUNTS = """import os, signal
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM, signal.SIGUSR1])
seen = 0
print("ready", os.getpid(), flush=True)
while signal.sigwait([signal.SIGTERM, signal.SIGUSR1]) == signal.SIGTERM:
    seen += 1
    print("stop", seen, flush=True)
"""


@pytest.fixture
def started(daemon):
    """Starts `run` in a process group of its own."""
    running = []

    def start(*command):
        running.append(subprocess.Popen([CLIENT, "run", "imagenet", "--", *command], stdout=subprocess.PIPE, text=True, start_new_session=True,
                                        env=os.environ | {"SPARK_STAGE_SOCKET": str(daemon.socket)}))
        return running[-1]

    yield start
    for one in running:
        one.kill()
        one.wait()


@pytest.mark.parametrize("kill_mode", ["control-group", "mixed"])
def test_the_command_of_a_stopped_unit_gets_sigterm_once(started, kill_mode):
    run = started(sys.executable, "-c", COUNTS)
    ready, pid = run.stdout.readline().split()
    assert ready == "ready"
    if kill_mode == "control-group":  # one process after the other
        os.kill(int(pid), signal.SIGTERM)
        assert run.stdout.readline() == "stop 1\n"
    if kill_mode == "mixed" or run.pid != int(pid):
        os.kill(run.pid, signal.SIGTERM)
    if kill_mode == "mixed":
        assert run.stdout.readline() == "stop 1\n"
    assert not select.select([run.stdout], [], [], 1)[0], f"a second time: {run.stdout.readline()}"
    os.kill(run.pid, signal.SIGUSR1)
    assert run.wait() == 0


def test_the_lease_of_a_run_ends_with_its_command(daemon, started):
    leases = lambda: json.dumps(next(row for row in daemon.ask("GET", "/v1/datasets")[1]["datasets"] if row["name"] == "imagenet")["leases"])
    run = started("sh", "-c", "echo ready; exec sleep 1000")
    assert run.stdout.readline() == "ready\n"
    assert f'"pid": {run.pid}' in leases()
    run.kill()
    assert run.wait() == -signal.SIGKILL
    daemon.wait_until(lambda: leases() == "[]", "ended the lease")
    assert daemon.ask("POST", "/v1/datasets/imagenet/evict", {})[0] == 202
