"""What containerd makes of the containers of a pod: configurations of the OCI runtime, and the root of an image."""
import json
import subprocess
import tempfile
from pathlib import Path

# All that this kernel has: a privileged container is as root on the node.
CAPABILITIES = [f"CAP_{name}" for name in """
    CHOWN DAC_OVERRIDE DAC_READ_SEARCH FOWNER FSETID KILL SETGID SETUID SETPCAP LINUX_IMMUTABLE NET_BIND_SERVICE NET_BROADCAST
    NET_ADMIN NET_RAW IPC_LOCK IPC_OWNER SYS_MODULE SYS_RAWIO SYS_CHROOT SYS_PTRACE SYS_PACCT SYS_ADMIN SYS_BOOT SYS_NICE
    SYS_RESOURCE SYS_TIME SYS_TTY_CONFIG MKNOD LEASE AUDIT_WRITE AUDIT_CONTROL SETFCAP MAC_OVERRIDE MAC_ADMIN SYSLOG WAKE_ALARM
    BLOCK_SUSPEND AUDIT_READ PERFMON BPF CHECKPOINT_RESTORE""".split()]
# Kubernetes' words for how mounts travel, and the kernel's.
PROPAGATION = {"Bidirectional": "rshared", "HostToContainer": "rslave", "None": "rprivate"}


def unpack(archive, tree):
    """The root of an image of one system, as the folder `tree`; returns the image's environment."""
    tree.mkdir()
    with tempfile.TemporaryDirectory(dir=tree.parent) as folder:
        subprocess.run(["tar", "-xf", archive, "-C", folder], check=True)

        def blob(entry):
            return Path(folder, "blobs", *entry["digest"].split(":"))

        index = json.loads(Path(folder, "index.json").read_text())
        manifest = json.loads(blob(index["manifests"][0]).read_text())
        for layer in manifest["layers"]:
            subprocess.run(["tar", "-xf", blob(layer), "-C", tree], check=True)
        return json.loads(blob(manifest["config"]).read_text())["config"]["Env"]


def _mount(destination, kind, *options):
    return {"destination": destination, "type": kind, "source": kind, "options": list(options)}


def _bind(destination, source, propagation, is_read_only):
    return {"destination": destination, "type": "bind", "source": source,
            "options": ["rbind", PROPAGATION[propagation], "ro" if is_read_only else "rw"]}


def _defaults(sys_access):
    return [_mount("/proc", "proc", "nosuid", "noexec", "nodev"),
            _mount("/dev", "tmpfs", "nosuid", "strictatime", "mode=755", "size=65536k"),
            _mount("/dev/pts", "devpts", "nosuid", "noexec", "newinstance", "ptmxmode=0666", "mode=0620", "gid=5"),
            _mount("/dev/shm", "tmpfs", "nosuid", "noexec", "nodev", "mode=1777"),
            _mount("/dev/mqueue", "mqueue", "nosuid", "noexec", "nodev"),
            _mount("/sys", "sysfs", "nosuid", "noexec", "nodev", sys_access)]


def _specification(command, environment, mounts, namespaces, capabilities, **more):
    sets = {name: capabilities for name in ("bounding", "effective", "permitted")}
    return {"ociVersion": "1.0.2",
            "process": {"user": {"uid": 0, "gid": 0}, "args": command, "env": environment, "cwd": "/", "capabilities": sets},
            "mounts": mounts,
            "linux": {"namespaces": [{"type": name} for name in namespaces],
                      "resources": {"devices": [{"allow": True, "access": "rwm"}]}, **more}}


def privileged(container, sources, environment, name):
    """Of a container of a pod with the node's network and processes. sources: a path of the node for each volume."""
    places = container["volumeMounts"]
    binds = [_bind(place["mountPath"], sources[place["name"]], place.get("mountPropagation", "None"), place.get("readOnly"))
             for place in places]
    has_dev = any(place["mountPath"] == "/dev" for place in places)
    defaults = [one for one in _defaults("rw") if not (has_dev and one["destination"].startswith("/dev"))]
    mounts = [*defaults, _mount("/sys/fs/cgroup", "cgroup", "nosuid", "noexec", "nodev", "relatime", "rw"), *binds]
    mounts.sort(key=lambda one: one["destination"].count("/"))
    reaches_the_node = any(place.get("mountPropagation") == "Bidirectional" for place in places)
    made = _specification(container["command"], environment, mounts, ["mount", "ipc"], CAPABILITIES,
                          rootfsPropagation="rshared" if reaches_the_node else "rslave", cgroupsPath=f"/pods/{name}")
    return {**made, "root": {"path": "rootfs"}}


def of_a_pod(command, environment, data, destination, name):
    """Of a pod that gets the node's path `data` there, with namespaces of its own, and its root read-only."""
    mounts = [*_defaults("ro"), _mount("/tmp", "tmpfs", "mode=1777"), _bind(destination, data, "None", True)]
    made = _specification(command, environment, mounts, ["mount", "ipc", "uts", "pid", "network"], CAPABILITIES[:10],
                          cgroupsPath=f"/pods/{name}")
    return {**made, "root": {"path": "rootfs", "readonly": True}}
