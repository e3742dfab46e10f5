"""A Slurm of two nodes under systemd and cgroup v2, installed by apt with our packages, and volumes on a real target.

Covers only cases that tests/slurm can't run on one computer: packages, cgroups, and an unplugged cable.
"""
import re
import secrets
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from rig.cache import cached, digest
from rig.disks import ext4
from rig.house import DATASETS_UUID, NAS_EXPORT, local_drive
from rig.machine import disk
from rig.packages import download
from rig.product import CONFIG, Product, config_text
from rig.settings import ARCHITECTURE, GUEST, PACKAGE
from rig.target import Target
from rig.made import made_on
from rig.topology import Topology

pytestmark = [pytest.mark.skipif(not PACKAGE, reason="SPARK_VM_PACKAGE names no folder with packages: `make deb` makes them"),
              pytest.mark.long]
NQN = "raid5-data"
USER = "games"  # exists on every Debian
APT = "DEBIAN_FRONTEND=noninteractive apt-get -q -y -o APT::Install-Recommends=false"
SLURM = ["slurmctld", "slurmd", "slurm-client", "munge"]
REPOSITORY = "/srv/repository"
FILES = {"imagenet/shard-0.bin": 8, "imagenet/shard-1.bin": 8, "large/big.bin": 48}  # MiB

SLURM_CONF = """ClusterName=spark
SlurmctldHost=host1
AuthType=auth/munge
SlurmUser=slurm
ProctrackType=proctrack/cgroup
TaskPlugin=task/cgroup
JobAcctGatherType=jobacct_gather/linux
PrologFlags=Contain
ReturnToService=2
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
MpiDefault=none
SlurmdParameters=config_overrides
MessageTimeout=60
SlurmdTimeout=300
StateSaveLocation=/var/lib/slurm/slurmctld
SlurmdSpoolDir=/var/lib/slurm/slurmd
SlurmctldLogFile=/var/log/slurm/slurmctld.log
SlurmdLogFile=/var/log/slurm/slurmd.log
SlurmctldPidFile=/run/slurmctld.pid
SlurmdPidFile=/run/slurmd.pid
PlugStackConfig=/etc/slurm/plugstack.conf
NodeName=host[1-2] CPUs=4 State=UNKNOWN
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""


class Cluster:
    def __init__(self, rig):
        drive = ext4(rig.folder / "datasets.raw", 512 << 20, DATASETS_UUID, FILES)
        self.machine = rig.add_target("target1", disks=[drive])
        self.target = Target(self.machine)
        self.nodes = [rig.add_host(f"host{number}", disks=[local_drive_of(rig, number)]) for number in (1, 2)]
        self.products = [Product(node) for node in self.nodes]

    def start(self):
        for machine in (self.machine, *self.nodes):
            machine.start()
        for machine in (self.machine, *self.nodes):
            machine.wait_ready()
        self.machine.sh(f"until [ -e {disk(1)} ]; do sleep 0.1; done", 30)
        self.target.export(NQN, disk(1))
        self.target.export_nfs(NAS_EXPORT)
        with ThreadPoolExecutor() as at_once:
            list(at_once.map(self.install, self.nodes))
        key = secrets.token_hex(32)
        for node in self.nodes:
            self.configure(node, key)
        self.nodes[0].sh("systemctl enable --now slurmctld", 60)
        for node in self.nodes:
            node.sh("systemctl enable --now slurmd", 60)
        for product in self.products:
            product.wait_volume("data", "ready", 120)
            product.wait_volume("nas", "ready", 120)
        self.nodes[0].sh(f"mkdir /mnt/nas/run7 && chown {USER}: /mnt/nas/run7")
        for node in self.nodes:
            node.sh(f"mkdir -p /local/out/run7 && chown {USER}: /local/out/run7")
        self.wait_idle()

    def install(self, node):
        status = node.get("/var/lib/dpkg/status")
        repository = cached(f"slurm-{GUEST}-{ARCHITECTURE}", digest(status, *SLURM, Path(__file__)),
                            lambda path: download(path, status, [*SLURM, "libjson-c5"]))
        node.sh(f"mkdir -p {REPOSITORY}")
        # Without the driver for Kubernetes, whose libraries a Slurm node does not have.
        ours = [package for package in sorted(Path(PACKAGE).glob("*.deb")) if "-csi_" not in package.name]
        packages = sorted(repository.glob("*.deb")) + ours
        for package in packages:
            node.put(f"{REPOSITORY}/{package.name}", package.read_bytes())
        node.sh(f"{APT} install {REPOSITORY}/*.deb", 600)

    def configure(self, node, key):
        addresses = "\n".join(f"{each.address} {each.name}" for each in self.nodes)
        node.sh(f"printf '%s\n' '127.0.0.1 localhost' '{addresses}' >/etc/hosts")
        node.put("/etc/slurm/slurm.conf", SLURM_CONF)
        node.put("/etc/slurm/cgroup.conf", "CgroupPlugin=cgroup/v2\n")
        node.put("/etc/slurm/plugstack.conf", "include /etc/slurm/plugstack.conf.d/*.conf\n")
        node.put("/etc/munge/munge.key", key, "600")
        node.sh("chown munge:munge /etc/munge/munge.key; systemctl restart munge", 60)
        node.put(CONFIG, config_text(
            targets={"rose": {"address": self.machine.address}},
            volumes={"data": {"target": "rose", "subsystem": NQN, "mount": "/mnt/data"},
                     "nas": {"nfs": f"{self.machine.address}:{NAS_EXPORT}", "mount": "/mnt/nas", "access": "exclusive"}},
            outputs={"run7": {"path": "/local/out/run7", "volume": "nas", "to": f"run7/{node.name}", "complete": "marker:DONE"}},
            cache={"path": "/local/cache", "capacity": "2GiB"},
            datasets={"imagenet": {"volume": "data", "path": "imagenet"}, "large": {"volume": "data", "path": "large"}}))
        node.sh("systemctl enable --now spark-staged", 60)

    def slurm(self, command, timeout=180):
        return self.nodes[0].run(f"cd /tmp && runuser -u {USER} -- {command}", timeout)

    def wait_idle(self):
        self.nodes[0].wait_until("[ \"$(sinfo -h -N -o %T | sort -u)\" = idle ]", 120)

    def digest(self, name):
        return self.nodes[0].sh(f"cd /mnt/data/{name} && cat *.bin | sha256sum", 120).split()[0]

    def leases(self):
        return [lease for product in self.products for row in product.datasets() for lease in row["leases"]]


def local_drive_of(rig, number):
    """The host's own drive."""
    made = local_drive(rig)
    return made.rename(made.with_name(f"local-{number}.raw"))


@pytest.fixture(scope="module")
def cluster():
    def tell(made):
        for node in made.nodes:
            print(f"===== {node.name}: Slurm's logs =====\n{node.run('tail -n 40 /var/log/slurm/*.log').out}")
    yield from made_on(Topology(), Cluster, tell)


@pytest.fixture(autouse=True)
def nothing_is_left(cluster):
    """No node is drained or down, no lease without a job remains, and the next job runs."""
    yield
    cluster.wait_idle()
    assert cluster.leases() == []
    done = cluster.slurm("srun -N2 hostname")
    assert done.rc == 0 and sorted(done.out.split()) == ["host1", "host2"], done


def test_the_plugins_package_depends_on_its_version_of_slurm(cluster):
    depends = cluster.nodes[0].sh("dpkg-query -W -f '${Depends}' spark-stage-slurm")
    have = cluster.nodes[0].sh("dpkg-query -W -f '${Version}' slurmd")
    major, minor = re.match(r"(?:\d+:)?(\d+)\.(\d+)", have).groups()
    assert f">= {major}.{minor}" in depends and "<<" in depends, depends


def test_a_job_on_two_nodes_stages_from_the_target_and_trains(cluster):
    done = cluster.slurm("srun -N2 --stage=imagenet sh -c 'cat $SPARK_STAGE_IMAGENET/*.bin | sha256sum'")
    assert done.rc == 0, done
    assert re.findall(r"[0-9a-f]{64}", done.out) == 2 * [cluster.digest("imagenet")], done


def test_a_job_holds_its_dataset_while_its_cgroup_lives(cluster):
    job = cluster.nodes[0].spawn(f"cd /tmp && exec runuser -u {USER} -- srun -N2 --stage=imagenet sh -c "
                                 "'cat /proc/self/cgroup >&2; touch /tmp/started; until [ -e /tmp/enough ]; do sleep 0.2; done'")
    try:
        for node, product in zip(cluster.nodes, cluster.products):
            node.wait_until("[ -e /tmp/started ]", 120)
            held = product.dataset("imagenet")["leases"]
            assert len(held) == 1 and held[0]["holder"].startswith("slurm job "), held
            refused = product.run("evict imagenet")
            assert refused.rc == 7 and held[0]["holder"] in refused.err, refused
    finally:
        for node in cluster.nodes:
            node.sh("touch /tmp/enough")
    ended = job.wait(60)
    assert ended.rc == 0 and "slurmstepd" in ended.err, ended
    for node in cluster.nodes:
        node.sh("rm /tmp/enough /tmp/started")


def test_only_the_complete_checkpoint_of_a_killed_job_is_sent(cluster):
    host = cluster.nodes[0]
    save = "cd $SPARK_STAGE_OUT_RUN7 && mkdir step-1 step-2 && echo model >step-1/model && touch step-1/DONE && echo mod >step-2/model"
    job = host.spawn(f"cd /tmp && exec runuser -u {USER} -- srun -w host1 --stage-out=run7 sh -c '{save} && touch /tmp/saved && sleep 600'")
    host.wait_until("[ -e /tmp/saved ]", 120)
    assert cluster.slurm("scancel --me").rc == 0
    assert job.wait(120).rc != 0
    next_job = cluster.slurm("srun -w host1 hostname")
    assert next_job.rc == 0, next_job
    host.wait_until("[ -e /mnt/nas/run7/host1/latest/model ]", 120)
    assert host.sh("ls /mnt/nas/run7/host1").split() == ["latest", "step-1"]
    assert host.sh("stat -c %U /mnt/nas/run7/host1/step-1/model").strip() == USER
    host.sh("rm -rf /tmp/saved /local/out/run7/*")


def test_a_job_with_an_output_missing_on_its_node_fails_before_it_starts(cluster):
    refused = cluster.slurm("srun -N2 --stage-out=run8 echo ran")
    assert refused.rc == 1 and refused.out == "", refused
    assert "there is no output 'run8' in the configuration of host" in refused.err, refused


def test_an_unsent_checkpoint_is_named_when_its_job_ends(cluster):
    save = "mkdir $SPARK_STAGE_OUT_RUN7/step-5 && echo mod >$SPARK_STAGE_OUT_RUN7/step-5/model"
    done = cluster.slurm(f"srun -w host1 --stage-out=run7 sh -c '{save}'")
    assert done.rc == 0, done
    assert re.search(r"spark-stage: host1: output run7: step-5 is not on \S+, as it is not complete: ", done.err), done
    cluster.nodes[0].sh("rm -rf /local/out/run7/*")


def test_shards_that_two_nodes_write_are_published_as_one_checkpoint(cluster):
    cluster.nodes[0].sh("mkdir /mnt/nas/shards")
    save = ("d=/tmp/step-7; rm -rf $d; mkdir -p $d/ranks; hostname >$d/ranks/$(hostname); echo all >$d/config; "
            "exec spark-stage stage-out $d nas:shards/step-7 --nodes 2")
    sent = [node.spawn(save) for node in cluster.nodes]  # both start before either has ended
    for process in sent:
        done = process.wait(180)
        assert done.rc == 0 and done.out.strip() == "/mnt/nas/shards/step-7", done
    for product in cluster.products:
        verified = product.run("verify nas:shards/step-7", 120)
        assert verified.rc == 0, verified
    there = cluster.machine.sh(f"cd {NAS_EXPORT}/shards && find . | LC_ALL=C sort").split()  # a host's cache may show more
    assert there == [".", "./.step-7.spark-manifest", "./step-7", "./step-7/config", "./step-7/ranks", "./step-7/ranks/host1",
                     "./step-7/ranks/host2"], there
    again = cluster.products[0].run("stage-out /tmp/step-7 nas:shards/step-7 --nodes 2", 120)
    assert again.rc == 0 and "was there already" in again.err, again


def test_a_cable_pulled_while_a_jobs_data_is_staged_costs_time_but_no_byte(cluster):
    cluster.machine.sh("tc qdisc add dev eth0 root tbf rate 30mbit burst 256k latency 200ms")
    job = cluster.nodes[0].spawn(f"cd /tmp && exec runuser -u {USER} -- srun -N2 --stage=large sh -c "
                                 "'cat $SPARK_STAGE_LARGE/*.bin | sha256sum'")
    try:
        for product in cluster.products:
            product.wait_dataset("large", lambda row: (row.get("progress") or {}).get("bytes_done", 0) > 0, 120)
        cluster.machine.set_link(False)
        try:
            for product in cluster.products:
                product.wait_dataset("large", "stalled", 120)
        finally:
            cluster.machine.set_link(True)
    finally:
        cluster.machine.sh("tc qdisc del dev eth0 root", 60)
    ended = job.wait(240)
    assert ended.rc == 0, ended
    assert re.findall(r"[0-9a-f]{64}", ended.out) == 2 * [cluster.digest("large")], ended
    assert "stalled" in ended.err or "waits" in ended.err, "the user was not told why nothing moved"


def test_a_node_returns_from_a_power_loss_without_a_lease_of_the_job(cluster):
    job = cluster.nodes[0].spawn(f"cd /tmp && exec runuser -u {USER} -- srun -w host2 --stage=imagenet sleep 600")
    cluster.products[1].wait_dataset("imagenet", lambda row: row["leases"], 120)
    cluster.nodes[1].kill()
    cluster.nodes[1].start()
    cluster.nodes[1].wait_ready(until="spark-stage status")
    cluster.products[1].wait_volume("data", "ready", 120)
    cluster.products[1].wait_dataset("imagenet", lambda row: row["state"] == "ready" and not row["leases"], 120)
    cluster.slurm(f"scancel -u {USER}")
    job.wait(120)
