"""The cache makes space, keeps leased copies, detects damaged ones, and survives problems with a dataset's source."""
import json
import signal

import pytest

from rig.house import CACHE, DATASETS_MOUNT, NAS_EXPORT, SHARD_MIB, SHARDS, TARGET_ADDRESS
from rig.product import UNIT

MIB = 1 << 20
IMAGES_MIB = SHARDS * SHARD_MIB
STAGE_WORKERS = "pgrep -f 'worker [s]tage'"  # does not match the shell that runs pgrep


@pytest.fixture(autouse=True)
def empty_cache(house):
    yield
    house.empty_cache()


def staged_right(house, name, path):
    house.host.sh(f"/usr/local/lib/rig/same-tree {DATASETS_MOUNT}/{name} {path}", 120)


# --- room ---

def test_a_dataset_is_evicted_for_another_one_and_named(house):
    with house.configured(cache={"capacity": "260MiB"}):
        images = house.product.json("stage images", 180)["datasets"][0]
        result = house.product.run("stage slow --json", 240)
        assert result.rc == 0, result.err
        slow = json.loads(result.out)["datasets"][0]
        assert [one["name"] for one in slow["evicted"]] == ["images"]
        assert slow["evicted"][0]["bytes"] >= IMAGES_MIB * MIB
        assert "images was evicted" in result.err
        assert house.host.run(f"[ -e '{images['path']}' ]").rc != 0
        assert house.product.dataset("images")["state"] == "absent"
        staged_right(house, "slow", slow["path"])


def test_a_leased_dataset_is_not_evicted_and_its_holder_is_named(house):
    with house.configured(cache={"capacity": "260MiB"}):
        house.product.json("stage images --lease 1h", 180)
        lease = house.product.dataset("images")["leases"][0]
        result = house.product.run("stage slow", 60)
        assert result.rc == 5, result
        assert "images" in result.err and lease["holder"] in result.err
        assert house.product.dataset("images")["state"] == "ready"
        refused = house.product.run("evict images")
        assert refused.rc == 7 and lease["holder"] in refused.err
        house.product.sh(f"release {lease['id']}")
        assert house.product.run(f"release {lease['id']}").rc == 3
        assert house.product.run("stage slow", 240).rc == 0


def test_a_dataset_larger_than_the_cache_is_refused_at_once(house):
    with house.configured(cache={"capacity": "150MiB"}):
        house.product.json("stage images", 180)
        result = house.product.run("stage slow", 60)
        assert result.rc == 5 and "whole cache" in result.err, result
        assert house.product.dataset("images")["state"] == "ready"


def test_too_few_inodes_are_refused_before_the_first_byte(house):
    house.host.sh("mkdir -p /local/tiny && mount -t tmpfs -o size=64m,nr_inodes=100 tmpfs /local/tiny && "
                  "mkdir -p /local/many && cd /local/many && touch $(seq 200)")
    try:
        with house.configured(cache={"path": "/local/tiny/cache"}, datasets={"many": {"path": "/local/many"}}):
            house.host.sh(f"systemctl stop {UNIT}; mv /var/lib/spark-stage/catalog.sqlite /root/; "
                          f"rm -f /var/lib/spark-stage/catalog.sqlite-*; systemctl start {UNIT}", 60)
            result = house.product.run("stage many", 60)
            assert result.rc == 5 and "inodes" in result.err, result
    finally:
        house.host.sh(f"systemctl stop {UNIT}; mv /root/catalog.sqlite /var/lib/spark-stage/; "
                      f"rm -f /var/lib/spark-stage/catalog.sqlite-*; systemctl start {UNIT}; "
                      "umount -R /local/tiny; rm -r /local/tiny /local/many", 60)
        house.wait_ready()


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


def test_a_prefetched_dataset_is_served_to_a_later_request(house):
    prefetched = house.product.json("prefetch images --by 1m", 240)["datasets"][0]
    assert prefetched["served_from"] == "copied"
    assert [lease["soft"] for lease in house.product.dataset("images")["leases"]] == [True]
    staged = house.product.json("stage images", 60)["datasets"][0]
    assert staged["served_from"] == "cache" and staged["path"] == prefetched["path"]
    staged_right(house, "images", staged["path"])
    assert house.product.dataset("images")["leases"] == []


# --- leases ---

def test_leases_survive_the_daemon_and_end_with_their_holder(house):
    job = house.host.spawn("spark-stage run images -- sleep 300")
    house.host.wait_until("pgrep -x sleep", 120)
    house.product.sh("stage images --lease 1h")
    house.product.kill()
    leases = house.product.wait_dataset("images", "ready")["leases"]
    assert sorted(lease["expires"] is None for lease in leases) == [False, True]
    house.host.sh("pkill -x sleep")
    job.wait(20)
    house.host.wait_until("[ $(spark-stage ls --json | grep -c '\"holder\"') = 1 ]", 20)
    assert house.product.run("evict images").rc == 7


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


# --- damaged copies ---

def test_a_scrub_finds_a_changed_byte_and_the_copy_is_staged_again(house):
    house.product.sh("stage slow", 240)
    images = house.product.json("stage images", 180)["datasets"][0]
    house.below_the_copies(
        f"printf '\\000\\001' | dd of='{images['path']}/shard-2.bin' bs=1 seek=77777 conv=notrunc status=none")
    result = house.product.run("scrub", 240)
    assert result.rc == 6, result
    assert "shard-2.bin" in result.out and "slow: as it was staged" in result.out
    row = house.product.dataset("images")
    assert row["state"] == "failed" and "shard-2.bin" in row["reason"] and row["scrubbed_at"]
    again = house.product.json("stage images", 180)["datasets"][0]
    assert again["served_from"] == "copied"
    staged_right(house, "images", again["path"])
    assert house.product.run("scrub images", 120).rc == 0


def test_a_file_that_differs_from_its_published_digest_is_named_and_the_copy_stays(house):
    house.host.sh("mkdir /local/summed && cd /local/summed && echo weights >model && sha256sum model >SHA256SUMS")
    with house.configured(datasets={"summed": {"path": "/local/summed"}}):
        house.product.sh("stage summed", 60)
        assert "1 file as published" in house.product.sh("verify summed --sha256", 60)
        house.host.sh("echo tampered >/local/summed/model")
        house.product.sh("stage summed", 60)
        result = house.product.run("verify summed --sha256", 60)
        assert result.rc == 6 and "model does not match SHA256SUMS" in result.err, result
        assert house.product.dataset("summed")["state"] == "ready"
        house.product.sh("evict summed")
    house.host.sh("rm -r /local/summed")


# --- problems of the source ---

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


# --- order of requests ---

def test_a_cached_dataset_does_not_wait_for_another_copy(house):
    house.product.sh("stage images", 180)
    with house.slow_copy(rate="2MB/s"):
        images = house.product.json("stage images", 60)["datasets"][0]
        assert images["served_from"] == "cache"
        assert house.product.dataset("slow")["state"] == "copying"


def test_a_copy_runs_at_idle_priority_while_a_job_holds_a_lease(house):
    house.product.sh("stage images", 180)
    with house.slow_copy():
        worker = f"$({STAGE_WORKERS} | head -1)"
        assert "idle" not in house.host.sh(f"ionice -p {worker}")
        job = house.host.spawn("spark-stage run images -- sleep 300")
        house.host.wait_until(f"ionice -p {worker} | grep -q idle", 60)
        assert house.host.sh(f"ps -o ni= -p {worker}").strip() == "19"
        house.host.sh("pkill -x sleep")
        job.wait(20)
        house.host.wait_until(f"! ionice -p {worker} | grep -q idle", 20)
        assert house.host.sh(f"ps -o ni= -p {worker}").strip() == "0"


def test_a_limited_copy_blocks_no_other_and_an_unlimited_request_lifts_its_limit(house):
    """Two copies at 2 MB/s would take 150 and 100 s. NFS 4.1 transfers the zeros of a hole like any data."""
    house.target_machine.sh(f"mkdir {NAS_EXPORT}/long && truncate -s 300M {NAS_EXPORT}/long/file")
    far = {"far": {"nfs": f"{TARGET_ADDRESS}:{NAS_EXPORT}", "mount": "/mnt/far", "options": ["vers=4.1"]}}
    with house.configured(volumes=far):
        house.product.wait_volume("far", "ready")
        with house.slow_copy("far:long", "2MB/s"), house.slow_copy("slow", "2MB/s") as slow:
            assert house.product.json("stage images", 180)["datasets"][0]["served_from"] == "copied"
            assert {house.product.dataset(name)["state"] for name in ("far:long", "slow")} == {"copying"}
            joined = house.product.json("stage slow", 240)["datasets"][0]
            assert house.product.dataset("far:long")["state"] == "copying", "the limit of 2 MB/s went on"
            result = slow.wait(60)
            assert result.rc == 0 and json.loads(result.out)["datasets"][0]["path"] == joined["path"], result
            staged_right(house, "slow", joined["path"])
        house.host.wait_until("spark-stage evict far:long", 30)  # remove the interrupted copy
        assert house.host.run(f"ls -d {CACHE}/.partial/far*").rc != 0
    house.target_machine.sh(f"rm -r {NAS_EXPORT}/long")
