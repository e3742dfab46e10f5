"""A real spark-staged in its own folder, with a dataset that can be staged and a volume that no target offers."""
import hashlib
import http.client
import json
import os
import socket
import subprocess
import time
from pathlib import Path
from urllib.parse import quote

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("SPARK_API_BUILD", ROOT / "build/release"))
PROGRAM = BUILD / "daemon/spark-staged"
PATIENCE_S = 30

CONFIG = """version: 1
targets:
  rose: {{address: 127.0.0.1, port: {dead_port}}}
volumes:
  datasets: {{target: rose, subsystem: raid5-data, mount: {folder}/mnt}}
cache: {{path: {folder}/cache, capacity: 1GiB, keep_free: 0}}
datasets:
  imagenet: {{path: {folder}/imagenet}}
  models: {{path: {folder}/models, env: HF_HOME}}
{datasets}metrics: {{listen: "127.0.0.1:{port}"}}
"""
FLEET = """fleet: {{listen: "127.0.0.1:{port}", key_file: {key}, peers: {{spark2: ["127.0.0.2"]}}}}
"""


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class UnixConnection(http.client.HTTPConnection):
    def __init__(self, path, timeout=PATIENCE_S):
        super().__init__("localhost", timeout=timeout)
        self.path = str(path)

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self.path)


class Running:
    """A running spark-staged, and requests to it. Its state is in `folder`. `within`: a command that ends as its program."""

    def __init__(self, folder, arguments, program=PROGRAM, within=(), **how):
        self.folder, self.socket = folder, folder / "api.sock"
        self.log = open(folder / "log", "wb")
        self.command = [*within, program, *arguments, "--socket", self.socket, "--state-dir", folder / "state"]
        self.how = how
        self.start()

    def start(self):
        self.process = subprocess.Popen(self.command, stdout=self.log, stderr=subprocess.STDOUT, **self.how)
        self.wait_until(self.answers, "has opened its cache")

    def answers(self):
        try:
            return self.ask("GET", "/v1/datasets")[0] == 200
        except (FileNotFoundError, ConnectionRefusedError, ConnectionResetError):  # no socket, or no process serves it yet
            return False

    def end(self):
        self.process.terminate()
        try:
            self.process.wait(PATIENCE_S)
        finally:
            self.process.kill()

    def restart(self):
        self.end()
        self.start()

    def stop(self):
        try:
            self.end()
        finally:
            self.log.close()
        return self.process.returncode

    def log_text(self):
        return (self.folder / "log").read_text(errors="replace")

    def wait_until(self, holds, what):
        end = time.monotonic() + PATIENCE_S
        while not holds():
            assert self.process.poll() is None, f"spark-staged ended:\n{self.log_text()}"
            assert time.monotonic() < end, f"spark-staged never {what}:\n{self.log_text()}"
            time.sleep(0.05)

    def exchange(self, method, path, body=None):
        """(status, content type, body as bytes)"""
        connection = UnixConnection(self.socket)
        try:
            connection.request(method, path, None if body is None else json.dumps(body))
            answer = connection.getresponse()
            return answer.status, answer.getheader("Content-Type"), answer.read()
        finally:
            connection.close()

    def ask(self, method, path, body=None):
        """(status, parsed JSON)"""
        status, _, content = self.exchange(method, path, body)
        return status, json.loads(content)

    def finish(self, path, body=None):
        """Requests a job and waits for its end; returns the ended job."""
        status, job = self.ask("POST", path, body or {})
        assert status == 202, job
        self.exchange("GET", f"/v1/jobs/{quote(job['id'])}/events")
        status, job = self.ask("GET", f"/v1/jobs/{quote(job['id'])}")
        assert status == 200, job
        return job

    def metrics(self):
        status, _, page = self.exchange("GET", "/metrics")
        assert status == 200, page
        return page.decode()


class Daemon(Running):
    """A daemon on the real host, as far as its permissions allow."""

    def __init__(self, folder, environment=None, more="", within=(), datasets=""):
        self.port = free_port()
        self.config = folder / "spark-stage.yaml"
        for name in ("imagenet", "models"):
            (folder / name / "train").mkdir(parents=True)
            digests = ""
            for number in range(20):
                content = os.urandom(5000 + number)
                (folder / name / "train" / f"{number}.bin").write_bytes(content)
                digests += f"{hashlib.sha256(content).hexdigest()}  {number}.bin\n"
            (folder / name / "train/SHA256SUMS").write_text(digests)
        self.config.write_text(CONFIG.format(folder=folder, port=self.port, dead_port=free_port(), datasets=datasets) + more)
        super().__init__(folder, ["--config", self.config], within=within, env=os.environ | (environment or {}))

    def stop(self):
        status = super().stop()
        # An unmounted mount point is immutable and can't be removed.
        subprocess.run(["chattr", "-i", self.folder / "mnt"], stderr=subprocess.DEVNULL, check=False)
        return status
