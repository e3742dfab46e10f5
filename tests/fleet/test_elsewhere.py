"""Datasets that have no source on a host: other hosts have published them."""
import json
import os
import signal
import struct
from contextlib import contextmanager
from pathlib import Path

import pytest
from fleet import wait_until
from test_exchange import check_copies, configured, results


@contextmanager
def elsewhere(fleet, daemon, *more):
    """The dataset is at peers for this host; `more`: further lines of `datasets`."""
    old = f"  imagenet: {{path: {fleet.drive.mount}/imagenet, peers: true}}\n"
    with configured(daemon, old, "".join(f"  {line}\n" for line in ("imagenet: {source: peers}", *more))):
        yield


@contextmanager
def silent(daemons):
    """These hosts answer no peer."""
    pids = [pid for daemon in daemons for pid in daemon.workers("serve-peers")]
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        for pid in pids:
            os.kill(pid, signal.SIGCONT)


def failure(daemon, dataset="imagenet"):
    job = daemon.finish("/v1/stagings", {"datasets": [dataset]})
    assert job["state"] == "failed", job
    return job["error"]


def stage(daemon, dataset):
    [one] = results([daemon.finish("/v1/stagings", {"datasets": [dataset]})])
    return one


def safetensors(megabytes, byte):
    header = json.dumps({"a": {"dtype": "U8", "shape": [megabytes << 20], "data_offsets": [0, megabytes << 20]}}).encode()
    return struct.pack("<Q", len(header)) + header + bytes([byte]) * (megabytes << 20)


@pytest.fixture
def model(fleet):
    """A folder with a model, on each host's own drive as after two downloads: the same content at other times."""
    def write(name, time):
        folder = fleet.folder / name
        folder.mkdir(exist_ok=True)
        for file, content in (("config.json", b"{}"), ("one.safetensors", safetensors(20, 1)), ("two.safetensors", safetensors(9, 2))):
            (folder / file).write_bytes(content)
            os.utime(folder / file, (time, time))
        return folder
    return write("model1", 1_700_000_000), write("model2", 1_700_009_999)


def test_a_host_without_the_folder_gets_the_dataset_from_the_others_and_reads_no_source(fleet):
    first, second = fleet.daemons[:2]
    [there] = results([first.stage()])
    with elsewhere(fleet, second):
        before = fleet.drive.bytes_read()
        here = stage(second, "imagenet")
        assert fleet.drive.bytes_read() - before < fleet.drive.size / 100
        assert here["hash"] == there["hash"] and here["from"] == ["n1"], here
        assert here["bytes_from"] == {"volume": 0, "peers": fleet.drive.size}
        check_copies(fleet, [second])
        assert stage(second, "imagenet")["served_from"] == "cache"


def test_no_peer_has_it_or_none_that_answers(fleet):
    second, others = fleet.daemons[1], [one for one in fleet.daemons if one is not fleet.daemons[1]]
    with elsewhere(fleet, second):
        assert failure(second)["kind"] == "not_found"
        with silent(others):
            wait_until(lambda: not any(peer["answers"] for peer in second.fleet()["peers"]), "no peer answers")
            assert failure(second)["kind"] == "unavailable"


def test_a_peer_that_dies_halfway_and_comes_back_sends_the_rest(fleet):
    first, second = fleet.daemons[:2]
    [there] = results([first.stage()])
    with elsewhere(fleet, second):
        job = second.begin(fleet.drive.size // 10)
        wait_until(lambda: second.progress().get("bytes_done", 0) > fleet.drive.size / 5, "a part is there")
        pids = first.workers("serve-peers")
        first.kill_with(pids)
        wait_until(lambda: second.progress().get("phase") == "stalled", "it waits for the peer", 60)
        first.start()
        [here] = results([second.end_of(job)])
        assert here["hash"] == there["hash"], here
        check_copies(fleet, [second])


def test_damage_at_the_only_peer_is_found_and_nothing_is_published(fleet):
    first, second = fleet.daemons[:2]
    results([first.stage()])
    generation = first.folder / "cache/data/imagenet" / str(first.datasets()["imagenet"]["generation"])
    here = os.path.dirname(os.path.abspath(__file__))
    script = "import sys; sys.path[:0] = sys.argv[1:3]; from test_exchange import *; [flip_bits(Path(p)) for p in sys.argv[3:]]"
    first.host.do("unshare", "--mount", "--propagation", "private", "sh", "-c", 'umount "$0" && exec "$@"', first.folder / "cache/data",
                  "/usr/bin/python3", "-c", script, here, os.path.join(os.path.dirname(here), "slurm"), generation / "large/3.bin")
    with elsewhere(fleet, second):
        error = failure(second)
        assert error["kind"] == "mismatch" and "n1" in json.dumps(error), error
        assert "path" not in second.datasets().get("imagenet", {}) or not second.datasets()["imagenet"]["path"], second.datasets()


def test_a_model_is_found_by_its_name_and_a_pin_is_checked(fleet, model):
    first, second, third = fleet.daemons[:3]
    own = "imagenet: {{path: {0}/imagenet, peers: true}}\n"
    source = own.format(fleet.drive.mount)
    with configured(first, source, source + f"  tiny: {{path: {model[0]}, model: org/tiny}}\n"), \
            configured(third, source, source + f"  other-name: {{path: {model[1]}, model: org/tiny}}\n"):
        there, also = stage(first, "tiny"), stage(third, "other-name")
        assert there["hash"] == also["hash"]
        with elsewhere(fleet, second, "tiny: {source: peers, model: org/tiny}"):
            here = stage(second, "tiny")
            assert here["hash"] == there["hash"] and here["model"] == "org/tiny" and sorted(here["from"]) == ["n1", "n3"], here
        with elsewhere(fleet, second, f"pinned: {{source: peers, model: org/tiny, expect: 'sha256:{64 * 'a'}'}}"):
            assert failure(second, "pinned")["kind"] == "mismatch"



def test_two_downloads_are_one_copy_at_one_path_and_a_third_host_reads_from_both(fleet):
    """The hosts downloaded at other times, and the second one has staged an earlier content under that name."""
    commit = "c" * 40
    first, second = fleet.daemons[:2]

    def download(daemon, byte, time):
        hub = fleet.folder / f"hub-{daemon.host.name}"
        for name, content in (("refs/main", commit.encode()), (f"snapshots/{commit}/config.json", b"{}"),
                              (f"snapshots/{commit}/one.safetensors", safetensors(20, byte))):
            path = hub / "models--org--twice" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
            os.utime(path, (time, time))
        return hub

    own = f"imagenet: {{path: {fleet.drive.mount}/imagenet, peers: true}}\n"
    added = [own + f"  twice: {{path: {download(daemon, 1, 1_700_000_000)}, model: org/twice}}\n" for daemon in (first, second)]
    with configured(first, own, added[0]), configured(second, own, added[1]):
        download(second, 9, 1_600_000_000)
        stage(second, "twice")
        download(second, 1, 1_700_009_999)
        copies = [stage(daemon, "twice") for daemon in (first, second)]
        assert copies[0]["hash"] == copies[1]["hash"] and copies[0]["generation"] != copies[1]["generation"], copies
        for daemon in (first, second):
            served = daemon.folder / "cache/twice/models--org--twice/snapshots" / commit  # the same below each host's cache
            assert (served / "one.safetensors").read_bytes() == safetensors(20, 1)
            assert served.resolve() == Path(daemon.datasets()["twice"]["path"]).resolve()
        third = fleet.daemons[2]
        with elsewhere(fleet, third, "twice: {source: peers, model: org/twice}"):
            assert sorted(stage(third, "twice")["from"]) == ["n1", "n2"]
