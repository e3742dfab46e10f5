"""A hundred subsystems with three namespaces each, on a real target: none is missed in any fault.

Takes six minutes under emulation: `make check STEPS=many`. `make bench-limits` measures the cost of that many."""
import json
import os
import subprocess
import time
from collections import Counter

import pytest

from rig.disks import blank
from rig.machine import disk
from rig.product import CONFIG, Product, config_text
from rig.settings import patience
from rig.target import NVMET, Target, stable_uuid

SUBSYSTEMS = int(os.environ.get("SPARK_SUBSYSTEMS", "100"))
NAMES = [f"many-{subsystem}-{number}" for subsystem in range(SUBSYSTEMS) for number in (1, 2, 3)]
MOST_MIB = 60


def subsystem_of(name):
    subsystem, number = name.removeprefix("many-").split("-")
    return f"many-{subsystem}", int(number)


def drive_of_images(folder):
    """One ext4 with a small file system image for each namespace, made here: under emulation it would take minutes."""
    images = folder / "images"
    images.mkdir()
    for name in NAMES:
        subprocess.run(["/usr/sbin/mkfs.ext4", "-q", "-F", "-b", "4096", "-U", stable_uuid(name),
                        blank(images / f"{name}.img", 8 << 20)], check=True)
    drive = blank(folder / "drive.raw", 1 << 30)
    subprocess.run(["/usr/sbin/mkfs.ext4", "-q", "-F", "-d", images, drive], check=True, stdout=subprocess.DEVNULL)
    return drive


def config(address):
    volumes = {}
    for name in NAMES:
        subsystem, number = subsystem_of(name)
        volumes[name] = {"target": "rose", "subsystem": subsystem, "namespace": number, "mount": f"/mnt/{name}",
                         "filesystem": {"uuid": stable_uuid(name)}}
    return config_text(targets={"rose": {"address": address}}, volumes=volumes)


class Many:
    def __init__(self, rig):
        folder = rig.folder / "many"
        folder.mkdir()
        self.machine = rig.add_target("target9", disks=[drive_of_images(folder)])
        self.target = Target(self.machine)
        self.host = rig.add_host("host9", files={CONFIG: config(self.machine.address)})
        self.product = Product(self.host)

    def start(self):
        self.machine.start()
        self.machine.wait_ready()
        self.machine.sh(f"until [ -e {disk(1)} ]; do sleep 0.1; done; mkdir -p /srv/many; mount {disk(1)} /srv/many", 60)
        for name in NAMES:
            subsystem, number = subsystem_of(name)
            if number == 1:
                self.target.export(subsystem, f"/srv/many/{name}.img", namespace_uuid=stable_uuid(name))
            else:
                self.target.add(subsystem, number, f"/srv/many/{name}.img", stable_uuid(name))
        self.host.start()
        self.host.wait_ready(until="spark-stage status")

    def end(self):
        for machine in (self.host, self.machine):
            machine.kill()

    def volumes(self):
        return {volume["name"]: volume for volume in self.product.status()["volumes"]}

    def wait(self, wanted, deadline, what):
        """Waits until wanted(name, volume) is true for each volume; returns the seconds."""
        began = time.monotonic()
        while others := [volume for name, volume in self.volumes().items() if not wanted(name, volume)]:
            if time.monotonic() > began + patience(deadline):
                counted = Counter(volume["state"] for volume in others)
                raise AssertionError(f"{what}: {len(others)} are not, {dict(counted)}: {json.dumps(others[:3], indent=1)}")
            time.sleep(2)
        seconds = time.monotonic() - began
        print(f"many: {what}: {seconds:.0f} s")
        return seconds

    def enable(self, value, names):
        """Changes one after the other, as fast as the target's kernel allows."""
        paths = " ".join("{}/namespaces/{}".format(*subsystem_of(name)) for name in names)
        self.machine.sh(f"cd {NVMET}/subsystems; for one in {paths}; do echo {value} >$one/enable; done", 120)

    def mount_ids(self):
        table = self.host.get("/proc/self/mountinfo").splitlines()
        return {line.split()[4]: line.split()[0] for line in table if " /mnt/many-" in line}


def ready(_, volume):
    return volume["state"] == "ready"


@pytest.fixture(scope="module")
def many(product_rig):
    all_of_them = Many(product_rig)
    all_of_them.start()
    yield all_of_them
    all_of_them.end()


def test_all_become_ready_and_the_daemon_stays_small(many):
    many.wait(ready, 900, f"{len(NAMES)} volumes are ready")
    assert len(many.mount_ids()) == len(NAMES)
    pid = many.product.main_pid()
    peak = int(next(line for line in many.host.get(f"/proc/{pid}/status").splitlines()
                    if line.startswith("VmHWM")).split()[1]) / 1024
    latency = many.host.sh("/usr/local/lib/rig/status-latency 5", 120)
    print(f"many: the daemon's peak memory {peak:.1f} MiB; answers under emulation, ms: {latency.strip()}")
    assert peak < MOST_MIB


def test_each_of_many_namespaces_removed_together_is_noticed_and_the_others_stay(many):
    gone = NAMES[1::3]
    before = many.mount_ids()
    many.enable(0, gone)
    many.wait(lambda name, volume: (volume["state"] != "ready") == (name in gone), 180, "a third of them is gone")
    many.enable(1, gone)
    many.wait(ready, 600, "and back")
    after = many.mount_ids()
    assert {mount for mount in before if after.get(mount) != before[mount]} == {f"/mnt/{name}" for name in gone}
    assert all(volume["recoveries"] == (name in gone) for name, volume in many.volumes().items())


def test_a_pulled_cable_stalls_all_volumes_and_unmounts_none(many):
    before = many.mount_ids()
    many.machine.set_link(False)
    try:
        many.wait(lambda _, volume: volume["state"] == "stalled", 120, "the cable is out, all are stalled")
    finally:
        many.machine.set_link(True)
    many.wait(ready, 300, "the cable is in again, all are ready")
    assert many.mount_ids() == before
    assert {volume["outages"][-1]["healed_by"] for volume in many.volumes().values()} == {"kernel"}


def test_a_restarted_daemon_adopts_all_volumes_and_remounts_none(many):
    before = many.mount_ids()
    many.product.kill()
    many.wait(ready, 300, "all are ready after kill -9")
    assert many.mount_ids() == before


def test_a_power_off_releases_all_volumes(many):
    print(f"many: off after {many.host.poweroff(120):.0f} s")
