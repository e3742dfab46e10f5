"""A fleet on one computer: hosts in namespaces, each with a daemon, and one shared drive with their datasets."""
import contextlib
import os
import shutil
import signal
import subprocess
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from hosts import Host, connect
from node import BUILD, Daemon, wait_until

PORT = 7789
CONFIG = """version: 1
cache: {{path: {folder}/cache, keep_free: 0}}
datasets:
  imagenet: {{path: {source}/imagenet, peers: true}}
fleet:
  listen: {address}:{port}
  key_file: {key}
  peers: {{{peers}}}
"""


class Drive:
    """An ext4 file system on a loop device, which counts the bytes read from it."""

    def __init__(self, folder, files):
        self.image, self.mount = folder / "drive.img", folder / "source"
        content = folder / "content"
        self.size = 0
        for name, size in files:
            path = content / "imagenet" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(os.urandom(size))
            self.size += size
        subprocess.run(["truncate", "-s", str(self.size * 5 // 4 + (64 << 20)), self.image], check=True)
        subprocess.run(["mkfs.ext4", "-q", "-N", str(len(files) * 11 // 10 + 1000), "-d", content, self.image], check=True)
        shutil.rmtree(content)
        self.device = subprocess.run(["losetup", "--find", "--show", "--read-only", self.image], check=True, capture_output=True,
                                     text=True).stdout.strip()
        self.mount.mkdir()
        subprocess.run(["mount", "-o", "ro,noload", self.device, self.mount], check=True)

    def bytes_read(self):
        return int((Path("/sys/block") / Path(self.device).name / "stat").read_text().split()[2]) * 512

    def stop(self):
        subprocess.run(["umount", "--lazy", self.mount], check=True)
        subprocess.run(["losetup", "--detach", self.device], check=True)


class FleetDaemon(Daemon):
    def __init__(self, host, fleet, key):  # pylint: disable=super-init-not-called
        folder = fleet.folder / host.name
        folder.mkdir()
        self.host, self.folder, self.socket = host, folder, folder / "api.sock"
        self.config = folder / "spark-stage.yaml"
        peers = ", ".join(f"{other.name}: [{other.address}]" for other in fleet.hosts[1:])
        self.config.write_text(CONFIG.format(folder=folder, source=fleet.drive.mount, address=host.address, port=PORT, key=key, peers=peers))
        self.log = open(folder / "log", "ab")
        self.process, self.old_jobs = None, set()
        self.start()

    def fleet(self):
        return self.ask("GET", "/v1/status")[1]["fleet"]

    def stage(self):
        """Returns the ended job."""
        return self.finish("/v1/stagings", {"datasets": ["imagenet"]})

    def begin(self, max_rate=None):
        status, job = self.ask("POST", "/v1/stagings", {"datasets": ["imagenet"]} | ({"max_rate": max_rate} if max_rate else {}))
        assert status == 202, job
        return job["id"]

    def end_of(self, job):
        return wait_until(lambda: (found := self.ask("GET", f"/v1/jobs/{job}")[1])["state"] != "running" and found, f"job {job} ends", 180)

    def progress(self):
        stages = self.ask("GET", "/v1/status")[1]["stages"]
        return stages[0] if stages else {}

    def copy(self):
        return Path(self.datasets()["imagenet"]["path"])

    def workers(self, verb):
        return self.host.pids_of("spark-staged", "worker", verb)

    def workers_of_exchange(self):
        """The processes that stage and that serve peers, while a staging runs."""
        stage, serve = self.workers("stage"), self.workers("serve-peers")
        assert stage and serve, (stage, serve)
        return stage + serve

    def kill_with(self, workers):
        self.kill()
        for pid in workers:
            with contextlib.suppress(ProcessLookupError):  # it may have ended with its daemon
                os.kill(pid, signal.SIGKILL)


class Fleet:
    def __init__(self, number, files):
        self.folder = Path(tempfile.mkdtemp(prefix="spark-fleet-"))
        self.drive = Drive(self.folder, files)
        (self.folder / "hosts").write_text("127.0.0.1 localhost\n")
        self.key = self.folder / "key"
        self.write_key(self.key)
        self.hosts = [Host("head", "10.77.0.254", self.folder / "hosts")]
        self.hosts += [Host(f"n{i}", f"10.77.0.{i}", self.folder / "hosts") for i in range(1, number + 1)]
        connect(self.hosts[0], self.hosts[1:])
        with ThreadPoolExecutor() as at_once:
            self.daemons = list(at_once.map(lambda host: FleetDaemon(host, self, self.key), self.hosts[1:]))
        for daemon in self.daemons:
            self.wait_for_peers(daemon, number - 1)

    @staticmethod
    def write_key(path):
        path.touch(mode=0o600)
        path.write_text(os.urandom(32).hex() + "\n")

    @staticmethod
    def wait_for_peers(daemon, number):
        wait_until(lambda: (fleet := daemon.fleet()) and sum(peer["answers"] for peer in fleet["peers"]) >= number,
                   lambda: f"{daemon.host.name} sees its peers: {daemon.fleet()}")

    def stage_all(self, daemons=None):
        with ThreadPoolExecutor(64) as at_once:
            return list(at_once.map(lambda daemon: daemon.end_of(daemon.begin()), daemons or self.daemons))

    @staticmethod
    def give(host, card, other):
        """Moves a card to another host, from outside: a host's own /proc shows no other host's processes."""
        subprocess.run(["nsenter", f"--net=/proc/{host.init}/ns/net", "ip", "link", "set", card, "netns", str(other.init)], check=True)

    def unplug(self, daemon):
        """Like a power loss: its link is silent, then all of its processes are gone."""
        workers = daemon.workers_of_exchange()
        self.hosts[0].do("ip", "link", "set", daemon.host.name, "down")
        daemon.kill_with(workers)

    def plug_in(self, daemon):
        self.hosts[0].do("ip", "link", "set", daemon.host.name, "up")
        daemon.start()

    def evict_all(self):
        with ThreadPoolExecutor(64) as at_once:
            list(at_once.map(FleetDaemon.evict_all, self.daemons))

    def stop(self):
        for daemon in self.daemons:
            try:
                daemon.end(signal.SIGTERM)
            except (AssertionError, OSError, subprocess.TimeoutExpired):
                pass
        for host in self.hosts:
            host.stop()
        time.sleep(0.5)
        self.drive.stop()
        shutil.rmtree(self.folder, ignore_errors=True)


__all__ = ["BUILD", "Fleet", "FleetDaemon", "wait_until"]
