"""A writer publishes, readers follow: they stage one complete published state, or nothing."""
import json
import os
import random
import time

import pytest

from rig.pair import MOUNT, NAME, Pair
from rig.settings import KERNEL

GENERATIONS = int(os.environ.get("SPARK_GENERATIONS", "5"))
POWER_CUTS = int(os.environ.get("SPARK_POWER_CUTS", "2"))  # each requires a boot

# Each line of every file contains the generation's number; all generations have the same length.
WRITE = f"""
import os, sys
number = int(sys.argv[1])
os.makedirs("{MOUNT}/data", exist_ok=True)
for index in range(16):
    with open(f"{MOUNT}/data/{{index}}", "r+b" if number > 1 else "wb") as file:
        file.write(b"%08d\\n" % number * 7000)
"""

READ = f"""
import json, os, pathlib, subprocess
while not os.path.exists("/run/stop-reading"):
    done = subprocess.run(["spark-stage", "stage", "{NAME}:data", "--json"], capture_output=True, text=True)
    if done.returncode != 0:
        print(done.returncode, done.stderr.strip().splitlines()[-1], flush=True)
        continue
    path = json.loads(done.stdout)["datasets"][0]["path"]
    seen = set()
    for file in pathlib.Path(path).iterdir():
        seen |= set(file.read_bytes().split())
    print(0, *(int(one) for one in seen), flush=True)
"""


@pytest.fixture
def published(house, second_host):
    """The first host writes; the second reads. Without multi-mount protection if possible, since it would delay each change."""
    both = Pair(house, second_host)
    both.export(mmp=KERNEL == "6.1")
    both.configure(0, "exclusive")
    both.products[0].wait_volume(NAME, "ready", 120)
    both.products[0].sh(f"volumes up {NAME}", 60)  # the previous volume of this name was published
    both.hosts[1].put("/run/read.py", READ)
    yield both
    both.end()


def write(both, number):
    both.hosts[0].put("/run/write.py", WRITE)  # each time, since the host may have been switched off
    both.hosts[0].sh(f"python3 /run/write.py {number}", 60)


def publish(both, arguments=""):
    return both.products[0].sh(f"volumes publish {NAME} {arguments}", 120)


def generation_of(volume):
    return volume["published"]["generation"] if volume["published"] else 0


def shows(number):
    return lambda volume: volume["state"] == "ready" and generation_of(volume) == number and not volume["foreign_writes"]


@pytest.mark.long
def test_a_reader_mounts_each_published_generation_and_old_copies_become_outdated(published):
    write(published, 1)
    publish(published)
    published.configure(1, "read-only")
    reader = published.products[1]
    reader.wait_volume(NAME, shows(1), 120)
    reader.sh(f"stage {NAME}:data", 60)
    assert reader.dataset(f"{NAME}:data")["outdated"] is False
    for number in (2, 3, 4):
        published.products[0].sh(f"volumes up {NAME}", 60)
        write(published, number)
        publish(published)
        began = time.monotonic()
        reader.wait_volume(NAME, shows(number), 60)
        print(f"generation {number}: mounted by its reader {time.monotonic() - began:.1f} s after publish had ended")
    row = reader.dataset(f"{NAME}:data")
    assert row["outdated"] and row["source_generation"] == 1 and row["volume_generation"] == 4, row
    assert "its volume is at 4" in reader.sh("ls")
    reader.sh(f"stage {NAME}:data", 60)
    assert reader.dataset(f"{NAME}:data")["outdated"] is False


@pytest.mark.repeats
def test_every_copy_staged_during_publishing_is_of_exactly_one_generation(published):
    write(published, 1)
    publish(published)
    published.configure(1, "read-only")
    published.products[1].wait_volume(NAME, shows(1), 120)
    host = published.hosts[1]
    host.sh("rm -f /run/stop-reading")
    reading = host.spawn("python3 /run/read.py >/run/read.log 2>&1")
    for number in range(2, GENERATIONS + 1):
        time.sleep(random.uniform(0, 3))
        published.products[0].sh(f"volumes up {NAME}", 60)
        write(published, number)
        time.sleep(random.uniform(0, 2))
        publish(published)
    published.products[1].wait_volume(NAME, shows(GENERATIONS), 60)
    host.wait_until(f"tail -1 /run/read.log | grep -qx '0 {GENERATIONS}'", 120)
    host.sh("touch /run/stop-reading")
    assert reading.wait(120).rc == 0
    lines = host.get("/run/read.log").splitlines()
    copies = [line.split()[1:] for line in lines if line.startswith("0 ")]
    refused = [line for line in lines if not line.startswith("0 ")]
    print(f"{GENERATIONS} generations: {len(copies)} copies of {len({tuple(copy) for copy in copies})} of them, "
          f"{len(refused)} refused, as: {refused[-1] if refused else '-'}")
    assert all(len(copy) == 1 for copy in copies), [copy for copy in copies if len(copy) != 1]
    assert [int(copy[0]) for copy in copies] == sorted(int(copy[0]) for copy in copies), "an older state came back"
    assert {line.split()[0] for line in refused} <= {"7", "4"}, refused


def test_a_published_volume_stays_read_only_after_a_restart_until_brought_up_again(published):
    write(published, 1)
    publish(published)
    published.products[0].restart()
    volume = published.products[0].wait_volume(NAME, "ready", 60)
    assert generation_of(volume) == 1 and "volumes up" in volume["reason"], volume
    assert published.hosts[0].run(f"touch {MOUNT}/new").rc != 0
    assert published.down(0).rc == 0
    published.products[0].sh(f"volumes up {NAME}", 60)
    published.products[0].wait_volume(NAME, "ready", 120)
    published.hosts[0].sh(f"touch {MOUNT}/new")
    assert published.products[0].volume(NAME)["reason"] is None


@pytest.mark.long
def test_a_power_cut_while_publishing_leaves_readers_the_old_or_the_new_state(published):
    published.configure(1, "read-only")
    reader, writer = published.products[1], published.hosts[0]
    write(published, 1)
    publish(published)
    for number in range(2, POWER_CUTS + 2):
        published.products[0].sh(f"volumes up {NAME}", 60)
        published.products[0].wait_volume(NAME, "ready", 180)
        write(published, number)
        published.products[0].post(f"/v1/volumes/{NAME}/publish")
        time.sleep(random.uniform(0, 1.5))
        writer.kill()
        time.sleep(5)
        volume = reader.volume(NAME)
        print(f"cut {number}: the reader is {volume['state']} with generation {generation_of(volume)}")
        # Staging fails if the reader detects a writer meanwhile.
        if volume["state"] == "ready" and not volume["foreign_writes"] and reader.run(f"stage {NAME}:data", 60).rc == 0:
            path = reader.dataset(f"{NAME}:data")["path"]
            seen = published.hosts[1].sh(f"cat {path}/* | sort -u").split()
            assert len(seen) == 1 and int(seen[0]) in (number - 1, number), seen
        writer.start()
        writer.wait_ready(until="spark-stage status")
        published.house.wait_ready()
        published.products[0].wait_volume(NAME, "ready", 180)
    assert json.loads(writer.sh(f"cat {MOUNT}/.spark-stage/published.json"))["generation"] >= 1
