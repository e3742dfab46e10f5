"""A host with PyTorch, for training jobs that save checkpoints."""
import shutil
from contextlib import contextmanager
from pathlib import Path

from . import image, packages
from .disks import ext4
from .house import LOCAL, TARGET_ADDRESS
from .machine import disk
from .own_volume import own_volume, wait_until
from .product import CONFIG, Product, config_text
from .target import stable_uuid

TORCH = "/opt/torch"
LIBRARIES = ":".join(f"{TORCH}/usr/lib{folder}" for folder in (
    "", "/x86_64-linux-gnu", "/x86_64-linux-gnu/blas", "/x86_64-linux-gnu/lapack"))
PYTHON = f"env LD_LIBRARY_PATH={LIBRARIES} PYTHONPATH={TORCH}/usr/lib/python3/dist-packages OMP_NUM_THREADS=1 "
OUT, VOLUME = f"{LOCAL}/out", "trained"
THERE = f"/mnt/{VOLUME}"


def python(interface):
    """The command that runs Python with PyTorch; Gloo uses this network interface."""
    return f"{PYTHON} GLOO_SOCKET_IFNAME={interface} python3"


class Trainer:
    def __init__(self, rig, house, name="trainer"):
        folder = rig.folder / f"{name}-drives"
        folder.mkdir()
        torch = shutil.copyfile(packages.drive("torch", image.userland_folder(), ["python3-torch"]), folder / "torch.raw")
        local = ext4(folder / "local.raw", 2 << 30, stable_uuid(name))
        self.target = house.target
        self.host = rig.add_host(name, disks=[local, torch], memory="1536M", files={CONFIG: self.config()})
        self.product = Product(self.host)

    @staticmethod
    def config(**sections):
        return config_text(targets={"rose": {"address": TARGET_ADDRESS}}, cache={"path": f"{LOCAL}/cache", "capacity": "1GiB"}, **sections)

    def start(self):
        self.host.start()
        self.host.wait_ready(until=f"mountpoint -q {LOCAL} && spark-stage status")
        self.host.sh(f"mkdir -p {TORCH} && mount -o ro,noload {disk(2)} {TORCH}")
        for program in (Path(__file__).parents[1] / "training").glob("*.py"):
            self.host.put(f"/root/{program.name}", program.read_text())

    @contextmanager
    def outputs(self, **rules):
        """Outputs with these names and rules, on a volume written by this host alone."""
        self.host.sh(f"mkdir -p {' '.join(f'{OUT}/{name}' for name in rules)}")
        outputs = {name: {"path": f"{OUT}/{name}", "volume": VOLUME, "to": name, **rule} for name, rule in rules.items()}
        try:
            with own_volume(self, VOLUME, outputs=outputs):
                yield
        finally:
            self.host.sh(f"rm -rf {OUT}")

    def output(self, name):
        return next(row for row in self.product.status()["outputs"] if row["name"] == name)

    def wait(self, holds, deadline=120):
        wait_until(self, holds, deadline, f"{OUT}/* {THERE}/*")
