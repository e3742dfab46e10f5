"""One volume, two hosts: at most one writer, regardless of the order of requests, and a reader that detects foreign writes.

Both fences are active if the kernel's nvmet has reservations; with 6.1 only multi-mount protection.
"""
import json
import os

import pytest

from rig.house import TARGET_ADDRESS
from rig.pair import MOUNT, NAME
from rig.product import UNIT
from rig.settings import KERNEL
from rig.target import NVMET, stable_uuid

RECORD = 64 << 10
RACES = int(os.environ.get("SPARK_RACES", "1"))
# Writes everything. What a kernel still has to write when its link goes down it writes when the link is back; a target that
# has forgotten a takeover meanwhile lets it.
WRITE_ALL = f"fsfreeze -f {MOUNT} && fsfreeze -u {MOUNT}"
needs_reservations = pytest.mark.skipif(KERNEL == "6.1", reason="targets of Debian 12's kernel have no reservations")


@pytest.mark.on_6_1
@pytest.mark.repeats
def test_of_two_simultaneous_hosts_only_one_gets_the_volume_and_the_other_after_its_release(pair):
    pair.configure(0, "exclusive")
    pair.configure(1, "exclusive")
    for _ in range(RACES):
        winner, loser = pair.settle()
        reason = pair.products[loser].volume(NAME)["reason"]
        assert "reservation" in reason or f"host{winner + 1}" in reason, reason
        pair.hosts[winner].sh(f"echo written >{MOUNT}/file && sync {MOUNT}/file")
        assert pair.hosts[loser].run(f"findmnt {MOUNT}").rc != 0
        for index in (0, 1):
            pair.down(index)
        asked = [host.spawn(f"spark-stage volumes up {NAME}") for host in pair.hosts]  # both requests are sent before
                                                                                       # either answer
        assert [process.wait(60).rc for process in asked] == [0, 0]
    winner, loser = pair.settle()
    assert pair.down(winner).rc == 0
    pair.products[loser].wait_volume(NAME, "ready", 180)


def write_for_ever(host, path):
    """Writes flushed records of one block each; every eight bytes contain the record's number."""
    return host.spawn(f"""python3 -c '
import os, struct
fd = os.open("{path}", os.O_WRONLY | os.O_CREAT, 0o644)
number = 0
while True:
    os.pwrite(fd, struct.pack("<Q", number) * ({RECORD} // 8), (number % 256) * {RECORD})
    os.fsync(fd)
    number += 1
'""")


@needs_reservations  # without them nothing can stop a frozen host
def test_a_frozen_writer_writes_nothing_after_a_takeover(pair):
    pair.configure(0, "exclusive")
    pair.products[0].wait_volume(NAME, "ready", 120)
    assert pair.products[0].volume(NAME)["fence"]["reservation"]
    pair.configure(1, "exclusive")
    volume = pair.products[1].wait_volume(NAME, "refused", 120)
    assert volume["fence"]["held_by"] and "volumes take" in volume["reason"]
    writer = write_for_ever(pair.hosts[0], f"{MOUNT}/log")
    pair.hosts[0].wait_until(f"[ $(stat -c %s {MOUNT}/log) -gt {RECORD} ]", 60)
    pair.hosts[0].freeze()
    try:
        taken = pair.products[1].run(f"volumes take {NAME} --yes", 300)
        assert taken.rc == 0, taken.err
        assert "taken over from" in taken.out
        pair.products[1].wait_volume(NAME, "ready", 120)
        pair.hosts[1].sh(f"cp {MOUNT}/log {MOUNT}/log.then && echo mine >{MOUNT}/file && sync", 60)
        before = pair.hosts[1].sh(f"dd if={MOUNT}/log iflag=direct bs=64k status=none | sha256sum", 60)
    finally:
        pair.hosts[0].thaw()
    pair.products[0].wait_volume(NAME, "refused", 180)
    reason = pair.products[0].volume(NAME)["reason"]
    print(f"the old writer says: {reason}")
    assert "host2" in reason or "host ID" in reason, "it does not name who has the volume now"
    assert writer.wait(60).rc != 0, "its writes and flushes gave it no error"
    after = pair.hosts[1].sh(f"dd if={MOUNT}/log iflag=direct bs=64k status=none | sha256sum", 60)
    assert before == after
    pair.hosts[1].sh(f"[ $(cat {MOUNT}/file) = mine ] && echo more >{MOUNT}/more && sync {MOUNT}/more")
    assert pair.products[1].volume(NAME)["state"] == "ready"


@pytest.mark.long
def test_a_reader_is_marked_while_another_host_writes_and_stages_nothing(pair):
    pair.configure(1, "read-only")
    pair.products[1].wait_volume(NAME, "ready", 120)
    pair.configure(0, "exclusive")
    pair.products[0].wait_volume(NAME, "ready", 120)
    volume = pair.products[1].wait_volume(NAME, lambda volume: volume["foreign_writes"], 60)
    assert volume["state"] == "ready" and "being written by another host" in volume["reason"]
    assert pair.products[1].run(f"stage {NAME}:file", 60).rc == 7
    pair.hosts[0].sh(f"echo second >{MOUNT}/file && sync {MOUNT}/file")
    assert pair.down(0).rc == 0
    pair.products[1].wait_volume(NAME, lambda volume: volume["state"] == "ready" and not volume["foreign_writes"], 120)
    assert pair.hosts[1].get(f"{MOUNT}/file") == "second\n"


def test_a_machine_with_a_copied_host_id_is_refused(pair):
    own = pair.hosts[1].get("/etc/nvme/hostid")
    pair.hosts[1].put("/etc/nvme/hostid", pair.hosts[0].get("/etc/nvme/hostid"))
    try:
        pair.configure(0, "exclusive")
        pair.products[0].wait_volume(NAME, "ready", 120)
        pair.configure(1, "exclusive")
        volume = pair.products[1].wait_volume(NAME, "refused", 120)
        print(f"the copy is told: {volume['reason']}")
        assert "own host ID" in volume["reason"] or "host1" in volume["reason"]
        assert "spark-stage host new-identity" in volume["reason"] or not pair.has_reservations()
        assert pair.hosts[1].run(f"findmnt {MOUNT}").rc != 0
    finally:
        pair.down(1)
        pair.hosts[1].put("/etc/nvme/hostid", own)


IDENTITY = ("/etc/nvme/hostnqn", "/etc/nvme/hostid", "/etc/machine-id")


@needs_reservations  # without one an xfs is refused: nothing else keeps a second writer out
@pytest.mark.long
def test_a_clone_of_the_writers_whole_image_is_refused_its_xfs(xfs_pair):
    pair = xfs_pair
    own = {path: pair.hosts[1].get(path) for path in IDENTITY}
    pair.configure(0, "exclusive")
    pair.products[0].wait_volume(NAME, "ready", 120)
    try:
        for path in IDENTITY:
            pair.hosts[1].put(path, pair.hosts[0].get(path))
        pair.configure(1, "exclusive")
        volume = pair.products[1].wait_volume(NAME, lambda volume: volume["state"] in ("ready", "refused"), 120)
        print(f"the clone is told: {volume['reason']}")
        assert volume["state"] == "refused" and "spark-stage host new-identity" in volume["reason"], volume
        assert pair.hosts[1].run(f"findmnt {MOUNT}").rc != 0
        pair.hosts[0].sh(f"echo mine >{MOUNT}/file && sync {MOUNT}/file")
        assert pair.products[0].volume(NAME)["state"] == "ready"
    finally:
        pair.down(1)
        pair.configure(1)
        for path, content in own.items():
            pair.hosts[1].put(path, content)


@needs_reservations
def test_a_crashed_host_mounts_its_own_xfs_again(xfs_pair):
    pair = xfs_pair
    pair.configure(1, "exclusive")
    pair.products[1].wait_volume(NAME, "ready", 120)
    pair.hosts[1].sh(f"echo mine >{MOUNT}/file && sync {MOUNT}/file && echo late >{MOUNT}/late")
    pair.hosts[1].sh("sync -f /etc")
    pair.hosts[1].kill()
    pair.hosts[1].start()
    pair.hosts[1].wait_ready(until="spark-stage status")
    pair.products[1].wait_volume(NAME, "ready", 180)
    assert pair.hosts[1].get(f"{MOUNT}/file") == "mine\n"


@needs_reservations
def test_a_writer_mounts_its_xfs_again_after_its_namespace_was_briefly_disabled(xfs_pair):
    pair = xfs_pair
    host, product = pair.hosts[1], pair.products[1]
    pair.configure(1, "exclusive")
    product.wait_volume(NAME, "ready", 120)
    host.sh(f"echo mine >{MOUNT}/file && sync {MOUNT}/file && echo late >{MOUNT}/late")
    enable = f"{NVMET}/subsystems/{NAME}/namespaces/1/enable"
    pair.target.machine.sh(f"echo 0 >{enable}")  # nvmet forgets the reservation, and the host loses its device
    product.wait_volume(NAME, lambda volume: volume["state"] not in ("ready", "stalled"), 60)
    pair.target.machine.sh(f"echo 1 >{enable}")
    product.wait_volume(NAME, "ready", 180)
    assert host.get(f"{MOUNT}/file") == "mine\n"
    report = json.loads(host.sh(f"nvme resv-report {product.volume(NAME)['device']} --eds -o json"))
    assert report["rtype"] == 1, report


@needs_reservations
@pytest.mark.long
def test_take_works_after_this_hosts_machine_id_has_changed(xfs_pair):
    pair = xfs_pair
    host, product = pair.hosts[1], pair.products[1]
    own = host.get("/etc/machine-id")
    pair.configure(1, "exclusive")
    product.wait_volume(NAME, "ready", 120)
    try:
        host.sh(f"systemctl stop {UNIT} && umount {MOUNT}", 60)
        host.put("/etc/machine-id", "0123456789abcdef0123456789abcdef\n")
        host.sh(f"systemctl start {UNIT}", 60)
        volume = product.wait_volume(NAME, "refused", 120)
        print(f"after the machine ID has changed: {volume['reason']}")
        assert "own host ID" in volume["reason"] and f"volumes take {NAME}" in volume["reason"]
        taken = product.run(f"volumes take {NAME} --yes", 300)
        assert taken.rc == 0, taken.err
        product.wait_volume(NAME, "ready", 60)
        host.sh(f"echo mine >{MOUNT}/file && sync {MOUNT}/file")
    finally:
        pair.down(1)
        host.put("/etc/machine-id", own)


@needs_reservations  # with them the daemon notices that it holds none for this mount
def test_a_mount_by_hand_while_a_reserved_volume_is_down_keeps_its_unwritten_data(pair):
    host, product = pair.hosts[0], pair.products[0]
    pair.configure(0, "exclusive")
    product.wait_volume(NAME, "ready", 120)
    assert pair.down(0).rc == 0
    device = f"/dev/disk/by-uuid/{stable_uuid(NAME)}"
    host.sh(f"nvme connect -t tcp -a {TARGET_ADDRESS} -s 4420 -n {NAME}", 60)
    host.sh(f"until [ -e {device} ]; do sleep 0.2; done; mount {device} {MOUNT} && echo precious >{MOUNT}/results", 60)
    product.sh(f"volumes up {NAME}")
    product.wait_volume(NAME, "ready", 120)
    host.sh(f"echo more >{MOUNT}/more && sync -f {MOUNT}")  # it was not shut down
    host.sh("sleep 25")  # two probes
    assert product.volume(NAME)["state"] == "ready" and product.volume(NAME)["fence"]["reservation"]
    assert pair.down(0).rc == 0
    product.sh(f"volumes up {NAME}")
    product.wait_volume(NAME, "ready", 120)
    assert host.get(f"{MOUNT}/results") == "precious\n" and host.get(f"{MOUNT}/more") == "more\n"


@needs_reservations
@pytest.mark.long
def test_a_stalled_writer_remounts_if_its_taken_reservation_was_forgotten_by_the_target(xfs_pair):
    """It holds the reservation again after the target's restart, but its mount is older than the disk."""
    pair = xfs_pair
    pair.configure(0, "exclusive")
    pair.products[0].wait_volume(NAME, "ready", 120)
    pair.hosts[0].sh(f"echo first >{MOUNT}/file && {WRITE_ALL}")
    pair.hosts[0].set_link(False)
    try:
        pair.products[0].wait_volume(NAME, "stalled", 120)
        pair.configure(1, "exclusive")
        pair.products[1].wait_volume(NAME, "refused", 120)
        assert pair.products[1].run(f"volumes take {NAME} --yes", 300).rc == 0
        pair.products[1].wait_volume(NAME, "ready", 120)
        pair.hosts[1].sh(f"echo mine >{MOUNT}/file && echo mine >{MOUNT}/of-host2 && sync -f {MOUNT}")
        assert pair.down(1).rc == 0
        enable = f"{NVMET}/subsystems/{NAME}/namespaces/1/enable"
        pair.target.machine.sh(f"echo 0 >{enable} && echo 1 >{enable}")
    finally:
        pair.hosts[0].set_link(True)
    pair.products[0].wait_volume(NAME, lambda volume: volume["state"] == "ready" and volume["recoveries"] > 0, 240)
    assert pair.hosts[0].get(f"{MOUNT}/file") == "mine\n" and pair.hosts[0].get(f"{MOUNT}/of-host2") == "mine\n"


@pytest.mark.long
def test_a_multi_mount_protection_with_a_long_interval_is_waited_for(pair):
    pair.target.machine.sh(f"tune2fs -E mmp_update_interval=60 {pair.device} && sync", 60)
    pair.configure(0, "exclusive", fence="mmp")
    volume = pair.products[0].wait_volume(NAME, "mounting", 120)
    assert "multi-mount protection waits" in volume["reason"], volume
    pair.products[0].wait_volume(NAME, "ready", 900)
    pair.hosts[0].sh(f"echo mine >{MOUNT}/file && sync {MOUNT}/file")


def test_a_host_with_a_new_name_is_not_taken_for_another_one(pair):
    """Each remount for writing puts the host's present name into the block of the multi-mount protection."""
    host, product = pair.hosts[0], pair.products[0]
    pair.configure(0, "exclusive")
    product.wait_volume(NAME, "ready", 120)
    host.sh(f"echo precious >{MOUNT}/results && hostname renamed")
    try:
        product.restart()
        before = product.wait_volume(NAME, "ready", 120)
        product.sh(f"volumes publish {NAME} --then-write", 300)
        host.sh("exec sleep 25", 40)  # two probes
        volume = product.volume(NAME)
        assert volume["state"] == "ready" and volume["outages"] == before["outages"], volume
        host.sh(f"echo more >{MOUNT}/more && sync -f {MOUNT}")
    finally:
        host.sh(f"hostname {host.name}")
    assert host.get(f"{MOUNT}/results") == "precious\n"


STOPPED = f"journalctl -u {UNIT} --since @{{}} -o cat | grep 'writing was stopped here at once'"


def forget_reservations(pair):
    """As nvmet does at its restart. The hosts that must not see it are off the wire."""
    enable = f"{NVMET}/subsystems/{NAME}/namespaces/1/enable"
    pair.target.machine.sh(f"echo 0 >{enable} && echo 1 >{enable}")


def take(pair, index):
    pair.configure(index, "exclusive")
    pair.products[index].wait_volume(NAME, "refused", 120)
    taken = pair.products[index].run(f"volumes take {NAME} --yes", 300)
    assert taken.rc == 0, taken.err
    pair.products[index].wait_volume(NAME, "ready", 120)
    pair.hosts[index].sh(f"echo mine >{MOUNT}/file && sync -f {MOUNT}")


@pytest.fixture
def quiet_pair(xfs_pair):
    """The first host's kernel writes no superblock of an idle xfs: otherwise it does, up to a minute after the last change."""
    period = "/proc/sys/fs/xfs/xfssyncd_centisecs"
    before = xfs_pair.hosts[0].sh(f"modprobe xfs && cat {period} && echo 720000 >{period}").strip()
    yield xfs_pair
    xfs_pair.hosts[0].sh(f"echo {before} >{period}")


def wait_probes(product, number):
    """The daemon has compared the disk, and recorded its state, after all of them but the first and the last one."""
    for _ in range(number):
        seen = product.volume(NAME)["probe"]["last_us"]
        product.wait_volume(NAME, lambda volume, seen=seen: volume["probe"]["last_us"] != seen, 60)


@needs_reservations
@pytest.mark.long
def test_a_restarted_daemon_compares_its_mount_with_the_disk_if_the_target_has_forgotten_it(quiet_pair):
    pair = quiet_pair
    host, product = pair.hosts[0], pair.products[0]
    pair.configure(0, "exclusive")
    product.wait_volume(NAME, "ready", 120)
    host.sh(f"echo first >{MOUNT}/file && {WRITE_ALL}")
    wait_probes(product, 3)
    for is_taken in False, True:
        host.sh(f"systemctl stop {UNIT}", 60)
        host.set_link(False)
        try:
            if is_taken:
                take(pair, 1)
                assert pair.down(1).rc == 0
            forget_reservations(pair)
        finally:
            host.set_link(True)
        since = host.sh("date +%s").strip()
        host.sh(f"systemctl start {UNIT}", 60)
        product.wait_volume(NAME, lambda volume: volume["state"] == "ready" and volume["fence"]["reservation"], 240)
        assert (host.run(STOPPED.format(since)).rc == 0) == is_taken
    assert host.get(f"{MOUNT}/file") == "mine\n"


@needs_reservations
@pytest.mark.long
def test_a_stalled_writer_stops_if_another_host_has_its_xfs_open_and_the_target_has_forgotten_that(xfs_pair):
    """An xfs counts no mounts, but each mount for writing has its superblock written."""
    pair = xfs_pair
    pair.configure(0, "exclusive")
    pair.products[0].wait_volume(NAME, "ready", 120)
    pair.hosts[0].sh(f"echo first >{MOUNT}/file && {WRITE_ALL}")
    pair.hosts[0].set_link(False)
    try:
        pair.products[0].wait_volume(NAME, "stalled", 120)
        take(pair, 1)
        pair.hosts[1].set_link(False)  # the host that comes back first would get the reservation
        forget_reservations(pair)
        pair.hosts[0].set_link(True)
        volume = pair.products[0].wait_volume(NAME, "refused", 240)
        print(f"the former writer says: {volume['reason']}")
    finally:
        for host in pair.hosts:
            host.set_link(True)
    pair.products[1].wait_volume(NAME, lambda volume: volume["state"] == "ready" and volume["fence"]["reservation"], 180)
    assert pair.hosts[1].get(f"{MOUNT}/file") == "mine\n"


@needs_reservations
def test_a_writer_whose_xfs_shut_itself_down_after_a_takeover_is_unmounted_and_goes_down(xfs_pair):
    """The target refuses its next log write, before the daemon has looked: from then on nothing of it can be opened."""
    pair, host = xfs_pair, xfs_pair.hosts[0]
    pair.configure(0, "exclusive")
    pair.products[0].wait_volume(NAME, "ready", 120)
    host.sh(f"systemctl stop {UNIT}", 60)
    take(pair, 1)
    host.run(f"echo late >{MOUNT}/late; sync -f {MOUNT}", 60)
    host.wait_until(f"! ls {MOUNT} && findmnt {MOUNT}", 60)
    host.sh(f"systemctl start {UNIT}", 60)
    host.wait_until(f"! findmnt {MOUNT}", 120)
    pair.products[0].wait_volume(NAME, "refused", 60)
    assert pair.down(0).rc == 0
    assert pair.hosts[1].get(f"{MOUNT}/file") == "mine\n" and pair.products[1].volume(NAME)["state"] == "ready"


@needs_reservations
@pytest.mark.long
def test_a_writer_below_another_mount_is_stopped_after_a_takeover(pair):
    """Its path does not lead there, but programs still have its files open."""
    deep = f"/mnt/deep/{NAME}"
    host, product = pair.hosts[0], pair.products[0]
    pair.configure(0, "exclusive", mount=deep)
    product.wait_volume(NAME, "ready", 120)
    writer = write_for_ever(host, f"{deep}/log")
    host.wait_until(f"[ $(stat -c %s {deep}/log) -gt {RECORD} ]", 60)
    since = host.sh(f"mount -t tmpfs shield /mnt/deep && mkdir {deep} && date +%s").strip()
    try:
        product.wait_volume(NAME, "refused", 60)
        take(pair, 1)
        assert writer.wait(120).rc != 0
        host.wait_until(STOPPED.format(since), 60)
    finally:
        host.sh("umount /mnt/deep")
    host.wait_until(f"! findmnt {deep}", 180)
    assert pair.hosts[1].get(f"{MOUNT}/file") == "mine\n" and pair.products[1].volume(NAME)["state"] == "ready"
