"""spark-stage on a host machine: its configuration, its daemon, its answers."""
import json
import time

from .agent import GuestTimeout
from .settings import patience

CONFIG = "/etc/spark-stage/spark-stage.yaml"
SOCKET = "/run/spark-stage/api.sock"
UNIT = "spark-staged.service"


def config_text(**sections):
    """A configuration file with one section per line; YAML accepts JSON."""
    return "\n".join(["version: 1", *(f"{name}: {json.dumps(body)}" for name, body in sections.items() if body)]) + "\n"


class Product:
    def __init__(self, machine):
        self.machine = machine

    # --- the command line ---

    def run(self, arguments, timeout=60):
        return self.machine.run(f"spark-stage {arguments}", timeout)

    def sh(self, arguments, timeout=60):
        return self.machine.sh(f"spark-stage {arguments}", timeout)

    def json(self, arguments, timeout=60):
        return json.loads(self.sh(f"{arguments} --json", timeout))

    def get(self, path):
        """Sends a request to the API; returns (HTTP status, body)."""
        status, body = self.machine.http(SOCKET, "GET", path)
        return status, json.loads(body)

    def post(self, path):
        status, body = self.machine.http(SOCKET, "POST", path)
        return status, json.loads(body)

    # --- the daemon ---

    def configure(self, text):
        """Applies a configuration without restarting the daemon. A volume that is new in it comes up, even if an earlier
        scenario took down one of the same name."""
        before = {volume["name"] for volume in self.status()["volumes"]}
        self.machine.put(CONFIG, text)
        status, body = self.post("/v1/reload")
        assert status == 200, f"reload refused the configuration: {body}\n{text}"
        for volume in self.status()["volumes"]:
            if volume.get("down") and volume["name"] not in before:
                self.post(f"/v1/volumes/{volume['name']}/up")

    def main_pid(self):
        return int(self.machine.sh(f"systemctl show -P MainPID {UNIT}"))

    def restart(self):
        self.machine.sh(f"systemctl restart {UNIT}", 60)

    def kill(self):
        """Kills only the daemon with SIGKILL, like a crash; systemd restarts it."""
        pid = self.main_pid()
        self.machine.sh(f"kill -9 {pid}")
        self.machine.wait_until(f"p=$(systemctl show -P MainPID {UNIT}); [ $p != 0 -a $p != {pid} ] && "
                                "spark-stage status", 60)

    # --- answers ---

    # Uses the API: the CLI needs 0.2 s of CPU time here, and has its own tests.

    def status(self):
        return self.get("/v1/status")[1]

    def volume(self, name):
        return next(volume for volume in self.status()["volumes"] if volume["name"] == name)

    def datasets(self):
        """The rows of `ls`. Retries while a daemon that has just started still opens the cache."""
        end = time.monotonic() + patience(20)
        while (answer := self.get("/v1/datasets"))[0] == 503 and time.monotonic() < end:
            time.sleep(0.2)
        return answer[1]["datasets"]

    def dataset(self, name):
        """The dataset's row of `ls`, or None."""
        return next((row for row in self.datasets() if row["name"] == name), None)

    def wait_volume(self, name, wanted, deadline=60):
        """Waits until the volume satisfies `wanted`, a state or a predicate; returns it."""
        predicate = wanted if callable(wanted) else lambda volume: volume["state"] == wanted
        end = time.monotonic() + patience(deadline)
        while True:
            volume = self.volume(name)
            if predicate(volume):
                return volume
            if time.monotonic() > end:
                raise GuestTimeout(f"volume '{name}' is not {wanted} after {patience(deadline):.0f} s: "
                                   f"{json.dumps(volume, indent=1)}")
            time.sleep(0.5)

    def wait_failed_attempt(self, name, deadline=60):
        """Waits until the volume has failed an attempt and reports the time of the next one; returns it."""
        return self.wait_volume(name, lambda volume: volume["state"] == "waiting" and volume["next_attempt"], deadline)

    def wait_dataset(self, name, wanted, deadline=60, reason=""):
        """Waits until the dataset's row of `ls` satisfies `wanted`, a state or a predicate; returns it. `reason`: text that
        its reason must contain; another reason may come first."""
        predicate = wanted if callable(wanted) else lambda row: row["state"] == wanted
        end = time.monotonic() + patience(deadline)
        while True:
            row = self.dataset(name)
            if row and predicate(row) and reason in (row.get("reason") or ""):
                return row
            if time.monotonic() > end:
                raise GuestTimeout(f"dataset '{name}' is not {wanted} after {patience(deadline):.0f} s: {row}")
            time.sleep(0.2)
