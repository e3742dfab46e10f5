"""Our container image on a node like one of Talos: a read-only root, no systemd, and the containers of configs/kubernetes'
DaemonSet, set up by crun as containerd does it. The volumes are on a real target; kubelet is that of tests/csi, on the node.

What the driver answers to wrong calls, and pods without a target, are tests/csi.
"""
import json
import re
import time
from contextlib import contextmanager

import pytest
import yaml

from rig.disks import ext4
from rig.house import SUBSYSTEM
from rig.machine import disk
from rig.node import DATA, MANIFESTS, Node
from rig.product import Product
from rig.settings import CONTAINER_IMAGE, patience
from rig.target import Target, stable_uuid

pytestmark = pytest.mark.skipif(not CONTAINER_IMAGE, reason="SPARK_VM_IMAGE names no image: `make image` makes one")
FILES = {"imagenet/a.bin": 8, "imagenet/b.bin": 8, "large/big.bin": 24}  # MiB
DAEMON, DRIVER = "spark-staged", "spark-stage-csi"
VOLUME, MOUNT = "datasets", "/var/mnt/spark-stage/datasets"
IDENTITY = "/var/lib/spark-stage/nvme/hostnqn"
# With the patience of the run.
SHUT_DOWN_S = 30


def configuration(address):
    """That of configs/kubernetes with the address of this target, and one more dataset."""
    sections = yaml.safe_load((MANIFESTS / "spark-stage.yaml").read_text())
    assert sections["volumes"][VOLUME]["mount"] == MOUNT and sections["volumes"][VOLUME]["subsystem"] == SUBSYSTEM
    sections["targets"]["rose"]["address"] = address
    sections["datasets"]["large"] = {"volume": VOLUME, "path": "large"}
    return json.dumps(sections)


def wait_for(holds, told, deadline=120):
    end = time.monotonic() + patience(deadline)
    while not (found := holds()):
        assert time.monotonic() < end, told()
        time.sleep(0.3)
    return found


class Pod:
    """One volume of kubelet's, and the container that reads it."""

    def __init__(self, node, uid, dataset):
        self.node, self.uid, self.name = node, uid, f"pod-{uid}"
        self.is_running = False
        node.kubelet("POST", f"/{uid}/{dataset}")

    def state(self):
        return self.node.kubelet("GET", f"/{self.uid}")

    def wait_event(self, code, words=""):
        """Until one more call fails so; returns its sentence."""
        seen = len(self.state()["events"])

        def found():
            events = self.state()["events"][seen:]
            return next((sentence for ended_as, sentence in events if ended_as == code and words in sentence), None)
        return wait_for(found, lambda: f"no call ended as {code} with '{words}': {self.state()}")

    def read(self, file="a.bin"):
        """As kubelet: the container when the volume is mounted. Its process reads one file from the drive until stop()."""
        state = wait_for(lambda: (now := self.state())["mounted"] and now, lambda: str(self.state()), 60)
        self.node.run_pod(self.uid, state["target"], "/usr/local/lib/rig/steady-reader", f"{DATA}/{file}")
        self.is_running = True
        self.node.machine.wait_until(f"grep -q reading /run/logs/{self.name}.log", 60)

    def digest(self):
        done = self.node.exec(self.name, "sh", "-c", f"'cat {DATA}/*.bin | sha256sum'", timeout=120)
        assert done.rc == 0, done
        return done.out.split()[0]

    def stop(self):
        """No read failed."""
        self.is_running = False
        assert self.node.stop(self.name) == []
        summary = json.loads(self.node.log(self.name).splitlines()[-1])
        print(f"{self.name}: {summary}")
        assert summary["reads"] > 0 and summary["errors"] == [], summary

    def remove(self):
        if self.is_running:
            self.node.stop(self.name)
        self.node.kubelet("DELETE", f"/{self.uid}")

    def wait_gone(self):
        wait_for(lambda: self.state()["gone"], lambda: str(self.state()))


class Site:
    """A node and a target with one volume."""

    def __init__(self, rig):
        self.node = Node(rig, "node1")
        self.storage = rig.add_target("storage", disks=[ext4(rig.folder / "for-pods.raw", 256 << 20, stable_uuid("for-pods"), FILES)])
        self.target = Target(self.storage)
        self.product = Product(self.node.machine)
        self.digests = {}

    def start_target(self):
        self.storage.start()
        self.storage.wait_ready()
        self.storage.sh(f"until [ -e {disk(1)} ]; do sleep 0.1; done", 30)
        self.target.export(SUBSYSTEM, disk(1))

    def start_node(self):
        self.node.start(configuration(self.storage.address))
        self.node.release_at_shutdown(DAEMON, "spark-staged", "release")
        self.start_daemon()
        self.start_driver()

    def start_daemon(self):
        self.node.start_container(DAEMON)
        wait_for(lambda: self.node.is_alive(DAEMON), lambda: self.node.logs(), 60)
        self.product.wait_volume(VOLUME, "ready", 120)

    def start_driver(self):
        self.node.start_container(DRIVER)
        wait_for(lambda: self.node.kubelet("GET", "/")["node"] == "node1", lambda: self.node.logs(), 60)

    def digest(self, dataset):
        """Of what is on the volume, which the whole node sees."""
        if dataset not in self.digests:
            self.digests[dataset] = self.node.machine.sh(f"cat {MOUNT}/{dataset}/*.bin | sha256sum", 120).split()[0]
        return self.digests[dataset]

    def leases(self):
        return [lease["holder"] for row in self.product.datasets() for lease in row["leases"]]

    def mount_ids(self):
        """Of all that is mounted on the node for the volume and for pods: a new mount has another one."""
        lines = [line.split() for line in self.node.machine.get("/proc/self/mountinfo").splitlines()]
        return {fields[4]: fields[0] for fields in lines if fields[4].startswith((MOUNT, "/var/lib/spark-stage/cache", "/var/lib/kubelet/pods"))}

    @contextmanager
    def reading_pod(self, uid):
        """It reads until the block ends, and never in vain."""
        pod = Pod(self.node, uid, "imagenet")
        try:
            pod.read()
            yield pod
            pod.stop()
        finally:
            pod.remove()
        pod.wait_gone()

    @contextmanager
    def slow_wire(self):
        self.storage.sh("tc qdisc add dev eth0 root tbf rate 2mbit burst 256k latency 200ms")
        try:
            yield
        finally:
            self.storage.sh("tc qdisc del dev eth0 root")


@pytest.fixture(scope="module")
def site(bare_rig):
    made = Site(bare_rig)
    try:
        made.start_target()
        made.start_node()
        yield made
    except BaseException:
        print(made.node.logs())
        raise
    finally:
        made.node.machine.kill()
        made.storage.kill()


@pytest.fixture(autouse=True)
def nothing_is_left(site):
    """No lease, and nothing mounted for a pod."""
    yield
    try:
        wait_for(lambda: site.leases() == [], lambda: str(site.leases()))
        assert [path for path in site.mount_ids() if path.startswith("/var/lib/kubelet")] == []
    finally:
        print(site.node.logs())


def test_a_pod_reads_a_verified_copy_and_changes_nothing_on_a_node_without_systemd(site):
    machine = site.node.machine
    assert machine.get("/proc/1/comm") == "node\n"
    assert "Read-only file system" in machine.run("touch /etc/written").err
    with site.reading_pod("u1") as pod:
        assert pod.digest() == site.digest("imagenet")
        refused = site.node.exec(pod.name, "touch", f"{DATA}/written")
        assert refused.rc != 0 and "Read-only file system" in refused.err, refused
        assert site.leases() == ["pod team-b/pod-u1"]
        assert site.product.dataset("imagenet")["state"] == "ready"
    # Made at the first start, in a folder of the node: the image has none.
    identity = machine.get(IDENTITY)
    assert re.fullmatch(r"nqn\.2014-08\.org\.nvmexpress:uuid:[0-9a-f-]{36}\n", identity)
    assert identity in machine.sh("cat /sys/class/nvme/nvme*/hostnqn 2>/dev/null || true")


def test_a_driver_killed_at_every_step_only_delays_a_pod(site):
    site.node.kill(DRIVER)
    with site.slow_wire():
        pod = Pod(site.node, "u2", "large")
        try:
            pod.wait_event("UNAVAILABLE")  # before the first call
            site.start_driver()
            print(pod.wait_event("ABORTED", "large: "))  # just before the deadline of a call
            site.node.kill(DRIVER)  # while it waits
            pod.wait_event("UNAVAILABLE")
        finally:
            site.start_driver()
    try:
        pod.read("big.bin")
        before = site.mount_ids()
        site.node.kill(DRIVER)  # while the pod runs
        assert pod.digest() == site.digest("large")
        pod.stop()
        pod.remove()
        pod.wait_event("UNAVAILABLE")  # before the last call
        assert site.mount_ids() == before
    finally:
        pod.remove()
        site.start_driver()
    pod.wait_gone()


def test_a_pod_reads_on_while_the_daemon_and_its_driver_are_replaced(site):
    """As a DaemonSet rolls a new image out: each container gets SIGTERM, and another one follows."""
    with site.reading_pod("u3") as pod:
        before = site.mount_ids()
        assert site.node.stop(DAEMON, DRIVER) == [], "both end before kubelet kills them"
        assert pod.digest() == site.digest("imagenet")
        site.start_daemon()
        site.start_driver()
        after = site.mount_ids()
        assert {path: after.get(path) for path in before} == before, "a mount was removed or replaced"
        with site.reading_pod("u4") as other:
            assert other.digest() == site.digest("imagenet")


def test_a_pod_reads_on_while_the_daemon_is_killed(site):
    with site.reading_pod("u5") as pod:
        before = site.mount_ids()
        site.node.kill(DAEMON)
        assert pod.digest() == site.digest("imagenet")
        site.start_daemon()
        after = site.mount_ids()
        assert {path: after.get(path) for path in before} == before
        assert site.leases() == ["pod team-b/pod-u5"]


def test_a_pod_reads_on_after_the_death_of_the_target(site):
    with site.reading_pod("u6") as pod:
        site.storage.kill()
        site.product.wait_volume(VOLUME, lambda volume: volume["state"] != "ready", 120)
        assert pod.digest() == site.digest("imagenet")
        site.start_target()
        site.product.wait_volume(VOLUME, "ready", 240)
        assert pod.digest() == site.digest("imagenet")


@pytest.mark.parametrize("is_target_dead", [False, True], ids=["healthy", "the target is dead"])
def test_the_node_shuts_down_within_30_s_and_knows_its_copies_afterwards(site, is_target_dead):
    machine = site.node.machine
    identity = machine.get(IDENTITY)
    Pod(site.node, "u8" if is_target_dead else "u7", "imagenet").read()
    if is_target_dead:
        site.storage.kill()
        site.product.wait_volume(VOLUME, lambda volume: volume["state"] != "ready", 120)
    seconds = site.node.shut_down(SHUT_DOWN_S)
    print(f"the node was off after {seconds:.1f} s")
    if is_target_dead:
        site.start_target()
    site.start_node()
    assert machine.get(IDENTITY) == identity
    assert site.product.dataset("imagenet")["state"] == "ready"
    wanted = "its target does not answer" if is_target_dead else "unmounted"
    assert f"volume {VOLUME}: {wanted}" in site.node.released()
    # kubelet's records of the pod are gone with it: the driver ends the lease, which nothing_is_left waits for.
