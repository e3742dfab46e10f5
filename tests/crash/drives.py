"""Small file systems of a test's own, on loop devices."""
import os
import subprocess
from contextlib import contextmanager
from pathlib import Path

MKFS = {"ext4": ["mkfs.ext4", "-q", "-F", "-m", "0"], "xfs": ["mkfs.xfs", "-q", "-f"]}
MEMORY = Path("/dev/shm")  # a drive in memory: what is tested here is not the computer's own


def why_none():
    """Why loop devices can't be had here; empty if they can."""
    if os.geteuid() != 0:
        return "mounting needs root"
    if not os.access("/dev/loop-control", os.R_OK | os.W_OK):
        return "there are no loop devices here"
    return ""


@contextmanager
def drive(folder, size, kind="ext4", options=()):
    """Makes a file system of `size` bytes, mounted on `folder`."""
    folder.mkdir()
    image = Path(MEMORY if MEMORY.is_dir() else folder.parent, f"spark-drive-{os.getpid()}-{folder.name}")
    path = os.environ["PATH"] + ":/usr/sbin:/sbin"
    try:
        with open(image, "wb") as file:
            file.truncate(size)
        subprocess.run([*MKFS[kind], *options, image], check=True, stdout=subprocess.DEVNULL, env={"PATH": path})
        subprocess.run(["mount", "-o", "loop", image, folder], check=True, env={"PATH": path})
        try:
            yield folder
        finally:
            subprocess.run(["umount", folder], check=True, env={"PATH": path})
    finally:
        image.unlink(missing_ok=True)
