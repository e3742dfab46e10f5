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


def workers(daemon, verb):
    """The PIDs of the daemon's workers of that verb."""
    found = []
    for pid in Path(f"/proc/{daemon.process.pid}/task/{daemon.process.pid}/children").read_text().split():
        try:
            if Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")[2:3] == [verb.encode()]:
                found.append(int(pid))
        except OSError:
            pass  # it has ended
    return found


def server_of(daemon):
    """The process that answers for the view."""
    return next(iter(workers(daemon, "serve-view")), None)


def in_namespace(pid):
    """A command that begins with this sees the mounts of that process."""
    return ["nsenter", f"--mount=/proc/{pid}/ns/mnt", "--"]
