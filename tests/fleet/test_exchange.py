"""Several hosts that stage together read the source only once."""
import os
import re
import signal
import subprocess
from contextlib import contextmanager
from pathlib import Path

from fleet import BUILD, PORT, Fleet, wait_until


def results(jobs):
    for job in jobs:
        assert job["state"] == "done", job
    return [job["result"]["datasets"][0] for job in jobs]


def check_copies(fleet, daemons):
    for daemon in daemons:
        same = subprocess.run(["diff", "-r", fleet.drive.mount / "imagenet", daemon.copy()], capture_output=True, text=True, check=False)
        assert same.returncode == 0, same.stdout


def check_hashes(staged):
    assert len({one["hash"] for one in staged}) == 1, staged


@contextmanager
def configured(daemon, old, new):
    right = daemon.config.read_text()
    assert old in right
    daemon.config.write_text(right.replace(old, new))
    assert daemon.ask("POST", "/v1/reload")[0] == 200
    try:
        yield
    finally:
        daemon.config.write_text(right)
        assert daemon.ask("POST", "/v1/reload")[0] == 200
        Fleet.wait_for_peers(daemon, 3)


def test_four_hosts_that_start_together_read_the_source_once(fleet, record_property):
    before = fleet.drive.bytes_read()
    staged = results(fleet.stage_all())
    ratio = (fleet.drive.bytes_read() - before) / fleet.drive.size
    record_property("ratio", ratio)
    print(f"read from the source: {ratio:.3f} x the dataset; {[(one['bytes_from'], one['read_because']) for one in staged]}")
    check_hashes(staged)
    assert sum(one["bytes_from"]["volume"] for one in staged) <= 1.05 * fleet.drive.size
    assert ratio <= 1.05
    for one in staged:
        assert one["bytes_from"]["volume"] + one["bytes_from"]["peers"] == fleet.drive.size, one
        assert not one["warnings"], one
    check_copies(fleet, fleet.daemons)


def test_nothing_is_read_from_the_source_once_a_host_has_the_dataset(fleet):
    first, others = fleet.daemons[0], fleet.daemons[1:]
    results([first.stage()])
    before = fleet.drive.bytes_read()
    staged = results(fleet.stage_all(others))
    print(f"{fleet.drive.bytes_read() - before} bytes read")
    assert all(one["bytes_from"] == {"volume": 0, "peers": fleet.drive.size} for one in staged), staged
    assert fleet.drive.bytes_read() - before < fleet.drive.size / 100  # metadata
    check_copies(fleet, fleet.daemons)


def test_all_hosts_copies_are_compared_by_their_hash(fleet):
    staged = results(fleet.stage_all(fleet.daemons[:3]))
    status, compared = fleet.daemons[0].ask("GET", "/v1/fleet/datasets")
    assert status == 200, compared
    [one] = compared["datasets"]
    assert one["same"] and [copy["host"] for copy in one["hosts"]] == [None, "n2", "n3"], compared
    assert {copy["hash"] for copy in one["hosts"]} == {staged[0]["hash"]}
    assert [peer["name"] for peer in compared["peers"]] == ["n2", "n3", "n4"] and all(peer["answers"] for peer in compared["peers"]), compared
    rows = [daemon.datasets()["imagenet"] for daemon in fleet.daemons[:3]]
    assert [row["bytes_from"] for row in rows] == [one["bytes_from"] for one in staged]


def test_the_other_hosts_take_over_the_work_of_a_frozen_host(fleet):
    before = fleet.drive.bytes_read()
    # Slow enough that the others have started and fetch its pieces before it has a third.
    jobs = [daemon.begin(fleet.drive.size // 15) for daemon in fleet.daemons]
    killed, others = fleet.daemons[0], fleet.daemons[1:]
    wait_until(lambda: killed.progress().get("bytes_done", 0) > fleet.drive.size / 3, "a third is there")
    frozen = killed.workers_of_exchange()
    for pid in frozen:
        os.kill(pid, signal.SIGSTOP)
    staged = results([daemon.end_of(job) for daemon, job in zip(others, jobs[1:])])
    ratio = (fleet.drive.bytes_read() - before) / fleet.drive.size
    print(f"read from the source: {ratio:.3f} x the dataset; {[one['read_because'] for one in staged]}")
    killed.kill_with(frozen)
    killed.start()
    assert ratio <= 1.15
    check_hashes(staged)
    Fleet.wait_for_peers(killed, 3)
    results([killed.stage()])
    check_copies(fleet, fleet.daemons)


def test_a_host_does_not_wait_for_the_share_of_a_slow_one(fleet):
    slow, normal = fleet.daemons[:2]
    job = slow.begin(fleet.drive.size // 2000)
    wait_until(lambda: slow.progress().get("bytes_done", 0) > 0, "the slow host has begun")
    [one] = results([normal.stage()])
    print(one["bytes_from"], one["read_because"])
    # Without having waited until the slow host counted as stuck.
    assert set(one["read_because"]) == {"owner"} and one["bytes_from"]["volume"] > fleet.drive.size * 3 / 4, one
    assert slow.ask("GET", f"/v1/jobs/{job}")[1]["state"] == "running"
    assert slow.ask("DELETE", f"/v1/jobs/{job}")[0] == 200
    check_copies(fleet, [normal])


def flip_bits(path):
    """Flips bits on the drive itself, in the middle of the file, and keeps its times."""
    info = path.stat()
    with open(path, "r+b") as file:
        file.seek(info.st_size // 2)
        byte = file.read(1)
        file.seek(-1, os.SEEK_CUR)
        file.write(bytes([byte[0] ^ 0xff]))
        file.flush()
        os.fsync(file.fileno())
    os.utime(path, ns=(info.st_atime_ns, info.st_mtime_ns))


def damage_on_drive(first):
    """Three files of its copy, of each kind."""
    generation = first.folder / "cache/data/imagenet" / str(first.datasets()["imagenet"]["generation"])
    # Jobs can't change the copy, so change it on the drive.
    script = "import sys; sys.path[:0] = sys.argv[1:3]; from test_exchange import *; [flip_bits(Path(p)) for p in sys.argv[3:]]"
    here = Path(__file__).resolve().parent
    first.host.do("unshare", "--mount", "--propagation", "private", "sh", "-c", 'umount "$0" && exec "$@"', first.folder / "cache/data",
                  "/usr/bin/python3", "-c", script, here, here.parent / "slurm", generation / "large/3.bin", generation / "small/1/150.txt",
                  generation / "middle/2.bin")


def test_wrong_bytes_of_a_peer_are_detected_reported_and_never_published(fleet):
    first, second = fleet.daemons[:2]
    results([first.stage()])
    damage_on_drive(first)
    [one] = results([second.stage()])
    print(one["bytes_from"], one["warnings"])
    assert any("n1" in warning and "wrong bytes" in warning for warning in one["warnings"]), one
    check_copies(fleet, [second])


def test_a_job_that_reads_while_it_is_staged_never_gets_wrong_bytes_of_a_peer(fleet):
    first, second = fleet.daemons[:2]
    results([first.stage()])
    damage_on_drive(first)
    job = second.finish("/v1/stagings", {"datasets": ["imagenet"], "now": True, "lease_s": 600, "max_rate": 40 << 20})
    [one] = results([job])
    assert one["state"] == "live", one
    for name in ("large/3.bin", "small/1/150.txt", "middle/2.bin", "large/7.bin"):
        second.host.do("cmp", Path(one["path"]) / name, fleet.drive.mount / "imagenet" / name)
    wait_until(lambda: second.datasets()["imagenet"]["state"] == "ready", "it is published")
    check_copies(fleet, [second])
    assert second.ask("DELETE", f"/v1/leases/{one['lease']}")[0] == 200
    wait_until(lambda: not Path(f"/proc/{second.host.init}/root{one['path']}").exists(), "the view ends")


def test_a_late_host_fetches_from_all_hosts_that_have_the_dataset(fleet):
    results(fleet.stage_all(fleet.daemons[:2]))
    late = fleet.daemons[2]
    served = [daemon.fleet()["served_bytes"] for daemon in fleet.daemons[:2]]
    [one] = results([late.stage()])
    assert one["bytes_from"]["volume"] == 0
    wait_until(lambda: all(daemon.fleet()["served_bytes"] > before for daemon, before in zip(fleet.daemons[:2], served)), "both have served it")


def test_without_peers_a_host_reads_everything_from_the_volume(fleet):
    alone, others = fleet.daemons[0], fleet.daemons[1:]
    for daemon in others:
        for pid in daemon.workers("serve-peers"):
            os.kill(pid, signal.SIGSTOP)
    try:
        [one] = results([alone.stage()])
        assert one["bytes_from"] == {"volume": fleet.drive.size, "peers": 0}
    finally:
        for daemon in others:
            for pid in daemon.workers("serve-peers"):
                os.kill(pid, signal.SIGCONT)


def test_a_host_with_another_key_gets_nothing(fleet):
    daemon = fleet.daemons[3]
    wrong = fleet.folder / "wrong"
    Fleet.write_key(wrong)
    with configured(daemon, str(fleet.key), str(wrong)):
        wait_until(lambda: daemon.fleet()["peers"] and not any(peer["answers"] for peer in daemon.fleet()["peers"]), "no peer answers")
        assert all("key" in peer["reason"] for peer in daemon.fleet()["peers"])
        results([fleet.daemons[0].stage()])
        [one] = results([daemon.stage()])
        assert one["bytes_from"] == {"volume": fleet.drive.size, "peers": 0}


def test_a_key_replaced_in_the_same_file_is_used_after_a_reload_and_the_old_one_gets_nothing(fleet):
    others, last = fleet.daemons[:3], fleet.daemons[3]
    old = fleet.folder / "old"
    old.touch(mode=0o600)
    old.write_text(fleet.key.read_text())
    warned = [(daemon.folder / "log").read_text().count("peers are not served") for daemon in others]
    with configured(last, str(fleet.key), str(old)):
        Fleet.wait_for_peers(last, 3)
        Fleet.write_key(fleet.key)
        for daemon in others:
            assert daemon.ask("POST", "/v1/reload")[0] == 200
        for daemon in others:
            wait_until(lambda served=daemon: {peer["name"] for peer in served.fleet()["peers"] if peer["answers"]} == {
                other.host.name for other in others if other is not served}, "the hosts with the new key see each other, and no other")
        wait_until(lambda: last.fleet()["peers"] and not any(peer["answers"] for peer in last.fleet()["peers"]), "no peer answers the old key")
        assert [(daemon.folder / "log").read_text().count("peers are not served") for daemon in others] == warned
        staged = results(fleet.stage_all(others))
        assert sum(one["bytes_from"]["volume"] for one in staged) <= 1.05 * fleet.drive.size
    for daemon in others:
        Fleet.wait_for_peers(daemon, 3)


def test_peers_are_found_by_a_name_that_resolves_to_all_of_them(fleet):
    daemon, hosts = fleet.daemons[3], fleet.folder / "hosts"
    before = hosts.read_text()
    hosts.write_text(before + "".join(f"{other.host.address} sparks\n" for other in fleet.daemons))
    results([fleet.daemons[0].stage()])
    names = re.search(r"peers: {.*", daemon.config.read_text())[0]
    try:
        with configured(daemon, names, "dns: sparks"):
            Fleet.wait_for_peers(daemon, 3)
            assert {peer["name"] for peer in daemon.fleet()["peers"]} == {other.host.address for other in fleet.daemons[:3]}
            [one] = results([daemon.stage()])
            assert one["bytes_from"] == {"volume": 0, "peers": fleet.drive.size}
    finally:
        hosts.write_text(before)


def test_a_host_that_is_no_peer_of_the_other_gets_nothing_and_both_say_why(fleet):
    first, other = fleet.daemons[0], fleet.daemons[1]
    results([first.stage()])
    names = re.search(r"peers: {.*", first.config.read_text())[0]
    with configured(first, names, names.replace(f"n2: [{other.host.address}], ", "")):
        [peer] = wait_until(lambda: [peer for peer in other.fleet()["peers"] if peer["name"] == "n1" and not peer["answers"]],
                            "n1 is silent for n2")
        assert f"its fleet.peers have {other.host.address}" in peer["reason"], peer
        [refused] = wait_until(lambda: first.fleet().get("refused_hosts"), "n1 names the host that it refused")
        assert refused["address"] == other.host.address and "belongs to no peer" in refused["reason"], refused
        assert f"the fleet refused {other.host.address}" in (first.folder / "log").read_text()
        [one] = results([other.stage()])
        assert one["bytes_from"] == {"volume": fleet.drive.size, "peers": 0}
    Fleet.wait_for_peers(other, 3)


def test_a_client_without_tls_gets_nothing(fleet):
    results([fleet.daemons[0].stage()])
    script = ("import socket, sys; s = socket.create_connection((sys.argv[1], int(sys.argv[2])), 10); "
              "s.sendall(b'GET /fleet/v1/datasets HTTP/1.1\\r\\nHost: x\\r\\n\\r\\n'); sys.stdout.buffer.write(s.recv(4096))")
    answer = subprocess.run(fleet.hosts[2].command(["/usr/bin/python3", "-c", script, fleet.hosts[1].address, str(PORT)]),
                            capture_output=True, check=False, timeout=60)
    assert b"HTTP" not in answer.stdout and b"imagenet" not in answer.stdout
    assert len(answer.stdout) < 16, "an alert of TLS at most"


def test_the_key_made_by_the_steps_of_the_page_is_valid(tmp_path):
    """The other tests give such a key to daemons."""
    made, copied = tmp_path / "keys/fleet", tmp_path / "other/keys/fleet"
    subprocess.run([BUILD / "cli/spark-stage", "fleet", "key", "--output", made], check=True)
    assert made.stat().st_mode & 0o777 == 0o600 and made.parent.stat().st_mode & 0o777 == 0o700
    subprocess.run(["install", "-D", "-m", "600", "/dev/stdin", copied], check=True, input=made.read_bytes())
    assert copied.stat().st_mode & 0o777 == 0o600
    assert len(copied.read_text().strip()) == 64 and int(copied.read_text(), 16) > 0
    again = subprocess.run([BUILD / "cli/spark-stage", "fleet", "key", "--output", made], capture_output=True, text=True, check=False)
    assert again.returncode == 7 and made.read_text() == copied.read_text(), again.stderr
    printed = subprocess.run([BUILD / "cli/spark-stage", "fleet", "key"], capture_output=True, text=True, check=True)
    assert len(printed.stdout.strip()) == 64


def test_a_restarted_daemon_continues_with_its_peers(fleet):
    jobs = [daemon.begin() for daemon in fleet.daemons]
    restarted = fleet.daemons[1]
    wait_until(lambda: restarted.progress().get("bytes_done", 0) > fleet.drive.size / 4, "a quarter is there")
    restarted.kill()
    restarted.start()
    staged = results([daemon.end_of(job) for daemon, job in zip(fleet.daemons, jobs) if daemon is not restarted])
    Fleet.wait_for_peers(restarted, 3)
    staged += results([restarted.stage()])
    check_hashes(staged)
    check_copies(fleet, fleet.daemons)


__all__ = ["flip_bits", "Path"]
