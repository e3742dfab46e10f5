"""Volumes for benchmarks on any Linux: ext4 on loop devices, shown to a daemon as namespaces of NVMe/TCP subsystems.

File systems, superblocks, mounts and the mount table are real. Only /sys is simulated, in the caller's own mount namespace:
there the loop devices are namespaces with live controllers. As a program it provides one image to a command: unshare
--mount loop_volumes.py IMAGE MOUNT COMMAND…
"""
import os
import subprocess
import sys
from pathlib import Path

HOST_ID = "11111111-2222-3333-4444-555555555555"
HOST_NQN = f"nqn.2014-08.org.nvmexpress:uuid:{HOST_ID}"
PER_SUBSYSTEM = 3


def run(*command):
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{' '.join(map(str, command))}: {done.stderr.strip() or done.returncode}")
    return done.stdout.strip()


def write(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"{text}\n")


def nqn_of(subsystem):
    return f"nqn.2026-11.example:loop-{subsystem}"


def attach(image, mount):
    """Mounts the image like a reader; it is detached with the mount namespace. Returns (device number, sectors)."""
    mount.mkdir(parents=True, exist_ok=True)
    device = run("losetup", "--find", "--show", "--read-only", image)
    run("mount", "-t", "ext4", "-o", "ro,noload", device, mount)
    run("losetup", "--detach", device)  # takes effect with the last unmount
    info = os.stat(device)
    return f"{os.major(info.st_rdev)}:{os.minor(info.st_rdev)}", os.path.getsize(image) // 512


def show_as_nvme(drives):
    """Replaces /sys by the parts that the daemon reads: controllers, one per subsystem, and their namespaces."""
    run("mount", "-t", "tmpfs", "none", "/sys")
    folder = Path("/sys")
    for at, (device_number, sectors) in enumerate(drives):
        subsystem, nsid = at // PER_SUBSYSTEM, at % PER_SUBSYSTEM + 1
        controller = folder / f"class/nvme/nvme{subsystem}"
        if nsid == 1:
            for name, text in (("state", "live"), ("transport", "tcp"), ("subsysnqn", nqn_of(subsystem)),
                               ("hostnqn", HOST_NQN), ("hostid", HOST_ID), ("cntrltype", "io"),
                               ("address", "traddr=127.0.0.1,trsvcid=9"), ("reconnect_delay", "2"), ("kato", "5"),
                               ("ctrl_loss_tmo", "off"), ("fast_io_fail_tmo", "off")):
                write(controller / name, text)
        node = f"nvme{subsystem}n{nsid}"
        write(controller / node / "nsid", nsid)
        write(folder / f"class/block/{node}/dev", device_number)
        write(folder / f"class/block/{node}/size", sectors)
        (folder / "dev/block").mkdir(parents=True, exist_ok=True)
        (folder / "dev/block" / device_number).symlink_to(f"../../class/nvme/nvme{subsystem}/{node}")
    (folder / "module/nvme_tcp").mkdir(parents=True)
    Path("/etc/nvme").mkdir(exist_ok=True)
    run("mount", "-t", "tmpfs", "none", "/etc/nvme")
    write(Path("/etc/nvme/hostnqn"), HOST_NQN)
    write(Path("/etc/nvme/hostid"), HOST_ID)


def sections(mounts):
    """Sections of the daemon's configuration: the target, and a volume v0, v1 … for each mount."""
    volumes = {f"v{at}": {"target": "rose", "subsystem": nqn_of(at // PER_SUBSYSTEM), "namespace": at % PER_SUBSYSTEM + 1,
                          "mount": str(mount)} for at, mount in enumerate(mounts)}
    return {"targets": {"rose": {"address": "127.0.0.1", "port": 9}}, "volumes": volumes}


if __name__ == "__main__":
    show_as_nvme([attach(sys.argv[1], Path(sys.argv[2]))])
    os.execvp(sys.argv[3], sys.argv[3:])
