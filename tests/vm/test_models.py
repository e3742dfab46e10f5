"""Two Sparks without a target: one has downloaded models, in the layouts of several programs; the other gets them from it and
loads them offline. A shard is damaged on the first one's drive, and the first one loses its power halfway."""
import json
import re
import shlex
from pathlib import Path

import pytest

from rig.house import LOCAL, local_drive
from rig.machine import disk
from rig.made import made_of
from rig.product import CONFIG, Product, config_text

MADE_MODELS = Path(__file__).resolve().parents[1] / "api/made_models.py"
CACHE = {"path": f"{LOCAL}/cache", "capacity": "2GiB"}
HUB, KEY = f"{LOCAL}/hub", "/etc/spark-stage/keys/fleet"
LARGE_MIB = 24
# Runs on the first host: what programs leave on its drive.
MAKE = f"""
from pathlib import Path
from made_models import COMMIT, FILES, Hub, git_sha1, safetensors, sha256
hub = Hub(Path("{HUB}"))
for layout in ("old", "shared", "plain"):
    hub.add("org/" + layout, layout)
local = Path("{LOCAL}/local-dir")
for file, content in FILES.items():
    hub.write(local / file, content)
    etag = sha256(content) if file.endswith(".safetensors") else git_sha1(content)
    hub.write(local / ".cache/huggingface/download" / (file + ".metadata"), f"{{COMMIT}}\\n{{etag}}\\n1700000000.0\\n".encode())
hub.add("org/large", "old", {{"config.json": b"{{}}", "one.safetensors": safetensors(3, {LARGE_MIB} << 20)}})
"""
# Runs on the second host within `spark-stage run`: a program that loads the model by its name.
LOAD = """
import os, sys
from made_models import COMMIT, FILES, find_cached, is_whole_offline
name, cache = sys.argv[1], os.environ["HF_HUB_CACHE"]
assert os.environ["HF_HUB_OFFLINE"] == "1" and "HF_HOME" not in os.environ
for revision in ("main", COMMIT):
    assert is_whole_offline(cache, name, revision), revision
    for file, content in FILES.items():
        found = find_cached(cache, name, file, revision)
        assert found and found.read_bytes() == content and not found.is_symlink(), (revision, file, found)
print("loaded", name)
"""
SAME = """
import os, sys
from pathlib import Path
from made_models import FILES
folder = Path(sys.argv[1])
assert {file: (folder / file).read_bytes() for file in FILES} == FILES and not (folder / ".cache").exists()
print("loaded")
"""


def python(script, *words):
    return f"PYTHONPATH=/root python3 -c {shlex.quote(script)} {' '.join(words)}"


class Sparks:
    def __init__(self, rig):
        first = config_text(cache=CACHE)
        self.hosts = []
        for number in (1, 2):
            drive = local_drive(rig)
            drive = drive.rename(drive.with_name(f"local-{number}.raw"))
            self.hosts.append(rig.add_host(f"host{number}", disks=[drive], files={CONFIG: first, "/root/made_models.py": MADE_MODELS.read_text()}))
        self.products = [Product(host) for host in self.hosts]
        self.sections = ["", ""]  # of the fleet

    def start(self):
        for host in self.hosts:
            host.start()
        for host in self.hosts:
            host.wait_ready(until="spark-stage status")
            host.wait_until(f"[ -e {disk(1)} ] && mountpoint -q {LOCAL}", 60)
        self.hosts[0].sh(python(MAKE), 120)

    def configure(self, index, **datasets):
        self.products[index].configure(config_text(cache=CACHE, datasets=datasets) + self.sections[index])

    def wait_for_peer(self, index):
        self.hosts[index].wait_until("spark-stage status --json | python3 -c 'import json, sys; "
                                     "sys.exit(not any(p[\"answers\"] for p in json.load(sys.stdin)[\"fleet\"][\"peers\"]))'", 120, 1)

    def adopt(self, **datasets):
        self.configure(0, **{name: {**body, "adopt": True} for name, body in datasets.items()})
        self.hosts[0].wait_until("spark-stage status --json | python3 -c 'import json, sys; "
                                 "sys.exit(any(a[\"state\"] != \"offered\" for a in json.load(sys.stdin)[\"fleet\"][\"adopted\"]))'", 240, 1)

    def stage(self, name, index=1, options=""):
        return self.hosts[index].spawn(f"exec spark-stage stage {name} --json {options}")


def result(process):
    ended = process.wait(600)
    assert ended.rc == 0, ended
    return json.loads(ended.out)["datasets"][0]


@pytest.fixture(scope="module")
def sparks():
    yield from made_of(Sparks)


def test_two_sparks_join_with_one_command_on_each(sparks):
    first, second = sparks.hosts
    joined = first.run(f"spark-stage fleet join host2={second.address}", 60)
    assert joined.rc == 0 and "--key-file fleet.key" in joined.out, joined
    second.put("/root/fleet.key", first.get(KEY), "600")
    joined = second.run(f"cd /root && spark-stage fleet join host1={first.address} --key-file fleet.key", 120)
    print(joined.out)
    assert joined.rc in (0, 1) and re.search(rf"host1 +{re.escape(first.address)}", joined.out), joined  # an emulated link may be slow
    for index, host in enumerate(sparks.hosts):
        text = host.get(CONFIG)
        sparks.sections[index] = text[text.index("fleet:"):]
        sparks.wait_for_peer(index)


def test_each_layout_is_loaded_offline_on_the_host_that_has_not_downloaded_it(sparks):
    names = ("old", "shared", "plain")
    sparks.adopt(**{name: {"path": HUB, "model": f"org/{name}"} for name in names}, folder={"path": f"{LOCAL}/local-dir", "model": "org/folder"})
    sparks.configure(1, **{f"my-{name}": {"source": "peers", "model": f"org/{name}"} for name in (*names, "folder")})
    sparks.wait_for_peer(1)
    host = sparks.hosts[1]
    for name in names:
        staged = result(sparks.stage(f"my-{name}"))
        assert staged["from"] == ["host1"] and staged["checked"]["none"] == (4 if name == "plain" else 0), staged
        loaded = host.run(f"spark-stage run my-{name} -- sh -c {shlex.quote(python(LOAD, 'org/' + name))}", 120)
        assert loaded.rc == 0 and f"loaded org/{name}" in loaded.out, loaded
    result(sparks.stage("my-folder"))
    loaded = host.run(f"spark-stage run my-folder -- sh -c {shlex.quote(python(SAME, '$SPARK_STAGE_MY_FOLDER'))}", 120)
    assert loaded.rc == 0 and "loaded" in loaded.out, loaded
    assert "cache/data" not in sparks.hosts[0].sh(f"find {LOCAL}/cache/data -name '*.safetensors'"), "there is no second copy"


def test_a_shard_that_was_damaged_on_the_peers_drive_is_not_ready(sparks):
    """The first host has a copy, whose bytes are wrong although nothing about the file tells."""
    sparks.configure(0, old={"path": HUB, "model": "org/old"})
    result(sparks.stage("old", 0))
    shard = sparks.hosts[0].sh(f"find {LOCAL}/cache/data/old -name model-00002-of-00002.safetensors").split()[0]
    flip = f"from pathlib import Path; from made_models import flip; flip(Path('{shard}'))"
    sparks.hosts[0].put("/root/flip.py", flip)
    # Jobs can't change the copy, so change it on the drive.
    sparks.hosts[0].sh(f"unshare --mount --propagation private sh -c 'umount {LOCAL}/cache/data; exec python3 /root/flip.py'", 60)
    sparks.configure(1, damaged={"source": "peers", "model": "org/old"})
    sparks.wait_for_peer(1)
    ended = sparks.stage("damaged").wait(300)
    assert ended.rc == 6 and "host1" in ended.err, ended
    assert not (sparks.products[1].dataset("damaged") or {}).get("path"), sparks.products[1].dataset("damaged")
    sparks.products[0].sh("evict old", 120)
    result(sparks.stage("old", 0))
    assert result(sparks.stage("damaged"))["from"] == ["host1"]


def test_a_peer_without_power_halfway_sends_the_rest_when_it_is_back(sparks):
    sparks.adopt(large={"path": HUB, "model": "org/large"})
    sparks.configure(1, large={"source": "peers", "model": "org/large"})
    sparks.wait_for_peer(1)
    first, second = sparks.hosts
    staging = sparks.stage("large", options="--max-rate 2MB/s --wait 10m")
    sparks.products[1].wait_dataset("large", lambda row: (row.get("progress") or {}).get("bytes_done", 0) > LARGE_MIB << 18, 240)
    first.kill()
    sparks.products[1].wait_dataset("large", "stalled", 240)
    first.start()
    first.wait_ready(until="spark-stage status")
    staged = result(staging)
    assert staged["from"] == ["host1"], staged
    same = "cd {} && cat one.safetensors | sha256sum"
    assert second.sh(same.format(staged["path"]), 60) == first.sh(same.format(f"{HUB}/models--org--large/snapshots/*"), 60)
