"""A host on this computer: a volume that is read at a limited rate, a drive for copies, and a daemon. All of it is in a mount namespace
of its own, which ends with this process."""
import ctypes
import json
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
sys.path[:0] = [str(ROOT / "tools/benchmarks"), str(ROOT / "tests/api")]
import loop_volumes  # noqa: E402  needs the folders above
from loop_volumes import run  # noqa: E402
from staged import Running  # noqa: E402
from throttle import HIERARCHY, MOST_WRONG, Throttle  # noqa: E402

MIB, GIB = 1 << 20, 1 << 30
_LIBC = ctypes.CDLL(None, use_errno=True)
_NEW_NAMESPACE, _PRIVATE, _RECURSIVE = 0x20000, 1 << 18, 0x4000


def own_mounts():
    if _LIBC.unshare(_NEW_NAMESPACE) or _LIBC.mount(b"none", b"/", None, ctypes.c_ulong(_PRIVATE | _RECURSIVE), None):
        sys.exit(f"bench-live: a mount namespace of its own: {os.strerror(ctypes.get_errno())}")


class Limit:
    """The kernel's limit on reads of the source; if it does not work here, spark-stage's own."""

    def __init__(self, rate, folder):
        self.rate, self.throttle, self.words = rate, None, ""
        folder.mkdir()
        run("mount", "--bind", HIERARCHY, folder)  # /sys is replaced later
        try:
            self.throttle = Throttle(rate, folder)
        except OSError as failure:
            self.words = f"no control group: {failure.strerror}"

    def set(self, device, node):
        try:
            if self.throttle:
                self.throttle.limit(device)
                measured = self.throttle.measure(node)
                self.words = f"{self.throttle.name}, {measured / 1e6:.0f} MB/s measured"
                if abs(measured / self.rate - 1) > MOST_WRONG:
                    self.end()
        except OSError as failure:
            self.words = f"{self.throttle.name}: {failure.strerror}"
            self.end()
        if not self.throttle:
            self.words = f"spark-stage's own limit, max_rate (LAST RESORT: the source itself is faster; {self.words})"

    def within(self):
        return self.throttle.within() if self.throttle else []

    def max_rate(self):
        """For a request to stage."""
        return {} if self.throttle else {"max_rate": self.rate}

    def end(self):
        if self.throttle:
            self.throttle.end()
        self.throttle = None


class Place:
    def __init__(self, folder, content, rate):
        """`folder`: empty, on a file system with room for both drives."""
        self.folder, self.content, self.daemon = folder, content, None
        size = sum(one["files"] * (one["bytes"] + 4096) for one in content.sets.values())
        self.limit = Limit(rate, folder / "groups")
        try:
            self.make_source(size)
            self.make_drive(size)
            volume = folder / "volume"
            device, sectors = loop_volumes.attach(folder / "source.img", volume)
            node = run("findmnt", "--noheadings", "--output", "SOURCE", volume)
            self.limit.set(device, node)
            loop_volumes.show_as_nvme([(device, sectors)])
            self.start(volume)
        except BaseException:
            self.end()
            raise

    def image(self, name, size):
        path = self.folder / name
        with open(path, "wb") as file:
            file.truncate(size)
        run("mkfs.ext4", "-q", "-F", "-m", "0", "-E", "nodiscard,lazy_itable_init=0,lazy_journal_init=0", path)
        return path

    def make_source(self, size):
        image, mount = self.image("source.img", int(size * 1.03) + 256 * MIB), self.folder / "filled"
        mount.mkdir()
        run("mount", "-o", "loop", image, mount)
        for name in self.content.sets:
            (mount / name).mkdir()
            self.content.write(mount / name, name)
        run("umount", mount)

    def make_drive(self, size):
        self.drive = self.folder / "drive"
        self.drive.mkdir()
        device = run("losetup", "--find", "--show", "--direct-io=on", self.image("drive.img", int(size * 1.05) + 512 * MIB))
        run("mount", "-o", "noatime", device, self.drive)
        run("losetup", "--detach", device)  # takes effect with its last unmount

    def start(self, volume):
        sections = loop_volumes.sections([volume])
        sections["cache"] = {"path": f"{self.drive}/cache", "keep_free": 0, "page_cache": "leave"}
        sections["datasets"] = {name: {"volume": "v0", "path": name} for name in self.content.sets}
        config = self.folder / "config.yaml"
        config.write_text("version: 1\n" + "".join(f"{name}: {json.dumps(body)}\n" for name, body in sections.items()))
        self.daemon = Running(self.folder, ["--config", config], within=self.limit.within())
        self.daemon.wait_until(lambda: self.daemon.ask("GET", "/v1/status")[1]["volumes"][0]["state"] == "ready", "has its volume")

    def row(self, name):
        return next(one for one in self.daemon.ask("GET", "/v1/datasets")[1]["datasets"] if one["name"] == name)

    def stage(self, name, **more):
        """Ends with the job; returns its result for the dataset."""
        job = self.daemon.finish("/v1/stagings", {"datasets": [name]} | self.limit.max_rate() | more)
        if job["state"] != "done":
            sys.exit(f"bench-live: staging {name}: {job}")
        return job["result"]["datasets"][0]

    def empty(self):
        """No copy, nothing in memory."""
        self.daemon.wait_until(lambda: not list((self.drive / "cache/.live").glob("*")), "ended its views")
        for name in self.content.sets:
            self.daemon.wait_until(lambda name=name: self.row(name)["state"] in ("absent", "ready", "failed"), f"has stopped staging {name}")
            status, job = self.daemon.ask("POST", f"/v1/datasets/{name}/evict")
            if status == 202:
                self.daemon.exchange("GET", f"/v1/jobs/{job['id']}/events")
        forget_pages()

    def end(self):
        if self.daemon:
            self.daemon.stop()
        self.limit.end()
        subprocess.run(["umount", "--lazy", "--quiet", self.folder / "drive", self.folder / "volume"], check=False)


def forget_pages():
    os.sync()
    Path("/proc/sys/vm/drop_caches").write_text("3")
