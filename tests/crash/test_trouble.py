"""Difficult files, a drive that fills up, inodes that run out, a source that is cut short: a sentence, a status, and a way on."""
import os
import subprocess
import threading
import time
from random import Random

import pytest

import trees
from copier import PATIENCE_S, Copier
from drives import drive, why_none

MIB = 1 << 20
NO_SPACE, FAILED = 5, 1

needs_drives = pytest.mark.skipif(bool(why_none()), reason=why_none() or "-")


@pytest.fixture(params=["ext4", "xfs"])
def small_drive(request, tmp_path):
    """320 MB: no smaller xfs is to be had."""
    with drive(tmp_path / "small", 320 * MIB, request.param) as mounted:
        yield mounted


def make_source(folder, large_mib=100, small=50):
    trees.make(folder, Random(1), small, [large_mib * MIB])
    return folder


def free(folder):
    info = os.statvfs(folder)
    return info.f_bavail * info.f_frsize, info.f_favail


def give_back(ballast):
    """Deletes it and waits until its room is free: xfs frees it a moment later."""
    size = ballast.stat().st_size
    before = free(ballast.parent)[0]
    ballast.unlink()
    end = time.monotonic() + 30
    while free(ballast.parent)[0] < before + size * 0.9:
        assert time.monotonic() < end, "the room of a deleted file is not free"
        time.sleep(0.05)


def fill_up(folder, leave):
    """Takes all but `leave` bytes; returns the file that has them."""
    ballast = folder / "ballast"
    with open(ballast, "wb") as file:
        os.posix_fallocate(file.fileno(), 0, free(folder)[0] - leave)
    return ballast


@needs_drives
def test_too_little_space_is_reported_before_the_first_byte(small_drive, tmp_path):
    copier = Copier(make_source(tmp_path / "source"), small_drive / "copy")
    ballast = fill_up(small_drive, 50 * MIB)
    before = free(small_drive)
    status, err, _ = copier.run()
    assert status == NO_SPACE and "the copy needs" in err and "has 5" in err, err
    assert sorted(os.listdir(small_drive)) in (["ballast"], ["ballast", "lost+found"])
    deadline = time.monotonic() + PATIENCE_S  # xfs frees a deleted file's blocks in the background
    while free(small_drive)[0] != before[0] and time.monotonic() < deadline:
        time.sleep(0.05)
    assert free(small_drive)[0] == before[0]
    give_back(ballast)
    copier.finish()
    assert not trees.differences(copier.source, copier.copy)


@pytest.mark.skipif(os.geteuid() != 0, reason="making a device needs root")
def test_difficult_names_and_kinds_of_files_are_copied_or_named(copier):
    trees.difficult(copier.source)
    status, err, _ = copier.run()
    assert status == 0, err
    sparse = [folder / "sparse" for folder in (copier.source, copier.copy)]
    assert sparse[0].stat().st_size == sparse[1].stat().st_size and trees.bytes_on_disk(copier.copy) < MIB
    with open(sparse[1], "rb") as copy:
        assert (os.pread(copy.fileno(), 5, 0), os.pread(copy.fileno(), 5, trees.HOLE - 1)) == (b"head\0", b"\0tail")
    before = copier.source.stat()
    for name, kind in trees.SKIPPED.items():
        assert f"{name} ({kind})" in err, err
        (copier.source / name).unlink()
    for one in sparse:  # rsync would read all of the hole
        one.unlink()
    for folder in (copier.source, copier.copy):
        os.utime(folder, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert not trees.differences(copier.source, copier.copy)


@needs_drives
@pytest.mark.parametrize("io", ["io_uring", "threads"])
def test_a_drive_that_fills_up_during_the_copy_keeps_the_copied_part(small_drive, tmp_path, io):
    copier = Copier(make_source(tmp_path / "source", large_mib=30, small=2000), small_drive / "copy", f"--io={io}")
    process = copier.start_and_wait(copier.has_journaled, f"--max-rate={4 * MIB}B/s")
    ballast = fill_up(small_drive, MIB // 4)
    _, err = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == NO_SPACE and "No space left on device" in err, (process.returncode, err)
    assert "the next attempt continues from the copied part" in err
    assert not copier.copy.exists() and not copier.manifest.exists()
    give_back(ballast)
    assert copier.finish()["resumed_bytes"] > 0
    assert not trees.differences(copier.source, copier.copy)
    assert not copier.partial.exists()


@needs_drives
def test_too_few_inodes_are_reported_before_the_first_byte(tmp_path):
    with drive(tmp_path / "small", 64 * MIB, "ext4", ["-N", "64"]) as small:
        copier = Copier(make_source(tmp_path / "source", 1, 200), small / "copy")
        status, err, _ = copier.run()
        assert status == NO_SPACE and "inodes" in err, err
        assert os.listdir(small) == ["lost+found"]


@needs_drives
def test_a_copy_that_runs_out_of_inodes_fails_and_the_next_one_resumes(tmp_path):
    with drive(tmp_path / "small", 64 * MIB, "ext4", ["-N", "1024"]) as small:
        copier = Copier(make_source(tmp_path / "source", 1, 800), small / "copy")
        process = copier.start_and_wait(copier.has_journaled, f"--max-rate={MIB}B/s")
        while free(small)[1]:
            (small / f"taken-{free(small)[1]}").touch()
        _, err = process.communicate(timeout=PATIENCE_S)
        assert process.returncode == NO_SPACE and "No space left on device" in err, (process.returncode, err)
        assert not copier.copy.exists()
        for taken in small.glob("taken-*"):
            taken.unlink()
        assert copier.finish()["resumed_bytes"] > 0
        assert not trees.differences(copier.source, copier.copy)


@pytest.mark.parametrize("size", [0, 5 * MIB + 1])
def test_a_source_truncated_during_the_copy_is_copied_as_truncated(copier, size):
    copier.source.mkdir()
    trees.write(copier.source / "file", Random(1).randbytes(24 * MIB))
    process = copier.start_and_wait(copier.is_copying, f"--max-rate={4 * MIB}B/s")
    os.truncate(copier.source / "file", size)
    _, err = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 0, err
    assert (copier.copy / "file").stat().st_size == size
    assert not trees.differences(copier.source, copier.copy)


def test_a_source_truncated_repeatedly_is_an_error_that_names_it(copier):
    copier.source.mkdir()
    trees.write(copier.source / "file", Random(1).randbytes(32 * MIB))
    process = copier.start(f"--max-rate={16 * MIB}B/s")
    stop = threading.Event()

    def cut():
        while not stop.wait(0.1):
            os.truncate(copier.source / "file", os.path.getsize(copier.source / "file") - 1)

    cutter = threading.Thread(target=cut)
    cutter.start()
    _, err = process.communicate(timeout=PATIENCE_S)
    stop.set()
    cutter.join()
    assert process.returncode == FAILED and "source/file: it changed while it was read, 3 times" in err, err
    assert not copier.copy.exists()


FLUSHES = "syncfs,fsync,fdatasync"


def run_with_failing(copier, trace, call, *options):
    """A copy in which a system call fails, by strace; returns (exit status, stderr, the flushes and failing calls)."""
    inject = ["strace", "-f", "-qq", "-o", trace, "-e", f"trace={FLUSHES},{call}", "-e", "signal=none", *options]
    done = subprocess.run([*inject, *copier.command], capture_output=True, text=True, timeout=120, check=False)
    return done.returncode, done.stderr, trace.read_text().splitlines()


@pytest.mark.parametrize("call", FLUSHES.split(","))
def test_a_failed_flush_is_never_retried_and_nothing_is_published(copier, tmp_path, call):
    make_source(copier.source, large_mib=20)
    status, err, calls = run_with_failing(copier, tmp_path / "trace", call, "-e", f"inject={call}:error=EIO:when=1")
    assert status == FAILED and "Input/output error" in err, err
    failed_at = next(number for number, line in enumerate(calls) if "EIO" in line)
    assert not [line for line in calls[failed_at + 1:] if f" {call}(" in line]
    assert not copier.copy.exists() and not copier.manifest.exists()
    copier.finish("--verify")
    assert not trees.differences(copier.source, copier.copy)


def test_files_of_a_failed_flush_are_copied_again(copier, tmp_path):
    make_source(copier.source, large_mib=20)
    run_with_failing(copier, tmp_path / "trace", "syncfs", "-e", "inject=syncfs:error=EIO:when=1")
    assert copier.finish()["resumed_bytes"] == 0


def test_a_failed_read_names_the_file_and_the_next_copy_succeeds(place, tmp_path):
    """By threads: strace does not reach into io_uring; tests/vm has a failing drive for that."""
    copier = Copier(make_source(place / "source", large_mib=20), place / "copy", "--io=threads")
    file = next(copier.source.glob("**/large-0"))
    status, err, _ = run_with_failing(copier, tmp_path / "trace", "pread64", "-P", file, "-e", "inject=pread64:error=EIO")
    assert status == FAILED and f"reading {file}: Input/output error" in err, err
    assert not copier.copy.exists()
    copier.finish()
    assert not trees.differences(copier.source, copier.copy)
