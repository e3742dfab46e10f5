import os
from concurrent.futures import ThreadPoolExecutor

import pytest

from cluster import NODES, Cluster
from gate import Gate
from node import Daemon, wait_until


@pytest.fixture(scope="session")
def running():
    if os.geteuid() != 0:
        pytest.exit("the cluster needs root, for namespaces and for Slurm's daemons", 2)
    cluster = Cluster()
    yield cluster
    cluster.stop()


def all_idle(cluster):
    """Waits until each node is idle, which a drained or lost node never becomes."""
    last = {}

    def holds():
        last.update(cluster.states())
        assert not any(state.startswith(("drain", "down", "fail")) for state in last.values()), last
        return set(last.values()) == {"idle"}

    wait_until(holds, "all nodes are idle")


@pytest.fixture
def cluster(running):
    """A cluster without staged data. Afterwards checks that no node was harmed, no lease remains, and the next job runs."""
    with ThreadPoolExecutor() as at_once:
        list(at_once.map(Daemon.evict_all, running.daemons()))
    yield running
    wait_until(lambda: not running.jobs(), "all jobs have ended")
    all_idle(running)
    running.use_plugin()
    for node in running.nodes.values():
        wait_until(lambda node=node: not node.daemon.leases(), lambda node=node: f"{node.name} has no lease left:\n{node.story()}")
    done = running.slurm("srun", "-N4", "hostname")
    assert sorted(done.stdout.split()) == list(NODES), done.stderr
    all_idle(running)


@pytest.fixture
def frozen(cluster):
    """The source of imagenet, closed: reads block until it is opened."""
    with Gate(cluster.source / "imagenet/0.bin") as gate:
        yield gate
