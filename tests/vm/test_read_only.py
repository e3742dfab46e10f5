"""A job can't change a served copy and has a writable folder instead; targets of links are copied as well."""
import json
import re

import pytest

from rig.house import CACHE, DATASETS_MOUNT
from rig.product import UNIT
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


def test_a_cancelled_copy_does_not_keep_its_volume_mounted(house, images):
    copy = house.host.spawn("spark-stage stage slow --max-rate 8MB/s")
    house.host.wait_until("spark-stage ls --json | grep -q '\"bytes_done\": [1-9]'", 60)
    house.host.sh("pkill -INT -f 'spark-stage stage [s]low'")
    copy.wait(30)
    house.product.sh("volumes down datasets", 60)
    assert house.host.run(f"mountpoint -q {DATASETS_MOUNT}").rc != 0
    assert house.host.run(f"grep -l '{DATASETS_MOUNT} ' /proc/[0-9]*/mountinfo").out == ""
    house.product.sh("volumes up datasets", 60)
    house.product.wait_volume("datasets", "ready")


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


def test_a_snapshot_of_links_causes_a_warning_and_is_copied_with_targets_on_request(house):
    snapshot = {"volume": "hub", "path": "m/snapshots/r"}
    datasets = {"kept": snapshot, "whole": {**snapshot, "links": "copy"}, "strict": {**snapshot, "links": "refuse"}}
    with house.volume("hub", access="exclusive", fence="none", datasets=datasets, fill="""
            mkdir -p m/blobs m/snapshots/r; cd m/snapshots/r; echo weights >../../blobs/a
            ln -s ../../blobs/a model; ln -s /mnt/hub/m/blobs/a absolute; ln -s /etc/hostname host"""):
        house.product.wait_volume("hub", "ready")
        kept = house.product.run("stage kept --json", 60)
        assert json.loads(kept.out)["datasets"][0]["outside_links"] == 3
        assert "model -> ../../blobs/a" in kept.err and "links: copy" in kept.err

        result = house.product.run("stage whole --json", 60)
        whole = json.loads(result.out)["datasets"][0]
        assert (whole["copied_links"], whole["outside_links"]) == (2, 1)
        assert "host -> /etc/hostname (not on the source's mount)" in result.err, result.err
        for name in ("model", "absolute"):
            house.host.sh(f"[ ! -L {whole['path']}/{name} ] && [ $(cat {whole['path']}/{name}) = weights ]")
            written = house.host.run(f"echo x >>{whole['path']}/{name}")
            assert written.rc != 0 and "Read-only file system" in written.err, written
        assert house.product.json("stage whole", 60)["datasets"][0]["served_from"] == "cache"

        strict = house.product.run("stage strict", 60)
        assert strict.rc == 7 and "model -> ../../blobs/a" in strict.err, strict
        for name in ("kept", "whole"):
            house.product.sh(f"evict {name}")


def test_released_copies_can_be_deleted_until_the_daemon_serves_them_again(house, images):
    house.host.sh(f"systemctl stop {UNIT}; spark-staged release --copies; touch {images['path']}/x; rm {images['path']}/x", 60)
    assert mounts(house) == 0
    house.host.sh(f"systemctl start {UNIT}", 60)
    house.wait_ready()
    house.product.wait_dataset("images", "ready")
    assert mounts(house) == 1
