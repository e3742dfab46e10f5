"""The space of the cache: copies in use, requests interrupted by a crash, sources that take less space than their copies. Most of
the datasets are folders on the drive of the cache."""
import json
import signal
from contextlib import contextmanager

import pytest

from rig.house import CACHE, NAS_EXPORT, TARGET_ADDRESS

MIB = 1 << 20
SETS = {"older": 24, "newer": 40, "spare": 16}  # MiB
OWNER = 1234  # owner of the files of `older`: the unit needs a capability to check whether another user's file is open
# Retries only if the daemon is not running yet or still opens the cache.
UNTIL_TAKEN = "until spark-stage {}; do status=$?; [ $status = 4 ] || exit $status; done"


@pytest.fixture(scope="module", autouse=True)
def sets(house):
    make = "; ".join(f"mkdir -p /local/sets/{name}; head -c {size}M /dev/urandom >/local/sets/{name}/file"
                     for name, size in SETS.items())
    house.host.sh(f"set -e; {make}; chown -R {OWNER} /local/sets/older", 60)
    yield
    house.host.sh("rm -r /local/sets")


@pytest.fixture(autouse=True)
def empty_cache(house):
    yield
    house.empty_cache()


def room(house, mib):
    return house.configured(cache={"capacity": f"{mib}MiB"}, datasets={name: {"path": f"/local/sets/{name}"} for name in SETS})


def stage(house, name):
    return house.product.json(f"stage {name}", 90)["datasets"][0]


def check_right(house, name, path):
    house.host.sh(f"cmp /local/sets/{name}/file {path}/file", 60)


@contextmanager
def user_of(house, path):
    process = house.host.spawn(f"sh -c 'echo open >&2; exec sleep 600' <{path}")
    process.wait_said("open")
    try:
        yield
    finally:
        process.signal(signal.SIGKILL)


def test_an_eviction_waits_for_an_open_file_and_deletes_nothing_meanwhile(house):
    with room(house, 50):
        older = stage(house, "older")
        with user_of(house, f"{older['path']}/file"):
            client = house.host.spawn("exec spark-stage stage newer --json")
            row = house.product.wait_dataset("newer", "copying", 60, reason="is open")
            assert "older" in row["reason"], row
            assert house.product.dataset("older")["state"] == "ready"
            check_right(house, "older", older["path"])
            assert client.rc is None
        result = client.wait(90)
        assert result.rc == 0, result.err
        newer = json.loads(result.out)["datasets"][0]
        assert [one["name"] for one in newer["evicted"]] == ["older"]
        assert house.host.run(f"[ -e {older['path']} ]").rc != 0
        check_right(house, "newer", newer["path"])


def test_a_crash_during_a_copy_keeps_leases_and_refuses_no_later_request(house):
    """The cache has space for the copy once, so a reservation that outlived its daemon would be refused."""
    with room(house, sum(SETS.values()) + 4):
        older = house.product.json("stage older --lease 1h", 90)["datasets"][0]
        stage(house, "spare")
        leases = house.product.dataset("older")["leases"]
        with house.slow_copy("newer", "4MB/s") as client:
            house.host.sh(f"kill -9 {house.product.main_pid()}")
            asked = [house.host.spawn(UNTIL_TAKEN.format(verb)) for verb in ("evict spare", "stage newer --json")]
            evicted, staged = [process.wait(90) for process in asked]
            assert evicted.rc == 0, evicted
            assert staged.rc == 0, staged
            check_right(house, "newer", json.loads(staged.out)["datasets"][0]["path"])
            assert client.wait(90).rc == 0, client.err
        assert house.product.dataset("older")["leases"] == leases
        refused = house.product.run("evict older")
        assert refused.rc == 7 and leases[0]["holder"] in refused.err, refused
        check_right(house, "older", older["path"])


@pytest.mark.long
def test_space_is_reserved_for_a_copys_size_not_its_sources_allocation(house):
    """A file with a hole: NFS 4.2 reports its position, and the copy has the hole, too. NFS 4.1 only reports an allocation
    smaller than the size, as for a file compressed by the server, and all of its bytes are written."""
    house.target_machine.sh(f"mkdir {NAS_EXPORT}/thin && cd {NAS_EXPORT}/thin && truncate -s 60M file && "
                            "head -c 1M /dev/urandom | dd of=file conv=notrunc status=none && sync")
    packed = {"packed": {"nfs": f"{TARGET_ADDRESS}:{NAS_EXPORT}", "mount": "/mnt/packed", "options": ["vers=4.1"]}}
    with house.configured(cache={"capacity": "40MiB"}, volumes=packed):
        house.product.wait_volume("packed", "ready")
        result = house.product.run("stage packed:thin", 60)
        assert result.rc == 5 and "it needs 62.9 MB and the whole cache" in result.err, result
        assert taken(house, "nas:thin") < 8 * MIB
    with house.configured(volumes=packed):
        house.product.wait_volume("packed", "ready")
        assert taken(house, "packed:thin") >= 60 * MIB
    house.target_machine.sh(f"rm -r {NAS_EXPORT}/thin")


def taken(house, dataset):
    """The space taken by the dataset's copy, alone in the cache, in whole blocks; the cache's own count must agree."""
    staged = house.product.json(f"stage {dataset}", 90)["datasets"][0]
    house.host.sh(f"sync -f {CACHE}")
    on_disk = int(house.host.sh(f"du -s -B1 {staged['path']} | cut -f1"))
    counted = house.product.status()["cache"]["used_bytes"]
    house.product.sh(f"evict {dataset}")
    assert on_disk <= counted <= on_disk + MIB, (dataset, on_disk, counted)
    return counted
