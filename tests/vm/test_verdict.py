"""The benchmark's prediction compared with a real job: PyTorch's DataLoader over small files and over tar files, from
NVMe/TCP, from NFS, and from a staged copy.

The network is the slowest part, followed by the job's simulated device; the local drive is held to a known rate. None of
them is limited by the emulated CPU, so other load on this computer matters little.
"""
import json
import os
import random
import shutil
import subprocess
import tarfile
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path

import pytest

from rig import image, packages
from rig.disks import tree_of
from rig.house import NAS_EXPORT, local_drive
from rig.machine import disk
from rig.mountstats import requests_of
from rig.product import CONFIG, Product, config_text
from rig.target import Target, stable_uuid
from rig.topology import Topology

FILES = int(os.environ.get("SPARK_VERDICT_FILES", "20000"))
FOLDER_FILES = 200
EPOCHS, WORKERS, BATCH = 3, 8, 32


@dataclass(frozen=True)
class Kind:
    """Rates in bytes per second. A cell of `runtime` seconds is long beside the data on its way at the cell's end."""
    judged_by: str
    file_bytes: tuple  # of a picture, at least and at most
    wire: int
    device: int
    runtime: int

    def step(self):
        """Seconds of the device for a batch."""
        return BATCH * sum(self.file_bytes) / 2 / self.device


KINDS = {"small": Kind("smallfiles", (7_000, 13_000), 1_000_000, 2_400_000, 6),
         "shards": Kind("stream", (60_000, 100_000), 3_000_000, 7_500_000, 15)}
# The four shards of a worker are full batches: the device takes as long for a part of a batch.
SHARDS, SHARD_FILES = 32, max(24, FILES // 200 // 8 * 8)
SIZE = "32MiB"  # a staging copy is of a quarter
LOCAL = 20_000_000  # rate of the local drive in bytes per second: a round takes long enough to be valid
# Not measured by the benchmark: a loader's start and end in each epoch, other load on this computer.
BEYOND_THE_INTERVAL = 0.10
TORCH = "/opt/torch"
LIBRARIES = ":".join(f"{TORCH}/usr/lib{folder}" for folder in (
    "", "/x86_64-linux-gnu", "/x86_64-linux-gnu/blas", "/x86_64-linux-gnu/lapack"))
PYTHON = f"env LD_LIBRARY_PATH={LIBRARIES} PYTHONPATH={TORCH}/usr/lib/python3/dist-packages python3"
VOLUMES = {"nvme-tcp": "/mnt/sets", "nfs": "/mnt/nas"}


def make_sets(folder):
    pick = random.Random(1)
    content = lambda kind: pick.randbytes(pick.randint(*KINDS[kind].file_bytes))
    for number in range(FILES):
        path = folder / f"small/{number // FOLDER_FILES:04}/{number:06}.jpg"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content("small"))
    (folder / "shards").mkdir()
    for shard in range(SHARDS):
        with tarfile.open(folder / f"shards/{shard}.tar", "w") as tar:
            for number in range(SHARD_FILES):
                data = content("shards")
                entry = tarfile.TarInfo(f"{number:06}.jpg")
                entry.size = len(data)
                tar.addfile(entry, BytesIO(data))


def make_room(drive):
    """Enlarges the file system for the benchmark's own files."""
    os.truncate(drive, os.path.getsize(drive) + (256 << 20))
    subprocess.run(["/usr/sbin/resize2fs", drive], check=True, capture_output=True)


class Site:
    """One target with the sets on a volume and on an NFS export, one host with a drive and PyTorch."""

    def __init__(self, rig):
        sets = rig.folder / "sets"
        make_sets(sets)
        volume = tree_of(rig.folder / "volume.raw", sets, stable_uuid("sets"))
        shutil.rmtree(sets)
        make_room(volume)
        shared = shutil.copyfile(volume, rig.folder / "shared.raw")
        subprocess.run(["/usr/sbin/tune2fs", "-U", stable_uuid("shared"), shared], check=True, stdout=subprocess.DEVNULL)
        torch = shutil.copyfile(packages.drive("torch", image.userland_folder(), ["python3-torch"]), rig.folder / "torch.raw")
        # The server's memory limits its number of delegations; without one, each open() of a file is slower for the job.
        self.target_machine = rig.add_target("target1", disks=[volume, shared], memory="6G")
        address = self.target_machine.address
        self.host = rig.add_host("host1", disks=[local_drive(rig), torch], memory="2G", files={CONFIG: config_text(
            targets={"rose": {"address": address}},
            volumes={"sets": {"target": "rose", "subsystem": "sets", "mount": VOLUMES["nvme-tcp"],
                              "filesystem": {"type": "ext4", "uuid": stable_uuid("sets")}},
                     "nas": {"nfs": f"{address}:{NAS_EXPORT}", "mount": VOLUMES["nfs"], "access": "exclusive"}},
            cache={"path": "/local/cache", "capacity": "4GiB"},
            datasets={f"{name}-{kind}": {"volume": volume, "path": kind}
                      for name, volume in (("nvme-tcp", "sets"), ("nfs", "nas")) for kind in KINDS})})
        self.product = Product(self.host)

    def start(self):
        for machine in (self.target_machine, self.host):
            machine.start()
        for machine in (self.target_machine, self.host):
            machine.wait_ready()
        target = Target(self.target_machine)
        self.target_machine.sh(f"until [ -e {disk(1)} -a -e {disk(2)} ]; do sleep 0.1; done", 30)
        self.target_machine.sh(f"mkdir -p {NAS_EXPORT} && mount {disk(2)} {NAS_EXPORT}")
        target.export("sets", disk(1))
        target.export_nfs(NAS_EXPORT)
        self.host.sh(f"mkdir -p {TORCH} && mount -o ro,noload {disk(2)} {TORCH}")
        self.host.put("/root/job.py", (Path(__file__).parent / "loader/job.py").read_text())
        for name in ("sets", "nas"):
            self.product.wait_volume(name, "ready", 120)

    def limit_the_wire(self, rate):
        self.target_machine.sh(f"tc qdisc replace dev eth0 root tbf rate {rate * 8}bit burst 32k latency 100ms")

    def on_the_limited_drive(self, command, deadline):
        return self.host.sh(f"systemd-run --scope -q -p 'IOReadBandwidthMax=/local {LOCAL}' {command}", deadline)

    def job(self, kind, *folders):
        where = " ".join(f"{kind}:{folder}" for folder in folders)
        return f"{PYTHON} /root/job.py {EPOCHS} {WORKERS} {KINDS[kind].step():.4f} {where}"

    def path_of(self, dataset):
        return self.product.dataset(dataset)["path"]

    def measure_demand(self, kind):
        """Measures on a staged copy, which is evicted afterwards."""
        dataset = f"nvme-tcp-{kind}"
        self.product.sh(f"stage {dataset}", 1800)
        said = self.on_the_limited_drive(f"spark-stage run {dataset} -- spark-stage bench demand --for 1h -- "
                                         f"{self.job(kind, self.path_of(dataset))}", 1800)
        self.product.sh(f"evict {dataset}")
        return said

    def verdict(self, kind):
        paths = " ".join(f"{name}={path}" for name, path in VOLUMES.items())
        scenarios = " ".join(f"--scenario {name}" for name in (KINDS[kind].judged_by, "stagecopy"))
        self.on_the_limited_drive(
            f"spark-stage bench {paths} local=/local {scenarios} --dataset nvme-tcp-{kind} --epochs {EPOCHS} --rounds 5 "
            f"--size {SIZE} --runtime {KINDS[kind].runtime}s --json /tmp/{kind}.json", 3600)
        record = json.loads(self.host.get(f"/tmp/{kind}.json"))
        for cell in record["cells"]:
            if cell["status"] != "not_measured":
                print(f"{cell['scenario']} of {cell['path']}, round {cell['round']}: {cell['bytes_per_second'] / 1e6:.3f} MB/s, "
                      f"{cell['seconds']:.2f} s, {cell['ios']} read, {cell['origin']['bytes']} of {cell['bytes']} bytes from "
                      f"{cell['origin']['counter']}, {cell['opens']} opens, idle {cell['host_cpu']['idle_share']:.2f}; "
                      f"{'; '.join(cell['reasons'])}")
        return record["verdict"]

    def stage(self, dataset):
        """Returns the seconds."""
        took = self.host.sh(f"b=$(date +%s%N); spark-stage stage {dataset} >/dev/null; echo $(($(date +%s%N) - b))", 3600)
        return int(took) / 1e9

    def train_every_way(self, kind):
        """Seconds by (path, is it staged first)."""
        staging = {name: self.stage(f"{name}-{kind}") for name in VOLUMES}
        where = {**{(name, False): f"{path}/{kind}" for name, path in VOLUMES.items()},
                 **{(name, True): self.path_of(f"{name}-{kind}") for name in VOLUMES}}
        before = requests_of(self.host, VOLUMES["nfs"])
        said = self.on_the_limited_drive(self.job(kind, *where.values()), 3 * 3600)
        sent = {name: count - before[name] for name, count in requests_of(self.host, VOLUMES["nfs"]).items()}
        print("requests of the job to the NFS server:", {name: count for name, count in sent.items() if count})
        for name in VOLUMES:
            self.product.sh(f"evict {name}-{kind}")
        seconds = [json.loads(line)["seconds"] for line in said.splitlines()]
        return {way: epochs + (staging[way[0]] if way[1] else 0) for way, epochs in zip(where, seconds, strict=True)}

    def train_while_it_stages(self, kind, source):
        """Seconds, with the walk."""
        dataset = f"{source}-{kind}"
        said = self.on_the_limited_drive(self.job(kind, f"now={dataset}"), 3 * 3600)
        self.product.sh(f"evict {dataset}")
        return json.loads(said.splitlines()[-1])["seconds"]


@pytest.fixture(scope="module")
def site():
    with Topology(install_tree=image.install_product()) as rig:
        site = Site(rig)
        site.start()
        yield site


@pytest.mark.parametrize("kind", KINDS)
def test_a_real_job_takes_as_long_as_the_verdict_says_read_directly_staged_first_and_staged_meanwhile(site, kind):
    site.limit_the_wire(KINDS[kind].wire)
    print(site.measure_demand(kind))
    verdict = site.verdict(kind)
    print("\n".join(verdict["sentences"]))
    assert verdict["inputs"]["judged_by"] == KINDS[kind].judged_by
    assert verdict["advice"] == "stage_first", verdict["not_decided_because"]
    promised = {(way["source"], way["staged"]): way["seconds"] for way in verdict["ways"]}
    measured, wrong = site.train_every_way(kind), []

    def judge(way, seconds, estimate):
        words = f"{way}: {seconds:.1f} s, promised {estimate['value']:.1f} ({estimate['low_95']:.1f} to {estimate['high_95']:.1f})"
        print(words)
        low, high = estimate["low_95"] * (1 - BEYOND_THE_INTERVAL), estimate["high_95"] * (1 + BEYOND_THE_INTERVAL)
        if not low <= seconds <= high:
            wrong.append(words)

    for way, seconds in measured.items():
        judge(f"{kind} {'staged' if way[1] else 'read'} from {way[0]}", seconds, promised[way])
    meanwhile = verdict["meanwhile"]
    judge(f"{kind} staged from {meanwhile['source']} meanwhile", site.train_while_it_stages(kind, meanwhile["source"]), meanwhile["seconds"])
    assert not wrong, "\n".join(wrong)
    best = {staged: min((way for way in promised if way[1] == staged), key=lambda way: promised[way]["value"])
            for staged in (False, True)}
    assert measured[best[True]] < measured[best[False]], "the advice was wrong"
