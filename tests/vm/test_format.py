"""`volumes format` makes a file system on an empty device that no other host holds."""
import json
import time
from contextlib import contextmanager

import pytest

from rig.house import TARGET_ADDRESS
from rig.product import Product, config_text
from rig.target import NVMET

SIZE = 320 << 20  # image size; mkfs.xfs needs at least 300 MiB


@contextmanager
def empty(house, name, *, size=SIZE, **keys):
    """A volume of the host on a new namespace of zeros, which is refused for that reason; yields the image's path on the target."""
    device = house.target.image(name, size)
    house.target.export(name, device, reservations=True)
    body = {"target": "rose", "subsystem": name, "mount": f"/mnt/{name}", "access": "exclusive", **keys}
    try:
        house.product.configure(house.config(volumes={name: body}))
        volume = house.product.wait_volume(name, "refused", 120)
        assert "holds no file system" in volume["reason"] and f"volumes format {name}" in volume["reason"]
        yield device
    finally:
        house.product.run(f"volumes down {name}", 120)
        house.product.configure(house.config())
        house.target.remove(name)
        house.target_machine.sh(f"rm -f {device}")


def fingerprint(house, device):
    return house.target_machine.sh(f"/usr/local/lib/rig/extents {device}", 120)


def has_reservations(house, name):
    return house.target_machine.run(f"[ -e {NVMET}/subsystems/{name}/namespaces/1/resv_enable ]").rc == 0


def expect_refused(house, name, device, *words):
    """Expects a refusal despite the confirmed name: exit status 7, these words, and an unchanged image."""
    before = fingerprint(house, device)
    done = house.product.run(f"volumes format {name} --confirm {name}", 120)
    print(f"{name}: {done.err.strip()}")
    assert done.rc == 7, done.out + done.err
    for word in words:
        assert word in done.err, done.err
    assert fingerprint(house, device) == before


def assert_sound(house, device):
    checked = house.target_machine.run(f"e2fsck -fn {device}", 120)
    assert checked.rc == 0, checked.out + checked.err


def test_an_empty_namespace_becomes_a_volume(house):
    name = "fresh"
    with empty(house, name) as device:
        before = fingerprint(house, device)
        wrong = house.host.run(f"echo yes | spark-stage volumes format {name}", 60)
        assert wrong.rc == 1 and TARGET_ADDRESS in wrong.err and f"{SIZE} bytes" in wrong.err, wrong.err
        assert house.product.run(f"volumes format {name} --yes").rc == 2
        assert house.product.run(f"volumes format {name} --confirm other", 60).rc == 2
        assert fingerprint(house, device) == before
        made = house.host.sh(f"echo {name} | spark-stage volumes format {name} --json", 120)
        answer = json.loads(made)
        began = time.monotonic()
        volume = house.product.wait_volume(name, "ready", 120)
        print(f"ready {time.monotonic() - began:.1f} s after it was made")
        assert volume["filesystem"] == {"type": "ext4", "uuid": answer["filesystem"]["uuid"]}
        assert volume["fence"]["mmp"] and volume["fence"]["reservation"] == has_reservations(house, name)
        assert answer["reservation"] == has_reservations(house, name) and answer["mmp"]
        shown = house.host.sh(f"tune2fs -l {volume['device']}")
        assert " mmp " in shown and f"volume name:   {name}" in shown, shown
        house.host.sh(f"echo hello >/mnt/{name}/file && sync /mnt/{name}/file")
        mounted = house.product.run(f"volumes format {name} --confirm {name}")
        assert mounted.rc == 7 and "when it was mounted here last" in mounted.err, mounted.err
        assert house.product.run(f"volumes down {name}", 120).rc == 0
        assert_sound(house, device)
        assert house.product.run(f"volumes format {name} --confirm {name}").rc in (4, 7), "it is not connected"
        house.product.sh(f"volumes up {name}")
        house.product.wait_volume(name, "ready", 120)
        assert house.host.get(f"/mnt/{name}/file") == "hello\n"


@pytest.mark.long
def test_an_xfs_is_made_only_with_reservations(house):
    name = "weights"
    with empty(house, name) as device:
        if not has_reservations(house, name):
            before = fingerprint(house, device)
            done = house.product.run(f"volumes format {name} --type xfs --confirm {name}", 60)
            assert done.rc == 7 and "offers no reservation" in done.err, done.err
            assert fingerprint(house, device) == before
            return
        house.product.sh(f"volumes format {name} --type xfs --confirm {name}", 120)
        volume = house.product.wait_volume(name, "ready", 120)
        assert volume["filesystem"]["type"] == "xfs" and volume["fence"]["reservation"]


@pytest.fixture
def another_host(second_host):
    return Product(second_host)


def test_a_device_held_by_another_host_is_refused_and_the_host_named(house, another_host):
    name = "theirs"
    body = {"target": "rose", "subsystem": name, "mount": f"/mnt/{name}", "access": "exclusive"}
    with empty(house, name) as device:
        if not has_reservations(house, name):
            pytest.skip("this target's kernel has no reservations: nothing tells that another host holds it")
        other = another_host.machine
        another_host.configure(config_text(targets={"rose": {"address": TARGET_ADDRESS}}, volumes={name: body}))
        theirs = another_host.wait_volume(name, "refused", 120)["device"]
        try:
            other.sh(f"nvme resv-register {theirs} --nrkey=0x77 --rrega=0 && "
                     f"nvme resv-acquire {theirs} --crkey=0x77 --rtype=1 --racqa=0")
            expect_refused(house, name, device, "holds the reservation", other.get("/etc/nvme/hostid").strip())
            other.sh(f"nvme resv-release {theirs} --crkey=0x77 --rtype=1 --rrela=0 && "
                     f"nvme resv-register {theirs} --crkey=0x77 --rrega=1")
            # The other host now uses the volume: it formats and mounts it.
            another_host.sh(f"volumes format {name} --confirm {name}", 120)
            another_host.wait_volume(name, "ready", 120)
            done = house.product.run(f"volumes format {name} --confirm {name}", 120)
            assert done.rc == 7 and "holds the reservation" in done.err, done.err
        finally:
            another_host.run(f"volumes down {name}", 120)
            another_host.configure(config_text(targets={"rose": {"address": TARGET_ADDRESS}}))
        assert_sound(house, device)


@pytest.mark.long
def test_a_killed_format_leaves_no_file_system_and_can_be_repeated(house):
    name = "killed"
    with empty(house, name, size=24 << 30) as device:
        for delay in (0, 0.3, 0.8, 1.5):
            # Kills the program and its children; mkfs ends with them.
            house.host.sh(f"""spark-stage volumes format {name} --confirm {name} >/tmp/format.log 2>&1 &
                command=$!
                until pgrep -x mkfs.ext4 >/dev/null || ! kill -0 $command; do :; done
                sleep {delay}
                kill -9 $command || true
                wait $command || true
                while pgrep -x mkfs.ext4 >/dev/null; do sleep 0.1; done""", 180)
            found = house.target_machine.run(f"blkid -p -o value -s TYPE {device}").out.strip()
            left = house.target_machine.run(f"cmp -s -n {4 << 20} {device} /dev/zero").rc
            print(f"killed {delay} s into mkfs: {found or 'no file system'}, its beginning is "
                  f"{'not empty' if left else 'empty'}")
            if found:
                break
        again = house.product.run(f"volumes format {name} --confirm {name}", 180)
        print(again.out + again.err)
        if found:  # the last kill came too late: the file system exists
            assert found == "ext4" and again.rc == 7, again.err
            house.product.sh(f"volumes up {name}")
        else:
            assert again.rc == 0, again.err
        house.product.wait_volume(name, "ready", 180)
        assert house.host.run("ls -A /var/lib/spark-stage/formatting").out == ""
        assert house.product.run(f"volumes down {name}", 120).rc == 0
        assert_sound(house, device)
