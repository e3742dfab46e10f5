"""The benchmark's use of Linux itself: private mounts, cold caches, counters."""
import ctypes
import multiprocessing
import os
import platform

_libc = ctypes.CDLL(None, use_errno=True)
_CLONE_NEWNS, _MS_REC, _MS_PRIVATE, _PR_SET_CHILD_SUBREAPER = 0x20000, 0x4000, 1 << 18, 36
_TICKS = os.sysconf("SC_CLK_TCK")
MIB, GIB = 1 << 20, 1 << 30


class Problem(Exception):
    """A message for the user: the problem, and the next step."""


def _call(what, status):
    if status != 0:
        raise Problem(f"{what}: {os.strerror(ctypes.get_errno())} - a container without CAP_SYS_ADMIN can't do this")


def own_mount_namespace():
    """From here on our mounts are visible only to this process, and end with it."""
    _call("a mount namespace of our own", _libc.unshare(_CLONE_NEWNS))
    _call("private mounts", _libc.mount(b"none", b"/", None, ctypes.c_ulong(_MS_REC | _MS_PRIVATE), None))


def adopt_orphans():
    """Background processes of a contender become our children, so that their time and CPU are counted too."""
    _call("adopting orphans", _libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0))


def memory(name, text=None):
    """A line of /proc/meminfo, in bytes."""
    if text is None:
        with open("/proc/meminfo", encoding="ascii") as file:
            text = file.read()
    for line in text.splitlines():
        if line.startswith(name + ":"):
            return int(line.split()[1]) * 1024
    raise Problem(f"/proc/meminfo has no {name}")


def busy_seconds():
    """CPU seconds of the whole machine since boot, including the kernel's own threads."""
    with open("/proc/stat", encoding="ascii") as file:
        user, nice, system, _idle, _iowait, irq, softirq = (int(word) for word in file.readline().split()[1:8])
    return (user + nice + system + irq + softirq) / _TICKS


def bytes_read(path):
    """Bytes read so far from the block device below path, or None if there is no such device (NFS, tmpfs)."""
    device = os.stat(path).st_dev
    try:
        with open(f"/sys/dev/block/{os.major(device)}:{os.minor(device)}/stat", encoding="ascii") as file:
            return int(file.read().split()[2]) * 512
    except FileNotFoundError:
        return None


def drop_caches():
    os.sync()
    with open("/proc/sys/vm/drop_caches", "w", encoding="ascii") as file:
        file.write("3")


def touch_memory(folder, amount):
    """Writes to `amount` bytes of memory once and frees them. On a virtual machine, memory that was never used is slower,
    which would put the first contenders at a disadvantage."""
    block = b"\xa5" * MIB
    path = os.path.join(folder, "touched")
    with open(path, "wb", buffering=0) as file:
        for _ in range(amount // MIB):
            file.write(block)
    os.unlink(path)


def apart(function, *arguments):
    """Calls the function in a child process. Otherwise its memory would remain in this process, and with it become the
    minimum that the kernel reports as each contender's peak."""
    pool = multiprocessing.get_context("fork").Pool(1)
    try:
        return pool.apply(function, arguments)
    finally:
        pool.terminate()
        pool.join()


def facts():
    return {"kernel": platform.release(), "machine": platform.machine(), "cpus": os.cpu_count(),
            "memory_bytes": memory("MemTotal")}
