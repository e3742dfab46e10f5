"""docs/two-sparks.md, typed on two machines: every command of its blocks, in order, with Debian's PyTorch and Gloo. The cable
of the target is pulled and put back at the place where the page says so."""
import re
import shlex
import shutil
import signal
from pathlib import Path

import pytest

from rig import blocks, image, packages
from rig.disks import MIB, ext4
from rig.machine import disk
from rig.own_volume import assert_whole
from rig.product import CONFIG, Product
from rig.target import Target, stable_uuid
from rig.trainer import PYTHON, TORCH
from test_bench_hosts import CLIENT, LIBRARIES, SERVER, SSH

PAGE = "docs/two-sparks.md"
NAMES = ("spark1", "spark2")
FILES = {f"imagenet/shard-{i:02}.bin": 1 for i in range(64)}
PACKAGES = {"ssh": ["openssh-server", "openssh-client"], "torch": ["python3-torch"]}
OUT = "/data/out/run7"
TRAINING = Path(__file__).parent / "training"
# Blocks, by first line, that the page asks to type on each Spark.
ON_EACH = ("sudo ip link set", "cat /etc/nvme/hostnqn", "sudo spark-stage discover", "sudo spark-stage config check",
           "spark-stage wait datasets --timeout", "sudo spark-stage config plan")
# Strings in the first lines of blocks: before these, the cable is pulled and put back, and the training is stopped.
TARGET_IS_AWAY, TARGET_IS_BACK, IS_STOPPED = "# both volumes are `stalled`", "wait datasets checkpoints", "spark-stage stage-out"
JOINS = "sudo spark-stage config plan"  # before this, the sections of the fleet are added
NEWEST = f"{{ echo step-0.pt; ls {OUT}; }} | sed -n 's/^step-\\([0-9]*\\)[.]pt$/\\1/p' | sort -n | tail -n 1"
# sudo is missing on these machines; torchrun needs the paths of its packages, and a fix.
STUBS = {
    "sudo": "#!/bin/sh\nexec \"$@\"\n",
    "torchrun": f"#!/bin/sh\nexec {PYTHON} python3 /root/torchrun.py \"$@\"\n",
}


class Sparks:
    def __init__(self, rig):
        drive = ext4(rig.folder / "datasets.raw", 256 * MIB, stable_uuid("tutorial"), FILES)
        tools = {kind: packages.drive(kind, image.userland_folder(), names) for kind, names in PACKAGES.items()}
        self.target_machine = rig.add_target("rose", disks=[drive])
        self.hosts = []
        for name in NAMES:
            folder = rig.folder / f"drives-{name}"
            folder.mkdir()
            local = ext4(folder / "local.raw", 1 << 30, stable_uuid(name))
            copies = [shutil.copyfile(path, folder / f"{kind}.raw") for kind, path in tools.items()]
            self.hosts.append(rig.add_host(name, disks=[local, *copies], memory="1536M"))
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
            host.sh(f"echo {shlex.quote(names)} >>/etc/hosts")
            for number, folder in enumerate((SSH, TORCH), 2):
                host.sh(f"mkdir -p {folder} && mount -o ro,noload {disk(number)} {folder}")
            for name, text in STUBS.items():
                host.put(f"/usr/local/bin/{name}", text, "755")
            host.put("/root/torchrun.py", (TRAINING / "torchrun.py").read_text())
        self._open_ssh()
        written = {language: [self.here(block.text) for block in blocks.of_page(PAGE) if block.language == language]
                   for language in ("yaml", "python")}
        configurations, self.fleets = written["yaml"][:2], written["yaml"][2:]
        for host, text in zip(self.hosts, configurations, strict=True):
            host.put(CONFIG, text.replace("capacity: 2TiB", "path: /local/cache, capacity: 600MiB"))
        self.hosts[0].put("/root/train.py", *written["python"])

    def _open_ssh(self):
        first, second = self.hosts
        first.sh(f"{LIBRARIES} {SSH}/usr/bin/ssh-keygen -q -t ed25519 -N '' -f /root/key")
        first.put("/usr/local/bin/ssh", CLIENT, "755")
        second.put("/root/key.pub", first.get("/root/key.pub"))
        second.sh("echo 'sshd:x:199:65534::/run/sshd:/usr/sbin/nologin' >>/etc/passwd; mkdir -p /run/sshd; "
                  f"{LIBRARIES} {SSH}/usr/bin/ssh-keygen -q -t ed25519 -N '' -f /root/host_key && {SERVER}")
        first.sh("ssh -o BatchMode=yes spark2 true", 60)

    def here(self, text):
        """Replaces the page's addresses, network cards and packet size by those of these machines, which have one card."""
        first, second = self.hosts
        for page, machine in (("192.168.0.100", self.target_machine), ("192.168.0.1", first), ("192.168.0.2", second),
                              ("10.0.0.1", first), ("10.0.0.2", second)):
            text = re.sub(rf"\b{re.escape(page)}\b", machine.address, text)
        return text.replace("enp1s0f1np1", "eth0").replace("mtu 9000", "mtu 1500").replace("-s 8972", "-s 1472")

    def script(self, block):
        return f"bash -c {shlex.quote(f'cd /root; export USER=root; set -eo pipefail; {self.here(block.text)}')}"

    def join_fleet(self):
        """Adds the page's sections to the configurations."""
        for host, text in zip(self.hosts, self.fleets, strict=True):
            host.put(CONFIG, host.get(CONFIG) + text)

    def type(self, block, deadline=300):
        answer = b"checkpoints\n" if "volumes format" in block.text else b""
        said = ""
        for host in self.hosts if block.lines[0].startswith(ON_EACH) else self.hosts[:1]:
            result = host.run(self.script(block), deadline, stdin=answer)
            said += result.out
            print(f"{block}\n{host.name}, exit status {result.rc}\n{result.out}{result.err}")
            assert result.rc == 0, f"{block}\n{host.name}\n{result.out}{result.err}"
        return said


class Training:
    """The training of step 6, in a terminal of its own."""

    def __init__(self, sparks, block, first_step):
        self.sparks, self.machine, self.block = sparks, sparks.hosts[0], block
        self.terminal = self.machine.spawn(sparks.script(block))
        for rank in range(len(NAMES)):
            self.terminal.wait_said(f"rank {rank}: begins with step {first_step}\n", 600)

    def newest(self):
        """The step of the newest checkpoint on the first Spark's drive; 0 if there is none."""
        return int(self.machine.sh(NEWEST))

    def wait_newer(self, step):
        """Waits for the checkpoint of a later step, and returns its step."""
        self.machine.wait_until(f"[ $({NEWEST}) -gt {step} ]", 600, 1)
        assert self.terminal.rc is None, self.terminal.out + self.terminal.err
        return self.newest()

    def lose_target(self):
        """Pulls the cable; returns the step of a checkpoint that was saved while both volumes were away."""
        self.sparks.target_machine.set_link(False)
        for volume in ("datasets", "checkpoints"):
            self.sparks.products[0].wait_volume(volume, "stalled", 120)
        return self.wait_newer(self.newest())

    def stop(self):
        """Presses Ctrl-C, and waits until the other Spark's part has missed its peer."""
        self.terminal.signal(signal.SIGINT)
        self.terminal.wait(120)
        for host in self.sparks.hosts:
            host.wait_until("! pgrep -f '[t]rain.py'", 300)
        return self.newest()


def step_in(text):
    return max(int(step) for step in re.findall(r"step-(\d+)[.]pt", text))


@pytest.fixture(scope="module")
def sparks(own_rig):
    made = Sparks(own_rig)
    made.start()
    return made


def test_the_tutorial_works_as_written(sparks):
    typed, training, away, last = {}, None, 0, 0
    for block in (block for block in blocks.of_page(PAGE) if block.language == "sh"):
        begin = block.lines[0]
        if "torchrun" in block.text:
            training = Training(sparks, block, 1)
            training.wait_newer(0)
            continue
        if TARGET_IS_AWAY in begin:
            away = training.lose_target()
        elif TARGET_IS_BACK in begin:
            sparks.target_machine.set_link(True)
        elif begin.startswith(IS_STOPPED):
            last = training.stop()
        elif begin.startswith(JOINS):
            sparks.join_fleet()
        typed[begin] = sparks.type(block)
    said = lambda word: next(text for begin, text in typed.items() if word in begin)
    assert len(set(said("/etc/nvme/hostnqn").split())) == len(NAMES)
    assert said("spark-stage discover").count("checkpoints") == len(NAMES)
    assert re.findall(r"^(\w+) +stalled", said(TARGET_IS_AWAY), re.M) == ["datasets", "checkpoints"]
    assert f"step-{away}.pt" in said(TARGET_IS_AWAY)
    assert step_in(said(TARGET_IS_BACK)) >= away
    assert step_in(said(IS_STOPPED)) == last, "spark2 does not see the last checkpoint"
    assert "FLEET" in typed["spark-stage status"], typed["spark-stage status"]
    whole = assert_whole(sparks.products[0], "checkpoints", "/mnt/checkpoints")
    assert f"run7/step-{last}.pt" in whole and len(whole) <= 3, whole
    again = Training(sparks, training.block, last + 1)
    again.stop()
