"""The target stops answering: the volume stalls, the daemon does not."""
import json
import re

import pytest

from rig.house import DATASETS_MOUNT, NAS_MOUNT
from rig.product import UNIT
from rig.settings import patience

LIMIT_MS = 100
# What only a worker may name in a system call, as a path ("/mnt/…") or behind a descriptor (5</mnt/…>).
TOUCHING = re.compile(rf'["<]({DATASETS_MOUNT}|{NAS_MOUNT}|/dev/nvme|/dev/disk/)')


def latency(house):
    return json.loads(house.host.sh("/usr/local/lib/rig/status-latency 15", 120))


def restarts(house):
    return int(house.host.sh(f"systemctl show -P NRestarts {UNIT}"))


@pytest.fixture(scope="module")
def frozen(house):
    """The house with its target frozen, and what was measured before that."""
    before = {"latency": latency(house), "restarts": restarts(house)}
    house.target_machine.freeze()
    try:
        # The question to the device may be late before the kernel finds that the link is dead.
        house.product.wait_volume("datasets", lambda volume: volume["state"] == "stalled" and all(
            path["state"] != "live" for path in volume["paths"]), 60)
        yield house, before
    finally:
        if house.target_machine.is_running():
            house.target_machine.thaw()
    house.wait_ready(120)


def test_a_frozen_volume_is_stalled_and_says_why(frozen):
    house, _ = frozen
    volume = house.product.volume("datasets")
    assert volume["reason"]
    assert [path["state"] for path in volume["paths"]] != ["live"]


def test_status_answers_in_under_100_ms_all_the_while(frozen):
    house, before = frozen[0], frozen[1]["latency"]
    during = latency(house)
    print(f"status before the freeze: {before}, while frozen: {during} (milliseconds)")
    assert during["api"]["median"] < LIMIT_MS
    # Emulated CPUs share two real ones with everything else: outliers are measured against the ones from before.
    assert during["api"]["max"] < max(patience(LIMIT_MS), 3 * before["api"]["max"])
    # An emulated CPU takes its time to run any program: the answer adds less than another start of one.
    assert during["cli"]["median"] < 2 * during["cli_start"]["median"] + LIMIT_MS


def test_the_daemon_itself_touches_no_device_and_no_mount_point(frozen):
    house, _ = frozen
    pid = house.product.main_pid()
    # -ff: a file for each thread and child, so that workers are told from the daemon by their ids.
    house.host.sh(f"""rm -rf /tmp/trace; mkdir /tmp/trace
        timeout 12 strace -qq -y -f -ff -e trace=%file,read,pread64,fstatfs,syncfs,fsync -o /tmp/trace/t -p {pid}
        ls /proc/{pid}/task >/tmp/trace/threads""", 60)
    traced = house.host.sh("cd /tmp/trace && for t in $(cat threads); do [ ! -e t.$t ] || cat t.$t; done")
    children = house.host.sh("ls /tmp/trace/t.* 2>/dev/null | wc -l")
    print(f"{len(traced.splitlines())} calls of the daemon itself, {children.strip()} traced threads and children")
    assert traced, "the daemon did nothing at all in 12 s: strace saw no call"
    touching = [line for line in traced.splitlines() if TOUCHING.search(line)]
    assert not touching, "the daemon touched what may block: " + "\n".join(touching[:10])


def test_the_watchdog_stays_fed(frozen):
    house, before = frozen
    assert restarts(house) == before["restarts"]
    assert house.host.sh(f"systemctl is-active {UNIT}").strip() == "active"


def test_staging_from_a_frozen_volume_is_not_available(frozen):
    house, _ = frozen
    assert house.product.run("stage datasets:images/shard-1.bin --json", 30).rc in (4, 124)


def test_after_the_thaw_it_is_ready_again(frozen):
    house, _ = frozen
    house.target_machine.thaw()
    house.product.wait_volume("datasets", "ready", 120)
    volume = house.product.volume("datasets")
    assert volume["last_outage_s"] > 1
    house.host.sh(f"head -c 4096 {DATASETS_MOUNT}/images/shard-1.bin | wc -c")
