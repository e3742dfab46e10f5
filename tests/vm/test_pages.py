"""docs/first-data.md and docs/change.md, typed from start to end: every command of their blocks, in order."""
import re
import shlex

import pytest

from rig import blocks
from rig.house import CACHE, TARGET_ADDRESS
from rig.pair import Pair
from rig.product import CONFIG, UNIT, config_text

DATA, CHANGE = "docs/first-data.md", "docs/change.md"
NEW_CACHE = "/data/cache"
# Files to download, from a server on the host itself.
SERVED = "/srv/web/imagenet"
SERVER = ("cd /srv/web && exec python3 -m http.server --bind 127.0.0.1 8000")


def type_on(host, block, answer=""):
    text = block.text.replace("sudo ", "").replace("http://192.168.0.50/", "http://127.0.0.1:8000/")
    script = f"cd /root; export USER=root; set -eo pipefail\n{text}"
    result = host.run(f"bash -c {shlex.quote(script)}", 300, stdin=f"{answer}\n".encode() if answer else b"")
    print(f"{block}\n{result.out}{result.err}")
    assert result.rc == 0, f"{block}\n{result.out}{result.err}"
    return result.out


def commands(page):
    return [block for block in blocks.of_page(page) if block.language == "sh"]


@pytest.fixture
def empty_volume(house, second_host):
    """A namespace of zeros for both hosts, whose configuration is the page's; a server with the files to download."""
    both = Pair(house, second_host)
    device = house.target.image("datasets-new", "320M")
    house.target.export("datasets", device, reservations=True)
    house.product.sh("volumes down datasets", 120)
    house.host.sh(f"rm -f /var/lib/spark-stage/volumes/datasets.*; mkdir -p {SERVED}; cd {SERVED}; "
                  "for i in 0 1; do dd if=/dev/urandom of=shard-$i.tar bs=1M count=4 status=none; done; "
                  "sha256sum shard-*.tar >SHA256SUMS")
    second_host.sh("rm -f /var/lib/spark-stage/volumes/datasets.*")
    server = house.host.spawn(SERVER)
    yield both
    server.signal(15)
    for product in both.products:
        product.run("volumes down datasets", 120)
    second_host.sh("rm -f /var/lib/spark-stage/volumes/datasets.*")
    both.products[1].run("evict imagenet")
    both.products[1].configure(config_text(targets={"rose": {"address": TARGET_ADDRESS}}))
    house.host.sh("rm -rf /srv/web /var/lib/spark-stage/volumes/datasets.*")
    house.product.configure(house.config())
    house.product.run("volumes up datasets", 60)
    house.target.remove("datasets")
    house.target.machine.sh(f"rm -f {device}")
    house.wait_ready()


def test_the_page_on_an_empty_volume_works_as_written(empty_volume):
    both = empty_volume
    writer, reader = both.hosts
    for host, block in zip(both.hosts, [block for block in blocks.of_page(DATA) if block.language == "yaml"], strict=True):
        host.put(CONFIG, block.text.replace("192.168.0.100", TARGET_ADDRESS))
    checks = 0
    for block in commands(DATA):
        checks += "config check" in block.lines[0]
        host = reader if checks == 2 and "volumes up" not in block.lines[0] else writer
        said = type_on(host, block, answer="datasets" if "volumes format" in block.text else "")
        if block.lines[0].startswith("sudo spark-stage config check"):
            both.products[0].wait_volume("datasets", "refused" if checks == 1 else "ready", 60)
        if "spark-stage stage imagenet" in block.text:
            assert "/imagenet/" in said and both.products[1].dataset("imagenet")["files"] == 3
    both.products[1].wait_volume("datasets", lambda volume: volume["state"] == "ready" and
                                 volume["published"]["generation"] == 2, 60)
    assert both.products[1].dataset("imagenet")["outdated"]


def cache_at(house, path):
    return house.config(cache={"path": path})


def without_a_cache(house):
    """As with a new drive: its folder is empty."""
    house.host.sh(f"systemctl stop {UNIT}; spark-staged release --copies; rm -rf {NEW_CACHE}; mkdir {NEW_CACHE}; "
                  f"systemctl start {UNIT}")
    house.host.wait_until("spark-stage status | grep -q 'cache reset'", 60)


def test_the_page_on_changes_works_as_written(house):
    house.empty_cache()
    house.product.sh("stage images small", 120)
    house.host.sh("mkdir -p /data")
    typed = {}
    try:
        for block in commands(CHANGE):
            begin = block.lines[0]
            if begin.startswith("spark-stage config plan"):
                house.host.put(CONFIG, cache_at(house, NEW_CACHE))
            if begin.startswith("spark-stage status || true"):
                without_a_cache(house)
            typed[begin] = type_on(house.host, block)
            if begin.startswith("spark-stage config plan"):
                assert f"cache.path: {CACHE} -> {NEW_CACHE}" in typed[begin]
                assert f"the copies in {CACHE} are deleted" in typed[begin]
                assert house.host.run(f"test -e {CACHE}").rc != 0
        said = lambda word: next(text for begin, text in typed.items() if word in begin)
        assert "2 datasets in /data/cache" in said("cache move"), said("cache move")
        assert "cache reset" in said("status || true")
        assert "images: forgotten" in said("cache reset") and "small: forgotten" in said("cache reset")
        assert re.search("etc/nvme/hostnqn", house.host.sh("tar -tzf /root/spark-stage.tar.gz"))
    finally:
        house.product.run("volumes up", 60)
        house.host.sh(f"systemctl stop {UNIT}; spark-staged release --copies")
        house.host.put(CONFIG, house.config())
        house.host.sh(f"rm -rf /data /root/spark-stage.tar.gz /var/lib/spark-stage/catalog.sqlite*; systemctl start {UNIT}")
        house.wait_ready()
