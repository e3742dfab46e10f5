"""spark-stage-csi and its spark-staged, on plain folders."""
import os
import signal
import subprocess
import time

from staged import BUILD, PATIENCE_S, Running, free_port

PROGRAM = BUILD / "csi/server/spark-stage-csi"

# The volume that outputs are sent to is unavailable.
CONFIG = """version: 1
targets: {{rose: {{address: 127.0.0.1, port: {dead_port}}}}}
volumes: {{scratch: {{target: rose, subsystem: out, mount: {folder}/mnt, access: exclusive}}}}
cache: {{path: {folder}/cache, capacity: 64MiB, keep_free: 0}}
datasets:
  imagenet: {{path: {folder}/source/imagenet}}
  models: {{path: {folder}/source/models}}
  secret: {{path: {folder}/source/secret, namespaces: [team-a]}}
  huge: {{path: {folder}/source/huge}}
  remote: {{volume: scratch, path: data}}
outputs:
  run7: {{path: {folder}/out, volume: scratch, complete: rename, namespaces: [team-a]}}
  absent: {{path: {folder}/absent, volume: scratch, namespaces: [team-a]}}
  private: {{path: {folder}/private, volume: scratch}}
"""


def wait_until(holds, what, patience_s=PATIENCE_S):
    end = time.monotonic() + patience_s
    while not (found := holds()):
        assert time.monotonic() < end, f"never: {what() if callable(what) else what}"
        time.sleep(0.02)
    return found


class Daemon(Running):
    def __init__(self, folder):
        for name in ("imagenet", "models", "secret"):
            (folder / "source" / name).mkdir(parents=True)
            (folder / "source" / name / "0.bin").write_bytes(os.urandom(200_000))
        (folder / "source/huge").mkdir()
        with open(folder / "source/huge/hole.bin", "wb") as hole:
            hole.truncate(1 << 30)
        (folder / "source/huge/data.bin").write_bytes(os.urandom(1 << 20) * 80)
        config = folder / "spark-stage.yaml"
        config.write_text(CONFIG.format(folder=folder, dead_port=free_port()))
        (folder / "out").mkdir()
        super().__init__(folder, ["--config", config])

    def stop(self):
        super().stop()
        # An unmounted mount point is immutable and can't be removed.
        subprocess.run(["chattr", "-i", self.folder / "mnt"], stderr=subprocess.DEVNULL, check=False)

    def kill(self):
        self.process.kill()
        self.process.wait(PATIENCE_S)
        self.socket.unlink()  # start() waits for the new one

    def leases(self):
        """Volume ID and dataset of each."""
        rows = self.ask("GET", "/v1/datasets")[1]["datasets"]
        return {(lease["job"]["id"], row["name"]) for row in rows for lease in row["leases"] if "job" in lease}

    def stagings(self):
        return [job for job in self.ask("GET", "/v1/jobs")[1]["jobs"] if job["verb"] == "stage"]


class Driver:
    def __init__(self, kubelet, daemon):
        self.kubelet, self.daemon = kubelet, daemon
        self.log = open(daemon.folder / "csi.log", "ab")
        self.start()

    def start(self):
        self.process = subprocess.Popen([PROGRAM, "--socket", self.daemon.socket, "--kubelet-dir", self.kubelet.folder,
                                         "--node-id", "n1"], stdout=self.log, stderr=subprocess.STDOUT)
        return self.kubelet.register()

    def end(self, number=signal.SIGKILL):
        self.process.send_signal(number)
        return self.process.wait(PATIENCE_S)

    def log_text(self):
        return (self.daemon.folder / "csi.log").read_text(errors="replace")
