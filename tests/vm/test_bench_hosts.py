"""`bench --with`: two hosts that measure one NFS export at the same time, through a real ssh."""
import json
import shutil
from pathlib import Path
from statistics import median

import pytest

from rig import image, packages
from rig.disks import ext4
from rig.machine import disk
from rig.product import Product
from rig.target import Target, stable_uuid
from rig.topology import Topology

pytestmark = pytest.mark.long
EXPORT, MOUNT = "/srv/shared", "/mnt/nas"
WIRE_MBIT = 40
SSH = "/opt/ssh"
LIBRARIES = f"LD_LIBRARY_PATH={SSH}/usr/lib/x86_64-linux-gnu:{SSH}/lib/x86_64-linux-gnu"
CLIENT = f"""#!/bin/sh
exec env {LIBRARIES} {SSH}/usr/bin/ssh -i /root/key -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null "$@"
"""
SERVER = (f"{LIBRARIES} {SSH}/usr/sbin/sshd -f /dev/null -h /root/host_key -o UsePAM=no -o StrictModes=no -o PidFile=none "
          "-o AuthorizedKeysFile=/root/key.pub")
RUN = f"bench nfs={MOUNT} local=/local --scenario stream --scenario stagecopy --rounds 3 --size 32MiB --runtime 2s"


class Hosts:
    def __init__(self, rig):
        tools = packages.drive("ssh", image.userland_folder(), ["openssh-server", "openssh-client"])
        self.target_machine = rig.add_target("target1")
        self.machines = []
        for number in (1, 2):
            folder = rig.folder / f"drives{number}"
            folder.mkdir()
            local = ext4(folder / "local.raw", 1 << 30, stable_uuid(f"local{number}"))
            self.machines.append(rig.add_host(f"host{number}", disks=[local, shutil.copyfile(tools, folder / "ssh.raw")]))
        self.first, self.second = self.machines
        self.product = Product(self.first)

    def start(self):
        for machine in (self.target_machine, *self.machines):
            machine.start()
        for machine in (self.target_machine, *self.machines):
            machine.wait_ready()
        Target(self.target_machine).export_nfs(EXPORT)
        for machine in self.machines:
            machine.wait_until("mountpoint -q /local", 60)
            machine.sh(f"mkdir -p {SSH} {MOUNT} && mount -o ro,noload {disk(2)} {SSH} && "
                       f"mount -t nfs {self.target_machine.address}:{EXPORT} {MOUNT}", 60)
        self.first.sh(f"{LIBRARIES} {SSH}/usr/bin/ssh-keygen -q -t ed25519 -N '' -f /root/key")
        self.first.put("/usr/local/bin/ssh", CLIENT, "755")
        self.first.sh(f"echo '{self.second.address} host2' >>/etc/hosts")
        self.second.put("/root/key.pub", self.first.get("/root/key.pub"))
        self.second.sh("echo 'sshd:x:199:65534::/run/sshd:/usr/sbin/nologin' >>/etc/passwd; mkdir -p /run/sshd; "
                       f"{LIBRARIES} {SSH}/usr/bin/ssh-keygen -q -t ed25519 -N '' -f /root/host_key && {SERVER}")
        self.first.sh("ssh -o BatchMode=yes host2 true", 60)
        self.target_machine.sh(f"tc qdisc add dev eth0 root tbf rate {WIRE_MBIT}mbit burst 32k latency 400ms")

    def leftovers(self):
        return [machine.sh(f"ls -A /local {MOUNT}") for machine in self.machines]


@pytest.fixture(scope="module")
def hosts():
    with Topology(install_tree=image.install_product()) as rig:
        hosts = Hosts(rig)
        hosts.start()
        yield hosts


@pytest.fixture(scope="module")
def measured(hosts):
    said = hosts.product.run(f"{RUN} --with host2 --demand 100MB/s --dataset 1GB --epochs 3 --json /tmp/together.json", 900)
    assert said.rc == 0, said.out + said.err
    print(said.out)
    return said.out, json.loads(hosts.first.get("/tmp/together.json"))


def test_each_host_gets_its_share_of_the_target_while_the_other_measures(measured):
    record = measured[1]
    assert record["hosts"] == ["host1", "host2"]
    rates = [cell["bytes"] / cell["seconds"] for cell in record["cells"]
             if (cell["path"], cell["scenario"], cell["status"]) == ("nfs", "stream", "valid") and cell["round"] > 0]
    assert len(rates) == 3, [cell["reasons"] for cell in record["cells"]]
    share = median(rates) / (WIRE_MBIT * 1e6 / 8)
    print(f"each host: {median(rates) / 1e6:.2f} MB/s, {share:.2f} of the wire")
    assert 0 < share < 0.65


def test_one_verdict_covers_both_hosts(hosts, measured):
    table, record = measured
    assert any("Measured on 2 hosts at once (host1, host2)" in sentence for sentence in record["verdict"]["sentences"])
    # A busy machine may invalidate rounds or all results of a scenario, or let one host be much slower than the other, which the verdict
    # reports; no other reason may prevent a verdict.
    reasons = record["verdict"].get("not_decided_because", [])
    assert all("valid r" in reason or "at once for" in reason for reason in reasons), reasons
    assert "TOGETHER" in table
    assert "Measured on 2 hosts" in " ".join(hosts.product.sh("bench report last").split())
    runs = hosts.first.sh("ls /var/lib/spark-stage/bench/*")
    assert "host-host1.json" in runs and "host-host2.json" in runs


def test_both_hosts_are_left_unchanged(hosts, measured):
    assert "bench" not in "".join(hosts.leftovers())


def test_a_host_unreachable_by_ssh_is_named(hosts):
    said = hosts.product.run(f"{RUN} --with host3", 300)
    assert said.rc == 4, said.err
    assert "ssh does not reach host3" in said.err and "ssh -o BatchMode=yes host3 true" in said.err
    assert "bench" not in "".join(hosts.leftovers())


def test_a_path_missing_on_the_other_host_is_named_with_the_host(hosts):
    hosts.first.sh("mkdir -p /local/mine")
    said = hosts.product.run(f"{RUN.replace('local=/local', 'local=/local/mine')} --with host2", 300)
    assert said.rc != 0
    assert "the benchmark on host2 ended with status 3" in said.err and "/local/mine" in said.err
    hosts.first.sh("rmdir /local/mine")


def test_a_run_that_is_interrupted_ends_on_both_hosts(hosts):
    run = hosts.first.spawn(f"exec spark-stage {RUN.replace('--runtime 2s', '--runtime 30s')} --with host2")
    hosts.second.wait_until("pgrep -x fio", 180)
    run.signal(2)
    assert run.wait(180).rc == 130
    hosts.second.wait_until("! pgrep -f '[i]n-step'", 120)
    assert "bench" not in "".join(hosts.leftovers())
