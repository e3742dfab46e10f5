"""The spark-staged of a node: the real program on plain folders, restarted like systemd does."""
import http.client
import json
import os
import signal
import socket
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("SPARK_SLURM_BUILD", ROOT / "build/release"))
PROGRAM = BUILD / "daemon/spark-staged"
PATIENCE_S = 60

CONFIG = """version: 1
cache: {{path: {folder}/cache, capacity: {capacity}, keep_free: 0}}
{sections}datasets:
"""


def wait_until(holds, what, patience_s=PATIENCE_S):
    end = time.monotonic() + patience_s
    while not (found := holds()):
        assert time.monotonic() < end, f"never: {what() if callable(what) else what}"
        time.sleep(0.05)
    return found


@dataclass
class Dataset:
    files: int
    size: int  # bytes of each file
    env: str = ""
    place: dict = None  # its location, in the form of the configuration; None: created in the shared folder


@dataclass
class Source:
    """The source that all nodes stage from, and the cache capacity of each."""
    path: Path
    datasets: dict
    capacity: str = "64MiB"
    sections: str = ""  # additional configuration of each daemon
    inside: tuple = ()  # command prefix for each daemon

    def fill(self):
        for name, dataset in self.datasets.items():
            if dataset.place:
                continue
            for number in range(dataset.files):
                folder = self.path / name / (str(number // 1000) if dataset.files > 1000 else "")
                folder.mkdir(parents=True, exist_ok=True)
                (folder / f"{number}.bin").write_bytes(os.urandom(dataset.size))


def place_of(name, dataset, shared):
    """The dataset's location in the form of the configuration."""
    place = dataset.place or {"path": f"{shared.path}/{name}", "peers": True}
    return place | ({"env": dataset.env} if dataset.env else {})


class UnixConnection(http.client.HTTPConnection):
    def __init__(self, path):
        super().__init__("localhost", timeout=PATIENCE_S)
        self.path = str(path)

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self.path)


class Daemon:
    inside = ()  # command prefix for the daemon
    how = "--config"

    def __init__(self, host, folder, shared):
        self.host, self.folder, self.socket = host, folder, folder / "api.sock"
        self.inside = shared.inside
        self.config = folder / "spark-stage.yaml"
        folder.mkdir()
        lines = [f"  {name}: {json.dumps(place_of(name, dataset, shared))}" for name, dataset in shared.datasets.items()]
        config = CONFIG.format(folder=folder, capacity=shared.capacity, sections=shared.sections)
        self.config.write_text(config + "\n".join(lines) + "\n")
        self.log = open(folder / "log", "ab")
        self.process, self.old_jobs = None, set()
        self.start()

    def start(self):
        self.process = self.host.start(*self.inside, PROGRAM, self.how, self.config, "--socket", self.socket, "--state-dir",
                                       self.folder / "state", stdout=self.log, stderr=subprocess.STDOUT)
        wait_until(lambda: self.socket.exists() and self.answers(), f"spark-staged of {self.host.name} answers")

    def pid(self):
        """PID of the daemon itself, in the outer namespace."""
        daemons = [pid for pid in self.host.pids_of("spark-staged") if b"worker" not in Path(f"/proc/{pid}/cmdline").read_bytes()]
        assert len(daemons) == 1, daemons
        return daemons[0]

    def end(self, number):
        os.kill(self.pid(), number)
        self.process.wait(PATIENCE_S)

    def stop(self):
        self.end(signal.SIGTERM)

    def kill(self):
        self.end(signal.SIGKILL)

    def answers(self):
        try:
            return self.ask("GET", "/v1/datasets")[0] == 200
        except OSError:
            return False

    def ask(self, method, path, body=None):
        connection = UnixConnection(self.socket)
        try:
            connection.request(method, path, None if body is None else json.dumps(body))
            answer = connection.getresponse()
            return answer.status, json.loads(answer.read())
        finally:
            connection.close()

    def datasets(self):
        status, listed = self.ask("GET", "/v1/datasets")
        assert status == 200, listed
        return {one["name"]: one for one in listed["datasets"]}

    def leases(self):
        """Leases that keep a copy. Prefetched copies have soft leases, which outlive their job."""
        return [lease for lease in self.all_leases() if not lease.get("soft")]

    def all_leases(self):
        return [lease for dataset in self.datasets().values() for lease in dataset["leases"]]

    def finish(self, path, body=None):
        status, job = self.ask("POST", path, body or {})
        assert status == 202, job
        return wait_until(lambda: (found := self.ask("GET", f"/v1/jobs/{job['id']}")[1])["state"] != "running" and found,
                          f"job {job['id']} ends")

    def jobs(self):
        return self.ask("GET", "/v1/jobs")[1]["jobs"]

    def new_jobs(self):
        """Jobs since evict_all()."""
        return [job for job in self.jobs() if (job["id"], job["started"]) not in self.old_jobs]

    def evict_all(self):
        wait_until(lambda: not [job for job in self.jobs() if job["state"] == "running"], f"{self.host.name} has ended its work")
        for lease in self.all_leases():
            self.ask("DELETE", f"/v1/leases/{quote(lease['id'])}")
        wait_until(lambda: not self.still_there_after_evict(), f"{self.host.name} has evicted all copies")
        self.old_jobs = {(job["id"], job["started"]) for job in self.jobs()}

    def still_there_after_evict(self):
        """The names of copies that a program, perhaps a peer, reads until now."""
        for name in [name for name, dataset in self.datasets().items() if dataset["state"] != "absent"]:
            self.finish(f"/v1/datasets/{name}/evict")
        return [name for name, dataset in self.datasets().items() if dataset["state"] == "ready"]

    def log_text(self):
        return (self.folder / "log").read_text(errors="replace")
