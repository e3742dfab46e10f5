"""A dataset of a volume becomes a verified copy on the host's own drive."""
import json

import pytest

from rig.house import CACHE, DATASETS_MOUNT, SHARD_MIB, SHARDS

MIB = 1 << 20


@pytest.fixture(scope="module")
def images(house):
    """The result of the first staging of `images`."""
    return house.product.json("stage images", 180)["datasets"][0]


def test_stage_copies_and_reports(house, images):
    assert images["state"] == "ready" and images["served_from"] == "copied"
    assert images["bytes"] == SHARDS * SHARD_MIB * MIB and images["files"] == SHARDS
    assert images["path"].startswith(CACHE)
    house.host.sh(f"/usr/local/lib/rig/same-tree {DATASETS_MOUNT}/images {images['path']}", 60)


def test_stage_prints_one_path_a_line(house, images):
    assert house.product.sh("stage images").splitlines() == [images["path"]]


def test_a_second_stage_copies_nothing(house, images):
    written = "awk '/ nvme[0-9]+n1 /{s+=$10} END{print s}' /proc/diskstats"
    before = int(house.host.sh(f"sync; {written}"))
    again = house.product.json("stage images")["datasets"][0]
    assert again["served_from"] == "cache" and again["path"] == images["path"]
    sectors = int(house.host.sh(f"sync; {written}")) - before
    assert sectors * 512 < 8 * MIB


def test_a_changed_source_is_noticed(house):
    with house.volume("growing", access="exclusive", fence="none", fill="mkdir set; echo one >set/a"):
        house.product.wait_volume("growing", "ready")
        first = house.product.json("stage growing:set")["datasets"][0]
        house.host.sh("echo two >/mnt/growing/set/b; sync")
        second = house.product.json("stage growing:set")["datasets"][0]
        assert second["served_from"] == "copied" and second["path"] != first["path"]
        assert house.host.get(second["path"] + "/b") == "two\n"
        house.product.sh("evict growing:set")


def test_hostile_names_and_kinds_of_files_are_copied_correctly(house):
    result = house.product.run("stage hostile --json", 240)
    assert result.rc == 0, result.err
    staged = json.loads(result.out)["datasets"][0]
    print(house.host.sh(f"/usr/local/lib/rig/same-tree {DATASETS_MOUNT}/hostile {staged['path']}", 120))
    house.product.sh("verify hostile", 240)


def test_skipped_files_are_named_in_a_warning(house):
    house.product.run("evict hostile")
    err = house.product.run("stage hostile", 240).err
    for name in ("fifo", "socket", "device"):
        assert name in err
    house.product.sh("evict hostile")


def test_ls_lists_the_staged_datasets(house, images):
    row = house.product.dataset("images")
    assert row["state"] == "ready" and row["path"] == images["path"] and row["bytes"] == images["bytes"]
    assert "images" in house.product.sh("ls")


def test_run_gives_the_path_and_passes_the_status(house, images):
    result = house.product.run("run images -- sh -c 'echo $SPARK_STAGE_IMAGES; exit 7'")
    assert (result.rc, result.out.strip()) == (7, images["path"])


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


def test_run_fails_for_a_missing_command_or_dataset(house, images):
    assert house.product.run("run images -- /no/such/command").rc == 127
    assert house.product.run("run no-such-dataset -- true").rc == 3


def test_two_concurrent_requests_share_one_copy(house):
    house.product.run("evict slow")
    both = house.host.sh("""spark-stage stage slow --json >/tmp/a & spark-stage stage slow --json >/tmp/b & wait
        cat /tmp/a; echo; cat /tmp/b""", 240)
    documents = [json.loads(line) for line in both.replace("}\n\n{", "}\0{").split("\0")]
    paths = {document["datasets"][0]["path"] for document in documents}
    assert len(paths) == 1
    house.product.sh("evict slow")


def test_a_changed_byte_fails_verification(house, images):
    path = f"{images['path']}/shard-3.bin"
    house.product.sh("verify images", 120)
    house.below_the_copies(f"printf '\\000\\001\\002' | dd of='{path}' bs=1 seek=1234567 conv=notrunc status=none")
    result = house.product.run("verify images", 120)
    assert result.rc == 6, result
    assert "shard-3.bin" in result.err + result.out


def test_evict_removes_the_copy(house, images):
    house.product.sh("evict images")
    assert house.host.run(f"[ -e '{images['path']}' ]").rc != 0
    row = house.product.dataset("images")
    assert row is None or row["state"] == "absent"
    assert house.product.run("verify images").rc == 3


def test_too_little_space_is_refused_before_the_first_byte(house):
    house.host.sh("fallocate -l $(( $(df --output=avail -B1 /local | tail -1) - (150 << 20) )) /local/ballast")
    try:
        result = house.product.run("stage slow", 60)
        assert result.rc == 5, result
        assert any(unit in result.err for unit in ("MiB", "MB", "GiB", "GB")), result.err
    finally:
        house.host.sh("rm /local/ballast")


def test_an_unknown_dataset_and_an_unready_volume_have_their_exit_status(house):
    assert house.product.run("stage no-such-dataset").rc == 3
    house.product.sh("volumes down nas")
    try:
        assert house.product.run("stage nas:anything", 60).rc == 4
    finally:
        house.product.sh("volumes up nas")
        house.product.wait_volume("nas", "ready")
