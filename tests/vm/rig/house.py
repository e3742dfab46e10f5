"""The setup shared by most scenarios: one target with a dataset volume and an NFS export, one host with a local drive."""
import signal
import time
from contextlib import contextmanager

from .disks import ext4
from .machine import disk
from .product import CONFIG, Product, config_text
from .target import Target, stable_uuid

TARGET_ADDRESS = "10.77.0.11"
SUBSYSTEM = "raid5-data"
DATASETS_UUID = stable_uuid("datasets")
DATASETS_MOUNT = "/mnt/rosa-storage"
NAS_MOUNT = "/mnt/dell-shared"
NAS_EXPORT = "/srv/shared"
LOCAL = "/local"
CACHE = f"{LOCAL}/cache"

# Sizes in MiB of a dataset of plain files and of a slow one.
SHARDS, SHARD_MIB, SLOW_MIB = 6, 16, 200
FILES = {**{f"images/shard-{i}.bin": SHARD_MIB for i in range(SHARDS)}, "slow/big.bin": SLOW_MIB,
         **{f"small/{i}.jpg": 1 for i in range(40)}}


def local_drive(rig):
    """A host's own drive: because of its label, the guest mounts it on LOCAL before the daemon starts."""
    return ext4(rig.folder / "local.raw", 6 << 30, stable_uuid("local"))


class House:
    """The host boots first: its service is enabled and starts before the target exists."""

    def __init__(self, rig):
        self.rig = rig
        self.host = rig.add_host("host1", disks=[local_drive(rig)], files={CONFIG: self.config()})
        datasets = ext4(rig.folder / "datasets.raw", 2 << 30, DATASETS_UUID, FILES)
        self.target_machine = rig.add_target("target1", disks=[datasets])
        assert self.target_machine.address == TARGET_ADDRESS
        self.target = Target(self.target_machine)
        self.product = Product(self.host)

    def config(self, targets=None, volumes=None, datasets=None, cache=None, outputs=None):
        """The shared configuration plus a scenario's additions."""
        rose = {"address": TARGET_ADDRESS}
        shared = {
            "datasets": {"target": "rose", "subsystem": SUBSYSTEM, "mount": DATASETS_MOUNT,
                         "filesystem": {"type": "ext4", "uuid": DATASETS_UUID}, "options": ["noatime"]},
            "nas": {"nfs": f"{TARGET_ADDRESS}:{NAS_EXPORT}", "mount": NAS_MOUNT, "access": "exclusive",
                    "options": ["vers=4.2", "nconnect=2"]},
        }
        sets = {name: {"volume": "datasets", "path": name} for name in ("images", "slow", "small")}
        return config_text(targets={"rose": rose, **(targets or {})}, volumes={**shared, **(volumes or {})},
                           cache={"path": CACHE, "capacity": "4GiB", "keep_free": "5%", **(cache or {})},
                           datasets={**sets, **(datasets or {})}, outputs=outputs)

    def start_host(self):
        self.host.start()
        self.host.wait_ready()
        self.host.wait_until(f"mountpoint -q {LOCAL}", 60)

    def start_target(self):
        """The first time, or after a power loss with the same drives and exports."""
        self.target_machine.start()
        self.target_machine.wait_ready()
        self.target_machine.sh(f"until [ -e {disk(1)} ]; do sleep 0.1; done", 30)
        self.target.export(SUBSYSTEM, disk(1))
        self.target.export_nfs(NAS_EXPORT)

    def wait_ready(self, deadline=120):
        """Waits for both shared volumes; returns the seconds."""
        began = time.monotonic()
        for name in ("datasets", "nas"):
            self.product.wait_volume(name, "ready", deadline)
        return time.monotonic() - began

    @contextmanager
    def configured(self, **sections):
        """Applies the shared configuration plus these additions for the duration of the block."""
        self.product.configure(self.config(**sections))
        try:
            yield
        finally:
            self.product.configure(self.config())

    @contextmanager
    def slow_copy(self, dataset="slow", rate="8MB/s"):
        """Starts a client that stages a dataset slowly; returns it once the copy is in progress."""
        client = self.host.spawn(f"exec spark-stage stage {dataset} --max-rate {rate} --json")
        self.product.wait_dataset(dataset, lambda row: (row.get("progress") or {}).get("bytes_done", 0) > 0)
        try:
            yield client
        finally:
            client.signal(signal.SIGINT)
            client.wait(60)

    def end_leases(self):
        for row in self.product.datasets():
            for lease in row["leases"]:
                self.product.run(f"release {lease['id']}")

    def empty_cache(self):
        self.end_leases()
        for row in self.product.datasets():
            if row["state"] != "absent":
                self.product.run(f"evict {row['name']}")

    @contextmanager
    def slow_wire(self, rate):
        """Limits the target's sending rate, for example "100mbit"."""
        self.target_machine.sh(f"tc qdisc add dev eth0 root tbf rate {rate} burst 256k latency 200ms")
        try:
            yield
        finally:
            self.target_machine.sh("tc qdisc del dev eth0 root")

    @contextmanager
    def volume(self, name, *, target="rose", kind="ext4", mmp=False, fill="true", uuid=None, size="256M", port=4420,
               allowed_hosts=None, fs_name=None, targets=None, tls=False, datasets=None, **keys):
        """Adds a volume with its own subsystem and a new file system; removes both at the end."""
        device = self.target.image(name, size)
        fs_uuid = self.target.filesystem(device, kind=kind, name=fs_name or name, fill=fill, mmp=mmp)
        self.target.export(name, device, port=port, allowed_hosts=allowed_hosts, tls=tls)
        body = {"target": target, "subsystem": name, "mount": f"/mnt/{name}", "filesystem": {"uuid": uuid or fs_uuid},
                **keys}
        try:
            self.product.configure(self.config(targets=targets, volumes={name: body}, datasets=datasets))
            yield name
        finally:
            self.product.run(f"volumes down {name}")
            self.product.configure(self.config())
            self.target.remove(name)
            self.target_machine.sh(f"rm -f {device}")
            self.forget(name)

    def forget(self, name):
        """Forgets the volume's records, so that another, possibly smaller volume may use this name."""
        self.host.sh(f"rm -f /var/lib/spark-stage/volumes/{name}.*")
