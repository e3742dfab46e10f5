"""The source and target of the copies: two loop drives of our own, or two given folders."""
import fcntl
import os
import shutil
import subprocess
import time

import machine
from machine import GIB, MIB, Problem

PLACE = "/run/spark-stage-bench"
FOLDER = ".spark-stage-bench"
_BLOCK = os.urandom(MIB)


def _run(*command):
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise Problem(f"{' '.join(command)}: {(done.stderr or done.stdout).strip() or done.returncode}")
    return done.stdout.strip()


def _lock(folder):
    """Locks the folder until this process ends, even by kill -9."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(handle)
        raise Problem(f"another benchmark is running in {folder} - wait for it; two at once measure nothing") from None
    return handle


def _let_go(path):
    """Unmounts a path that may still be in use, or, after a signal, no longer mounted."""
    subprocess.run(["umount", "--lazy", "--quiet", path], capture_output=True, check=False)


class _LoopDrive:
    """An ext4 drive: a direct-I/O loop device on a file without a name in the given folder."""

    def __init__(self, name, size, images):
        self.path = f"{PLACE}/{name}"
        backing = f"{images}/{FOLDER}-{name}.img"
        try:
            with open(backing, "wb", buffering=0) as file:   # filled, so that later writes find allocated memory or blocks
                for _ in range(size // MIB):
                    file.write(_BLOCK)
                os.fsync(file)
            self._device = _run("losetup", "--find", "--show", "--direct-io=on", backing)
        finally:
            os.unlink(backing)
        self._handle = os.open(self._device, os.O_RDONLY)
        _run("losetup", "--detach", self._device)   # takes effect when our handle closes, even if this process is killed
        self._mounted = False
        os.mkdir(self.path)

    def format(self, options):
        self.unmount()
        _run("mkfs.ext4", "-q", "-F", "-E", "nodiscard,lazy_itable_init=0,lazy_journal_init=0", *options, self._device)

    def schedule(self, name):
        """Sets the I/O scheduler of the drive."""
        try:
            with open(f"/sys/block/{os.path.basename(self._device)}/queue/scheduler", "w", encoding="ascii") as file:
                file.write(name)
        except OSError as error:
            raise Problem(f"the I/O scheduler {name}: {error.strerror} - this kernel may have none of that name") from None

    def mount(self):
        _run("mount", "-t", "ext4", "-o", "noatime,nodiscard", self._device, self.path)
        self._mounted = True

    def unmount(self):
        """Waits up to ten seconds: the kernel ends the io_uring requests of a killed process after the process is gone."""
        deadline = time.monotonic() + 10
        while self._mounted:
            try:
                _run("umount", self.path)
                self._mounted = False
            except Problem as problem:
                if "busy" not in str(problem) or time.monotonic() > deadline:
                    raise
                time.sleep(0.05)

    def close(self):
        _let_go(self.path)
        os.close(self._handle)


class LoopDrives:
    """Two drives in our own mount namespace, on loop devices that detach automatically, so that nothing is left even after
    kill -9. Their files are in our own tmpfs, or in the folder `images`. The empty folder PLACE is reused."""

    def __init__(self, size, cache, images=None):
        """Drives of `size` bytes each. `cache`: bytes of page cache that the contenders need."""
        self.kind = f"ext4 on direct-I/O loop devices {f'on files in {images}' if images else 'in memory'}"
        if images:
            self._need(2 * size + GIB, shutil.disk_usage(images).free, f"of free space in {images}")
        else:
            self._need(2 * size + cache + GIB, machine.memory("MemAvailable"), "of free memory, with the page cache's")
        os.makedirs(PLACE, exist_ok=True)
        self._lock = _lock(PLACE)
        machine.own_mount_namespace()
        _run("mount", "-t", "tmpfs", "-o", f"mode=0700,size={2 * size + cache + 64 * MIB}", "spark-stage-bench", PLACE)
        self._drives = []
        try:
            for name in ("source", "target"):
                self._drives.append(_LoopDrive(name, size, images or PLACE))
        except BaseException:
            self.close()
            raise
        self._source, self._target = self._drives
        self.source, self.target = self._source.path, self._target.path
        if not images:
            machine.touch_memory(PLACE, cache)

    @staticmethod
    def _need(wanted, there, of_what):
        if there < wanted:
            raise Problem(f"two drives need {wanted / GIB:.1f} GiB {of_what}, {there / GIB:.1f} GiB are there - choose less "
                          f"data, or folders (--source, --target)")

    def empty_source(self, mkfs_options):
        self._mkfs_options = mkfs_options
        self._source.format(mkfs_options)
        self._source.mount()

    def schedule_source(self, name):
        self._source.schedule(name)

    def empty_target(self):
        self._target.format(self._mkfs_options)
        self._target.mount()

    def cold(self):
        """Drops both sides from the page cache."""
        for drive in self._drives:
            drive.unmount()
        machine.drop_caches()
        for drive in self._drives:
            drive.mount()

    def close(self):
        for drive in self._drives:
            drive.close()
        _let_go(PLACE)
        os.rmdir(PLACE)
        os.close(self._lock)


class Folders:
    """Our own subfolder in each of two given folders; leftovers of a killed run are removed first."""

    kind = "folders"

    def __init__(self, source, target, needed):
        self._locks = []
        paths = []
        for given in (source, target):
            if not os.path.isdir(given):
                raise Problem(f"{given} is not a folder - make it, or give another one")
            free = shutil.disk_usage(given).free
            if free < needed:
                raise Problem(f"{given} has {free / GIB:.1f} GiB free, {needed / GIB:.1f} GiB are needed - choose "
                              f"smaller sets (--sets) or --scale 0.5")
            path = os.path.join(os.path.abspath(given), FOLDER)
            os.makedirs(path, exist_ok=True)
            paths.append(path)
            # If both sides are in one folder, a second lock would block on the first.
            if path not in paths[:-1]:
                self._locks.append(_lock(path))
        self._paths = paths
        self.source, self.target = os.path.join(paths[0], "source"), os.path.join(paths[1], "target")
        self.kind = f"folders: {os.path.abspath(source)} to {os.path.abspath(target)}"

    def empty_source(self, _mkfs_options):
        self._empty(self.source)

    def empty_target(self):
        self._empty(self.target)

    @staticmethod
    def _empty(path):
        shutil.rmtree(path, ignore_errors=True)
        os.mkdir(path)

    @staticmethod
    def cold():
        machine.drop_caches()

    def close(self):
        for path in dict.fromkeys(self._paths):
            shutil.rmtree(path, ignore_errors=True)
        for lock in self._locks:
            os.close(lock)
