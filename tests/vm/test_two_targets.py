"""Two targets that offer a subsystem of the same NQN, like two MikroTiks with the same slot names: a volume uses its own
target's disk, or none. The kernel treats the two as one subsystem."""
import time
import uuid
from contextlib import contextmanager

import pytest

from rig.settings import patience
from rig.target import Target

NQN = "raid1-twice"
NEAR, FAR = "near", "far"  # offered by the house's target and by the other one


@pytest.fixture
def two(house, second_host):
    """The second host is the other target. Both volumes are configured without the UUID of a file system; each scenario exports the targets itself."""
    targets = {NEAR: house.target, FAR: Target(second_host)}
    devices = {}
    for name, target in targets.items():
        devices[name] = target.image(name, "64M")
        target.filesystem(devices[name], name=name, fill=f"echo {name} >file")
    setting = TwoTargets(house, targets, devices)
    try:
        house.product.configure(setting.config(NEAR, FAR))
        yield setting
    finally:
        for name in (NEAR, FAR):
            house.product.run(f"volumes down {name}", 120)
        house.product.configure(house.config())
        house.host.run(f"umount /mnt/{FAR}; for c in /sys/class/nvme/nvme*; do grep -qx {NQN} $c/subsysnqn && "
                       "nvme disconnect -d ${c##*/}; done", 60)
        for name in (NEAR, FAR):
            targets[name].remove(NQN)
            house.host.run(f"rm -f /var/lib/spark-stage/volumes/{name}.json")
            targets[name].machine.sh(f"rm -f {devices[name]}")


class TwoTargets:
    def __init__(self, house, targets, devices):
        self.host, self.product, self._house = house.host, house.product, house
        self.targets, self._devices = targets, devices

    def config(self, *names):
        bodies = {NEAR: {"target": "rose", "subsystem": NQN, "mount": f"/mnt/{NEAR}"},
                  FAR: {"target": "spare", "subsystem": NQN, "mount": f"/mnt/{FAR}"}}
        return self._house.config(targets={"spare": {"address": self.targets[FAR].address}},
                                  volumes={name: bodies[name] for name in names})

    def export(self, name):
        self.targets[name].export(NQN, self._devices[name],
                                  namespace_uuid=str(uuid.uuid5(uuid.NAMESPACE_DNS, f"{name}.twice")))

    def read(self, name):
        return self.host.get(f"/mnt/{name}/file").strip()

    def ready(self, name):
        self.product.wait_volume(name, "ready", 120)
        assert self.read(name) == name

    def never_ready(self, name, attempts=4):
        """Checks this many further attempts, distinguished by the time of the next one."""
        seen = set()
        end = time.monotonic() + patience(180)
        while len(seen) < attempts and time.monotonic() < end:
            volume = self.product.volume(name)
            assert volume["state"] not in ("ready", "stalled"), volume
            if volume["next_attempt"]:
                seen.add(volume["next_attempt"])
            time.sleep(0.3)
        assert len(seen) >= attempts, "it does not try"
        return volume

    @contextmanager
    def connected_by_hand(self, name):
        target = self.targets[name]
        # A connection to the discovery service takes the lowest number, which the other target's connection may have.
        self.host.run(f"nvme discover -t tcp -a {target.address} -s 4420 -p -k 30", 60)
        self.host.sh(f"nvme connect -t tcp -a {target.address} -s 4420 -n {NQN} -l -1", 60)
        try:
            yield
        finally:
            # Including the discovery connection: it is persistent, and later scenarios expect none.
            self.host.run("for c in /sys/class/nvme/nvme*; do "
                          f"grep -q 'traddr={target.address},' $c/address && "
                          f"{{ grep -qx {NQN} $c/subsysnqn || grep -qx discovery $c/cntrltype; }} && "
                          "nvme disconnect -d ${c##*/}; done", 60)


def test_the_volume_of_an_absent_target_is_never_ready_on_another_targets_disk(two):
    two.export(NEAR)
    two.ready(NEAR)
    volume = two.never_ready(FAR)
    print(f"two targets: {volume['reason']}")
    assert volume["state"] == "waiting" and two.targets[NEAR].address in volume["reason"], volume
    assert two.host.run(f"findmnt /mnt/{FAR}").rc != 0
    # Its target appears, and the kernel can't show both disks: the volume is refused with the names of both targets.
    two.export(FAR)
    volume = two.product.wait_volume(FAR, "refused", 120)
    print(f"two targets: {volume['reason']}")
    assert "target rose" in volume["reason"] and "target spare" in volume["reason"]
    two.ready(NEAR)
    assert two.product.run(f"volumes down {NEAR}", 120).rc == 0
    two.ready(FAR)
    two.product.run(f"volumes up {NEAR}", 60)
    two.product.wait_volume(NEAR, "refused", 120)
    two.ready(FAR)


@pytest.mark.long
def test_a_later_path_of_another_target_is_not_a_path_of_the_volume(two):
    two.product.configure(two.config(FAR))
    two.export(FAR)
    two.ready(FAR)
    two.export(NEAR)
    with two.connected_by_hand(NEAR):
        two.targets[FAR].machine.freeze()
        try:
            volume = two.product.wait_volume(FAR, "stalled", 60)
            assert [path["address"] for path in volume["paths"]] == [f"{two.targets[FAR].address}:4420"]
        finally:
            two.targets[FAR].machine.thaw()
        two.ready(FAR)


def test_a_mount_of_another_targets_disk_is_not_adopted(two):
    two.product.configure(two.config())
    two.export(NEAR)
    with two.connected_by_hand(NEAR):
        device = two.host.sh("for c in /sys/class/nvme/nvme*; do grep -qx "
                             f"{NQN} $c/subsysnqn && ls -d $c/nvme*n1; done; true").split()[0].rsplit("/", 1)[-1]
        head = device[:device.index("c")] + device[device.rindex("n"):] if "c" in device else device
        two.host.sh(f"mkdir -p /mnt/{FAR} && mount -o ro,noload /dev/{head} /mnt/{FAR}", 60)
        two.product.configure(two.config(FAR))
        two.never_ready(FAR, 3)
        two.product.restart()
        two.never_ready(FAR, 3)
        assert two.read(FAR) == NEAR, "somebody's mount is left alone"
        two.host.sh(f"umount /mnt/{FAR}", 60)
