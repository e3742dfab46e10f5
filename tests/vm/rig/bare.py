"""Two machines without the product: a target that offers an ext4 volume, and a host."""
import time

from .house import local_drive
from .machine import disk
from .target import Target

NQN = "raid5-data"


def start_bare_pair(rig):
    """Returns (Target, the host's Machine)."""
    machine = rig.add_target("target1", disks=[1 << 30])
    host = rig.add_host("host1", disks=[local_drive(rig)])
    began = time.monotonic()
    for each in (machine, host):
        each.start()
    for each in (machine, host):
        each.wait_ready()
    print(f"two machines were ready in {time.monotonic() - began:.1f} s under {rig.accelerator}")
    target = Target(machine)
    target.filesystem(disk(1), fill="echo hello >greeting; dd if=/dev/urandom of=data bs=1M count=16 status=none; "
                                    "mkdir set; echo one >set/file")
    target.export(NQN, disk(1), allowed_hosts=[host.hostnqn])
    return target, host
