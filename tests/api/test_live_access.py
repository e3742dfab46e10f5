"""Ways to read a dataset while it is staged, on this host's FUSE: each byte is compared, and no reader is left waiting."""
import os
import random
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

import pytest

from live_jobs import MIB, NOBODY, Holder, begin, in_namespace, row, server_of
from staged import PATIENCE_S
from test_live import no_mount_is_left, shards  # noqa: F401  fixtures
from view_helpers import BLOCK, crowd, early, once, reader

SLOW = 64 << 10     # bytes per second: what is missing does not come
GONE_WITHIN_S = 5   # two, and a busy computer's rest
WAYS = ("read", "direct", "map", "random")
PIECE = 8 * MIB
ENTRIES = int(os.environ.get("SPARK_LIVE_ENTRIES", "20000"))


@pytest.fixture
def source(daemon):
    return daemon.folder / "imagenet/train"


@pytest.fixture
def job():
    with Holder() as pid:
        yield pid


def sha256(path):
    return subprocess.run(["sha256sum", path], check=True, capture_output=True, text=True, timeout=PATIENCE_S).stdout.split()[0]


def test_four_readers_at_random_cost_the_copy_little(daemon, shards, source, job):
    began = time.monotonic()
    daemon.finish("/v1/stagings", {"datasets": ["imagenet"], "max_rate": 8 * MIB})
    alone = time.monotonic() - began
    daemon.finish("/v1/datasets/imagenet/evict")
    began = time.monotonic()
    path = Path(begin(daemon, job)["path"])
    readers = [reader(path / "train" / "ab"[i % 2], source / "ab"[i % 2], i) for i in range(4)]
    daemon.wait_until(lambda: row(daemon)["state"] == "ready", "was staged")
    with_readers = time.monotonic() - began
    for one in readers:
        one.tell()
    said = [one.end() for one in readers]
    print(f"alone {alone:.2f} s, with four readers {with_readers:.2f} s: {said}")
    assert all(one["right"] > 20 and not one["wrong"] for one in said)
    assert with_readers < 1.25 * alone + 1  # make bench-live has the exact figure


def test_sixteen_readers_do_not_notice_kills_of_the_server(daemon, shards, source, job):
    path = Path(begin(daemon, job)["path"])
    readers = [reader(path / "train" / "ab"[i % 2], source / "ab"[i % 2], i, 40) for i in range(16)]
    for _ in range(3):
        time.sleep(1.2)
        killed = server_of(daemon)
        os.kill(killed, signal.SIGKILL)
        daemon.wait_until(lambda killed=killed: server_of(daemon) not in (None, killed), "started the next one")
    assert [one.end() for one in readers] == [{"right": 40, "wrong": []}] * 16


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_a_waiting_reader_can_be_killed(daemon, shards, job, number):
    path = Path(begin(daemon, job, max_rate=SLOW)["path"])
    waiting = [once(path / "train" / "ab"[i // 2], (1 + i % 2) * PIECE, way) for i, way in enumerate(WAYS)]
    time.sleep(0.5)
    for one in waiting:
        assert one.process.poll() is None, f"did not wait: {one.process.stdout.read()[:200]}"
        one.process.send_signal(number)
    began = time.monotonic()
    for one, way in zip(waiting, WAYS):
        assert one.process.wait(GONE_WITHIN_S) == -number, way
    print(f"{number.name}: all are gone after {time.monotonic() - began:.2f} s")


def test_a_handled_signal_does_not_interrupt_a_read(daemon, shards, job):
    path = Path(begin(daemon, job, max_rate=SLOW)["path"])
    places = [("ab"[i // 2], (1 + i % 2) * PIECE) for i in range(len(WAYS))]
    waiting = [once(path / "train" / name, at, way, alarms=True) for (name, at), way in zip(places, WAYS)]
    time.sleep(1)
    assert daemon.ask("POST", "/v1/stagings", {"datasets": ["imagenet"]})[0] == 202  # without a limit
    for one, (name, at), way in zip(waiting, places, WAYS):
        said = one.end()
        assert (said["errno"], said["got"]) == (0, shards[name][at:at + BLOCK].hex()), way


def test_what_is_here_is_read_at_once_beside_five_thousand_waiting_reads(daemon, shards, source, job):
    (source / "c").write_bytes(random.Random("c").randbytes(40 * MIB))
    path = Path(begin(daemon, job, max_rate=MIB)["path"])
    with open(path / "train/a", "rb", buffering=0) as file:
        assert file.read(BLOCK) == shards["a"][:BLOCK]
    waiting = crowd(path / "train/c", 5000, 8192)
    took = []
    for _ in range(20):
        with open(path / "train/a", "rb", buffering=0) as file:
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
            began = time.monotonic()
            assert file.read(BLOCK) == shards["a"][:BLOCK]
            took.append(time.monotonic() - began)
    blocked = len(os.listdir(f"/proc/{waiting.process.pid}/task")) - 1
    waiting.process.kill()
    waiting.process.wait(PATIENCE_S)
    print(f"{blocked} threads waited; a local read took {sorted(took)[10] * 1000:.1f} ms, at most {max(took) * 1000:.1f}")
    assert blocked > 4000, "local reads were answered before those that wait"  # some of their pieces have come


def test_workers_that_keep_files_and_workers_that_open_them_anew_go_through_the_publication(daemon, shards, source, job):
    path = Path(begin(daemon, job)["path"])
    before, kept = early(path / "train/a", source / "a"), reader(path / "train/b", source / "b", 1)
    published, anew = 0, 0
    while published < 5:
        new = [reader(path / "train" / name, source / name, anew, 3) for name in ("a", "b")]
        assert [one.end() for one in new] == [{"right": 3, "wrong": []}] * 2
        anew += 1
        published += row(daemon)["state"] == "ready"
    kept.tell()
    said = kept.end()
    assert said["right"] > 10 and not said["wrong"], said
    before.tell()
    assert before.end() == {"read": True, "mapped": True}
    print(f"{anew} rounds of new processes")


@contextmanager
def namespace(daemon, propagation, *then):
    """A mount namespace made now from the daemon's: a container that was started while the copy was made."""
    holder = subprocess.Popen([*in_namespace(daemon.process.pid), "unshare", "--mount", "--propagation", propagation, "sh", "-c",
                               " && ".join([*then, "echo made", "exec sleep 100000"])], stdout=subprocess.PIPE, text=True)
    assert holder.stdout.readline() == "made\n"
    try:
        yield holder.pid
    finally:
        holder.kill()
        holder.wait()


@pytest.fixture
def shared_daemon(daemon):
    """In a mount namespace of its own, whose mounts reach those made from it, as a host's do."""
    daemon.end()
    plain, daemon.command = daemon.command, ["unshare", "--mount", "--propagation", "shared", *daemon.command]
    daemon.start()
    yield daemon
    daemon.end()
    daemon.command = plain
    daemon.start()


def test_new_opens_in_containers_reach_the_copy_or_the_same_bytes_by_the_view(shared_daemon, shards, source):
    daemon = shared_daemon
    other = daemon.folder / "other"
    other.mkdir()
    with Holder() as pid:
        path = Path(begin(daemon, pid)["path"])
        with namespace(daemon, "slave") as slave, namespace(daemon, "private") as private, \
                namespace(daemon, "private", f"mount --bind '{path}' '{other}'") as bound:
            daemon.wait_until(lambda: row(daemon)["state"] == "ready", "was staged")
            daemon.wait_until(lambda: "fuse" not in kind_of(daemon.process.pid, path), "showed the copy")
            found = {}
            for name, where, at in (("host", daemon.process.pid, path), ("rslave", slave, path), ("private", private, path), ("bound", bound, other)):
                done = subprocess.run([*in_namespace(where), "sha256sum", at / "train/a", at / "train/b"], capture_output=True, text=True,
                                      timeout=PATIENCE_S, check=True)
                assert [line.split()[0] for line in done.stdout.splitlines()] == [sha256(source / "a"), sha256(source / "b")], name
                found[name] = "view" if "fuse" in kind_of(where, at) else "copy"
            assert found == {"host": "copy", "rslave": "copy", "private": "view", "bound": "view"}
            os.kill(pid, signal.SIGKILL)  # the job: the host's view ends, that of the containers does not yet
            daemon.wait_until(lambda: not row(daemon)["leases"], "ended the lease")
            time.sleep(0.5)
            done = subprocess.run([*in_namespace(bound), "sha256sum", other / "train/a"], capture_output=True, text=True, timeout=PATIENCE_S, check=True)
            assert done.stdout.split()[0] == sha256(source / "a")
            assert server_of(daemon)
        daemon.wait_until(lambda: server_of(daemon) is None, "ended the view with its last user")


def kind_of(pid, path):
    """The type of the file system that a process finds there."""
    return subprocess.run([*in_namespace(pid), "stat", "--file-system", "--format", "%T", path], check=True, capture_output=True, text=True,
                          timeout=PATIENCE_S).stdout.strip()


def test_a_program_overlay_and_loop_device_work_during_the_copy(daemon, shards, source, job):
    image = source / "fs.img"
    subprocess.run(["truncate", "-s", "8M", image], check=True)
    subprocess.run(["mkfs.ext4", "-q", "-d", daemon.folder / "models/train", image], check=True)
    (source / "program").write_bytes(Path("/usr/bin/sha256sum").read_bytes())
    (source / "program").chmod(0o755)
    path = Path(begin(daemon, job)["path"]) / "train"
    sums = {name: sha256(source / name) for name in ("a", "b", "fs.img")}
    ran = subprocess.run([path / "program", path / "a"], check=True, capture_output=True, text=True, timeout=PATIENCE_S)
    assert ran.stdout.split()[0] == sums["a"]
    script = f"""set -e
        mkdir {daemon.folder}/on; mount -t tmpfs none {daemon.folder}/on; cd {daemon.folder}/on; mkdir upper work all loop
        mount -t overlay overlay -o lowerdir={path},upperdir=upper,workdir=work all
        sha256sum all/b; echo more >>all/a; head -c {24 * MIB} all/a | sha256sum; tail -c 5 all/a >&2
        mount -o loop,ro,noload {path}/fs.img loop; cat loop/*.bin | sha256sum; umount loop all"""
    ran = subprocess.run(["unshare", "--mount", "sh", "-c", script], check=False, capture_output=True, text=True, timeout=PATIENCE_S)
    assert ran.returncode == 0, ran
    models = subprocess.run(f"cat {daemon.folder}/models/train/*.bin | sha256sum", shell=True, check=True, capture_output=True, text=True)
    assert [line.split()[0] for line in ran.stdout.splitlines()] == [sums["b"], sums["a"], models.stdout.split()[0]]
    assert ran.stderr == "more\n"


@pytest.mark.parametrize("way", ["direct", "sendfile", "splice", "map shared", "map private", "io_uring", "io_uring direct", "lmdb", "numpy"])
def test_each_way_to_read_gets_right_bytes_during_the_copy(daemon, shards, source, job, way):
    copied = daemon.folder / "copied"
    verify = ["--name=x", "--bs=64k", "--verify=crc32c", "--verify_state_save=0", "--output=/dev/null"]
    if way.startswith("io_uring"):
        subprocess.run(["fio", *verify, f"--filename={source}/fio", "--rw=write", "--size=24M", "--do_verify=0"], check=True, timeout=PATIENCE_S)
    if way == "lmdb":
        lmdb = pytest.importorskip("lmdb", reason="python3-lmdb is not installed")
        with lmdb.open(str(source / "db"), map_size=64 * MIB, subdir=False, lock=False) as made, made.begin(write=True) as writing:
            for number in range(3000):
                writing.put(b"%d" % number, random.Random(number).randbytes(5000))
    if way == "numpy":
        pytest.importorskip("numpy", reason="python3-numpy is not installed")
    path = Path(begin(daemon, job)["path"]) / "train"
    if way.startswith("io_uring"):
        subprocess.run(["fio", *verify, f"--filename={path}/fio", "--rw=randread", "--size=24M", "--readonly", "--allow_file_create=0",
                        "--ioengine=io_uring", "--iodepth=8", f"--direct={int('direct' in way)}"], check=True, timeout=PATIENCE_S)
        return
    script = Path(__file__).with_name("read_ways.py")
    subprocess.run([sys.executable, script, way, path, copied], check=True, timeout=PATIENCE_S)
    if way != "lmdb":
        assert copied.read_bytes() == shards["b"]


def test_names_kinds_and_rights_are_those_of_the_source(daemon, shards, source, job):
    (source / "private").write_bytes(b"secret" * 1000)
    (source / "private").chmod(0o640)
    (source / "empty").touch()
    os.link(source / "a", source / "hard")
    (source / "soft").symlink_to("hard")
    (source / "dangling").symlink_to("no/such/file")
    (source / ("ä" * 127 + "x")).write_text("a name of 255 bytes")
    with open(source / "holes", "wb") as file:
        file.truncate(3 * PIECE)
        file.seek(PIECE + 5)
        file.write(b"in the middle")
    (source / "folder").mkdir(mode=0o750)
    (source / "folder/inside").write_text("x")
    path = Path(begin(daemon, job)["path"]) / "train"

    def seen(folder):
        found = {}
        for at, folders, files in os.walk(folder):
            for name in folders + files:
                entry = Path(at, name)
                info = entry.lstat()
                found[str(entry.relative_to(folder))] = (info.st_mode, info.st_uid, info.st_gid, info.st_mtime_ns, info.st_nlink,
                                                         info.st_size if not entry.is_dir() else 0, os.readlink(entry) if entry.is_symlink() else "")
        return found

    assert seen(path) == seen(source)
    assert os.path.samefile(path / "hard", path / "a")
    for name in ("empty", "holes", "ä" * 127 + "x", "hard", "soft"):
        assert (path / name).read_bytes() == (source / name).read_bytes(), name
    with pytest.raises(FileNotFoundError):
        (path / "dangling").read_bytes()
    as_nobody = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", "cat"]
    assert subprocess.run([*as_nobody, path / "private"], capture_output=True, timeout=PATIENCE_S, check=False).returncode == 1
    assert subprocess.run([*as_nobody, path / "folder/inside"], capture_output=True, timeout=PATIENCE_S, check=False).returncode == 1


def test_a_byte_is_in_the_page_cache_once(daemon, shards, job):
    path = Path(begin(daemon, job, max_rate=SLOW)["path"])
    assert daemon.ask("POST", "/v1/stagings", {"datasets": ["imagenet"], "max_rate": 8 * MIB})[0] == 202
    for _ in range(5):  # the kernel may take pages back at any time
        assert sha256(path / "train/a")
        [copy] = (daemon.folder / "cache/.partial").rglob("train/a")
        both = cached(path / "train/a") + cached(copy)  # with passthrough they are the copy's
        if both >= 12 * MIB:
            break
    assert 12 * MIB <= both < 25 * MIB


def cached(path):
    return int(subprocess.run(["fincore", "--bytes", "--noheadings", "--output", "RES", path], check=True, capture_output=True, text=True).stdout)


def test_many_entries_are_listed_and_take_little_memory(daemon, shards, source, job):
    """SPARK_LIVE_ENTRIES: how many."""
    for number in range(ENTRIES // 1000):
        (source / f"many{number}").mkdir()
        for one in range(1000):
            (source / f"many{number}/{one}").touch()
    began = time.monotonic()
    path = Path(begin(daemon, job)["path"])
    walked = time.monotonic() - began
    began = time.monotonic()
    count = subprocess.run(["find", path, "-type", "f", "-size", "0", "-printf", "x"], check=True, capture_output=True, text=True, timeout=10 * PATIENCE_S)
    listed = time.monotonic() - began
    resident = next(int(line.split()[1]) * 1024 for line in Path(f"/proc/{server_of(daemon)}/status").read_text().splitlines() if line.startswith("VmRSS"))
    print(f"{ENTRIES} entries: {walked:.1f} s until the view answers, listed in {listed:.1f} s; the server has {resident / MIB:.0f} MiB")
    assert len(count.stdout) == ENTRIES // 1000 * 1000
    assert resident < 32 * MIB + 300 * ENTRIES
