"""The memory that copies hold in the page cache: shown, freed once no program reads them, and dropped on request."""
import json
import os
import re
import subprocess
import time

import pytest

from openapi_file import OpenApi
from simulated import CLIENT
from staged import Daemon

MIB = 1 << 20
SIZE = 48 * MIB
API = OpenApi()

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root may reload")


@pytest.fixture
def daemon(tmp_path):
    kind = subprocess.run(["stat", "-f", "-c", "%T", tmp_path], capture_output=True, text=True, check=True).stdout.strip()
    if kind == "tmpfs":
        pytest.skip("a tmpfs is the page cache; set TMPDIR")
    (tmp_path / "big").mkdir()
    for name in ("a", "b"):
        (tmp_path / "big" / name).write_bytes(os.urandom(SIZE))
    running = Daemon(tmp_path, datasets=f"  big: {{path: {tmp_path}/big}}\n")
    yield running
    running.stop()


def setting(daemon, word):
    text = daemon.config.read_text()
    old = "drop" if "page_cache: drop" in text else "leave"
    text = text.replace(f", page_cache: {old}", "").replace("keep_free: 0", f"keep_free: 0, page_cache: {word}")
    daemon.config.write_text(text)
    assert daemon.ask("POST", "/v1/reload")[0] == 200


def stage(daemon):
    job = daemon.finish("/v1/stagings", {"datasets": ["big"], "lease_s": 3600})
    assert job["state"] == "done", job
    return job["result"]["datasets"][0]["path"]


def resident(path):
    """As the kernel says."""
    done = subprocess.run(["fincore", "-b", "-n", "-r", "-o", "RES", path], capture_output=True, text=True, check=True)
    return int(done.stdout)


def held(daemon):
    """As the daemon says: None until it has looked."""
    memory = daemon.ask("GET", "/v1/status")[1]["memory"]
    if memory is None:
        return None
    assert not API.problems({"$ref": "#/components/schemas/Memory"}, memory)
    return next((one["bytes"] for one in memory["datasets"] if one["name"] == "big"), None)


def is_nearly_all(count):
    """Of both files. The kernel may take a few pages for others."""
    return 0.9 * 2 * SIZE < count <= 2 * SIZE


def read(path):
    with open(path, "rb") as file:
        while file.read(MIB):
            pass


def run(daemon, *arguments):
    return subprocess.run([CLIENT, *arguments], capture_output=True, text=True, check=False,
                          env=os.environ | {"SPARK_STAGE_SOCKET": str(daemon.socket)})


def test_what_a_copy_holds_is_shown_and_dropped_on_request(daemon):
    setting(daemon, "leave")
    copy = stage(daemon)
    for name in ("a", "b"):
        read(f"{copy}/{name}")
    daemon.wait_until(lambda: is_nearly_all(held(daemon) or 0), "sees what was read")
    shown = " ".join(run(daemon, "status").stdout.split())
    assert re.search(r"in memory: big \d+(\.\d)? MB; `spark-stage drop` frees it", shown), shown
    with open(f"{copy}/a", "rb"):
        dropped = run(daemon, "drop", "big", "--json")
    [row] = json.loads(dropped.stdout)["datasets"]
    assert is_nearly_all(row.pop("freed_bytes")) and row == {"name": "big", "bytes": 0, "estimated": False}
    assert resident(f"{copy}/a") == resident(f"{copy}/b") == 0
    daemon.wait_until(lambda: held(daemon) == 0, "sees what was dropped")
    assert run(daemon, "drop").stdout == "big: 0 B of memory freed\n"
    unknown = run(daemon, "drop", "biggest")
    assert unknown.returncode == 3 and "biggest" in unknown.stderr


def test_a_copy_leaves_memory_once_no_program_reads_it(daemon):
    setting(daemon, "drop")
    copy = stage(daemon)
    with open(f"{copy}/a", "rb") as reader:
        while reader.read(MIB):
            pass
        read(f"{copy}/b")
        daemon.wait_until(lambda: resident(f"{copy}/b") == 0, "frees what was read")
        time.sleep(5)  # two looks
        assert resident(f"{copy}/a") > 0.9 * SIZE, "a program has it open"
    daemon.wait_until(lambda: resident(f"{copy}/a") == 0, "frees the other one too")
    daemon.wait_until(lambda: held(daemon) == 0, "says so")
    memory = daemon.ask("GET", "/v1/status")[1]["memory"]
    assert memory["page_cache"] == "drop" and is_nearly_all(memory["datasets"][0]["freed_bytes"])


def test_a_copy_is_evicted_while_its_memory_is_watched(daemon):
    setting(daemon, "drop")
    copy = stage(daemon)
    read(f"{copy}/a")
    rows = daemon.ask("GET", "/v1/datasets")[1]["datasets"]
    for lease in next(row["leases"] for row in rows if row["name"] == "big"):
        assert daemon.ask("DELETE", f"/v1/leases/{lease['id']}")[0] == 200
    assert daemon.finish("/v1/datasets/big/evict")["state"] == "done"
    daemon.wait_until(lambda: held(daemon) is None, "forgets it")
