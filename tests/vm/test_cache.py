"""The cache beside a real kernel: a volume that nobody writes, a lease that ends with its service, problems of a dataset's source."""
import json
import signal

import pytest

from rig.house import DATASETS_MOUNT


@pytest.fixture(autouse=True)
def empty_cache(house):
    yield
    house.empty_cache()


def staged_right(house, name, path):
    house.host.sh(f"/usr/local/lib/rig/same-tree {DATASETS_MOUNT}/{name} {path}", 120)


# --- a volume that has not been written ---

def folders_read_of_the_volume(house, request):
    """Folders read by the daemon's workers during the request: (its answer, lines of the trace)."""
    pid = house.product.main_pid()
    trace = house.host.spawn(f"exec strace -qq -y -f -e trace=getdents64 -o /tmp/walk.trace -p {pid}")
    house.host.wait_until(f"grep -q '^TracerPid:[^0-9]*[1-9]' /proc/{pid}/status")
    try:
        answer = house.product.json(request, 180)["datasets"][0]
    finally:
        trace.signal(signal.SIGTERM)
        trace.wait(30)
    lines = house.host.sh("cat /tmp/walk.trace; rm /tmp/walk.trace").splitlines()
    return answer, [line for line in lines if f"<{DATASETS_MOUNT}" in line]


def test_a_repeated_request_does_not_walk_an_unchanged_volume(house):
    first, walked = folders_read_of_the_volume(house, "stage images")
    assert first["served_from"] == "copied" and walked, "the trace would not show a walk"
    house.product.json("stage images", 180)  # the cache is new, and its copies became read-only only with the first staging
    again, walked = folders_read_of_the_volume(house, "stage images")
    assert again["served_from"] == "cache" and again["path"] == first["path"]
    assert {key: again[key] for key in ("bytes", "files", "hash")} == {key: first[key] for key in ("bytes", "files", "hash")}
    assert not walked, walked[:5]
    staged_right(house, "images", again["path"])


# --- leases ---

def test_a_lease_by_control_group_ends_with_the_service(house):
    house.product.sh("stage images", 180)
    house.host.sh("systemd-run -q --unit training sh -c 'spark-stage stage images --hold cgroup && exec sleep 600'")
    try:
        house.host.wait_until("pgrep -x sleep", 120)  # the request has ended; the lease was granted before that
        house.host.wait_until("spark-stage ls --json | grep -q training.service", 60)
        house.product.restart()
        house.host.wait_until("spark-stage ls --json | grep -q training.service", 60)
        assert house.product.run("evict images").rc == 7
    finally:
        house.host.sh("systemctl stop training")
    house.host.wait_until("! spark-stage ls --json | grep -q training.service", 20)
    house.product.sh("evict images")


# --- problems of the source ---

@pytest.mark.long
def test_a_copy_outlasts_an_outage_of_its_volume(house):
    with house.slow_copy() as client:
        house.target_machine.freeze()
        try:
            house.product.wait_dataset("slow", "stalled", 60, reason="datasets")
        finally:
            house.target_machine.thaw()
        assert client.wait(240).rc == 0, client.err
    staged_right(house, "slow", json.loads(client.out)["datasets"][0]["path"])
    house.wait_ready()


def test_a_copy_continues_when_its_lost_volume_returns(house):
    with house.volume("brief", fill="mkdir set; head -c 100M /dev/urandom >set/a"):
        house.product.wait_volume("brief", "ready")
        client = house.host.spawn("spark-stage stage brief:set --max-rate 5MB/s --json")
        house.host.wait_until("spark-stage ls --json | grep -Eq '\"bytes_done\": [3-9][0-9]{7}'", 60)
        device = house.target_machine.sh("cat /sys/kernel/config/nvmet/subsystems/brief/namespaces/1/device_path").strip()
        house.target.remove("brief")
        house.product.wait_dataset("brief:set", "stalled", 60)
        house.target.export("brief", device)
        house.product.wait_volume("brief", "ready", 120)
        assert client.wait(240).rc == 0, client.err
        staged = json.loads(client.out)["datasets"][0]
        if house.product.volume("brief")["recoveries"] > 0:  # otherwise the same copy continued
            assert staged["resumed_bytes"] > 0, "what was copied before was copied again"
        house.host.sh(f"cmp /mnt/brief/set/a {staged['path']}/a", 60)
        house.product.sh("evict brief:set")


def test_a_worker_that_cannot_be_killed_does_not_block_its_dataset(house):
    """A worker that reads a small file with a blocking system call; pending io_uring reads do not block its process."""
    house.host.sh("mkdir -p /local/other && head -c 20M /dev/urandom >/local/other/x")
    with house.slow_copy("small", "1MB/s"):
        house.target_machine.freeze()
        try:
            house.product.wait_dataset("small", "stalled", 60)
            house.host.sh("pkill -INT -f 'spark-stage stage small'")
            house.host.wait_until("[ $(spark-stage status --json | grep -o '\"stuck_workers\": [0-9]*' | "
                                  "grep -o '[0-9]*$') -ge 1 ]", 60)
            with house.configured(datasets={"small": {"path": "/local/other"}}):
                staged = house.product.json("stage small", 60)["datasets"][0]
                house.host.sh(f"cmp /local/other/x {staged['path']}/x")
        finally:
            house.target_machine.thaw()
    house.wait_ready()
    house.host.sh("rm -r /local/other")
