"""Mount points while their volumes are not mounted, and mounts there that are not the volume's."""
import time
from contextlib import contextmanager

import pytest

from rig.house import NAS_EXPORT, NAS_MOUNT, TARGET_ADDRESS
from rig.product import UNIT
from rig.target import NVMET, stable_uuid
from rig.witness import assert_bare

NAME = "bare"
MOUNT = f"/mnt/{NAME}"
ROOMY = "1G"  # an ext4 writes at once if more than half of its free blocks wait to be written
RECORDS = "/var/lib/spark-stage/mount-points"
WORK = f"mkdir -p {MOUNT}/job/checkpoints && echo begun >{MOUNT}/job/checkpoints/log"  # like the start of a job


def enable_namespace(house, value):
    house.target_machine.sh(f"echo {value} >{NVMET}/subsystems/{NAME}/namespaces/1/enable")


def volume_of(house, **keys):
    return house.volume(NAME, access="exclusive", fence="none", fill="echo hello >file", **keys)


def test_not_even_root_can_write_below_the_mount_point_of_an_unmounted_volume(house):
    with volume_of(house, allowed_hosts=[]):
        house.product.wait_failed_attempt(NAME)
        assert house.host.run(WORK).rc != 0, "never mounted"
        house.target.allow(NAME, house.host.hostnqn)
        house.product.wait_volume(NAME, "ready", 90)
        house.host.sh(WORK)
        assert_bare(house, MOUNT)
        house.product.sh(f"volumes down {NAME}")
        assert house.host.run(WORK).rc != 0, "taken down"
        assert_bare(house, MOUNT)
        house.product.sh(f"volumes up {NAME}")
        house.product.wait_volume(NAME, "ready", 90)
    house.host.sh(f"{WORK} && rm -r {MOUNT}")  # without a configured volume it is an ordinary folder


@pytest.mark.long
def test_a_dead_mount_gives_errors_until_its_device_returns_and_is_then_replaced(house):
    with volume_of(house):
        house.product.wait_volume(NAME, "ready", 90)
        house.host.sh(WORK)
        enable_namespace(house, 0)
        volume = house.product.wait_volume(NAME, "lost", 60)
        for _ in range(2):  # failed attempts
            seen = house.product.wait_volume(NAME, lambda volume: volume["next_attempt"], 60)["next_attempt"]
            volume = house.product.wait_volume(NAME, lambda volume, seen=seen: volume["next_attempt"] not in (None, seen), 90)
            assert volume["state"] == "lost" and house.host.run(f"mountpoint -q {MOUNT}").rc == 0
            assert house.host.run(WORK).rc != 0
        assert_bare(house, MOUNT)
        enable_namespace(house, 1)
        volume = house.product.wait_volume(NAME, "ready", 90)
        assert volume["recoveries"] == 1 and house.host.get(f"{MOUNT}/file") == "hello\n"
        assert len(house.host.sh(f"grep ' {MOUNT} ' /proc/self/mountinfo").splitlines()) == 1
        house.host.sh(WORK)
        assert_bare(house, MOUNT)


def test_files_below_a_mount_point_do_not_prevent_mounting_and_are_named(house):
    """An older version allowed such files while a volume was unavailable."""
    with volume_of(house):
        house.product.wait_volume(NAME, "ready", 90)
        house.product.sh(f"volumes down {NAME}")
        house.host.sh(f"chattr -i {MOUNT} && echo precious >{MOUNT}/results")
        house.product.sh(f"volumes up {NAME}")
        volume = house.product.wait_volume(NAME, lambda volume: volume["state"] == "ready", 90)
        assert any("'results'" in warning for warning in volume["warnings"]), volume["warnings"]
        house.product.sh(f"volumes down {NAME}")
        assert house.host.get(f"{MOUNT}/results") == "precious\n"
        house.host.sh(f"chattr -i {MOUNT} && rm {MOUNT}/results")
        house.product.sh(f"volumes up {NAME}")
        house.product.wait_volume(NAME, lambda volume: volume["state"] == "ready" and "results" not in str(volume["warnings"]), 90)


def test_down_is_refused_while_something_is_mounted_on_top(house):
    with volume_of(house):
        house.product.wait_volume(NAME, "ready", 90)
        house.host.sh(f"mount -t tmpfs shield {MOUNT}")
        refused = house.product.run(f"volumes down {NAME}")
        assert refused.rc == 7 and "shield (tmpfs) is mounted on" in refused.err and f"hides volume {NAME}" in refused.err, refused
        assert len(house.host.sh(f"grep ' {MOUNT} ' /proc/self/mountinfo").splitlines()) == 2
        house.host.sh(f"umount {MOUNT}")
        house.product.wait_volume(NAME, "ready", 90)
        house.product.sh(f"volumes down {NAME}")


def test_a_volume_hidden_by_a_mount_over_its_parent_folder_is_not_ready(house):
    deep = "/mnt/deep/bare"
    with volume_of(house, mount=deep):
        house.product.wait_volume(NAME, "ready", 90)
        house.host.sh("mount -t tmpfs shield /mnt/deep && mkdir /mnt/deep/bare")
        volume = house.product.wait_volume(NAME, "refused", 60)
        assert "shield (tmpfs) is mounted on /mnt/deep and hides volume bare" in volume["reason"], volume
        assert house.product.run(f"wait {NAME} --timeout 1s").rc != 0
        refused = house.product.run(f"volumes down {NAME}")
        assert refused.rc == 7 and "umount /mnt/deep" in refused.err, refused
        house.host.sh("umount /mnt/deep")
        house.product.wait_volume(NAME, "ready", 90)
        assert house.host.get(f"{deep}/file") == "hello\n"


def test_a_bind_mount_of_a_folder_of_the_volume_is_not_the_volume(house):
    host, product = house.host, house.product
    with volume_of(house):
        product.wait_volume(NAME, "ready", 90)
        product.sh(f"volumes down {NAME}")
        connect_by_hand(house)
        host.sh(f"mkdir -p /mnt/by-hand && mount /dev/disk/by-uuid/{stable_uuid(NAME)} /mnt/by-hand && "
                f"mkdir /mnt/by-hand/folder && mount --bind /mnt/by-hand/folder {MOUNT}")
        try:
            product.run(f"volumes up {NAME}")
            volume = product.wait_volume(NAME, "refused", 60)
            print(f"over a bind mount: {volume['reason']}")
            assert product.run(f"wait {NAME} --timeout 1s").rc != 0
            assert product.run(f"volumes down {NAME}").rc == 7
            assert host.run(f"mountpoint -q {MOUNT}").rc == 0
        finally:
            host.sh(f"umount {MOUNT} && umount /mnt/by-hand && rmdir /mnt/by-hand")
        product.run(f"volumes up {NAME}")
        product.wait_volume(NAME, "ready", 90)
        assert host.get(f"{MOUNT}/file") == "hello\n"


def test_a_volume_is_not_mounted_where_a_users_link_leads(house):
    """The user renames a folder while the mount waits: here for multi-mount protection, elsewhere for a slow target."""
    host, product, folder, elsewhere = house.host, house.product, "/mnt/theirs", "/srv/elsewhere"
    host.sh(f"mkdir -p {folder}/a {elsewhere}/{NAME} && chown nobody {folder} {folder}/a")
    with house.volume(NAME, mount=f"{folder}/a/{NAME}", access="exclusive", fence="mmp", mmp=True, fill="echo hello >file"):
        product.wait_volume(NAME, lambda volume: "multi-mount protection waits" in (volume["reason"] or ""), 60)
        host.sh(f"runuser -u nobody -- sh -c 'mv {folder}/a {folder}/b && ln -s {elsewhere} {folder}/a'")
        try:
            volume = product.wait_volume(NAME, lambda volume: "link" in (volume["reason"] or ""), 120)
            print(f"after the rename: {volume['reason']}")
            assert volume["state"] == "refused"
            assert host.run(f"grep -E ' ({elsewhere}|{folder})/' /proc/self/mountinfo").out == ""
        finally:
            host.sh(f"rm {folder}/a && mv {folder}/b {folder}/a")
        product.run(f"volumes up {NAME}")
        product.wait_volume(NAME, "ready", 120)
        assert host.get(f"{folder}/a/{NAME}/file") == "hello\n"
    host.sh(f"rm -r {folder} {elsewhere}")


def connect_by_hand(house):
    house.host.sh(f"nvme connect -t tcp -a {TARGET_ADDRESS} -s 4420 -n {NAME}", 60)
    house.host.sh(f"until ls /dev/disk/by-uuid/*{stable_uuid(NAME)[-12:]}; do sleep 0.2; done", 30)


def test_a_mount_made_by_hand_while_the_volume_was_down_keeps_its_data(house):
    """The unwritten data of another program is the daemon's to flush, never to discard."""
    with volume_of(house):
        house.product.wait_volume(NAME, "ready", 90)
        house.product.sh(f"volumes down {NAME}")
        connect_by_hand(house)
        house.host.sh(f"mount /dev/disk/by-uuid/{stable_uuid(NAME)} {MOUNT} && echo precious >{MOUNT}/results")
        house.product.sh(f"volumes up {NAME}")
        house.product.wait_volume(NAME, "ready", 90)
        assert house.host.get(f"{MOUNT}/results") == "precious\n"
        house.product.sh(f"volumes down {NAME} && spark-stage volumes up {NAME}")
        house.product.wait_volume(NAME, "ready", 90)
        assert house.host.get(f"{MOUNT}/results") == "precious\n"


# Its file is closed before its last page is written, so that closing it sends nothing to an NFS server, and nothing has it
# open: prints the content's checksum.
WRITE_BY_MAPPING = """
import ctypes, hashlib, os, sys
path, size = sys.argv[1], int(sys.argv[2]) << 20
libc = ctypes.CDLL(None, use_errno=True)
libc.mmap.restype = ctypes.c_void_p
file = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
os.ftruncate(file, size)
mapped = libc.mmap(None, ctypes.c_size_t(size), 3, 1, file, ctypes.c_long(0))
assert mapped != ctypes.c_void_p(-1).value, ctypes.get_errno()
os.close(file)
content = hashlib.sha256()
for begin in range(0, size, 1 << 20):
    piece = os.urandom(1 << 20)
    content.update(piece)
    ctypes.memmove(mapped + begin, piece, len(piece))
print(content.hexdigest())
"""


@contextmanager
def unwritten_data(house, mib, mount=MOUNT):
    """A file that the kernel writes only when asked; gives its checksum, and ends with a slow link. A device that has written
    little so far has a small part of the limits; its share ends with its mount."""
    house.host.sh(f"echo 90 >/sys/class/bdi/$(mountpoint -d {mount})/min_ratio")
    before = house.host.sh("sysctl vm.dirty_background_ratio vm.dirty_ratio vm.dirty_expire_centisecs vm.dirty_writeback_centisecs")
    house.host.sh("sysctl -q vm.dirty_background_ratio=60 vm.dirty_ratio=80 vm.dirty_expire_centisecs=60000 "
                  "vm.dirty_writeback_centisecs=0")
    try:
        if mount == NAS_MOUNT:
            content = house.host.sh(f"python3 - {mount}/big {mib}", 180, stdin=WRITE_BY_MAPPING.encode()).strip()
        else:
            house.host.sh(f"dd if=/dev/urandom of={mount}/big bs=1M count={mib} status=none", 180)
            content = checksum(house.host, f"{mount}/big")
        house.host.sh("tc qdisc add dev eth0 root tbf rate 16mbit burst 256k latency 200ms")
        yield content
    finally:
        house.host.run("tc qdisc del dev eth0 root")
        house.host.sh("sysctl -q -p - ", stdin=before.encode())


def checksum(machine, file):
    return machine.sh(f"sha256sum <{file}", 180).split()[0]


def checksum_on_target(house):
    """Of the file in the unmounted volume, as the target has it."""
    return house.target_machine.sh(f"debugfs -R 'cat /big' /srv/{NAME}.img 2>/dev/null | sha256sum", 180).split()[0]


def dirty_mib(host):
    return int(host.sh("awk '/^Dirty:/ { print $2 }' /proc/meminfo")) >> 10


def wait_flushed(house, volume, reason):
    """Until its data is being written: `leaving` begins before, with a look at its device."""
    assert house.product.wait_volume(volume, lambda now: reason in (now["reason"] or ""), 60)["state"] == "leaving"


@pytest.mark.long
def test_down_writes_much_unwritten_data_over_a_slow_link_first(house):
    """Longer than the deadline of an unmount."""
    with volume_of(house, size=ROOMY):
        house.product.wait_volume(NAME, "ready", 90)
        with unwritten_data(house, 145) as content:
            assert dirty_mib(house.host) > 140
            began = time.monotonic()
            down = house.host.spawn(f"spark-stage volumes down {NAME}")
            wait_flushed(house, NAME, "unwritten data is being written")
            assert house.product.run(f"wait {NAME} --timeout 1s").rc == 124
            ended = down.wait(600)
            assert ended.rc == 0, ended.err
            assert time.monotonic() - began > 60
        assert house.product.volume(NAME)["state"] == "down"
        assert checksum_on_target(house) == content
        house.product.sh(f"volumes up {NAME}")
        house.product.wait_volume(NAME, "ready", 120)
        assert checksum(house.host, f"{MOUNT}/big") == content


@pytest.mark.long
def test_down_sends_much_unwritten_data_to_an_nfs_server_first(house):
    """Longer than the deadline of an unmount."""
    house.wait_ready()
    with unwritten_data(house, 145, NAS_MOUNT) as content:
        assert dirty_mib(house.host) > 140
        down = house.host.spawn("spark-stage volumes down nas")
        wait_flushed(house, "nas", "unwritten data is being sent to its server")
        assert house.host.run(f"mountpoint -q {NAS_MOUNT}").rc == 0
        ended = down.wait(600)
        assert ended.rc == 0, ended.err
        assert house.product.volume("nas")["state"] == "down"
        assert dirty_mib(house.host) < 20
        assert checksum(house.target_machine, f"{NAS_EXPORT}/big") == content
    house.product.sh("volumes up nas")
    house.wait_ready()
    house.host.sh(f"rm {NAS_MOUNT}/big")


def test_a_down_that_a_crash_cuts_short_is_completed_after_its_data_is_written(house):
    with volume_of(house):
        house.product.wait_volume(NAME, "ready", 90)
        with unwritten_data(house, 24) as content:
            house.host.spawn(f"spark-stage volumes down {NAME}")
            house.product.wait_volume(NAME, lambda volume: "unwritten data" in (volume["reason"] or ""), 60)
            house.product.kill()
            house.product.wait_volume(NAME, "down", 180)
        assert house.host.run(f"mountpoint -q {MOUNT} || grep -qx {NAME} /sys/class/nvme/*/subsysnqn").rc != 0
        house.product.sh(f"volumes up {NAME}")
        house.product.wait_volume(NAME, "ready", 90)
        assert checksum(house.host, f"{MOUNT}/big") == content


def test_release_beside_a_running_daemon_is_refused_and_changes_nothing(house):
    house.wait_ready()
    before = house.host.sh("grep ' /mnt/' /proc/self/mountinfo; cat /sys/class/nvme/*/cntlid")
    refused = house.host.run("spark-staged release", 60)
    assert refused.rc == 7 and "spark-staged is running, and would bring the volumes up again" in refused.err, refused
    assert house.host.sh("grep ' /mnt/' /proc/self/mountinfo; cat /sys/class/nvme/*/cntlid") == before


@pytest.mark.long
def test_release_writes_much_unwritten_data_over_a_slow_link_first(house):
    """Longer than the deadline of an unmount."""
    house.wait_ready()
    with volume_of(house, size=ROOMY):
        house.product.wait_volume(NAME, "ready", 90)
        try:
            with unwritten_data(house, 145) as content:
                house.host.sh(f"systemctl stop {UNIT}", 60)
                assert dirty_mib(house.host) > 140
                began = time.monotonic()
                released = house.host.spawn("spark-staged release 2>&1")
                ended = released.wait(600)
                print(f"release after {time.monotonic() - began:.0f} s: {ended.out}")
                assert ended.rc == 0 and f"volume {NAME}: unmounted" in ended.out and "volume nas: unmounted" in ended.out, ended
                assert time.monotonic() - began > 60
            assert house.host.run(f"grep ' /mnt/' /proc/self/mountinfo || grep -x {NAME} /sys/class/nvme/*/subsysnqn").rc != 0
            assert checksum_on_target(house) == content
        finally:
            house.host.sh(f"systemctl start {UNIT}", 60)
            house.wait_ready(180)
        house.product.wait_volume(NAME, "ready", 120)
        assert checksum(house.host, f"{MOUNT}/big") == content


@pytest.mark.long
def test_down_follows_a_target_that_moves_while_data_is_being_written(house):
    """Its old address answers no more; its name leads to the new one."""
    old, new, port = TARGET_ADDRESS, "10.77.0.77", 4421
    hosts, machine = house.host.get("/etc/hosts"), house.target_machine
    house.host.put("/etc/hosts", f"{hosts}\n{old} moving\n")
    machine.sh(f"ip address add {new}/24 dev eth0")
    targets = {"moving": {"address": "moving", "port": port}}
    try:
        with volume_of(house, target="moving", targets=targets, port=port):
            machine.sh(f"""set -e; cd {NVMET}/ports; mkdir 77; cd 77
                echo tcp >addr_trtype; echo ipv4 >addr_adrfam; echo {new} >addr_traddr; echo {port} >addr_trsvcid
                ln -s {NVMET}/subsystems/{NAME} subsystems/""")
            house.product.wait_volume(NAME, "ready", 90)
            with unwritten_data(house, 64) as content:
                down = house.host.spawn(f"spark-stage volumes down {NAME}")
                house.product.wait_volume(NAME, lambda volume: "unwritten data" in (volume["reason"] or ""), 60)
                house.host.put("/etc/hosts", f"{hosts}\n{new} moving\n")
                machine.sh(f"nft add table ip moved && nft add chain ip moved in '{{ type filter hook input priority 0; }}' && "
                           f"nft add rule ip moved in ip daddr {old} tcp dport {port} drop")
                ended = down.wait(300)
            assert ended.rc == 0, ended.err
            machine.sh("nft delete table ip moved")
            house.product.sh(f"volumes up {NAME}")
            house.product.wait_volume(NAME, "ready", 120)
            assert checksum(house.host, f"{MOUNT}/big") == content
    finally:
        machine.run("nft delete table ip moved")
        machine.run(f"ip address del {new}/24 dev eth0")
        house.host.put("/etc/hosts", hosts)


@pytest.fixture
def stopped(house):
    house.wait_ready()
    house.host.sh(f"systemctl stop {UNIT}", 60)
    yield house
    house.host.sh(f"systemctl start {UNIT}", 60)
    house.wait_ready(180)


@pytest.mark.long
def test_release_keeps_a_foreign_mount_and_the_mount_of_a_silent_target(stopped):
    house = stopped
    machine = house.target_machine
    house.target.export_nfs("/srv/other")
    machine.sh("echo theirs >/srv/other/file")
    house.host.sh(f"umount {NAS_MOUNT} && mount -t nfs4 {TARGET_ADDRESS}:/srv/other {NAS_MOUNT}")
    before = house.host.sh("grep ' /mnt/' /proc/self/mountinfo")
    machine.freeze()
    try:
        said = house.host.sh("spark-staged release 2>&1; [ $? = 1 ]", 120)
    finally:
        machine.thaw()
    assert "/srv/other (nfs4) is mounted there, and is not this volume's: left alone" in said, said
    assert "left unchanged; `nvme disconnect -n raid5-data`" in said, said
    assert house.host.sh("grep ' /mnt/' /proc/self/mountinfo") == before
    assert house.host.get(f"{NAS_MOUNT}/file") == "theirs\n"
    house.host.sh("ls /mnt/rosa-storage/images", 60)
    said = house.host.sh("spark-staged release 2>&1", 120)
    assert "volume datasets: unmounted" in said and "disconnected" in said, said
    assert house.host.get(f"{NAS_MOUNT}/file") == "theirs\n"
    house.host.sh(f"umount {NAS_MOUNT}")
    machine.sh("exportfs -u '*:/srv/other'; rm -r /srv/other")
