"""spark-staged in a container-like environment: no systemd, nothing below /etc, its identity in a folder of the host."""
import json
import re

import pytest

from staged import PROGRAM, Running

# A root without /etc, a host folder mounted at /etc/nvme, and a /dev without the links that udev makes; only this daemon sees it.
IN_A_CONTAINER = ('mount -t tmpfs none /etc && mkdir /etc/nvme && mount --bind "$0" /etc/nvme && mount -t tmpfs none /dev && '
                  'mknod -m 666 /dev/null c 1 3 && mknod -m 666 /dev/urandom c 1 9 && exec "$@"')


@pytest.fixture
def start(folder):
    """Starts the daemon with these options; the identity folder outlives the daemon."""
    started = []
    (folder / "identity").mkdir()
    (folder / "source").mkdir()
    (folder / "source/0.bin").write_bytes(b"data")
    config = folder / "spark-stage.yaml"
    config.write_text(f"version: 1\ncache: {{path: {folder}/cache, capacity: 64MiB, keep_free: 0}}\n"
                      f"datasets: {{imagenet: {{path: {folder}/source}}}}\n")

    def run(*options):
        one = Running(folder, ["-m", "sh", "-c", IN_A_CONTAINER, folder / "identity", PROGRAM, "--config", config, *options],
                      program="unshare")
        started.append(one)
        return one
    yield run
    for one in started:
        one.stop()


def test_a_container_stages_and_makes_an_identity_that_later_ones_keep(start, folder):
    first = start("--make-identity")
    assert first.ask("GET", "/readyz") == (200, {"ready": True, "waiting_for": [], "cache_problem": None})
    assert first.finish("/v1/stagings", {"datasets": ["imagenet"]})["state"] == "done"
    nqn = (folder / "identity/hostnqn").read_text()
    assert re.fullmatch(r"nqn\.2014-08\.org\.nvmexpress:uuid:[0-9a-f-]{36}\n", nqn)
    assert nqn.strip().endswith((folder / "identity/hostid").read_text().strip())
    first.end()
    assert first.process.returncode == 0
    start("--make-identity")
    assert (folder / "identity/hostnqn").read_text() == nqn


def test_a_container_makes_no_identity_unless_requested(start, folder):
    start()
    assert not list((folder / "identity").iterdir())


def test_each_log_line_is_json_on_request(start):
    daemon = start("--log", "json")
    daemon.end()
    lines = [json.loads(line) for line in daemon.log_text().splitlines()]
    assert lines and all({"time", "level", "message"} <= set(line) for line in lines), lines
    assert all(re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", line["time"]) for line in lines)
