"""Two hosts of one target, and one volume that both may use."""
from rig.house import TARGET_ADDRESS
from rig.product import CONFIG, Product, config_text
from rig.target import NVMET

NAME = "shared"
MOUNT = f"/mnt/{NAME}"


def start_second_host(rig):
    text = config_text(targets={"rose": {"address": TARGET_ADDRESS}})
    machine = rig.add_host("host2", files={CONFIG: text}, disks=[])
    machine.start()
    machine.wait_ready(until="spark-stage status")
    return machine


class Pair:
    """The volume is the same for both; each host has its own access mode."""

    def __init__(self, house, second):
        self.house = house
        self.target = house.target
        self.hosts = [house.host, second]
        self.products = [house.product, Product(second)]
        self.device = None

    def export(self, mmp=True, kind="ext4"):
        """Exports a new file system, with reservations if the target supports them."""
        # The size that xfs needs, for every kind: a volume that becomes smaller would be refused.
        self.device = self.target.image(NAME, "320M")
        self.target.filesystem(self.device, kind=kind, name=NAME, mmp=mmp, fill="echo first >file")
        self._check = f"e2fsck -fn {self.device}" if kind == "ext4" else f"xfs_repair -nf {self.device}"
        self.target.export(NAME, self.device, reservations=True)

    def has_reservations(self):
        return self.target.machine.run(f"[ -e {NVMET}/subsystems/{NAME}/namespaces/1/resv_enable ]").rc == 0

    def body(self, access, **keys):
        return {"target": "rose", "subsystem": NAME, "mount": MOUNT, "access": access, **keys}

    def configure(self, index, access=None, **keys):
        volumes = {NAME: self.body(access, **keys)} if access else {}
        if index == 0:
            self.products[0].configure(self.house.config(volumes=volumes))
        else:
            self.products[1].configure(config_text(targets={"rose": {"address": TARGET_ADDRESS}}, volumes=volumes))

    def down(self, index):
        return self.products[index].run(f"volumes down {NAME}", 120)

    def states(self):
        return [product.volume(NAME)["state"] for product in self.products]

    def settle(self, deadline=180):
        """Waits until one host has the volume and the other is refused; returns (winner, loser)."""
        for index in (0, 1):
            self.products[index].wait_volume(NAME, lambda volume: volume["state"] in ("ready", "refused"), deadline)
        states = self.states()
        assert sorted(states) == ["ready", "refused"], [product.volume(NAME) for product in self.products]
        return states.index("ready"), states.index("refused")

    def end(self):
        """Takes the volume down on both hosts and checks its file system."""
        for index in (0, 1):
            self.down(index)
            self.configure(index)
        self.target.remove(NAME)
        checked = self.target.machine.run(self._check, 120)
        assert checked.rc == 0, checked.out + checked.err
        self.target.machine.sh(f"rm -f {self.device}")
