import os
import subprocess
import tempfile
from pathlib import Path

import pytest

from simulated import CLIENT, CONFIG, Simulation
from staged import FLEET, Daemon, free_port


@pytest.fixture
def daemon(tmp_path):
    running = Daemon(tmp_path)
    yield running
    running.stop()


@pytest.fixture(scope="module")
def busy_daemon(tmp_path_factory):
    """A daemon that has staged, verified and evicted, holds a lease, and serves a fleet, so that all metrics are present."""
    key = tmp_path_factory.mktemp("key") / "fleet.key"
    subprocess.run([CLIENT, "fleet", "key", "--output", key], check=True)
    running = Daemon(tmp_path_factory.mktemp("busy"), more=FLEET.format(port=free_port(), key=key))
    running.wait_until(lambda: "spark_stage_fleet_refused_connections_total" in running.metrics(), "serves its fleet")
    running.finish("/v1/stagings", {"datasets": ["imagenet"], "lease_s": 3600})
    running.finish("/v1/stagings", {"datasets": ["imagenet"]})
    running.finish("/v1/datasets/imagenet/verify")
    running.finish("/v1/stagings", {"datasets": ["models"]})
    running.finish("/v1/datasets/models/evict")
    running.finish("/v1/stagings", {"datasets": ["datasets:coco"]})
    yield running
    running.stop()


@pytest.fixture
def folder():
    """The daemon's user gets there. Not pytest's tmp_path: every pytest that starts shuts others out of that again."""
    with tempfile.TemporaryDirectory(prefix="spark-sim-") as path:
        os.chmod(path, 0o755)
        yield Path(path)


@pytest.fixture
def simulate(folder):
    """Starts one: simulate(events, config)."""
    running = []

    def start(events="", config=CONFIG, **how):
        running.append(Simulation(folder, events, config, **how))
        return running[-1]

    yield start
    for one in running:
        one.stop()
