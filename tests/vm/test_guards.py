"""Things that a volume must never do: write to a damaged or replaced file system, or be reported as stalled because a
writer is busy."""
import signal
import time
from contextlib import contextmanager

import pytest

from rig.product import UNIT
from rig.target import stable_uuid

OTHER_UUID = stable_uuid("another file system")


@pytest.mark.long
def test_an_outdated_reader_in_use_is_logged_once_until_it_is_remounted(house):
    log = f"journalctl -u {UNIT} -o cat SPARK_VOLUME=old"
    with house.volume("old", fill="echo hello >file"):
        house.product.wait_volume("old", "ready", 90)
        with user_of(house, "/mnt/old/file"):
            # Simulates another host that opens it for writing and closes it.
            house.target_machine.sh("debugfs -w -R 'set_super_value mtime 20300101000000' /srv/old.img && sync")
            volume = house.product.wait_volume("old", lambda volume: "sleep" in (volume["reason"] or ""), 60)
            assert volume["state"] == "ready" and "written since it was mounted here" in volume["reason"], volume
            before = house.host.sh(log)
            house.host.sh("exec sleep 45", 90)  # several attempts to unmount, with growing pauses
            assert house.host.sh(log) == before, "one line for each change, and nothing has changed"
        house.product.wait_volume("old", lambda volume: volume["state"] == "ready" and not volume["reason"], 90)
        assert house.host.get("/mnt/old/file") == "hello\n"


@contextmanager
def user_of(house, path):
    process = house.host.spawn(f"sh -c 'echo open >&2; exec sleep 600' <{path}")
    process.wait_said("open")
    try:
        yield
    finally:
        process.signal(signal.SIGKILL)


def find_error(house, name):
    """Triggers the kernel's handling of a damaged structure."""
    device = house.product.wait_volume(name, "ready", 90)["device"].removeprefix("/dev/")
    house.host.sh(f"echo damaged >/sys/fs/ext4/{device}/trigger_fs_error")


def check_refused(house, name):
    volume = house.product.wait_volume(name, "refused", 90)
    assert f"e2fsck -f {volume['device']}" in volume["reason"], volume["reason"]
    assert house.host.run(f"mountpoint -q /mnt/{name}").rc != 0
    return volume


def repair_and_check(house, name, device):
    house.host.sh(f"e2fsck -fy {device} || [ $? = 1 ]", 60)
    assert not house.product.wait_volume(name, "ready", 60)["warnings"]
    house.host.sh(f"echo written >/mnt/{name}/file && sync -f /mnt/{name}/file")


@pytest.mark.parametrize("errors", [pytest.param("continue", marks=pytest.mark.long), "remount-ro"])
def test_an_ext4_with_recorded_errors_is_not_written_again_until_it_is_repaired(house, errors):
    """With remount-ro the kernel stops all writes; otherwise the volume stays in use, with a warning, until it is taken down."""
    name = f"damaged-{errors}"
    keys = {"access": "exclusive", "fence": "none", "options": [f"errors={errors}"]}
    with house.volume(name, fill="touch file", **keys):
        find_error(house, name)
        if errors == "continue":
            house.product.wait_volume(name, lambda volume: any("e2fsck" in one for one in volume["warnings"]), 60)
            assert house.product.volume(name)["state"] == "ready"
            house.product.sh(f"volumes down {name}")
            house.product.run(f"volumes up {name}")
        device = check_refused(house, name)["device"]
        house.product.restart()
        check_refused(house, name)
        repair_and_check(house, name, device)


def test_nothing_is_written_to_another_file_system_than_was_mounted(house):
    """Like restoring a snapshot, or recreating a disk, at the target under a host that writes."""
    image = "/srv/swapped.img"
    with house.volume("swapped", access="exclusive", fence="none", fill="touch file"):
        house.product.wait_volume("swapped", "ready", 90)
        with user_of(house, "/mnt/swapped/file"):  # prevents unmounting
            # The kernel writes the superblock at the first open after a mount; sync now, so that it does not overwrite the new one.
            house.host.sh("sync")
            house.target_machine.sh(f"mkfs.ext4 -q -F -b 4096 -J size=4 -E nodiscard -U {OTHER_UUID} {image} && sync", 60)
            volume = house.product.wait_volume("swapped", "refused", 60)
            assert OTHER_UUID in volume["reason"], volume["reason"]
            house.target_machine.sh(f"sync; cp {image} {image}.then")
            assert house.host.run("head -c 1M /dev/urandom >/mnt/swapped/late && sync").rc != 0
            house.host.run("sync")
            changed = house.target_machine.run(f"sync; cmp -l {image} {image}.then | awk '{{print int(($1 - 1) / 4096)}}' | uniq -c").out
            house.target_machine.sh(f"rm {image}.then")
            assert not changed, f"bytes written, block of the file system: {changed}"
        volume = house.product.wait_volume("swapped", lambda volume: OTHER_UUID in volume["reason"], 60)
        assert volume["state"] == "refused"


WRITER = "while :; do dd if=/dev/zero of=/mnt/busy/big bs=1M count=200 conv=notrunc,fsync 2>/dev/null; touch /mnt/busy/$RANDOM; done"


@pytest.mark.long
def test_a_writer_that_saturates_a_slow_link_for_two_minutes_causes_no_outage(house):
    """Each request takes longer than a probe may, but none exceeds the kernel's own timeout."""
    with house.volume("busy", access="exclusive", fence="none", size="512M"):
        house.product.wait_volume("busy", "ready", 90)
        house.host.sh("tc qdisc add dev eth0 root tbf rate 80mbit burst 64k latency 400ms")
        writer = house.host.spawn(f"bash -c '{WRITER}'")
        slowest_us = 0
        try:
            end = time.monotonic() + 120
            while time.monotonic() < end:
                for volume in house.product.status()["volumes"]:
                    assert volume["state"] == "ready", volume
                slowest_us = max(slowest_us, house.product.volume("busy")["probe"]["last_us"])
                time.sleep(1)
        finally:
            writer.signal(signal.SIGKILL)
            house.host.sh("pkill -x dd; tc qdisc del dev eth0 root")
        print(f"saturated link: slowest probe that was answered {slowest_us / 1e6:.1f} s")
        for volume in house.product.status()["volumes"]:
            assert not volume["outages"] or volume["name"] != "busy", volume["outages"]
        house.host.wait_until("! pgrep -x dd", 60)
    house.host.wait_until("""spark-stage status --json | grep -q '"stuck_workers": *0'""", 60)
