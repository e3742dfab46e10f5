"""All faults of a link, a target or a host: the states of the volumes meanwhile, and the time until they are ready again.

A writer and a checksumming reader run through every fault. Each scenario prints the time from the fault's end to `ready`,
for the table of docs/reliability.md. On a busy computer that time is not checked: states, counts and data are."""
import json
import time

import pytest

from rig.house import NAS_EXPORT, NAS_MOUNT, SUBSYSTEM
from rig.target import NVMET, stable_uuid
from rig.witness import witnessed

LOG, SHELF = "log", "shelf"  # subsystems and volumes: one written, one read
JOURNAL, FILE = f"/mnt/{LOG}/journal", f"/mnt/{SHELF}/file"


@pytest.mark.long
def test_a_controller_abandoned_by_the_kernel_is_replaced_and_remounted(house):
    """The cable is unplugged for three times the kernel's controller loss timeout."""
    targets = {"brief": {"address": house.target.address, "controller_loss": "30s"}}
    with house.volume("brief", target="brief", targets=targets, access="exclusive", fence="none",
                      fill="touch journal; head -c 256K /dev/urandom >file"):
        house.product.wait_volume("brief", "ready", 90)
        controller = house.product.volume("brief")["paths"][0]["controller"]
        with witnessed(house, "/mnt/brief/journal", "/mnt/brief/file"):
            house.target_machine.set_link(False)
            cut = time.monotonic()
            try:
                house.host.wait_until(f"! grep -qx brief /sys/class/nvme/{controller}/subsysnqn", 120)
                time.sleep(max(0, 90 - (time.monotonic() - cut)))
            finally:
                house.target_machine.set_link(True)
            mended = time.monotonic()
            volume = house.product.wait_volume("brief", "ready", 90)
            seconds = time.monotonic() - mended
        print(f"healing: controller given up: ready {seconds:.1f} s after the fault's end")
        assert volume["recoveries"] == 1 and volume["outages"][-1]["healed_by"] == "spark-stage"


@pytest.fixture(scope="module")
def pair(house):
    """Two additional volumes on the same target."""
    target = house.target
    bodies = {}
    for name, access in ((LOG, "exclusive"), (SHELF, "read-only")):
        device = target.image(name, "128M")
        fs_uuid = target.filesystem(device, name=name, fill="touch journal; head -c 256K /dev/urandom >file")
        target.export(name, device)
        bodies[name] = {"target": "rose", "subsystem": name, "mount": f"/mnt/{name}", "access": access,
                        "filesystem": {"uuid": fs_uuid}, **({"fence": "none"} if access == "exclusive" else {})}
    house.product.configure(house.config(volumes=bodies))
    for name in bodies:
        house.product.wait_volume(name, "ready", 90)
    yield house, bodies
    for name in bodies:
        house.product.run(f"volumes down {name}")
    house.product.configure(house.config())
    for name in bodies:
        target.remove(name)
        house.target_machine.sh(f"rm -f /srv/{name}.img")


def mount_ids(house):
    table = house.host.sh("cat /proc/self/mountinfo").splitlines()
    return {line.split()[4]: line.split()[0] for line in table if f"/mnt/{LOG}" in line or f"/mnt/{SHELF}" in line}


def both(house, wanted, deadline=90):
    return [house.product.wait_volume(name, wanted, deadline) for name in (LOG, SHELF)]


def heals(house, name, fault, mend, *, meanwhile, by, lasts=0, deadline=120):
    """Runs a fault and its repair; checks states, data, the repairing component (kernel or daemon), and the time. `lasts`: the
    fault's length in seconds, on a busy computer longer if its state takes longer to be seen."""
    before, mounts = both(house, "ready"), mount_ids(house)
    with witnessed(house, JOURNAL, FILE):
        fault()
        began = time.monotonic()
        broken = both(house, lambda volume: volume["state"] in meanwhile, deadline)
        assert all(volume["reason"] for volume in broken)
        time.sleep(max(0, lasts - (time.monotonic() - began)))
        mend()
        mended = time.monotonic()
        after = both(house, "ready", deadline)
        seconds = time.monotonic() - mended
    healers = sorted({volume["outages"][-1]["healed_by"] for volume in after})
    print(f"healing: {name}: ready {seconds:.1f} s after the fault's end, healed by {', '.join(healers)}")
    for old, new in zip(before, after):
        outage = new["outages"][-1]
        assert outage["ended"] and outage["reason"] and by in (None, outage["healed_by"]), outage
        counter = "reconnects" if outage["healed_by"] == "kernel" else "recoveries"
        assert new[counter] > old[counter] and new["last_outage_s"] > 0
    if by == "kernel":
        assert mount_ids(house) == mounts, "mounted anew although the link came back by itself"


def test_a_cable_out_for_ten_seconds_causes_no_remount(pair):
    house, _ = pair
    heals(house, "cable out 10 s", lambda: house.target_machine.set_link(False),
          lambda: house.target_machine.set_link(True), meanwhile={"stalled"}, by="kernel",
          lasts=10)


@pytest.mark.long
def test_packets_lost_in_one_direction_stall_and_heal(pair):
    house, _ = pair
    machine = house.target_machine

    def drop():
        machine.sh("nft add table ip loss && nft add chain ip loss out '{ type filter hook output priority 0; }' && "
                   "nft add rule ip loss out tcp sport 4420 drop")

    heals(house, "packets to the host dropped", drop, lambda: machine.sh("nft delete table ip loss"),
          meanwhile={"stalled"}, by="kernel", lasts=30)


@pytest.mark.long
def test_a_frozen_target_stalls_and_heals(pair):
    house, _ = pair
    heals(house, "target frozen", house.target_machine.freeze, house.target_machine.thaw, meanwhile={"stalled"},
          by="kernel", lasts=120)


def test_a_subsystem_unlinked_and_linked_again_is_connected_again(pair):
    """Newer kernels delete the controller at once, regardless of its loss timeout; older ones keep retrying."""
    house, _ = pair
    gone = {"stalled", "lost", "recovering", "waiting"}

    def unlink():
        for name in (LOG, SHELF):
            house.target.unlink(name)

    def link():
        for name in (LOG, SHELF):
            house.target.link(name)

    heals(house, "subsystem unlinked", unlink, link, meanwhile=gone, by=healer_of_a_refusal(house), lasts=5)


def healer_of_a_refusal(house):
    """Kernels before 6.10 retry after a refusal; later ones give up the controller."""
    major, minor = (int(part) for part in house.host.sh("uname -r").split(".")[:2])
    return "spark-stage" if (major, minor) >= (6, 10) else "kernel"


@pytest.mark.long
def test_a_host_taken_off_the_allow_list_recovers_when_it_is_added_again(pair):
    house, _ = pair
    target = house.target

    def forbid():
        for name in (LOG, SHELF):
            house.target_machine.sh(f"echo 0 >{NVMET}/subsystems/{name}/attr_allow_any_host")
        # An established controller stays until its next connect, so its connection is cut.
        house.target_machine.sh("ss -K sport = :4420 || true")

    def allow():
        for name in (LOG, SHELF):
            house.target_machine.sh(f"echo 1 >{NVMET}/subsystems/{name}/attr_allow_any_host")

    assert target.address
    heals(house, "host off the allow list 15 s", forbid, allow, meanwhile={"stalled", "lost", "recovering", "waiting"},
          by=healer_of_a_refusal(house), lasts=15)


def enable_namespaces(house, value, **identity):
    for name in (LOG, SHELF):
        folder = f"{NVMET}/subsystems/{name}/namespaces/1"
        for key, text in identity.items():
            house.target_machine.sh(f"echo {text} >{folder}/{key}")
        house.target_machine.sh(f"echo {value} >{folder}/enable")


def test_a_namespace_disabled_and_enabled_is_mounted_again(pair):
    house, _ = pair
    heals(house, "namespace disabled", lambda: enable_namespaces(house, 0), lambda: enable_namespaces(house, 1),
          meanwhile={"lost", "recovering", "waiting", "stalled"}, by="spark-stage", lasts=5)


def reboot_target(house):
    """Powers on the target and restores nvmet's configuration, which was in the machine's memory."""
    house.start_target()
    for name in (LOG, SHELF):
        house.target.export(name, f"/srv/{name}.img")


def test_a_rebooted_target_with_the_same_identity_recovers_when_it_offers_again(pair):
    """Either may repair it: newer kernels give up if the target answers before it offers the subsystem."""
    house, _ = pair
    heals(house, "target rebooted", house.target_machine.kill, lambda: reboot_target(house), meanwhile={"stalled"},
          by=None, deadline=180)


@pytest.mark.long
def test_a_target_rebooted_with_a_new_namespace_identity_is_mounted_with_a_warning(pair):
    """6.1 may first wait 30 s for the answer to a reconnect command that the booting target lost."""
    house, _ = pair

    def boot_anew():
        house.start_target()
        for name in (LOG, SHELF):
            house.target.export(name, f"/srv/{name}.img", namespace_uuid=stable_uuid(f"{name} anew"))

    heals(house, "target rebooted, new namespace UUID", house.target_machine.kill, boot_anew, meanwhile={"stalled"},
          by="spark-stage", deadline=180)
    for volume in both(house, "ready"):
        assert any("device_uuid" in warning for warning in volume["warnings"]), volume["warnings"]


@pytest.mark.long
def test_a_hundred_link_flaps_leave_every_mount_unchanged(pair):
    house, _ = pair
    mounts = mount_ids(house)
    with witnessed(house, JOURNAL, FILE):
        for flap in range(100):
            house.target_machine.set_link(False)
            time.sleep(8 if flap % 33 == 32 else 0.1)  # the kernel notices only the long ones
            house.target_machine.set_link(True)
            time.sleep(0.2)
        both(house, "ready", 120)
    assert mount_ids(house) == mounts


@pytest.mark.long
def test_a_daemon_killed_during_an_outage_reports_it_again(pair):
    house, _ = pair
    house.target_machine.set_link(False)
    try:
        both(house, "stalled", 60)
        house.product.kill()
        both(house, "stalled", 60)
    finally:
        house.target_machine.set_link(True)
    for volume in both(house, "ready", 90):
        assert volume["outages"][-1]["ended"] and volume["outages"][-1]["reason"], volume["outages"]


def test_a_frozen_nfs_server_stalls_its_volume_and_heals(pair):
    house, _ = pair
    before = house.product.wait_volume("nas", "ready")
    house.target_machine.sh(f"touch {NAS_EXPORT}/journal; head -c 256K /dev/urandom >{NAS_EXPORT}/file")
    with witnessed(house, f"{NAS_MOUNT}/journal", f"{NAS_MOUNT}/file"):
        house.target_machine.freeze()
        house.product.wait_volume("nas", "stalled", 60)
        house.target_machine.thaw()
        thawed = time.monotonic()
        after = house.product.wait_volume("nas", "ready", 120)
        seconds = time.monotonic() - thawed
    print(f"healing: NFS server frozen: ready {seconds:.1f} s after the fault's end")
    house.target_machine.sh(f"rm {NAS_EXPORT}/journal {NAS_EXPORT}/file")
    assert after["reconnects"] == before["reconnects"] + 1
    both(house, "ready", 120)


def test_the_journal_can_be_searched_for_a_volumes_states(pair):
    house, _ = pair
    found = house.host.sh(f"journalctl -o json SPARK_VOLUME={LOG} SPARK_STATE_NEW=stalled | tail -n 1")
    entry = json.loads(found)
    assert entry["NVME_NQN"] == LOG and entry["SPARK_STATE_OLD"] and LOG in entry["MESSAGE"]


def test_the_probe_has_latencies(pair):
    house, _ = pair
    for volume in both(house, "ready"):
        probe = volume["probe"]
        assert 0 < probe["p50_us"] <= probe["p99_us"], probe


def test_the_shared_volumes_are_ready_again(pair):
    house, _ = pair
    house.wait_ready(120)
    assert house.product.volume("datasets")["subsystem"] == SUBSYSTEM
