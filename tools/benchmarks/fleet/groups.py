"""Control groups of daemons: how much memory each host takes from its computer, and a limit on all reads of the source.

Of version 1 where it is mounted, else of version 2.
"""
import subprocess
import threading
from pathlib import Path

ALL = Path("/sys/fs/cgroup")
GBIT = 1_000_000_000 // 8


class Group:
    """A control group, and the daemons in it. Workers are children of the daemon."""

    def __init__(self, controller, name, daemons):
        self.is_v1 = (ALL / controller).is_dir()
        self.path = (ALL / controller if self.is_v1 else ALL) / f"spark-bench-{name}"
        self.path.mkdir()
        for daemon in daemons:
            for pid in [daemon.pid(), *daemon.workers("serve-peers")]:
                (self.path / "cgroup.procs").write_text(str(pid))

    def remove(self):
        for pid in (self.path / "cgroup.procs").read_text().split():
            try:
                (self.path.parent / "cgroup.procs").write_text(pid)
            except OSError:
                pass  # it has ended
        subprocess.run(["rmdir", self.path], check=False)


class Memory:
    """The most memory that each host's processes, sockets and pages of files took, beyond what they had before; in bytes."""

    def __init__(self, name, daemons):
        self.groups = [Group("memory", f"{name}-{daemon.host.name}", [daemon]) for daemon in daemons]
        self.over = threading.Event()
        self.thread = threading.Thread(target=self.look)

    def used(self):
        return [int((one.path / ("memory.usage_in_bytes" if one.is_v1 else "memory.current")).read_text()) for one in self.groups]

    def __enter__(self):
        self.first = self.used()
        self.most = [0] * len(self.groups)
        self.thread.start()
        return self

    def look(self):
        while not self.over.wait(0.05):
            self.most = [max(most, used - first) for most, used, first in zip(self.most, self.used(), self.first)]

    def __exit__(self, *_):
        self.over.set()
        self.thread.join()
        for one in self.groups:
            one.remove()


class Links:
    """Links of limited speed: between the hosts by the kernel's tbf, to the source by the limit on reads."""

    def __init__(self, fleet, source_gbit, peers_gbit):
        self.fleet, self.source, self.peers = fleet, source_gbit, peers_gbit
        self.group = None

    def shape(self):
        self.group = Group("blkio", self.fleet.folder.name, self.fleet.daemons)
        device = Path(f"/sys/block/{Path(self.fleet.drive.device).name}/dev").read_text().strip()
        rate = round(self.source * GBIT)
        if self.group.is_v1:
            (self.group.path / "blkio.throttle.read_bps_device").write_text(f"{device} {rate}")
        else:
            (self.group.path / "io.max").write_text(f"{device} rbps={rate}")
        head, *hosts = self.fleet.hosts
        for host in hosts:  # with the MTU of a fast network
            self.limit(host, "eth0")     # what it sends
            self.limit(head, host.name)  # what it receives

    def limit(self, host, interface):
        host.do("ip", "link", "set", "dev", interface, "mtu", 9000)
        bits = round(self.peers * 1_000_000_000)
        host.do("tc", "qdisc", "add", "dev", interface, "root", "tbf", "rate", f"{bits}bit", "burst", "2mb", "latency", "50ms")

    def stop(self):
        if self.group:
            self.group.remove()
