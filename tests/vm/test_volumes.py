"""One volume comes and goes on a real kernel; the others are not affected. Unit tests have the reasons of volumes that can't be
mounted as configured."""
import pytest

from rig.house import DATASETS_MOUNT, NAS_MOUNT, TARGET_ADDRESS


def assert_the_others_are_ready(house):
    assert {house.product.volume(name)["state"] for name in ("datasets", "nas")} == {"ready"}


@pytest.mark.on_6_1
def test_xfs_is_mounted_read_only_without_recovery(house):
    with house.volume("xvolume", kind="xfs", size="512M", fill="echo hello >file"):
        house.product.wait_volume("xvolume", "ready", 90)
        options = house.host.sh("findmnt -n -o FSTYPE,OPTIONS /mnt/xvolume")
        assert "xfs" in options and "norecovery" in options
        assert house.host.get("/mnt/xvolume/file") == "hello\n"


def test_down_unmounts_and_disconnects_and_up_brings_it_back(house):
    with house.volume("elevator"):
        house.product.wait_volume("elevator", "ready")
        house.product.sh("volumes down elevator")
        assert house.product.volume("elevator")["state"] == "down"
        assert house.host.run("findmnt /mnt/elevator").rc != 0
        assert house.host.run("grep -lx elevator /sys/class/nvme/*/subsysnqn").rc != 0
        house.product.sh("volumes up elevator")
        house.product.wait_volume("elevator", "ready")
        assert_the_others_are_ready(house)


def test_down_is_refused_while_the_device_is_mounted_elsewhere(house):
    host, product = house.host, house.product
    with house.volume("handy"):
        product.wait_volume("handy", "ready")
        product.sh("volumes down handy")
        host.sh(f"nvme connect -t tcp -n handy -a {TARGET_ADDRESS} -s 4420", 60)
        head = host.sh("until d=$(ls -d /sys/class/nvme-subsystem/*/nvme*n1 2>/dev/null | while read n; do "
                       "grep -qx handy ${n%/*}/subsysnqn && echo ${n##*/}; done | grep .); do sleep 0.2; done; echo $d", 30)
        host.sh(f"mkdir -p /mnt/elsewhere && mount /dev/{head.strip()} /mnt/elsewhere", 60)
        try:
            product.run("volumes up handy")
            product.wait_volume("handy", "refused", 60)
            result = product.run("volumes down handy", 60)
            assert result.rc == 7 and "is mounted at /mnt/elsewhere" in result.err, result
            host.sh("echo hello >/mnt/elsewhere/file && sync /mnt/elsewhere/file")
        finally:
            host.sh("umount /mnt/elsewhere && rmdir /mnt/elsewhere", 60)
        product.sh("volumes down handy", 60)
        assert host.run("grep -qx handy /sys/class/nvme/*/subsysnqn").rc != 0


def test_the_health_of_the_targets_drives_is_shown(house):
    drives = house.product.wait_volume("datasets", lambda volume: volume["drives"], 90)["drives"]
    # nvmet answers with empty values.
    assert drives["critical"] == [] and drives["media_errors"] == 0, drives
    assert drives["temperature_c"] is None and drives["spare_percent"] is None, drives


def test_nothing_else_on_the_host_is_changed(house):
    """After all tests above: only configured volumes are mounted or connected."""
    mounts = set(house.host.sh("findmnt -n -r -o TARGET -t ext4,xfs,nfs4").split())
    assert {DATASETS_MOUNT, NAS_MOUNT} <= mounts <= {DATASETS_MOUNT, NAS_MOUNT, "/", "/local", "/local/cache/data"}
    connected = set(house.host.sh("for c in /sys/class/nvme/*; do grep -qx tcp $c/transport && cat $c/subsysnqn; done; "
                                  "true").split())
    assert connected - {"nqn.2014-08.org.nvmexpress.discovery"} == {"raid5-data"}  # a discovery request may be in progress
