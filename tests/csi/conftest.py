import ctypes
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest

from driver import Daemon, Driver, wait_until
from gate import Gate
from kubelet import Kubelet

CLONE_NEWNS = 0x20000


def pytest_configure():
    """Enters a mount namespace: mounts of these tests end with them, and are invisible to other programs."""
    if os.geteuid() != 0:
        pytest.exit("mounts need root", 2)
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(CLONE_NEWNS) != 0:
        pytest.exit(f"no mount namespace: {os.strerror(ctypes.get_errno())}", 2)
    subprocess.run(["mount", "--make-rprivate", "/"], check=True)
    subprocess.run(["mount", "--make-rshared", "/"], check=True)  # as under systemd


@pytest.fixture
def folder():
    """A short path: the path of a socket has at most 107 bytes."""
    path = Path(tempfile.mkdtemp(prefix="csi-"))
    yield path
    subprocess.run(["umount", "-R", path / "cache/data"], stderr=subprocess.DEVNULL, check=False)
    shutil.rmtree(path)


@pytest.fixture
def daemon(folder):
    running = Daemon(folder)
    yield running
    running.stop()


@pytest.fixture
def kubelet(folder):
    """A deadline of six seconds instead of two minutes: see Kubelet."""
    return Kubelet(folder / "kubelet", deadline_s=6)


@pytest.fixture
def driver(kubelet, daemon):
    running = Driver(kubelet, daemon)
    yield running
    # After any test each pod can be removed, and nothing of it remains.
    if running.process.poll() is not None:
        running.start()
    for pod in kubelet.pods:
        pod.remove()
    for pod in kubelet.pods:
        assert pod.gone.wait(60), (pod.uid, pod.events, running.log_text())
    wait_until(lambda: not daemon.leases(), lambda: f"no lease is left: {daemon.leases()}\n{running.log_text()}")
    assert str(kubelet.folder) not in Path("/proc/self/mountinfo").read_text()
    running.end()


@pytest.fixture
def closed(daemon):
    """The source of imagenet, closed: reads block until it is opened."""
    with Gate(daemon.folder / "source/imagenet/0.bin") as gate:
        yield gate
