"""A host that boots before its target recovers automatically. Runs first, before the shared house has a target."""
import pytest

from rig.house import DATASETS_MOUNT, DATASETS_UUID, NAS_MOUNT
from rig.product import UNIT


pytestmark = pytest.mark.on_6_1


@pytest.fixture(scope="module")
def before_target(cold_house):
    if cold_house.target_machine.is_running():
        pytest.fail("the target runs already: run this file first, in a run of its own or before the others")
    return cold_house


def test_the_service_runs_at_boot_and_names_the_target_it_waits_for(before_target):
    machine, product = before_target.host, before_target.product
    assert machine.sh(f"systemctl is-enabled {UNIT}").strip() == "enabled"
    machine.wait_until(f"systemctl is-active {UNIT}", 30)
    volume = product.wait_failed_attempt("datasets")
    assert before_target.target.address in volume["reason"]
    assert "buffer stays small" not in machine.sh(f"journalctl -b -u {UNIT}")


def test_an_absent_target_does_not_hold_up_boot(before_target):
    machine = before_target.host
    machine.wait_until("systemctl is-active multi-user.target", 60)
    jobs = machine.sh("systemctl list-jobs --no-legend")
    assert not jobs.strip() or "spark" not in jobs


def test_volumes_become_ready_when_the_target_starts_later(before_target):
    before_target.start_target()
    seconds = before_target.wait_ready(180)
    print(f"ready {seconds:.1f} s after the target offered its volumes")


def test_the_read_only_volume_is_mounted_as_configured(house):
    volume = house.product.volume("datasets")
    assert volume["access"] == "read-only"
    assert volume["filesystem"] == {"type": "ext4", "uuid": DATASETS_UUID}
    assert [path["state"] for path in volume["paths"]] == ["live"]
    line = house.host.sh(f"findmnt -n -o SOURCE,FSTYPE,OPTIONS {DATASETS_MOUNT}").split()
    source, kind, options = line[0], line[1], line[2].split(",")
    assert kind == "ext4" and "ro" in options and "noatime" in options
    assert house.host.sh(f"blkid -p -s UUID -o value {source}").strip() == DATASETS_UUID
    assert house.host.sh(f"blockdev --getro {source}").strip() == "1", "the device itself has to be read-only"
    assert house.host.run(f"touch {DATASETS_MOUNT}/x").rc != 0


@pytest.mark.parametrize("mount", [DATASETS_MOUNT, NAS_MOUNT])
def test_systemd_orders_a_mount_after_the_network(house, mount):
    """_netdev: at shutdown the volume must be unmounted before the network stops."""
    assert "_netdev" in house.host.sh(f"grep -h ' {mount} ' /run/mount/utab || grep -h 'TARGET={mount} ' /run/mount/utab")
    after = house.host.sh(f'systemctl show -P After "$(systemd-escape -p --suffix=mount {mount})"')
    assert "remote-fs-pre.target" in after


def test_the_nfs_volume_is_mounted(house):
    assert house.product.volume("nas")["kind"] == "nfs"
    house.host.sh(f"findmnt -n -t nfs4 {NAS_MOUNT}")
