"""spark-staged on a simulated host, run by an unprivileged user, and spark-stage for it."""
import json
import os
import shutil
import signal
import subprocess
from pathlib import Path

from openapi_file import OpenApi
from staged import BUILD, PATIENCE_S, PROGRAM, Running

CLIENT = BUILD / "cli/spark-stage"
NOBODY = 65534
AS_NOBODY = {"user": NOBODY, "group": NOBODY, "extra_groups": []} if os.geteuid() == 0 else {}
OPENAPI = OpenApi()

CONFIG = """version: 1
targets:
  rose: {{address: 10.0.0.5}}
volumes:
  datasets: {{target: rose, subsystem: raid5-data, mount: {folder}/mnt}}
cache: {{path: {folder}/cache, capacity: 1GiB, keep_free: 0}}
datasets:
  imagenet: {{volume: datasets, path: imagenet}}
"""
# With a volume that this host may write, and an output.
OUTPUT = CONFIG.replace("datasets: {{target", "checkpoints: {{target: rose, subsystem: ckpt, mount: {folder}/ckpt, "
                        "access: exclusive}}\n  datasets: {{target", 1) + """outputs:
  run7: {{path: {folder}/out/run7, volume: checkpoints, complete: rename}}
"""
FENCED = """  volumes:
    checkpoints: {reservations: true}
  events: []
"""


def give_away(folder, user):
    """Makes the daemon's user the owner."""
    os.chmod(folder, 0o755)
    if user:
        os.chown(folder, user["user"], user["group"])


def copied(program, folder):
    """Copies the program, since the daemon's user may have no access to the build folder."""
    target = folder / program.name
    if not target.exists():
        shutil.copy(program, target)
        target.chmod(0o755)
    return target


class Simulation(Running):
    """`events`: the events, one for each step(). `config`: replaces the configuration with one volume."""

    def __init__(self, folder, events="", config=CONFIG, user=None):
        user = AS_NOBODY if user is None else user
        give_away(folder, user)
        self.file = folder / "try.yaml"
        self.file.write_text(config.format(folder=folder) + "simulation:\n" + (events or "  events: []\n"))
        self.steps = 0
        super().__init__(folder, ["--sim", self.file], program=copied(PROGRAM, folder), cwd="/", **user)

    def step(self):
        self.steps += 1
        self.process.send_signal(signal.SIGUSR1)
        self.wait_until(lambda: self.log_text().count("simulation: ") >= self.steps, f"took step {self.steps}")

    def status(self):
        """The status, checked against its documentation."""
        status, kind, content = self.exchange("GET", "/v1/status")
        assert OPENAPI.problems_of_answer("GET", "/v1/status", status, kind, content) == []
        return json.loads(content)

    def volume(self, name="datasets"):
        return next(volume for volume in self.status()["volumes"] if volume["name"] == name)

    def reason(self, name="datasets"):
        return self.volume(name)["reason"] or ""

    def becomes(self, state, name="datasets"):
        self.wait_until(lambda: self.volume(name)["state"] == state,
                        f"has volume {name} {state}, but {self.volume(name)['state']}")
        return self.volume(name)

    def client(self, *arguments, patience_s=PATIENCE_S):
        """(exit status, stdout, stderr)"""
        done = subprocess.run([CLIENT, *arguments], capture_output=True, text=True, timeout=patience_s, check=False,
                              env=os.environ | {"SPARK_STAGE_SOCKET": str(self.socket)})
        return done.returncode, done.stdout, done.stderr

    def capabilities(self, pid="self"):
        lines = Path(f"/proc/{self.process.pid if pid == 'self' else pid}/status").read_text().splitlines()
        return {line.split(":")[0]: int(line.split()[1], 16) for line in lines if line.startswith("Cap")}
