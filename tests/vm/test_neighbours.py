"""Targets that change their offers, and other programs that connect."""
import time
from contextlib import contextmanager
from datetime import datetime

import pytest

from rig.house import SUBSYSTEM, TARGET_ADDRESS
from rig.product import UNIT
from rig.settings import patience
from rig.target import stable_uuid

RULE = "/etc/udev/rules.d/70-nvmf-autoconnect.rules"
REGISTRY = "/run/nvme/registry"
EXCLUSIONS = "/etc/nvme/exclusions.conf"


def rose(house):
    return next(target for target in house.product.status()["targets"] if target["name"] == "rose")


def wait_rose(house, wanted, deadline=60):
    end = time.monotonic() + patience(deadline)
    while not wanted(rose(house)):
        assert time.monotonic() < end, rose(house)
        time.sleep(0.3)
    return rose(house)


def unconfigured(target):
    return {one["subsystem"] for one in target["offered"] if not one["configured"]}


@pytest.fixture(scope="module")
def listening(house):
    """nvme-cli's rule is disabled, and the daemon listens to the target."""
    house.host.sh(f"ln -sf /dev/null {RULE} && udevadm control --reload")
    house.product.restart()
    house.wait_ready()
    wait_rose(house, lambda target: target["controller"] and target["asked_at"])
    yield house
    house.host.sh(f"rm {RULE} && udevadm control --reload")
    house.product.restart()
    house.wait_ready()


@contextmanager
def exported(house, name, just_before=lambda: None):
    device = house.target.image(name, "64M")
    house.target.filesystem(device, name=name)
    just_before()
    house.target.export(name, device)
    try:
        yield
    finally:
        house.target.remove(name)
        house.target_machine.sh(f"rm -f {device}")


def journal_time(house, text, since):
    """The time at which the daemon logged this text, in seconds since 1970."""
    line = f"journalctl -u {UNIT} -b --since @{int(since)} -o short-unix --no-pager | grep -F '{text}' | tail -n 1"
    house.host.wait_until(f"{line} | grep -q .", 30)
    return float(house.host.sh(line).split()[0])


def test_no_discovery_connection_is_kept_while_nvme_clis_rule_is_active(house):
    target = wait_rose(house, lambda target: target["asked_at"])
    assert target["controller"] is None and "70-nvmf-autoconnect.rules of nvme-cli" in target["reason"]
    assert house.host.sh("grep -lx discovery /sys/class/nvme/*/cntrltype || true") == ""


@pytest.mark.long
def test_a_subsystem_that_appears_is_connected_before_the_next_attempt_is_due(listening):
    house = listening
    early = []  # seconds before the next attempt; on a busy computer the attempt may come before the target's notification
    while max(early, default=0) < 1:
        round_ = len(early)
        assert round_ < 8, f"nobody connected before its next attempt was due: {early}"
        name = f"late-{round_}"
        body = {"target": "rose", "subsystem": name, "mount": f"/mnt/{name}"}
        house.product.configure(house.config(volumes={name: body}))
        due = began = 0

        def when_the_longest_wait_has_just_begun(name=name):  # 4 to 6 s
            nonlocal due, began
            for _ in range(4):
                seen = house.product.wait_failed_attempt(name)["next_attempt"]
                house.product.wait_volume(name, lambda volume, seen=seen: volume["next_attempt"] not in (None, seen))
            due = datetime.fromisoformat(house.product.volume(name)["next_attempt"].replace("Z", "+00:00")).timestamp()
            began = float(house.host.sh("date +%s.%N"))

        try:
            with exported(house, name, when_the_longest_wait_has_just_begun):
                told = journal_time(house, f"target rose offers {name} now", began)
                connecting = journal_time(house, f"volume {name}: waiting -> connecting", began)
                house.product.wait_volume(name, "ready", 60)
                print(f"neighbours: offered {told - began:.2f} s after the export began, connecting "
                      f"{connecting - told:.2f} s later, {due - connecting:.2f} s before the next attempt")
                assert told <= connecting, "it was not told before it was tried"
                early.append(due - connecting)
                house.product.sh(f"volumes down {name}")
        finally:
            house.product.configure(house.config())


def test_an_offered_but_unconfigured_subsystem_is_shown_and_not_connected(listening):
    house = listening
    with exported(house, "stranger"):
        wait_rose(house, lambda target: "stranger" in unconfigured(target), 20)
        text = house.product.sh("status")
        assert "OFFERED, NOT CONFIGURED" in text and f"spark-stage discover {TARGET_ADDRESS} --yaml" in text
        assert house.host.run("grep -qx stranger /sys/class/nvme/*/subsysnqn").rc == 1
    wait_rose(house, lambda target: "stranger" not in unconfigured(target), 20)


@pytest.mark.long
def test_a_subsystem_that_vanishes_from_the_log_stays_connected_and_mounted(listening):
    house = listening
    with house.volume("listed", allowed_hosts=[house.host.hostnqn], fill="echo hello >file"):
        before = house.product.wait_volume("listed", "ready", 60)
        house.target.forbid("listed", house.host.hostnqn)
        wait_rose(house, lambda target: "listed" not in {one["subsystem"] for one in target["offered"]}, 20)
        time.sleep(3)
        after = house.product.volume("listed")
        house.target.allow("listed", house.host.hostnqn)
        assert after["state"] in ("ready", "stalled") and after["mount"] == before["mount"]
        assert [path["controller"] for path in after["paths"]] == [path["controller"] for path in before["paths"]]
        house.product.wait_volume("listed", "ready", 60)
        assert house.host.get("/mnt/listed/file") == "hello\n"
        wait_rose(house, lambda target: "listed" in {one["subsystem"] for one in target["offered"]}, 20)


@pytest.mark.long
def test_notifications_resume_when_the_target_returns(listening):
    house = listening
    controller = rose(house)["controller"]
    house.target_machine.set_link(False)
    try:
        wait_rose(house, lambda target: target["reason"], 90)
    finally:
        house.target_machine.set_link(True)
    assert wait_rose(house, lambda target: not target["reason"], 60)["controller"] == controller, "the kernel's own"
    with exported(house, "afterwards"):
        wait_rose(house, lambda target: "afterwards" in unconfigured(target), 20)
    house.wait_ready()


def test_a_restarted_daemon_reuses_the_discovery_connection(listening):
    house = listening
    before = rose(house)["controller"]
    house.product.kill()
    assert wait_rose(house, lambda target: target["asked_at"])["controller"] == before
    assert len(house.host.sh("grep -lx discovery /sys/class/nvme/*/cntrltype").split()) == 1


@pytest.mark.long
def test_volumes_recover_from_connect_all_and_disconnect_all_of_nvme_cli(house):
    with house.volume("handed", fill="echo hello >file"):
        house.product.wait_volume("handed", "ready", 60)
        house.product.sh("volumes down handed")
        connected = house.host.run(f"nvme connect-all -t tcp -a {TARGET_ADDRESS} -s 4420", 60)
        house.host.wait_until("grep -qx handed /sys/class/nvme/*/subsysnqn", 20)
        house.product.sh("volumes up handed")
        path = house.product.wait_volume("handed", "ready", 60)["paths"]
        assert len(path) == 1 and path[0]["owner"] == "spark-stage", connected.err
        house.host.sh("nvme disconnect-all", 120)
        for name in ("handed", "datasets"):
            house.product.wait_volume(name, lambda volume: volume["state"] == "ready" and volume["recoveries"] > 0, 90)
        assert house.host.get("/mnt/handed/file") == "hello\n"
        uuid = house.product.volume("datasets")["filesystem"]["uuid"]
        assert uuid == stable_uuid("datasets") and house.product.volume("datasets")["subsystem"] == SUBSYSTEM
