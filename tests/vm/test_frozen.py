"""The target stops answering: the volume stalls, the daemon does not."""
import json
import re
import signal

import pytest

from rig.house import DATASETS_MOUNT, NAS_MOUNT
from rig.product import UNIT

# Paths that only a worker may use in a system call, as a path ("/mnt/…") or behind a descriptor (5</mnt/…>).
TOUCHING = re.compile(rf'["<]({DATASETS_MOUNT}|{NAS_MOUNT}|/dev/nvme|/dev/disk/)')


def latency(house):
    return json.loads(house.host.sh("/usr/local/lib/rig/status-latency 15", 240))


def restarts(house):
    return int(house.host.sh(f"systemctl show -P NRestarts {UNIT}"))


class Trace:
    """System calls of the daemon itself. There is one file per thread and child; the ids distinguish its workers from it."""

    def __init__(self, house):
        self._host, self._pid = house.host, house.product.main_pid()
        self._host.sh("rm -rf /tmp/trace; mkdir /tmp/trace")
        self._strace = self._host.spawn("exec strace -qq -y -f -ff -e trace=%file,read,pread64,fstatfs,syncfs,fsync "
                                        f"-o /tmp/trace/t -p {self._pid}")
        self._host.wait_until("ls /tmp/trace/t.*")

    def end(self):
        """Returns the lines, and the number of threads and children seen."""
        self._host.sh(f"ls /proc/{self._pid}/task >/tmp/trace/threads")
        self._strace.signal(signal.SIGTERM)
        self._strace.wait(30)
        calls = self._host.sh("cd /tmp/trace && for t in $(cat threads); do [ ! -e t.$t ] || cat t.$t; done")
        return calls.splitlines(), int(self._host.sh("ls /tmp/trace/t.* | wc -l"))


def give_it_work(house):
    for command in ("spark-stage status", "spark-stage volumes", f"systemctl reload {UNIT}", "spark-stage ls",
                    "spark-stage stage datasets:images/shard-1.bin", "spark-stage volumes up datasets"):
        house.host.run(f"timeout 5 {command}", 30)


@pytest.fixture(scope="module")
def frozen(house):
    """The house with a frozen target, the earlier measurements, and the daemon's system calls since then."""
    before = {"latency": latency(house), "restarts": restarts(house)}
    trace = Trace(house)
    house.target_machine.freeze()
    try:
        # The probe of the device may be reported late before the kernel detects the dead link.
        house.product.wait_volume("datasets", lambda volume: volume["state"] == "stalled" and all(
            path["state"] != "live" for path in volume["paths"]), 60)
        give_it_work(house)
        before["trace"] = trace.end()
        yield house, before
    finally:
        if house.target_machine.is_running():
            house.target_machine.thaw()
    house.wait_ready(120)


def test_a_frozen_volume_is_stalled_with_a_reason(frozen):
    house, _ = frozen
    volume = house.product.volume("datasets")
    assert volume["reason"]
    assert [path["state"] for path in volume["paths"]] != ["live"]


def test_status_answers_while_the_target_is_frozen(frozen):
    """Requests the status 15 times through the API and the CLI: a daemon that waited for the target would not answer at
    all. The latency is printed; `make bench-limits` measures it without other load."""
    house, before = frozen[0], frozen[1]["latency"]
    print(f"status before the freeze: {before}, while frozen: {latency(house)} (milliseconds)")
    assert house.product.volume("datasets")["state"] == "stalled", "the target was not frozen all the while"


def test_the_daemon_itself_touches_no_device_and_no_mount_point(frozen):
    """The trace covers the time from before the freeze until after all kinds of user requests."""
    calls, traced = frozen[1]["trace"]
    print(f"{len(calls)} calls of the daemon itself, {traced} traced threads and children")
    assert calls, "the daemon did nothing at all: strace saw no call"
    touching = [line for line in calls if TOUCHING.search(line)]
    assert not touching, "the daemon touched what may block: " + "\n".join(touching[:10])


def test_the_watchdog_stays_fed(frozen):
    house, before = frozen
    assert restarts(house) == before["restarts"]
    assert house.host.sh(f"systemctl is-active {UNIT}").strip() == "active"


def test_staging_from_a_frozen_volume_is_unavailable(frozen):
    house, _ = frozen
    assert house.product.run("stage datasets:images/shard-1.bin --json", 30).rc in (4, 124)


def test_after_the_thaw_it_is_ready_again(frozen):
    house, _ = frozen
    house.target_machine.thaw()
    house.product.wait_volume("datasets", "ready", 120)
    volume = house.product.volume("datasets")
    assert volume["last_outage_s"] > 1
    house.host.sh(f"head -c 4096 {DATASETS_MOUNT}/images/shard-1.bin | wc -c")
