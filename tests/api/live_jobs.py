"""Jobs that read the dataset imagenet while it is staged, and the process that answers for its view."""
import subprocess
from pathlib import Path

from view_helpers import connections

MIB = 1 << 20
RATE = 8 * MIB  # bytes per second: the copy takes several seconds
NOBODY = 65534
begun = []  # the connections of this test


def row(daemon, name="imagenet"):
    return next(one for one in daemon.ask("GET", "/v1/datasets")[1]["datasets"] if one["name"] == name)


class Holder:
    """A process to hold a lease."""

    def __enter__(self):
        self.process = subprocess.Popen(["sleep", "1000"])
        return self.process.pid

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()


def begin(daemon, pid, **more):
    job = daemon.finish("/v1/stagings", {"datasets": ["imagenet"], "hold": pid, "now": True, "max_rate": RATE} | more)
    assert job["state"] == "done", job
    live = job["result"]["datasets"][0]
    begun.extend(connections(live["path"], daemon.process.pid))
    return live


def server_of(daemon):
    """The process that answers for the view."""
    children = Path(f"/proc/{daemon.process.pid}/task/{daemon.process.pid}/children").read_text().split()
    found = [int(pid) for pid in children if b"serve-view" in Path(f"/proc/{pid}/cmdline").read_bytes()]
    return found[0] if found else None


def in_namespace(pid):
    """A command that begins with this sees the mounts of that process."""
    return ["nsenter", f"--mount=/proc/{pid}/ns/mnt", "--"]
