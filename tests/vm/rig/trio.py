"""Three hosts of one target that exchange staged data from one read-only volume."""
import json
import secrets
from concurrent.futures import ThreadPoolExecutor

from .disks import MIB, ext4
from .house import local_drive
from .machine import disk
from .product import CONFIG, Product, config_text
from .target import Target, stable_uuid

NQN = "raid5-data"
VOLUME = "datasets"
MOUNT = "/mnt/datasets"
KEY_FILE = "/etc/spark-stage/keys/fleet"
PORT = 7789
CACHE = {"path": "/local/cache", "capacity": "2GiB"}
# In MiB: files of one piece and of several pieces, and packs of small files.
FILES = {**{f"imagenet/shard-{i}.bin": 16 for i in range(8)}, **{f"imagenet/middle/{i}.bin": 5 for i in range(8)},
         **{f"imagenet/small/{i}.bin": 1 for i in range(40)}}
SIZE = sum(FILES.values()) * MIB


class Trio:
    def __init__(self, rig):
        drive = ext4(rig.folder / "datasets.raw", 512 * MIB, stable_uuid(VOLUME), FILES)
        self.machine = rig.add_target("target1", disks=[drive])
        self.target = Target(self.machine)
        first = config_text(cache=CACHE)  # the daemon needs a configuration to start, and keeps its first cache folder
        self.hosts = [rig.add_host(f"host{number}", disks=[self._local_drive(rig, number)], files={CONFIG: first}) for number in (1, 2, 3)]
        self.products = [Product(host) for host in self.hosts]
        self.key = secrets.token_hex(32)

    @staticmethod
    def _local_drive(rig, number):
        made = local_drive(rig)
        return made.rename(made.with_name(f"local-{number}.raw"))

    def start(self):
        for machine in (self.machine, *self.hosts):
            machine.start()
        for machine in (self.machine, *self.hosts):
            machine.wait_ready()
        self.machine.sh(f"until [ -e {disk(1)} ]; do sleep 0.1; done", 30)
        self.target.export(NQN, disk(1))
        for index, host in enumerate(self.hosts):
            host.wait_until("spark-stage status", 120)
            host.put(KEY_FILE, self.key + "\n", "600")
            self.configure(index)
        for index in range(len(self.hosts)):
            self.wait_whole(index)

    def configure(self, index, **fleet):
        """`fleet`: keys that replace those of the section; None removes one."""
        peers = {host.name: [host.address] for host in self.hosts}  # a host ignores its own entry
        self.products[index].configure(config_text(
            targets={"rose": {"address": self.machine.address, "fast_fail": "5s"}},  # reads fail instead of hanging
            volumes={VOLUME: {"target": "rose", "subsystem": NQN, "mount": MOUNT}},
            cache=CACHE,
            datasets={"imagenet": {"volume": VOLUME, "path": "imagenet"}},
            fleet={key: value for key, value in
                   ({"listen": f"{self.hosts[index].address}:{PORT}", "key_file": KEY_FILE, "peers": peers} | fleet).items()
                   if value is not None}))

    def wait_whole(self, index):
        """Waits until the host has the volume and both peers answer."""
        self.products[index].wait_volume(VOLUME, "ready", 240)
        self.hosts[index].wait_until(
            "spark-stage status --json | python3 -c 'import json, sys; f = json.load(sys.stdin)[\"fleet\"]; "
            "sys.exit(not (f and len(f[\"peers\"]) == 2 and all(p[\"answers\"] for p in f[\"peers\"])))'", 240, 1)

    def bytes_read(self):
        """Bytes read from the target's drive, as counted by its kernel: nvmet reads a block device past the page cache."""
        name = self.machine.sh(f"basename $(readlink -f {disk(1)})").strip()
        return int(self.machine.get(f"/sys/block/{name}/stat").split()[2]) * 512

    def begin(self, index, options=""):
        return self.hosts[index].spawn(f"exec spark-stage stage imagenet --json {options}")

    def stage(self, indices, options=""):
        """Stages on these hosts at the same time; returns the result of each."""
        return [result(one) for one in [self.begin(index, options) for index in indices]]

    def wait_for_part(self, index, part):
        self.products[index].wait_dataset("imagenet", lambda row: (row.get("progress") or {}).get("bytes_done", 0) > part * SIZE, 240)

    def digest(self, index, folder=None):
        """The digest of the copy, or of the dataset on the volume."""
        folder = folder or self.products[index].dataset("imagenet")["path"]
        return self.hosts[index].sh(f"cd {folder} && find . -type f | sort | xargs cat | sha256sum", 240).split()[0]

    def empty(self):
        """Evicts all staged copies."""
        def empty_one(product):
            row = product.dataset("imagenet")
            for lease in (row or {}).get("leases", []):
                product.run(f"release {lease['id']}")
            if row and row["state"] != "absent":
                product.sh("evict imagenet", 120)
        with ThreadPoolExecutor() as at_once:
            list(at_once.map(empty_one, self.products))


def result(process):
    ended = process.wait(600)
    assert ended.rc == 0, ended
    return json.loads(ended.out)["datasets"][0]
