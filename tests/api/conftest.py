import os
import tempfile
from pathlib import Path

import pytest

from simulated import CONFIG, Simulation
from staged import Daemon


@pytest.fixture
def daemon(tmp_path):
    running = Daemon(tmp_path)
    yield running
    running.stop()


@pytest.fixture(scope="module")
def busy_daemon(tmp_path_factory):
    """A daemon that has staged, verified and evicted, and holds a lease, so that all metrics are present."""
    running = Daemon(tmp_path_factory.mktemp("busy"))
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
