"""Outputs: the daemon watches the folder of a job's checkpoints, and sends the complete ones."""
import time
from contextlib import contextmanager

import pytest

from rig.house import LOCAL
from rig.own_volume import assert_whole, own_volume, wait_until
from rig.pair import MOUNT, NAME
from rig.product import UNIT

OUT = f"{LOCAL}/out/run7"
VOLUME = "outputs"
THERE = f"/mnt/{VOLUME}/run7"
SAVER = "/var/tmp/saver.sh"
# Saves a step like torch.distributed.checkpoint: shards in place, then `.metadata`, which lists them. $1: step.
SAVE_DCP = f"""#!/bin/sh
d={OUT}/step-$1; mkdir -p $d
for i in 0 1 2; do head -c 6M /dev/urandom >$d/__${{i}}_0.distcp; done
(cd $d && sha256sum __*_0.distcp) >$d/sums
printf '\\200\\002X\\014__0_0.distcpX__1_0.distcpX__2_0.distcp.' >$d/.metadata.tmp; mv $d/.metadata.tmp $d/.metadata
"""


@contextmanager
def outputs(house, size="256M", engine=None, **rules):
    """An output that is sent to a volume written by this host alone; the volume is checked afterwards."""
    house.host.sh(f"rm -rf {OUT}; mkdir -p {OUT}")
    sent = {"run7": {"path": OUT, "volume": VOLUME, "to": "run7", **rules}}
    try:
        with own_volume(house, VOLUME, size=size, outputs=sent, cache=engine):
            yield
    finally:
        house.host.sh(f"rm -rf {OUT}")


@contextmanager
def saving(machine, first_step):
    """A job that saves every second until the end of the block."""
    machine.put(SAVER, SAVE_DCP)
    saver = machine.spawn(f"step={first_step}; while :; do sh {SAVER} $step; step=$((step + 1)); sleep 1; done")
    try:
        yield
    finally:
        if machine.is_running():
            saver.signal(9)
            saver.wait(30)


@contextmanager
def slow_sending(machine):
    """Limits the host's sending rate to 3 MB/s."""
    machine.sh("tc qdisc add dev eth0 root tbf rate 24mbit burst 256k latency 200ms")
    try:
        yield
    finally:
        machine.sh("tc qdisc del dev eth0 root")


def wait(house, holds, deadline=120):
    wait_until(house, holds, deadline, f"{OUT} {THERE}")


def wait_sending(house):
    """Waits until some of a checkpoint is copied, and not all of it, and another one is published."""
    wait(house, lambda: pointer(house, THERE) != "")
    wait(house, lambda: any(0 < row.get("bytes_done", 0) < row.get("bytes_total", 0) for row in house.product.status()["stage_outs"]))


def output(house):
    return house.product.status()["outputs"][0]


def save(house, name, mib=2):
    house.host.sh(f"mkdir {OUT}/.new; head -c {mib}M /dev/urandom >{OUT}/.new/model; mv {OUT}/.new {OUT}/{name}")


def save_dcp(machine, step):
    machine.put(SAVER, SAVE_DCP)
    machine.sh(f"sh {SAVER} {step}")


def names(house, folder):
    return sorted(house.host.sh(f"ls {folder} 2>/dev/null || true").split())


def pointer(house, folder):
    return house.host.sh(f"readlink {folder}/latest || true").strip()


def assert_right(machine, folders):
    """The checkpoints of the job there have the content that it saved. One may be deleted meanwhile, as `keep` says."""
    checked = machine.run(f"for one in {folders}; do (cd $one && sha256sum --quiet -c sums) || [ ! -e $one ] || exit 1; done", 120)
    assert checked.rc == 0, checked.out + checked.err


def test_complete_checkpoints_are_sent_and_older_ones_deleted_on_both_sides(house):
    with outputs(house, complete="rename", keep=2, keep_local=1):
        save(house, "step-1")
        wait(house, lambda: pointer(house, THERE) == "step-1")
        for step in (2, 3, 4):
            save(house, f"step-{step}")
        wait(house, lambda: output(house)["latest_published"] == "step-4")
        wait(house, lambda: names(house, OUT) == ["step-4"])
        save(house, "step-5")
        wait(house, lambda: pointer(house, THERE) == "step-5")
        wait(house, lambda: len([name for name in names(house, THERE) if name != "latest"]) == 2)
        assert house.product.sh("latest run7").strip() == f"{OUT}/step-5"
        assert house.product.run(f"verify {VOLUME}:run7/step-5", 120).rc == 0
        house.host.sh(f"rm -rf {OUT}/*")  # the node was replaced
        path = house.product.sh("latest run7", 120).strip()
        assert path != f"{OUT}/step-5"
        assert house.host.run(f"cmp {path}/model {THERE}/step-5/model").rc == 0


@pytest.mark.long
def test_a_cable_out_for_a_minute_leaves_complete_checkpoints_and_latest_names_one(house):
    with outputs(house, complete="dcp", keep=2, keep_local=2), saving(house.host, 1):
        wait_sending(house)
        before = pointer(house, THERE)
        house.host.set_link(False)
        try:
            wait(house, lambda: house.product.volume(VOLUME)["state"] != "ready", 60)
            assert house.product.run("latest run7", 60).rc == 4
            assert_right(house.host, house.product.sh("latest run7 --offline", 60).strip())
            time.sleep(60)
        finally:
            house.host.set_link(True)
        house.product.wait_volume(VOLUME, "ready", 180)
        wait(house, lambda: pointer(house, THERE) != before)
        house.wait_ready()
        assert_right(house.host, f"{THERE}/*")


def test_a_full_volume_is_reported_and_the_local_checkpoint_stays(house):
    with outputs(house, size="64M", complete="rename"):
        save(house, "step-1", mib=8)
        wait(house, lambda: pointer(house, THERE) == "step-1")
        save(house, "step-2", mib=100)
        wait(house, lambda: output(house)["failures"] > 0)
        assert names(house, THERE) == ["latest", "step-1"] and pointer(house, THERE) == "step-1"
        assert house.host.sh(f"stat -c %s {OUT}/step-2/model").strip() == str(100 << 20)
        assert output(house)["backlog_bytes"] >= 100 << 20


@pytest.mark.long
def test_a_volume_that_fills_up_midway_keeps_the_old_checkpoint_until_it_has_space(house):
    with outputs(house, size="128M", engine={"chunk": "256KiB", "depth": 1}, complete="rename"):  # one file at a time reserves its space
        save(house, "step-1")
        wait(house, lambda: pointer(house, THERE) == "step-1")
        house.host.sh(f"mkdir {OUT}/.new; for i in $(seq 10); do head -c 4M /dev/urandom >{OUT}/.new/model-$i; done;"
                      f"cd {OUT}/.new && sha256sum model-* >sums && mv {OUT}/.new {OUT}/step-2")
        with slow_sending(house.host):
            wait(house, lambda: any(row["bytes_done"] > 4 << 20 for row in house.product.status()["stage_outs"]))
            house.host.run(f"fallocate -l 256M {THERE}/../full")  # as much as there is
            wait(house, lambda: output(house)["failures"] > 0)
        told = house.product.sh("status")
        print(told)
        assert "step-2" in told and "space" in output(house)["reason"], output(house)
        assert "nothing incomplete is visible there, and the local copy is as it was" in output(house)["reason"]
        assert names(house, THERE) == ["latest", "step-1"] and pointer(house, THERE) == "step-1"
        assert_right(house.host, f"{OUT}/step-2")
        house.host.sh(f"rm {THERE}/../full")
        wait(house, lambda: pointer(house, THERE) == "step-2", 300)
        assert_right(house.host, f"{THERE}/step-2")
        wait(house, lambda: output(house)["reason"] is None and output(house)["backlog_bytes"] == 0)


def test_after_a_power_cut_only_checkpoints_known_to_be_durable_are_trusted(house):
    with outputs(house, complete="dcp", keep=3, keep_local=3):
        house.host.sh("sync -f /etc/spark-stage")
        with saving(house.host, 1):
            wait_sending(house)
            house.host.kill()
        house.start_host()
        house.host.wait_until("spark-stage status", 120)
        house.product.wait_volume(VOLUME, "ready", 180)
        assert_right(house.host, house.product.sh("latest run7", 120).strip())
        assert_right(house.host, f"{THERE}/*")


@pytest.mark.long
def test_a_checkpoint_half_saved_again_between_two_attempts_is_published_only_once_it_is_complete(house):
    with outputs(house, complete="dcp"):
        with slow_sending(house.host):
            save_dcp(house.host, 1)
            wait(house, lambda: any(row["bytes_done"] > 0 for row in house.product.status()["stage_outs"]))
            house.host.sh(f"systemctl stop {UNIT}", 60)
        house.host.sh(f"head -c 6M /dev/urandom >{OUT}/step-1/__0_0.distcp; systemctl start {UNIT}", 60)
        house.product.wait_volume(VOLUME, "ready", 180)
        wait(house, lambda: not house.product.status()["stage_outs"])
        assert names(house, THERE) == [], output(house)
        save_dcp(house.host, 1)
        wait(house, lambda: pointer(house, THERE) == "step-1")
        assert_right(house.host, f"{THERE}/step-1")


@pytest.mark.long
def test_a_checkpoint_that_no_daemon_saw_before_a_power_cut_is_sent_only_by_a_person(house):
    with outputs(house, complete="rename"):
        house.host.sh(f"systemctl stop {UNIT}")
        save(house, "step-1")
        house.host.sh("sync")
        house.host.kill()
        house.start_host()
        house.host.wait_until("spark-stage status", 120)
        house.product.wait_volume(VOLUME, "ready", 180)
        by_hand = f"stage-out {OUT}/step-1 {VOLUME}:run7/step-1"
        refused = house.product.run("latest run7", 120)
        assert refused.rc == 4 and by_hand in refused.err, refused.err
        assert names(house, THERE) == []
        house.product.sh(by_hand, 120)
        latest = house.product.sh("latest run7", 120).strip()
        assert house.host.run(f"cmp {latest}/model {OUT}/step-1/model").rc == 0


@pytest.mark.long
def test_after_a_takeover_midway_latest_names_a_complete_checkpoint(pair):
    if not pair.has_reservations():
        pytest.skip("without reservations nothing can stop a host that still writes: this target's kernel has none")
    house, (holder, other) = pair.house, pair.hosts
    volumes = {NAME: pair.body("exclusive")}
    holder.sh(f"rm -rf {OUT}; mkdir -p {OUT}")
    try:
        house.product.configure(house.config(volumes=volumes))
        house.product.wait_volume(NAME, "ready", 120)
        house.product.configure(house.config(volumes=volumes, outputs={
            "run7": {"path": OUT, "volume": NAME, "to": "run7", "complete": "dcp", "keep": 2, "keep_local": 2}}))
        pair.configure(1, "exclusive")
        pair.products[1].wait_volume(NAME, "refused", 120)
        with saving(holder, 1):
            wait(house, lambda: pointer(house, f"{MOUNT}/run7") != "")
            with house.slow_wire("20mbit"):
                wait(house, lambda: any(row.get("bytes_done", 0) > 0 for row in house.product.status()["stage_outs"]))
                holder.set_link(False)
            taken = pair.products[1].run(f"volumes take {NAME} --yes", 300)
            assert taken.rc == 0, taken.err
            pair.products[1].wait_volume(NAME, "ready", 120)
            holder.set_link(True)
            house.product.wait_volume(NAME, "refused", 180)
            assert_right(other, f"{MOUNT}/run7/step-* {MOUNT}/run7/latest")
            assert assert_whole(pair.products[1], NAME, MOUNT)
    finally:
        holder.set_link(True)
        house.product.configure(house.config(volumes=volumes))
        holder.sh(f"rm -rf {OUT}")
