"""Sending a checkpoint to a volume: in any fault, the volume has all of it, or nothing under its name."""
import time

import pytest

from rig.house import LOCAL, NAS_MOUNT
from rig.own_volume import assert_whole, own_volume
from rig.pair import MOUNT, NAME
from rig.settings import patience

NEW = f"{LOCAL}/out/step-1000"
MIB = 48
VOLUME = "checkpoints"
ON_VOLUME = f"/mnt/{VOLUME}"


def checkpoints(house, size="256M", **engine):
    """A volume written by this host alone; it is checked afterwards."""
    return own_volume(house, VOLUME, size=size, cache=engine)


def save(machine, path=NEW, mib=MIB):
    """Saves like a job: shards, a large one and small ones, under their final name."""
    machine.sh(f"""set -e
        rm -rf {path}; mkdir -p {path}
        head -c {mib}M /dev/urandom >{path}/model.safetensors
        for i in 1 2 3; do head -c 100k /dev/urandom >{path}/shard-$i.distcp; done
        echo '{{}}' >{path}/config.json; sync -f {path}""", 120)


def content(machine, path):
    """One checksum over all names and bytes, read past the page cache."""
    return machine.sh(f"sync; echo 3 >/proc/sys/vm/drop_caches; cd {path} && find . -type f | sort | xargs sha256sum | sha256sum",
                      120)


def begin(product, destination, rate="3MB/s"):
    """Starts a slow stage-out and waits until it has copied data; returns its job's number."""
    job = product.sh(f"stage-out {NEW} {destination} --max-rate {rate} --detach", 60).strip()
    product.machine.wait_until(f"spark-stage jobs --json | grep -A6 '\"verb\": \"stage-out\"' >/dev/null", 60)
    wait_progress(product, lambda row: row.get("bytes_done", 0) > 4 << 20)
    return job


def rows(product):
    return product.status()["stage_outs"]


def wait_progress(product, wanted, deadline=60):
    """Waits until the only stage-out satisfies the predicate."""
    end = time.monotonic() + patience(deadline)
    while not (found := rows(product)) or not wanted(found[0]):
        assert time.monotonic() < end, found
        time.sleep(0.3)
    return found[0]


def wait_sent(product, deadline=180):
    """Waits until no stage-out is running."""
    end = time.monotonic() + patience(deadline)
    while found := rows(product):
        assert time.monotonic() < end, found
        time.sleep(0.5)


def assert_sent(house, name):
    assert content(house.host, f"{ON_VOLUME}/{name}") == content(house.host, NEW)
    assert house.product.run(f"verify {VOLUME}:{name}", 120).rc == 0
    assert not hidden(house.host, ON_VOLUME), "something is left beside it"


def hidden(machine, folder):
    return machine.sh(f"ls -A {folder} | grep 'spark-partial$' || true").split()


def test_a_sent_checkpoint_is_complete_and_leaves_the_page_cache_unchanged(house):
    save(house.host)
    with checkpoints(house):
        house.host.sh("sync; echo 3 >/proc/sys/vm/drop_caches")
        sent = house.product.json(f"stage-out {NEW} {VOLUME}:run7/step-1000", 120)
        assert sent["state"] == "ready" and sent["served_from"] == "copied"
        resident = house.host.sh(f"fincore -bno RES {NEW}/model.safetensors {ON_VOLUME}/run7/step-1000/model.safetensors")
        assert sum(int(size) for size in resident.split()) < 4 << 20, resident
        assert content(house.host, f"{ON_VOLUME}/run7/step-1000") == content(house.host, NEW)
        assert house.product.json(f"stage-out {NEW} {VOLUME}:run7/step-1000")["served_from"] == "unchanged"
        assert house.product.run(f"verify {VOLUME}:run7/step-1000", 120).rc == 0


def test_a_user_sends_with_its_own_permissions(house):
    """It neither reads files that only root may read, nor writes where only root may write."""
    house.host.sh(f"useradd -m -G spark-stage saver; rm -rf {LOCAL}/secret; mkdir -m 700 -p {LOCAL}/secret && echo k >{LOCAL}/secret/key")
    try:
        as_saver = "setpriv --reuid=saver --regid=saver --init-groups spark-stage stage-out"
        unread = house.host.run(f"{as_saver} {LOCAL}/secret nas:secret", 60)
        assert unread.rc != 0 and "ermission denied" in unread.err, unread.err
        house.host.sh("install -d -o saver -g saver /home/saver/out && echo data >/home/saver/out/file")
        unwritten = house.host.run(f"{as_saver} /home/saver/out nas:theirs", 60)
        assert unwritten.rc != 0 and "ermission denied" in unwritten.err, unwritten.err
        house.host.sh(f"install -d -o saver {NAS_MOUNT}/saver; chown -R saver: /home/saver/out")
        sent = house.host.run(f"{as_saver} /home/saver/out nas:saver/out", 60)
        assert sent.rc == 0, sent.err
        assert house.host.sh(f"stat -c %U {NAS_MOUNT}/saver/out/file").strip() == "saver"
    finally:
        house.host.sh(f"rm -rf {LOCAL}/secret {NAS_MOUNT}/saver; userdel -r saver || true")


def test_a_volume_that_fills_up_midway_shows_nothing_and_the_local_copy_stays(house):
    save(house.host, mib=4)
    house.host.sh(f"for i in $(seq 10); do head -c 4M /dev/urandom >{NEW}/model-$i.safetensors; done; sync -f {NEW}")
    with checkpoints(house, size="128M", chunk="256KiB", depth=1):  # one file at a time: no file reserves its space early
        job = begin(house.product, f"{VOLUME}:step-1000")
        house.host.run(f"dd if=/dev/zero of={ON_VOLUME}/full bs=1M status=none; sync -f {ON_VOLUME}", 120)
        ended = house.product.run(f"wait --job {job}", 120)
        assert ended.rc == 5 and "the local copy is as it was" in ended.err, ended.err
        assert house.host.run(f"ls {ON_VOLUME}/step-1000").rc != 0
        refused = house.product.run(f"stage-out {NEW} {VOLUME}:step-1000", 120)
        assert refused.rc == 5, refused.err
        house.host.sh(f"rm {ON_VOLUME}/full")
        house.product.sh(f"stage-out {NEW} {VOLUME}:step-1000", 120)
        assert_sent(house, "step-1000")


def test_sending_resumes_after_the_daemon_is_killed(house):
    save(house.host)
    with checkpoints(house):
        begin(house.product, f"{VOLUME}:step-1000")
        house.product.kill()
        wait_progress(house.product, lambda row: row.get("bytes_done", 0) > 4 << 20)
        assert house.host.run(f"ls {ON_VOLUME}/step-1000").rc != 0
        wait_sent(house.product)
        assert_sent(house, "step-1000")


@pytest.mark.long
def test_sending_waits_while_the_cable_is_out_and_then_completes(house):
    save(house.host)
    with checkpoints(house):
        job = begin(house.product, f"{VOLUME}:step-1000")
        house.host.set_link(False)
        try:
            wait_progress(house.product, lambda row: row["phase"] == "stalled", 60)
            print("it says:", rows(house.product)[0]["reason"])
            time.sleep(60)
            assert rows(house.product)[0]["phase"] == "stalled"
        finally:
            house.host.set_link(True)
        ended = house.product.run(f"wait --job {job}", 300)
        assert ended.rc == 0, ended.err
        house.wait_ready()
        assert_sent(house, "step-1000")


@pytest.mark.long
def test_sending_resumes_after_a_power_cut_of_the_host(house):
    save(house.host)
    earlier = f"{LOCAL}/out/step-900"
    with checkpoints(house):
        save(house.host, earlier, mib=8)
        house.product.sh(f"stage-out {earlier} {VOLUME}:step-900", 120)
        begin(house.product, f"{VOLUME}:step-1000")
        house.host.sh("sync /var/lib/spark-stage/stage-outs/*.json")
        configuration = house.host.get("/etc/spark-stage/spark-stage.yaml")
        house.host.sh("sync -f /etc/spark-stage")
        house.host.kill()
        house.start_host()
        house.host.wait_until("spark-stage status", 120)
        assert house.host.get("/etc/spark-stage/spark-stage.yaml") == configuration
        house.product.wait_volume(VOLUME, "ready", 180)
        wait_sent(house.product)
        assert_sent(house, "step-1000")
        assert content(house.host, f"{ON_VOLUME}/step-900") == content(house.host, earlier)
        house.wait_ready()


@pytest.mark.long
def test_a_volume_taken_over_by_another_host_has_nothing_incomplete(pair):
    pair.configure(0, "exclusive")
    pair.products[0].wait_volume(NAME, "ready", 120)
    pair.configure(1, "exclusive")
    pair.products[1].wait_volume(NAME, "refused", 120)
    save(pair.hosts[0])
    save(pair.hosts[1], mib=8)
    refused = pair.products[1].run(f"stage-out {NEW} {NAME}:theirs", 60)
    assert refused.rc == 7 and "host1" in refused.err, refused.err
    pair.products[0].sh(f"stage-out {NEW} {NAME}:whole", 180)
    whole = content(pair.hosts[0], f"{MOUNT}/whole")
    if not pair.has_reservations():
        pytest.skip("without reservations nothing can stop a host that still writes: this target's kernel has none")
    job = begin(pair.products[0], f"{NAME}:half")
    taken = pair.products[1].run(f"volumes take {NAME} --yes", 300)
    assert taken.rc == 0, taken.err
    pair.products[1].wait_volume(NAME, "ready", 120)
    ended = pair.products[0].run(f"wait --job {job}", 180)
    print("the host that lost it says:", ended.err)
    assert ended.rc not in (0, 124) and "nothing incomplete is visible" in ended.err, ended.err
    assert pair.hosts[1].sh(f"ls {MOUNT}").split() == ["file", "lost+found", "whole"]
    assert content(pair.hosts[1], f"{MOUNT}/whole") == whole
    assert assert_whole(pair.products[1], NAME, MOUNT) == ["whole"]
    pair.products[1].sh(f"stage-out {NEW} {NAME}:half", 180)
    assert pair.products[1].run(f"verify {NAME}:half", 120).rc == 0
