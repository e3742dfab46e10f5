"""The daemon crashes or restarts at a critical moment: mounts are not affected."""
import json
import signal
from contextlib import contextmanager

from rig.house import DATASETS_MOUNT


def instances(house):
    """Every mount and TCP controller, with an identifier that changes if it is recreated."""
    return house.host.sh(f"""grep -E ' ({DATASETS_MOUNT}|/mnt/dell-shared) ' /proc/self/mountinfo | cut -d' ' -f1-5
        for c in /sys/class/nvme/*; do grep -qx tcp $c/transport && echo $c $(cat $c/subsysnqn $c/cntlid); done; true""")


@contextmanager
def reader(house):
    """A job with an open file of the volume."""
    process = house.host.spawn(f"exec /usr/local/lib/rig/steady-reader {DATASETS_MOUNT}/slow/big.bin")
    process.wait_said("reading")
    yield
    process.signal(signal.SIGTERM)
    summary = json.loads(process.wait(30).out)
    print(f"the reader saw: {summary}")
    assert summary["reads"] > 10 and not summary["errors"]


def test_a_restart_disturbs_no_mount_and_adopts_every_connection(house):
    before = instances(house)
    with reader(house):
        house.product.restart()
        house.wait_ready(60)
    assert instances(house) == before
    assert house.product.volume("datasets")["filesystem"]["type"] == "ext4"


def test_a_crash_disturbs_no_mount_and_systemd_starts_it_again(house):
    before = instances(house)
    with reader(house):
        house.product.kill()
        house.wait_ready(60)
    assert instances(house) == before


def test_a_volume_is_ready_after_a_crash_while_mounting(house):
    """Multi-mount protection alone delays a mount by eleven seconds, long enough to crash in the middle."""
    with house.volume("midway", access="exclusive", mmp=True):
        house.product.wait_volume("midway", "mounting", 60)
        before = instances(house)
        house.product.kill()
        house.product.wait_volume("midway", "ready", 120)
        assert house.host.sh("grep -c ' /mnt/midway ' /proc/self/mountinfo").strip() == "1"
        assert [line for line in before.splitlines() if "raid5" in line or "/mnt/" in line] == [
            line for line in instances(house).splitlines() if "raid5" in line or "/mnt/" in line]
        house.host.sh("echo hello >/mnt/midway/file")
