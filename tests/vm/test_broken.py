"""Leftovers of a fault: open files on a dead mount, a file system that shut down, a daemon that must stop while its target
does not answer."""
import signal
import time
from contextlib import contextmanager
from datetime import datetime

import pytest

from rig.house import TARGET_ADDRESS
from rig.product import UNIT
from rig.target import NVMET

MUTE_PORT = 4430
AWAY = {"lost", "recovering", "waiting"}


@contextmanager
def user_of(house, path):
    process = house.host.spawn(f"sh -c 'echo open >&2; exec sleep 600' <{path}")
    process.wait_said("open")
    try:
        yield process
    finally:
        process.signal(signal.SIGKILL)


def enable_namespace(house, name, value):
    house.target_machine.sh(f"echo {value} >{NVMET}/subsystems/{name}/namespaces/1/enable")


@pytest.mark.parametrize("kind, is_forgotten", [pytest.param("ext4", False, marks=pytest.mark.long), ("xfs", False), ("xfs", True)])
def test_a_volume_is_mounted_again_while_a_program_uses_the_dead_mount(house, kind, is_forgotten):
    name = f"beside-{kind}"
    with house.volume(name, kind=kind, size="512M", fill="echo hello >file"):
        house.product.wait_volume(name, "ready", 90)
        with user_of(house, f"/mnt/{name}/file"):
            enable_namespace(house, name, 0)
            house.product.wait_volume(name, lambda volume: volume["state"] in AWAY, 60)
            if is_forgotten:  # forget that it was ever ready
                house.product.restart()
            enable_namespace(house, name, 1)
            volume = house.product.wait_volume(name, "ready", 90)
            assert house.host.get(f"/mnt/{name}/file") == "hello\n"
            if is_forgotten:
                return
            assert volume["recoveries"] == 1 and volume["outages"][-1]["healed_by"] == "spark-stage"
            assert any("sleep" in warning for warning in volume["warnings"]), volume["warnings"]


@pytest.mark.long
def test_a_namespace_that_appears_late_is_mounted_before_the_next_attempt_is_due(house):
    """Each attempt waits 20 s for the namespace; from the third on, the pauses between attempts are 4 s and longer."""
    with house.volume("late", fill="echo hello >file"):
        house.product.wait_volume("late", "ready", 90)
        house.product.sh("volumes down late")
        enable_namespace(house, "late", 0)
        house.product.run("volumes up late")
        due = None
        for _ in range(3):
            house.product.wait_volume("late", lambda volume: not volume["next_attempt"], 60)
            due = house.product.wait_failed_attempt("late", 60)["next_attempt"]
        enable_namespace(house, "late", 1)
        volume = house.product.wait_volume("late", lambda volume: volume["state"] in ("mounting", "ready"))
        began = datetime.fromisoformat(volume["since"].replace("Z", "+00:00"))
        assert began < datetime.fromisoformat(due.replace("Z", "+00:00")), (volume["since"], due)
        house.product.wait_volume("late", "ready", 60)
        assert house.host.get("/mnt/late/file") == "hello\n"


def test_an_xfs_that_shut_down_is_remounted(house):
    """Like the kernel after an error that it can't write down. Unit tests shut down an ext4, too."""
    with house.volume("broken", kind="xfs", size="512M", access="exclusive", fence="none", fill="touch file"):
        house.product.wait_volume("broken", "ready", 90)
        house.host.sh("xfs_io -x -c shutdown /mnt/broken")
        assert house.host.run("touch /mnt/broken/file").rc != 0
        volume = house.product.wait_volume("broken", lambda volume: volume["state"] == "ready" and volume["recoveries"], 90)
        assert volume["outages"][-1]["reason"] and volume["outages"][-1]["healed_by"] == "spark-stage"
        house.host.sh("touch /mnt/broken/file")


@pytest.mark.long
def test_an_ext4_that_shut_down_is_not_unmounted_while_its_link_is_down(house):
    """Before Linux 6.15 its unmount would write an old superblock, whenever the link is back."""
    host, product = house.host, house.product
    with house.volume("broken", access="exclusive", fence="none", fill="echo hello >file"):
        product.wait_volume("broken", "ready", 90)
        mounted = host.sh("findmnt -n -o ID /mnt/broken")
        try:
            with user_of(house, "/mnt/broken/file"):  # prevents unmounting until the link is down
                host.sh("xfs_io -x -c shutdown /mnt/broken")
                product.wait_volume("broken", lambda volume: "sleep" in (volume["reason"] or ""), 60)
                house.target_machine.set_link(False)
                product.wait_volume("broken", lambda volume: "no path to the target is live" in (volume["reason"] or ""), 90)
            refused = product.run("volumes down broken", 60)
            assert refused.rc == 4 and "its unmount would write to it at any later time" in refused.err, refused
            assert host.sh("findmnt -n -o ID /mnt/broken") == mounted
        finally:
            house.target_machine.set_link(True)
        product.wait_volume("broken", lambda volume: volume["state"] == "ready" and volume["recoveries"], 120)
        assert host.get("/mnt/broken/file") == "hello\n"
    house.wait_ready(120)


def stop_and_start(house, target_is):
    for verb in ("restart", "stop", "start"):
        began = time.monotonic()
        house.host.sh(f"systemctl {verb} {UNIT}", 60)
        print(f"systemctl {verb} while the target is {target_is}: {time.monotonic() - began:.1f} s")


def test_the_daemon_restarts_with_a_frozen_or_absent_target_and_the_mount_stays(house):
    machine = house.target_machine
    house.wait_ready()
    before = house.host.sh("findmnt -n -o ID /mnt/rosa-storage")
    stop_and_start(house, "healthy")
    for target_is, fault, mend in (("frozen", machine.freeze, machine.thaw),
                                   ("gone", lambda: machine.set_link(False), lambda: machine.set_link(True))):
        house.wait_ready(120)
        fault()
        try:
            house.product.wait_volume("datasets", "stalled", 60)
            stop_and_start(house, target_is)
            house.product.wait_volume("datasets", "stalled", 60)
        finally:
            mend()
    house.wait_ready(120)
    assert house.host.sh("findmnt -n -o ID /mnt/rosa-storage") == before


@contextmanager
def connects_held_up(house, others):
    """Starts that many programs that connect to a target which accepts connections and never answers: the kernel makes one
    connection after the other, with a timeout of ten seconds each. Ends when that target closes its socket."""
    mute = house.target_machine.spawn(f"exec python3 -c 'import socket, time; s = socket.create_server((\"\", {MUTE_PORT})); "
                                      "s.listen(64); print(\"listening\", flush=True); time.sleep(600)'")
    mute.wait_said("listening")
    connects = house.host.spawn(f"for i in $(seq {others}); do nvme connect -t tcp -a {TARGET_ADDRESS} -s {MUTE_PORT} "
                                "-n mute-$i & done; wait")
    try:
        house.host.wait_until(f"[ $(ps -eo stat,comm | grep -c '^D.* nvme$') -ge {others - 2} ]", 60)
        yield
    finally:
        mute.signal(signal.SIGKILL)
        connects.wait(120)


@pytest.mark.long
def test_workers_that_wait_for_another_programs_connect_do_not_pile_up(house):
    """A worker blocked in the kernel outlives its deadline of 45 s and SIGKILL; for each target there may be only one such worker."""
    with house.volume("behind", fill="echo hello >file"):
        house.product.wait_volume("behind", "ready", 90)
        house.product.sh("volumes down behind")
        with connects_held_up(house, others=12):
            house.product.post("/v1/volumes/behind/up")
            tried = house.product.wait_volume("behind", lambda volume: "an earlier worker" in (volume["reason"] or ""), 120)
            held = held_workers(house)
            assert held == house.product.status()["stuck_workers"] >= 1
            for _ in range(3):
                before = tried["next_attempt"]
                tried = house.product.wait_volume("behind", lambda volume: volume["next_attempt"] not in (None, before), 60)
            assert held_workers(house) == held and "an earlier worker" in tried["reason"], tried
            assert {house.product.volume(name)["state"] for name in ("datasets", "nas")} == {"ready"}
        house.product.wait_volume("behind", "ready", 90)
        assert house.host.get("/mnt/behind/file") == "hello\n"


def held_workers(house):
    """Workers blocked in the kernel, regardless of signals."""
    return int(house.host.sh("ps -eo stat,args | grep -c '^D.*[s]park-staged worker' || true"))
