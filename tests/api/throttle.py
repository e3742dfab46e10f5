"""A source that is read at a limited rate, by the kernel: a control group whose processes read a block device no faster."""
import os
import subprocess
import time
from pathlib import Path

MIB = 1 << 20
V1, V2 = Path("/sys/fs/cgroup/blkio"), Path("/sys/fs/cgroup")
HIERARCHY = V1 if V1.is_dir() else V2
MOST_WRONG = 0.1  # of the wanted rate


def run(*command):
    return subprocess.run([*map(str, command)], check=True, capture_output=True, text=True).stdout.strip()


class Throttle:
    """Direct and buffered reads. `hierarchy`: where the control groups are mounted."""

    def __init__(self, rate, hierarchy=HIERARCHY):
        """`rate`: bytes per second."""
        self.rate, self.hierarchy = rate, hierarchy
        self.group = hierarchy / f"spark-throttle-{os.getpid()}-{time.monotonic_ns()}"
        if HIERARCHY == V2:
            (hierarchy / "cgroup.subtree_control").write_text("+io")
        self.group.mkdir()

    @property
    def name(self):
        return "blkio.throttle.read_bps_device of cgroup v1" if HIERARCHY == V1 else "io.max of cgroup v2"

    def limit(self, device):
        """`device`: its numbers, MAJOR:MINOR."""
        if HIERARCHY == V1:
            (self.group / "blkio.throttle.read_bps_device").write_text(f"{device} {self.rate}")
        else:
            (self.group / "io.max").write_text(f"{device} rbps={self.rate}")

    def measure(self, node):
        """Bytes per second of large direct reads from the device, within the group, for two seconds."""
        count, began = self.rate * 2 // (2 * MIB), time.monotonic()
        run(*self.within(), "dd", f"if={node}", "of=/dev/null", "bs=2M", "iflag=direct", f"count={count}")
        return count * 2 * MIB / (time.monotonic() - began)

    def within(self):
        """A command that begins with this runs, with its children, at the limited rate."""
        return ["sh", "-c", f'echo $$ >"{self.group}/cgroup.procs" && exec "$@"', "sh"]

    def end(self):
        for pid in (self.group / "cgroup.procs").read_text().split():
            (self.hierarchy / "cgroup.procs").write_text(pid)
        self.group.rmdir()


class SlowDrive:
    """An ext4 file system with the content of a folder, on a loop device, mounted for reading."""

    def __init__(self, folder, content, rate):
        self.image, self.mount = folder / "slow.img", folder / "slow"
        size = sum(path.stat().st_size + 4096 for path in content.rglob("*"))
        run("truncate", "-s", size * 5 // 4 + 32 * MIB, self.image)
        run("mkfs.ext4", "-q", "-d", content, self.image)
        self.mount.mkdir()
        device = run("losetup", "--find", "--show", "--read-only", self.image)
        try:
            run("mount", "-o", "ro,noload", device, self.mount)
            self.throttle = Throttle(rate)
            self.throttle.limit((Path("/sys/block") / Path(device).name / "dev").read_text().strip())
        except BaseException:
            subprocess.run(["umount", "--quiet", self.mount], check=False)
            raise
        finally:
            run("losetup", "--detach", device)  # takes effect with the last unmount

    def end(self):
        subprocess.run(["umount", "--lazy", self.mount], check=True)
        self.throttle.end()
