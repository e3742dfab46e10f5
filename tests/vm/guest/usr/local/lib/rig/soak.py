"""The host's part of the random walk (tests/vm/soak): the expected content, and a snapshot of the host that can't hang."""
import json
import os

VOLUMES = ("baton", "books")
BELOW = "/run/soak/below"  # the root file system alone, which shows files under the mount points even if volumes are
                           # mounted there
FILES = 12
RECORD = 16  # bytes: a number and the process that wrote it


def content(number, index):
    """The content of one file of the books; the same length for every number."""
    return b"%08d %04d\n" % (number, index) * 4680


def record(number, epoch):
    return b"%010d %04d\n" % (number, epoch)


def write_books(mount, number):
    """Writes every file in place and flushes each one. A flush of the whole machine would also wait for the other volume."""
    for index in range(FILES):
        fd = os.open(f"{mount}/data/{index}", os.O_WRONLY | os.O_CREAT, 0o644)
        try:
            os.write(fd, content(number, index))
            os.fsync(fd)
        finally:
            os.close(fd)
    folder = os.open(f"{mount}/data", os.O_RDONLY)
    os.fsync(folder)
    os.close(folder)
    return b""


def difference(folder, number):
    """The first difference between the folder and the books of that number; "" if there is none."""
    for index in range(FILES):
        with open(f"{folder}/{index}", "rb") as file:
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
            read = file.read()
        if read != content(number, index):
            return f"{folder}/{index} is not of {number}: {len(read)} bytes, {sorted(set(read.splitlines()))[:4]}"
    return ""


def compare(folder, number):
    return difference(folder, number).encode()


def surroundings():
    """Processes, mounts and connections, read from /proc and /sys alone."""
    return json.dumps({"processes": list(_processes()), "mounts": _mounts(), "controllers": _controllers(),
                       "below": _below()}).encode()


def _read(path):
    with open(path, "rb") as file:
        return file.read().decode(errors="replace")


def _processes():
    """The daemon's processes: PID, parent PID, state and arguments."""
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            name, rest = _read(f"/proc/{pid}/stat").split("(", 1)[1].rsplit(") ", 1)
            if name == "spark-staged":
                state, parent = rest.split()[:2]
                yield {"pid": int(pid), "parent": int(parent), "state": state,
                       "arguments": _read(f"/proc/{pid}/cmdline").split("\0")[1:-1]}
        except OSError:
            pass  # ended meanwhile


def _mounts():
    """The mounts of disks at our mount points: volume -> [[mount ID, is it writable]]."""
    found = {volume: [] for volume in VOLUMES}
    for line in _read("/proc/self/mountinfo").splitlines():
        before, after = line.split(" - ")
        fields = before.split()
        kind, _, options = after.split()[:3]
        volume = os.path.basename(fields[4])
        if os.path.dirname(fields[4]) == "/mnt" and volume in found and kind == "ext4":
            found[volume].append([int(fields[0]), "ro" not in (fields[5] + "," + options).split(",")])
    return found


def _controllers():
    """The controllers over the network: [[NQN, state]]."""
    found = []
    for name in os.listdir("/sys/class/nvme"):
        try:
            if _read(f"/sys/class/nvme/{name}/transport").strip() == "tcp":
                found.append([_read(f"/sys/class/nvme/{name}/{one}").strip() for one in ("subsysnqn", "state")])
        except OSError:
            pass
    return found


def _below():
    """Files and folders below the mount points on the root file system."""
    return [os.path.join(folder, one)[len(BELOW):] for volume in VOLUMES
            for folder, folders, files in os.walk(f"{BELOW}/mnt/{volume}") for one in folders + files]
