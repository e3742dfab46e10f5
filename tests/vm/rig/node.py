"""A node of Kubernetes without kubelet and systemd: a read-only root, crun, the DaemonSet of configs/kubernetes, pods."""
import json
import shutil
import subprocess
import tempfile
from pathlib import Path

import yaml

from . import containers, packages
from .disks import ext4, tree_of
from .image import userland_folder
from .machine import disk
from .settings import CONTAINER_IMAGE, REPOSITORY
from .target import stable_uuid

MANIFESTS, PROTOS = REPOSITORY / "configs/kubernetes", REPOSITORY / "csi/server"
KUBELET_FILES = ["tests/csi/wire.py", "tests/csi/kubelet.py", "tests/vm/node/pods.py"]
PACKAGES = ["crun", "python3-grpcio", "python3-protobuf"]
TOOLS, IMAGE, DOUBLE, CONFIG_MAP = "/run/tools", "/run/image", "/run/double", "/run/config-map"
LOGS, PIDS, KUBELET_SOCKET = "/run/logs", "/run/pids", "/run/kubelet.sock"
KUBELET_FOLDER = "/var/lib/kubelet"
# A path of the guest's root, which is also a pod's: it has to be there.
DATA = "/mnt"
LIBRARIES = f"{TOOLS}/usr/lib/x86_64-linux-gnu:{TOOLS}/lib/x86_64-linux-gnu"
PYTHON = f"env LD_LIBRARY_PATH={LIBRARIES} PYTHONPATH={TOOLS}/usr/lib/python3/dist-packages setsid python3"
CRUN = f"""#!/bin/sh
LD_LIBRARY_PATH={LIBRARIES} exec {TOOLS}/usr/bin/crun --root /run/crun --cgroup-manager cgroupfs "$@"
"""
# As kubelet ends containers, all that are named at once; afterwards nothing of them runs.
STOP = f"""#!/bin/sh
seconds=$1; shift
for name; do /run/bin/crun kill "$name" TERM; done
for name; do
  timeout "$seconds" tail -s 0.2 --pid="$(cat {PIDS}/"$name")" -f /dev/null
  echo "$name: $?"
  /run/bin/crun delete --force "$name"
  tail -s 0.1 --pid="$(cat {PIDS}/"$name")" -f /dev/null
done
"""
# As at a node's shutdown: kubelet ends pods, then those of the node; then a container of the image releases the volumes.
RELEASE, RELEASE_LOG = "release", "/var/log/release.log"
AT_SHUTDOWN = f"""#!/bin/sh
/run/stop 15 $(/run/bin/crun list --quiet | grep '^pod-')
/run/stop 15 $(/run/bin/crun list --quiet)
/run/bin/crun run --bundle /run/containers/{RELEASE} {RELEASE} >{RELEASE_LOG} 2>&1
"""


class Node:
    """start() boots it; then containers are started by their names in the DaemonSet."""

    def __init__(self, rig, name):
        folder = rig.folder / f"{name}-drives"
        folder.mkdir()
        local = ext4(folder / "local.raw", 2 << 30, stable_uuid(name))
        tools = shutil.copyfile(packages.drive("containers", userland_folder(), PACKAGES), folder / "tools.raw")
        self._environment = containers.unpack(CONTAINER_IMAGE, folder / "image")
        image = tree_of(folder / "image.raw", folder / "image")
        shutil.rmtree(folder / "image")
        self.machine = rig.add_host(name, disks=[local, tools, image], memory="1536M", append="ro init=/usr/local/lib/rig/node")
        pod = yaml.safe_load((MANIFESTS / "daemonset.yaml").read_text())["spec"]["template"]["spec"]
        self._grace_s = pod["terminationGracePeriodSeconds"]
        self._containers = {one["name"]: one for one in pod["containers"]}
        self._sources = {one["name"]: one["hostPath"]["path"] if "hostPath" in one else CONFIG_MAP for one in pod["volumes"]}
        self._started = 0

    def start(self, configuration):
        """configuration: what the ConfigMap has. Of an earlier life /var is left, but for kubelet's records."""
        machine = self.machine
        machine.start()
        machine.wait_ready()
        machine.wait_until(f"[ -e {disk(2)} -a -e {disk(3)} ]", 60)
        machine.sh(f"""set -e
            mkdir -p {TOOLS} {IMAGE} {LOGS} {PIDS} {' '.join(path for path in self._sources.values() if path != KUBELET_FOLDER)}
            mount -o ro,noload {disk(2)} {TOOLS}
            mount -o ro,noload {disk(3)} {IMAGE}
            rm -rf {KUBELET_FOLDER}
            modprobe overlay""")
        for path, text in (("/run/bin/crun", CRUN), ("/run/stop", STOP), ("/run/at-shutdown", AT_SHUTDOWN)):
            machine.put(path, text, "755")
        machine.put(f"{CONFIG_MAP}/spark-stage.yaml", configuration)
        self._start_kubelet()

    def _start_kubelet(self):
        with tempfile.TemporaryDirectory() as made:
            subprocess.run(["protoc", f"--proto_path={PROTOS}", f"--python_out={made}", *PROTOS.glob("*.proto")], check=True)
            for path in (*Path(made).iterdir(), *(REPOSITORY / name for name in KUBELET_FILES)):
                self.machine.put(f"{DOUBLE}/tests/csi/{path.name}", path.read_text())
        self.machine.sh(f"rm -f {KUBELET_SOCKET}; {PYTHON} {DOUBLE}/tests/csi/pods.py {KUBELET_FOLDER} {KUBELET_SOCKET} "
                        f"</dev/null >{LOGS}/kubelet.log 2>&1 &")
        self.machine.wait_until(f"[ -S {KUBELET_SOCKET} ]", 120)

    def kubelet(self, method, path):
        status, body = self.machine.http(KUBELET_SOCKET, method, path)
        assert status == 200, body
        return json.loads(body)

    # --- containers of the DaemonSet ---

    def start_container(self, name):
        """A new one of the image: nothing that an earlier one wrote outside of its volumes is there."""
        self._started += 1
        folder = self._root(f"{name}-{self._started}")
        self.machine.run(f"{self._crun('delete --force', name)}")
        self._run(name, folder, self._specification(self._containers[name], name))

    def release_at_shutdown(self, name, *command):
        """The shutdown then runs this command in a container like `name`; its output is in released()."""
        folder = self._root(RELEASE)
        specification = self._specification({**self._containers[name], "command": list(command)}, RELEASE)
        self.machine.put(f"{folder}/config.json", json.dumps(specification))

    def released(self):
        return self.machine.get(RELEASE_LOG)

    def _root(self, name):
        folder = f"/run/containers/{name}"
        self.machine.sh(f"""set -e
            mkdir -p {folder}/upper {folder}/work {folder}/rootfs
            mount -t overlay overlay -o lowerdir={IMAGE},upperdir={folder}/upper,workdir={folder}/work {folder}/rootfs""")
        return folder

    def _specification(self, container, name):
        return containers.privileged(container, self._sources, [*self._environment, f"NODE_NAME={self.machine.name}"], name)

    def is_alive(self, name):
        """By the DaemonSet's own probe."""
        return self.exec(name, *self._containers[name]["livenessProbe"]["exec"]["command"]).rc == 0

    def kill(self, name):
        """As a crash: nothing has a moment to end what it does."""
        pid = int(self.machine.get(f"{PIDS}/{name}"))
        self.machine.sh(f"kill -KILL {pid}; {self._crun('delete --force', name)}; tail -s 0.1 --pid={pid} -f /dev/null", 60)

    def stop(self, *names):
        """As kubelet stops them. Returns those that did not end within the time that the DaemonSet gives them."""
        said = self.machine.sh(f"/run/stop {self._grace_s} {' '.join(names)}", 60 + self._grace_s)
        return [line.split(":")[0] for line in said.splitlines() if line.split(": ")[1] != "0"]

    def exec(self, name, *command, timeout=60):
        return self.machine.run(f"{self._crun('exec', name)} {' '.join(command)}", timeout)

    def log(self, name):
        return self.machine.get(f"{LOGS}/{name}.log")

    def logs(self):
        if not self.machine.is_running():
            return f"{self.machine.name} is off"
        return self.machine.run(f"tail -n 40 {LOGS}/*.log; /run/bin/crun list").out

    def shut_down(self, deadline):
        """Returns the seconds that it took."""
        return self.machine.poweroff(deadline, command="kill -TERM 1")

    # --- pods ---

    def run_pod(self, uid, data, *command):
        """The container of a pod, whose root is the guest's, with the node's path `data` as DATA."""
        name, folder = f"pod-{uid}", f"/run/containers/pod-{uid}"
        self.machine.sh(f"mkdir -p {folder}/rootfs && mount --bind / {folder}/rootfs")
        self._run(name, folder, containers.of_a_pod(command, ["PATH=/usr/sbin:/usr/bin:/sbin:/bin"], data, DATA, name))

    def _run(self, name, folder, specification):
        self.machine.put(f"{folder}/config.json", json.dumps(specification))
        command = f"run --detach --bundle {folder} --pid-file {PIDS}/{name}"
        log = f"{LOGS}/{name}.log"
        self.machine.sh(f"{self._crun(command, name)} </dev/null >>{log} 2>&1 || {{ tail {log}; exit 1; }}", 60)

    @staticmethod
    def _crun(command, name):
        return f"/run/bin/crun {command} {name}"
