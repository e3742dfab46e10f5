"""A dataset of a volume becomes a verified copy on the host's own drive."""
import pytest

from rig.house import CACHE, DATASETS_MOUNT, SHARD_MIB, SHARDS

MIB = 1 << 20
# 16 MiB of memory that io_uring keeps pinned for one process: more than the limit of 8 MiB that a unit has by default.
KEEPS_BUFFERS = "cat /proc/[0-9]*/status | awk '$1 == \"VmPin:\" && $2 >= 16384 {found = 1} END {exit !found}'"


@pytest.fixture(scope="module")
def images(house):
    """The result of the first staging of `images`."""
    return house.product.json("stage images", 180)["datasets"][0]


def test_stage_copies_and_reports(house, images):
    assert images["state"] == "ready" and images["served_from"] == "copied"
    assert images["bytes"] == SHARDS * SHARD_MIB * MIB and images["files"] == SHARDS
    assert images["path"].startswith(CACHE)
    house.host.sh(f"/usr/local/lib/rig/same-tree {DATASETS_MOUNT}/images {images['path']}", 60)


def test_run_holds_a_lease_while_the_command_lives(house, images):
    job = house.host.spawn("spark-stage run images -- sleep 300")
    house.host.wait_until("pgrep -x sleep")
    assert house.product.dataset("images")["leases"]
    assert house.product.run("evict images").rc == 7
    house.host.sh("pkill -x sleep")
    job.wait(20)
    house.host.wait_until("""spark-stage ls --json | python3 -c '
import json, sys
sys.exit(any(d["leases"] for d in json.load(sys.stdin)["datasets"]))'""", 20)


def test_evict_removes_the_copy(house, images):
    house.product.sh("evict images")
    assert house.host.run(f"[ -e '{images['path']}' ]").rc != 0
    row = house.product.dataset("images")
    assert row is None or row["state"] == "absent"
    assert house.product.run("verify images").rc == 3


def test_a_copy_of_the_daemons_unit_has_its_buffers_registered(house):
    assert house.host.run(KEEPS_BUFFERS).rc != 0, "another program has pinned memory"
    with house.slow_copy("slow", "10MB/s"):
        house.host.wait_until(KEEPS_BUFFERS)
