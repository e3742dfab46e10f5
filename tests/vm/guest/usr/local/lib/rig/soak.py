"""What the walk of faults (tests/vm/soak) has in a host: the content that it knows, and a view of the host that can't hang."""
import json
import os

VOLUMES = ("baton", "books")
BELOW = "/run/soak/below"  # the root file system alone: what is under the mount points, whatever is mounted there
FILES = 12
RECORD = 16  # bytes: a number and the process that wrote it


def content(number, index):
    """Of one file of the books. The same length for every number."""
    return b"%08d %04d\n" % (number, index) * 4680


def record(number, epoch):
    return b"%010d %04d\n" % (number, epoch)


def write_books(mount, number):
    """Every file in place, flushed. By file: a flush of the whole machine would wait for the other volume, too."""
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
    """Why the folder does not hold the books of that number: "" if it does."""
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
    """Processes, mounts and connections, from /proc and /sys alone."""
    return json.dumps({"processes": list(_processes()), "mounts": _mounts(), "controllers": _controllers(),
                       "below": _below()}).encode()


def _read(path):
    with open(path, "rb") as file:
        return file.read().decode(errors="replace")


def _processes():
    """Of the daemon: its number, its parent's, its state and its arguments."""
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            name, rest = _read(f"/proc/{pid}/stat").split("(", 1)[1].rsplit(") ", 1)
            if name == "spark-staged":
                state, parent = rest.split()[:2]
                yield {"pid": int(pid), "parent": int(parent), "state": state,
                       "arguments": _read(f"/proc/{pid}/cmdline").split("\0")[1:-1]}
        except OSError:
            pass  # it has just ended


def _mounts():
    """At our mount points, of disks: volume -> [[number of the mount, whether it can be written]]."""
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
    """Over the network: [[NQN, state]]."""
    found = []
    for name in os.listdir("/sys/class/nvme"):
        try:
            if _read(f"/sys/class/nvme/{name}/transport").strip() == "tcp":
                found.append([_read(f"/sys/class/nvme/{name}/{one}").strip() for one in ("subsysnqn", "state")])
        except OSError:
            pass
    return found


def _below():
    """Files and folders under the mount points, on the root file system."""
    return [os.path.join(folder, one)[len(BELOW):] for volume in VOLUMES
            for folder, folders, files in os.walk(f"{BELOW}/mnt/{volume}") for one in folders + files]
