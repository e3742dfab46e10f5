"""Makes disk images on this computer: a guest needs a minute under emulation for one second of work here."""
import os
import subprocess
import tempfile
from pathlib import Path

MIB = 1 << 20


def blank(path, size):
    with open(path, "wb") as disk:
        disk.truncate(size)
    return path


def ext4(path, size, fs_uuid, files=None):
    """An ext4 file system with the file's name as its label and files of random bytes, {name: MiB}; returns path."""
    with tempfile.TemporaryDirectory(dir=path.parent) as folder:
        for name, mib in (files or {}).items():
            file = Path(folder, name)
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(os.urandom(mib * MIB))
        blank(path, size)
        subprocess.run(["/usr/sbin/mkfs.ext4", "-q", "-F", "-U", fs_uuid, "-L", path.stem, "-d", folder, path], check=True,
                       stdout=subprocess.DEVNULL)
    return path


def age(path, names):
    """Files changed long ago, as data at rest is: the times of mke2fs have whole seconds, so a copy of a file that was made
    within ten minutes waits two seconds, in which a change would keep its time."""
    commands = "".join(f"set_inode_field {name} ctime 20260101000000\n" for name in names)
    subprocess.run(["/usr/sbin/debugfs", "-w", "-f", "-", path], input=commands, text=True, check=True,
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return path


def tree_of(path, tree, fs_uuid=None):
    """An ext4 file system with the content of the folder `tree` and half as much space again; returns path."""
    used = int(subprocess.run(["du", "-s", "--block-size=1M", tree], check=True, capture_output=True, text=True).stdout.split()[0])
    blank(path, (used * 3 // 2 + 64) * MIB)
    identity = ["-U", fs_uuid] if fs_uuid else []
    subprocess.run(["/usr/sbin/mkfs.ext4", "-q", "-F", *identity, "-d", tree, path], check=True, stdout=subprocess.DEVNULL)
    return path
