"""docs/two-sparks.md, typed on two machines: every command of its blocks, in order.

torchrun is a replacement that runs a script with the same outputs: torch itself is too large for these machines.
"""
import re
import shlex
import shutil

import pytest

from rig import blocks, image, packages
from rig.disks import MIB, ext4
from rig.machine import disk
from rig.product import CONFIG, Product
from rig.target import Target, stable_uuid
from rig.topology import Topology
from test_bench_hosts import CLIENT, LIBRARIES, SERVER, SSH

PAGE = "docs/two-sparks.md"
NAMES = ("spark1", "spark2")
FILES = {f"imagenet/shard-{i}.bin": 8 for i in range(8)}
# Blocks, by first line, that the page asks to type on each Spark.
ON_EACH = ("sudo ip link set", "cat /etc/nvme/hostnqn", "sudo spark-stage config check", "spark-stage wait datasets --timeout")
# Programs that are missing on these machines: sudo and torch.
STUBS = {
    "sudo": "#!/bin/sh\nexec \"$@\"\n",
    "torchrun": "#!/bin/sh\nfor last; do :; done\nexec python3 \"$last\"\n",
}
# Same as the page's script: reads every file and writes three checkpoints, on the first Spark only, renamed when complete.
TRAIN = """
import os, socket
folder, out = os.environ["SPARK_STAGE_IMAGENET"], "/data/out/run7"
size = sum(len(open(os.path.join(folder, name), "rb").read()) for name in os.listdir(folder))
assert size == 64 << 20, size
if socket.gethostname() == "spark1":
    done = max((int(name[5:]) for name in os.listdir(out) if name.startswith("step-")), default=0)
    for step in (100, 200, 300):
        os.makedirs(f"{out}/tmp-step")
        with open(f"{out}/tmp-step/model.pt", "wb") as file:
            file.write(os.urandom(1 << 20))
        os.rename(f"{out}/tmp-step", f"{out}/step-{done + step}")
"""


class Sparks:
    def __init__(self, rig):
        drive = ext4(rig.folder / "datasets.raw", 256 * MIB, stable_uuid("tutorial"), FILES)
        tools = packages.drive("ssh", image.userland_folder(), ["openssh-server", "openssh-client"])
        self.target_machine = rig.add_target("rose", disks=[drive])
        self.hosts = []
        for name in NAMES:
            folder = rig.folder / f"drives-{name}"
            folder.mkdir()
            local = ext4(folder / "local.raw", 1 << 30, stable_uuid(name))
            self.hosts.append(rig.add_host(name, disks=[local, shutil.copyfile(tools, folder / "ssh.raw")]))
        self.products = [Product(host) for host in self.hosts]
        self.target = Target(self.target_machine)

    def start(self):
        for machine in (self.target_machine, *self.hosts):
            machine.start()
        for machine in (self.target_machine, *self.hosts):
            machine.wait_ready()
        self.target_machine.sh(f"until [ -e {disk(1)} ]; do sleep 0.1; done", 30)
        self.target.export("raid5-data", disk(1))
        self.target.export("checkpoints", self.target.image("checkpoints", "256M"), reservations=True)
        names = "\n".join(f"{host.address} {host.name}" for host in self.hosts)
        for host in self.hosts:
            host.wait_until("mountpoint -q /local", 60)
            host.sh(f"echo {shlex.quote(names)} >>/etc/hosts; mkdir -p {SSH} && mount -o ro,noload {disk(2)} {SSH}")
            for name, text in STUBS.items():
                host.put(f"/usr/local/bin/{name}", text, "755")
            host.put("/root/train.py", TRAIN)
        self._open_ssh()
        for index, block in enumerate(block for block in blocks.of_page(PAGE) if block.language == "yaml"):
            self.hosts[index].put(CONFIG, self.here(block.text).replace("capacity: 2TiB", "path: /local/cache, capacity: 600MiB"))

    def _open_ssh(self):
        first, second = self.hosts
        first.sh(f"{LIBRARIES} {SSH}/usr/bin/ssh-keygen -q -t ed25519 -N '' -f /root/key")
        first.put("/usr/local/bin/ssh", CLIENT, "755")
        second.put("/root/key.pub", first.get("/root/key.pub"))
        second.sh("echo 'sshd:x:199:65534::/run/sshd:/usr/sbin/nologin' >>/etc/passwd; mkdir -p /run/sshd; "
                  f"{LIBRARIES} {SSH}/usr/bin/ssh-keygen -q -t ed25519 -N '' -f /root/host_key && {SERVER}")
        first.sh("ssh -o BatchMode=yes spark2 true", 60)

    def here(self, text):
        """Replaces the page's addresses, network card and packet size by those of these machines."""
        for page, machine in (("192.168.0.100", self.target_machine), ("192.168.0.1", self.hosts[0]), ("192.168.0.2", self.hosts[1])):
            text = re.sub(rf"\b{re.escape(page)}\b", machine.address, text)
        return text.replace("enp1s0f1np1 mtu 9000", "eth0 mtu 1500").replace("-s 8972", "-s 1472")

    def type(self, block, deadline=300):
        script = f"cd /root; export USER=root; set -eo pipefail\n{self.here(block.text)}"
        answer = b"checkpoints\n" if "volumes format" in block.text else b""
        said = ""
        for host in self.hosts if block.lines[0].startswith(ON_EACH) else self.hosts[:1]:
            result = host.run(f"bash -c {shlex.quote(script)}", deadline, stdin=answer)
            said += result.out
            assert result.rc == 0, f"{block}\n{host.name}\n{result.out}{result.err}"
        return said


@pytest.fixture(scope="module")
def sparks():
    with Topology(install_tree=image.install_product()) as rig:
        made = Sparks(rig)
        try:
            made.start()
            yield made
        except BaseException:
            print(rig.report())
            raise


def test_the_tutorial_works_as_it_stands_there(sparks):
    typed = {block.lines[0]: sparks.type(block) for block in blocks.of_page(PAGE) if block.language == "sh"}
    assert "checkpoints" in typed["cat /etc/nvme/hostnqn"]
    assert "step-300" in typed["sudo spark-stage volumes publish checkpoints"]
    assert sparks.products[1].dataset("imagenet")["state"] == "ready"
