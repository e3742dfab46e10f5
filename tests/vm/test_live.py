"""A dataset of a volume is read while it is staged: faults of the target, of the daemon and of the host, with systemd, on each kernel.

Linux 6.1 can't give the requests of a killed process to the next one: its readers get an error, and none hangs. Every byte that a reader
gets is compared."""
import json
import signal
import time
from contextlib import contextmanager
from pathlib import Path

import pytest

from rig.house import CACHE, DATASETS_MOUNT, NAS_EXPORT, NAS_MOUNT, SHARD_MIB, SHARDS
from rig.product import UNIT
from rig.settings import KERNEL, REPOSITORY, patience

MIB = 1 << 20
NAME = "images"
SOURCE = f"{DATASETS_MOUNT}/{NAME}"
WIRE = "40mbit"  # the copy takes twenty seconds
CAN_RESEND = KERNEL != "6.1"
AWAY_S = 60
SHUTDOWN_S = 40  # docs/reliability.md promises 30 s; as in test_shutdown
FOLDERS, FILES_OF_EACH = 30, 100
# Of 0 to 9 KB, each with other bytes.
MAKE_MANY = f"""
import os
for folder in range({FOLDERS}):
    os.makedirs(f"{NAS_EXPORT}/many/{{folder:02}}")
    for file in range({FILES_OF_EACH}):
        with open(f"{NAS_EXPORT}/many/{{folder:02}}/{{file}}", "wb") as made:
            made.write(os.urandom((folder * {FILES_OF_EACH} + file) * 37 % 9001))
"""

pytestmark = pytest.mark.on_6_1


def no_view_is_left(house):
    house.host.wait_until(f"! grep -q ' {CACHE}/.live/' /proc/self/mounts && ! pgrep -f '[s]erve-view'", 60)


@contextmanager
def live(house, wire=WIRE):
    """The folder of the view. At the end nothing is left of it, and the next staging has the right bytes."""
    house.empty_cache()
    house.host.sh(f"cat {SOURCE}/* >/dev/null", 60)  # for those who compare; a copy reads past the page cache
    with house.slow_wire(wire):
        staged = house.product.json(f"stage {NAME} --now --lease 1h", 180)["datasets"][0]
        assert staged["state"] == "live" and staged["bytes"] == SHARDS * SHARD_MIB * MIB, staged
        yield staged["path"]
    house.empty_cache()
    no_view_is_left(house)
    copy = house.product.json(f"stage {NAME}", 300)["datasets"][0]["path"]
    house.host.sh(f"/usr/local/lib/rig/same-tree {SOURCE} {copy}", 60)
    house.empty_cache()


@contextmanager
def readers(house, path, threads):
    """They end with the block; yields an object with their summary afterwards."""
    class Summary:
        said = None
    summary = Summary()
    process = house.host.spawn(f"exec /usr/local/lib/rig/live-readers {path} {SOURCE} {threads}")
    process.wait_said("reading", 90)
    yield summary
    process.signal(signal.SIGTERM)
    summary.said = json.loads(process.wait(30).out)
    print(f"{threads} readers: {summary.said}")
    assert summary.said["wrong"] == []


def servers(house):
    return house.host.sh("pgrep -f '[s]erve-view' || true").split()


def row(house):
    return house.product.dataset(NAME)


def boot_again(house):
    house.start_host()
    house.host.wait_until("[ -S /run/spark-stage/api.sock ]", 60)
    house.wait_ready()


def assert_survived(said, killed_after_s):
    """Readers of a view whose process or daemon was killed."""
    if CAN_RESEND:
        assert said["errors"] == {} and said["reads"] > 20, said
    else:
        assert said["errors"] and set(said["errors"]) <= {"EIO", "ENOTCONN", "ECONNABORTED", "ENOENT"}, said
        assert said["first_error_s"] < killed_after_s + patience(30), said
        assert not [one for one in said["waiting_s"] if one > patience(30)], said


def test_readers_go_on_from_the_view_to_the_copy(house):
    with live(house) as path:
        with readers(house, path, 4) as summary:
            house.product.wait_dataset(NAME, "ready", 180)
            house.host.wait_until(f"[ $(stat -f -c %T {path}) != fuseblk ]", 30)
            assert row(house)["leases"]
            house.host.sh(f"/usr/local/lib/rig/same-tree {SOURCE} {path}", 60)
            time.sleep(3)
        assert summary.said["errors"] == {} and summary.said["reads"] > 20


def test_readers_wait_while_the_target_is_away_and_can_be_killed(house):
    with live(house) as path:
        with readers(house, path, 4) as summary:
            house.product.wait_dataset(NAME, lambda one: (one.get("bytes_here") or 0) > 0, 60)
            house.target_machine.freeze()
            began = time.monotonic()
            house.product.wait_dataset(NAME, lambda one: one["state"] == "stalled" and one["reason"], 90)
            print(f"'stalled' after {time.monotonic() - began:.1f} s: {row(house)['reason']}")
            for number in ("KILL", "TERM"):
                waiting = house.host.spawn(f"exec cat {path}/shard-{SHARDS - 1}.bin >/dev/null")
                time.sleep(1)
                assert waiting.rc is None, "the last shard has come already"
                waiting.signal(getattr(signal, f"SIG{number}"))
                waiting.wait(5)
            time.sleep(max(0, AWAY_S - (time.monotonic() - began)))
            house.target_machine.thaw()
            house.product.wait_dataset(NAME, "ready", 240)
        assert summary.said["errors"] == {} and summary.said["longest_s"] > AWAY_S / 2


def test_sixteen_readers_and_a_killed_server(house):
    with live(house) as path:
        with readers(house, path, 16) as summary:
            for _ in range(3 if CAN_RESEND else 1):
                time.sleep(2)
                killed = servers(house)
                house.host.sh(f"kill -9 {' '.join(killed)}")
                if CAN_RESEND:
                    house.host.wait_until(f"p=$(pgrep -f '[s]erve-view') && [ \"$p\" != '{' '.join(killed)}' ]", 30)
            if CAN_RESEND:
                house.product.wait_dataset(NAME, "ready", 240)
            else:
                time.sleep(patience(10))
        assert_survived(summary.said, 5)


@pytest.mark.parametrize("how", ["kill -9 of the daemon and the server", "kill -9 of the daemon", "restart"])
def test_readers_and_a_daemon_that_ends_under_systemd(house, how):
    with live(house) as path:
        with readers(house, path, 4) as summary:
            time.sleep(2)
            if how == "restart":
                house.product.restart()
            else:
                pids = [*(servers(house) if "server" in how else []), str(house.product.main_pid())]
                house.host.sh(f"kill -9 {' '.join(pids)}")
                house.host.wait_until(f"p=$(systemctl show -P MainPID {UNIT}); [ $p != 0 -a $p != {pids[-1]} ] && spark-stage status", 60)
            house.wait_ready(60)
            if CAN_RESEND:
                assert row(house)["path"] == path
                house.product.wait_dataset(NAME, "ready", 240)
            else:
                time.sleep(patience(5))
        assert_survived(summary.said, 5)


def test_a_power_loss_at_half_keeps_only_what_was_flushed(house):
    with live(house) as path:
        house.host.sh(f"cat {path}/shard-0.bin >/dev/null", 60)
        half = SHARDS * SHARD_MIB * MIB // 2
        house.product.wait_dataset(NAME, lambda one: (one.get("bytes_here") or 0) >= half, 90)
        house.host.kill()
        boot_again(house)
        no_view_is_left(house)


def test_all_readers_end_when_the_daemon_is_stopped(house):
    with live(house) as path:
        with readers(house, path, 4) as summary:
            time.sleep(2)
            house.host.sh(f"systemctl stop {UNIT}", 60)
            time.sleep(3)
            after = house.host.run(f"cat {path}/shard-0.bin >/dev/null")
            house.host.sh(f"systemctl start {UNIT}", 60)
            house.wait_ready(60)
        assert summary.said["errors"] and not [one for one in summary.said["waiting_s"] if one > 1], summary.said
        assert after.rc != 0 and "Transport endpoint is not connected" in after.err, after
        no_view_is_left(house)


def test_a_host_shuts_down_in_time_while_readers_wait(house):
    with live(house, "8mbit") as path:
        house.host.sh(f"systemd-run --unit=reader cat {path}/shard-{SHARDS - 1}.bin")
        time.sleep(2)
        house.host.sh("systemctl is-active reader")
        print(f"off after {house.host.poweroff(SHUTDOWN_S):.1f} s")
        boot_again(house)
        no_view_is_left(house)


@pytest.mark.parametrize("way", ["direct", "sendfile", "splice", "map shared", "map private"])
def test_ways_to_read_get_right_bytes_during_the_copy(house, way):
    house.host.put("/tmp/read_ways.py", Path(REPOSITORY, "tests/api/read_ways.py").read_text())
    with live(house, "200mbit") as path:
        house.host.sh(f"cd /tmp && mkdir -p view && ln -sfn {path}/shard-{SHARDS - 1}.bin view/b && python3 read_ways.py '{way}' view /local/read && "
                      f"cmp /local/read {SOURCE}/shard-{SHARDS - 1}.bin && rm /local/read", 120)


# Each file of the last folder is asked for out of turn.
def test_thousands_of_small_files_are_read_while_they_come_and_are_all_in_the_copy(house):
    source, count = f"{NAS_MOUNT}/many", FOLDERS * FILES_OF_EACH
    house.empty_cache()
    house.target_machine.put("/tmp/make_many.py", MAKE_MANY)
    house.target_machine.sh("python3 /tmp/make_many.py", 300)
    try:
        with house.configured(datasets={"many": {"volume": "nas", "path": "many"}}):
            with house.slow_wire("20mbit"):
                staged = house.product.json("stage many --now --lease 1h", 180)["datasets"][0]
                assert staged["state"] == "live" and staged["files"] == count, staged
                house.host.sh(f"diff -r {source}/{FOLDERS - 1} {staged['path']}/{FOLDERS - 1} && diff -r {source} {staged['path']}", 300)
                house.product.wait_dataset("many", "ready", 300)
            copy = house.product.json("stage many", 300)["datasets"][0]
            assert copy["served_from"] == "cache" and copy["files"] == count and copy["bytes"] == staged["bytes"], copy
            assert int(house.host.sh(f"find {copy['path']} -type f | wc -l")) == count
            house.host.sh(f"/usr/local/lib/rig/same-tree {source} {copy['path']}", 300)
            house.product.sh("verify many", 300)
            house.empty_cache()
            no_view_is_left(house)
    finally:
        house.target_machine.sh(f"rm -r {NAS_EXPORT}/many /tmp/make_many.py", 60)
