"""Volumes that can't be mounted as configured: each reports the reason, and the others are not affected."""
import re

from rig.house import DATASETS_MOUNT, NAS_MOUNT, TARGET_ADDRESS
from rig.target import stable_uuid

OTHER_HOST = "nqn.2014-08.org.nvmexpress:uuid:00000000-1111-2222-3333-444444444444"
REDIRECTED_PORT = 4430


def assert_the_others_are_ready(house):
    assert {house.product.volume(name)["state"] for name in ("datasets", "nas")} == {"ready"}


def test_a_host_off_the_allow_list_is_told_the_nqn_to_add(house):
    with house.volume("private", allowed_hosts=[OTHER_HOST]):
        volume = house.product.wait_failed_attempt("private")
        assert house.host.hostnqn in volume["reason"] and "allow" in volume["reason"]
        assert_the_others_are_ready(house)
        house.target.allow("private", house.host.hostnqn)
        house.product.wait_volume("private", "ready", 90)


def test_the_portal_of_a_subsystem_offered_at_another_port_is_named(house):
    """Port 4430 answers with a discovery log that lists port 4420, like behind address translation."""
    house.target_machine.sh(f"""nft add table ip rig
        nft add chain ip rig in '{{ type nat hook prerouting priority -100; }}'
        nft add rule ip rig in tcp dport {REDIRECTED_PORT} redirect to :4420""")
    try:
        elsewhere = {"elsewhere": {"address": house.target.address, "port": REDIRECTED_PORT}}
        with house.volume("moved", target="elsewhere", targets=elsewhere):
            volume = house.product.wait_failed_attempt("moved")
            assert f"{house.target.address}:4420" in volume["reason"], volume["reason"]
    finally:
        house.target_machine.sh("nft delete table ip rig")


def test_the_volume_of_an_unreachable_target_waits_with_reason_and_next_attempt(house):
    volumes = {"far": {"target": "away", "subsystem": "far", "mount": "/mnt/far"}}
    house.product.configure(house.config(targets={"away": {"address": "10.77.0.99"}}, volumes=volumes))
    try:
        volume = house.product.wait_failed_attempt("far")
        assert "10.77.0.99" in volume["reason"]
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT[\d:.]+Z", volume["next_attempt"])
        assert_the_others_are_ready(house)
        assert house.product.run("wait far --timeout 2s").rc == 124
    finally:
        house.product.configure(house.config())


def test_exclusive_without_a_fence_is_refused(house):
    with house.volume("unfenced", access="exclusive"):
        volume = house.product.wait_volume("unfenced", "refused")
        assert "fence" in volume["reason"]
        assert house.host.run("findmnt /mnt/unfenced").rc != 0


def test_exclusive_with_fence_none_is_writable(house):
    with house.volume("trusting", access="exclusive", fence="none"):
        house.product.wait_volume("trusting", "ready")
        house.host.sh("echo hello >/mnt/trusting/file && sync /mnt/trusting/file")


def test_exclusive_with_mmp_is_writable(house):
    with house.volume("guarded", access="exclusive", mmp=True):
        house.product.wait_volume("guarded", "ready", 90)
        house.host.sh("echo hello >/mnt/guarded/file && sync /mnt/guarded/file")


def test_xfs_is_mounted_read_only_without_recovery(house):
    with house.volume("xvolume", kind="xfs", size="512M", fill="echo hello >file"):
        house.product.wait_volume("xvolume", "ready", 90)
        options = house.host.sh("findmnt -n -o FSTYPE,OPTIONS /mnt/xvolume")
        assert "xfs" in options and "norecovery" in options
        assert house.host.get("/mnt/xvolume/file") == "hello\n"


def test_another_file_system_than_pinned_is_refused(house):
    with house.volume("swapped", uuid=stable_uuid("some other one")):
        volume = house.product.wait_volume("swapped", "refused")
        assert stable_uuid("some other one") in volume["reason"] and stable_uuid("swapped") in volume["reason"]
        assert house.host.run("findmnt /mnt/swapped").rc != 0


def test_a_missing_mount_point_is_created(house):
    assert house.host.run("[ -e /mnt/made/up/as-needed ]").rc != 0
    with house.volume("made", mount="/mnt/made/up/as-needed"):
        house.product.wait_volume("made", "ready")
        house.host.sh("findmnt /mnt/made/up/as-needed")


def test_a_mount_point_that_is_not_empty_is_refused(house):
    house.host.sh("mkdir -p /mnt/full && echo mine >/mnt/full/file")
    with house.volume("full"):
        volume = house.product.wait_volume("full", "refused")
        assert "/mnt/full" in volume["reason"] and "empty" in volume["reason"]
        assert house.host.get("/mnt/full/file") == "mine\n"


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


def test_down_is_refused_while_the_volume_is_in_use(house):
    with house.volume("busy", fill="echo x >file"):
        house.product.wait_volume("busy", "ready")
        user = house.host.spawn("exec sleep 300 </mnt/busy/file")
        house.host.wait_until("pgrep -x sleep")
        result = house.product.run("volumes down busy")
        assert result.rc != 0 and "sleep" in result.err
        house.host.sh("findmnt /mnt/busy")
        user.signal(9)
        user.wait(10)


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
            assert result.rc == 7 and "still in use on this host" in result.err, result
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
