#!/usr/bin/python3
"""The main use case from end to end in two virtual machines: the script of `make demo`."""
import shlex
import sys
import textwrap
import time

from rig import image
from rig.disks import age, ext4
from rig.house import local_drive
from rig.machine import disk
from rig.product import CONFIG, Product
from rig.target import Target, stable_uuid
from rig.topology import Topology

TARGET_ADDRESS = "10.77.0.11"
DATASET = {f"imagenet/shard-{number:02}.tar": 16 for number in range(24)}  # MiB
# The folder instead of the dataset's name: the copy that is there already would decide.
BENCH = ("spark-stage bench nvme-tcp=/mnt/rosa-storage nfs=/mnt/dell-shared local=/local --size 256MiB --runtime 1s --rounds 5 "
         "--dataset /mnt/rosa-storage/imagenet --epochs 30 --demand 200MB/s --scenario stream --scenario stagecopy --json /root/bench.json")

CONFIGURATION = f"""\
version: 1
targets:
  rose:
    address: {TARGET_ADDRESS}
volumes:
  datasets:
    target: rose
    subsystem: raid5-data
    filesystem: {{type: ext4, uuid: {stable_uuid("datasets")}}}
    mount: /mnt/rosa-storage
    options: [noatime]
  checkpoints:
    target: rose
    subsystem: checkpoints
    mount: /mnt/checkpoints
    access: exclusive
    fence: mmp
  nas:
    nfs: {TARGET_ADDRESS}:/srv/shared
    mount: /mnt/dell-shared
    access: exclusive
    options: [vers=4.2, nconnect=2]
cache:
  path: /local/cache
  capacity: 4GiB
datasets:
  imagenet: {{volume: datasets, path: imagenet}}
"""

REAL_HARDWARE = f"""
    make install                                             # README.md: what it needs on a DGX Spark
    spark-stage discover 192.168.0.100                       # what your target offers this host
    spark-stage discover 192.168.0.100 --output {CONFIG}
    spark-stage config check && systemctl enable --now spark-staged
    spark-stage status && spark-stage run VOLUME:FOLDER -- python train.py
"""


class Screen:
    """Prints headings, prompts, and the machines' output as it arrives."""

    BOLD, CYAN, GREEN, DIM, PLAIN = ("\033[1m", "\033[36m", "\033[32m", "\033[2m", "\033[0m")

    def __init__(self):
        self.began = time.monotonic()
        self.section = 0
        if not sys.stdout.isatty():
            self.BOLD = self.CYAN = self.GREEN = self.DIM = self.PLAIN = ""

    def heading(self, text):
        self.section += 1
        seconds = time.monotonic() - self.began
        print(f"\n{self.BOLD}{self.CYAN}{self.section}. {text}{self.PLAIN}  {self.DIM}[{seconds:.0f} s]{self.PLAIN}\n",
              flush=True)

    def note(self, text):
        print(f"{self.DIM}{text}{self.PLAIN}", flush=True)

    def command(self, machine, command, timeout=120):
        """Runs a command in a terminal of the machine and shows its output live; fails if the command fails."""
        print(f"{self.GREEN}root@{machine.name}:~#{self.PLAIN} {command}", flush=True)
        in_terminal = f"TERM=xterm-256color exec script -qefc {shlex.quote('stty cols 118 rows 40; ' + command)} /dev/null"
        result = machine.spawn(in_terminal, on_output=self._show).wait(timeout)
        if result.rc:
            sys.exit(f"demo: '{command}' ended with status {result.rc}\n{machine.report()}")

    @staticmethod
    def _show(text):
        sys.stdout.write(text.replace("\r\n", "\n"))
        sys.stdout.flush()


def prepare_target(target):
    machine = target.machine
    machine.sh(f"until [ -e {disk(1)} -a -e {disk(2)} -a -e {disk(3)} ]; do sleep 0.1; done")
    target.filesystem(disk(2), name="checkpoints", mmp=True)
    target.filesystem(disk(3), name="nas")
    target.export("raid5-data", disk(1))
    target.export("checkpoints", disk(2))
    machine.sh(f"mkdir -p /srv/shared && mount {disk(3)} /srv/shared")
    target.export_nfs("/srv/shared")


def main():
    screen = Screen()
    screen.heading("Two machines on one wire: a target, and a training node with spark-stage installed")
    rig = Topology(install_tree=image.install_product())
    with rig:
        node = rig.add_host("spark1", disks=[local_drive(rig)], files={CONFIG: CONFIGURATION})
        datasets = age(ext4(rig.folder / "datasets.raw", 2 << 30, stable_uuid("datasets"), DATASET), DATASET)
        target = Target(rig.add_target("rose", disks=[datasets, 1 << 30, 1 << 30]))
        screen.note(f"Debian 12 on kernel {rig.kernel.release}, {rig.accelerator}, no network but the wire between them.")
        for machine in (target.machine, node):
            machine.start()
        target.machine.wait_ready()
        prepare_target(target)
        screen.note(f"The target offers two NVMe/TCP subsystems and an NFS export at {TARGET_ADDRESS}.")
        node.wait_ready()
        show(screen, node)
        finish(screen, node)


def show(screen, node):
    screen.heading("What does the target offer this host?")
    screen.command(node, f"spark-stage discover {TARGET_ADDRESS}")

    screen.heading("The service started at boot, with this configuration")
    screen.command(node, f"cat {CONFIG}")
    screen.command(node, "systemctl is-enabled spark-staged; systemctl is-active spark-staged")

    screen.heading("Connected, checked, mounted: volumes become ready")
    screen.command(node, "spark-stage wait datasets checkpoints nas --timeout 3m", 240)
    screen.command(node, "spark-stage status")
    screen.command(node, "findmnt -t ext4,nfs4 -o TARGET,SOURCE,OPTIONS")

    screen.heading("A dataset onto the node's own drive")
    screen.command(node, "spark-stage stage imagenet", 300)
    screen.command(node, "spark-stage ls")

    screen.heading("Is the copy what was read?")
    screen.command(node, "spark-stage verify imagenet", 300)
    screen.command(node, "spark-stage run imagenet -- sh -c \"ls \\$SPARK_STAGE_IMAGENET | head -3\"")

    screen.heading("Was it worth it? Three paths side by side")
    screen.command(node, BENCH, 420)


def finish(screen, node):
    row = Product(node).dataset("imagenet")
    screen.heading("Done")
    print(f"{screen.BOLD}Staged:{screen.PLAIN} {row['path']}  ({row['bytes']} bytes, {row['files']} files, {row['state']})\n")
    print("Emulated machines are slow, and their numbers compare with each other only. On real hardware:")
    print(textwrap.indent(textwrap.dedent(REAL_HARDWARE), "  "))
    print(f"{screen.DIM}{time.monotonic() - screen.began:.0f} s in all.{screen.PLAIN}")


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        sys.exit(130)
