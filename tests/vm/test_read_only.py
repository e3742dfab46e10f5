"""A job can't change a served copy and has a writable folder instead."""
import re

import pytest

from rig.house import CACHE
from rig.settings import REPOSITORY

SERVED = f" {CACHE}/data "


def mounts(house):
    return house.host.get("/proc/self/mountinfo").count(SERVED)


def page_blocks(heading):
    """The shell blocks of a chapter of the page."""
    chapter = (REPOSITORY / "docs/staging.md").read_text().split(f"## {heading}\n")[1].split("\n## ")[0]
    return re.findall(r"```\n(.*?)```", chapter, re.DOTALL)


@pytest.fixture(scope="module")
def images(house):
    return house.product.json("stage images", 180)["datasets"][0]


def test_not_even_root_can_change_a_staged_copy(house, images):
    assert house.product.status()["cache"]["read_only"] is True
    for attempt in (f"echo x >>{images['path']}/shard-0.bin", f"touch {images['path']}/train.idx",
                    f"rm {images['path']}/shard-0.bin", f"chmod 600 {CACHE}/images/shard-0.bin"):
        result = house.host.run(attempt)
        assert result.rc != 0 and "Read-only file system" in result.err, result
    again = house.product.json("stage images")["datasets"][0]
    assert again["served_from"] == "cache" and again["path"] == images["path"]


def test_a_read_only_cache_still_publishes_verifies_and_evicts(house, images):
    house.product.sh("verify images", 120)
    with house.volume("growing", access="exclusive", fence="none", fill="mkdir set; echo one >set/a; echo 1 >set/kept"):
        house.product.wait_volume("growing", "ready")
        first = house.product.json("stage growing:set")["datasets"][0]
        house.host.sh("echo two >/mnt/growing/set/a; sync")
        second = house.product.json("stage growing:set")["datasets"][0]
        assert second["served_from"] == "copied" and second["unchanged_bytes"] > 0
        assert house.host.get(second["path"] + "/a") == "two\n"
        assert house.host.run(f"[ -e {first['path']} ]").rc != 0, "the older generation is gone"
        assert house.host.run(f"echo x >{second['path']}/kept").rc != 0
        house.product.sh("evict growing:set")
        assert house.host.run(f"[ -e {second['path']} ]").rc != 0
    assert mounts(house) == 1


def test_the_read_only_mount_outlives_the_daemon_and_exists_once(house, images):
    house.product.kill()
    house.product.restart()
    house.product.wait_dataset("images", "ready")
    house.product.json("stage images")
    assert mounts(house) == 1
    assert house.host.run(f"touch {images['path']}/x").rc != 0


def test_a_job_can_write_beside_its_data_as_documented(house, images):
    links, overlay = (block.replace("imagenet", "images") for block in page_blocks("A job that writes beside its data"))
    before_the_job = "\n".join(line for line in links.splitlines() if not line.startswith("python"))
    house.host.sh(f"""set -e; mkdir -p /local; {before_the_job}
        echo index >/local/job/train.idx
        cmp /local/job/shard-1.bin {images['path']}/shard-1.bin
        ! echo x >>/local/job/shard-1.bin""", 60)
    job = f"""
        echo index >/local/over/merged/train.idx
        echo more >>/local/over/merged/shard-1.bin
        [ ! -e {images['path']}/train.idx ]"""
    commands = "\n".join(job if line.startswith("python") else line for line in overlay.splitlines())
    house.host.sh(f"set -e; modprobe overlay\n{commands}", 60)
    house.product.sh("verify images", 120)
    house.host.sh("rm -r /local/job /local/over")
