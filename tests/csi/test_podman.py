"""The commands of docs/containers.md, typed with Debian's podman, as root and as a user: a daemon on plain folders, no cgroups."""
import os
import shutil
import signal
import subprocess
from pathlib import Path

import pytest

from rig import blocks
from staged import BUILD, Running

pytestmark = pytest.mark.skipif(not shutil.which("podman"), reason="podman is not installed: tools/setup.sh others")
PAGE, COPIES, USER, UID = "docs/containers.md", "/var/lib/spark-stage/cache/data", "csi-alice", 4711
ALONE, AS_DATA = "spark-stage run imagenet -- docker", "spark-stage run imagenet -- sh"
WITH_GPU, VOLUME = "# on a Spark, with its GPU", "docker run --rm --mount type=bind,src=/mnt,"
ENTRIES = {"passwd": f"{USER}:x:{UID}:{UID}::{{home}}:/bin/sh", "group": f"{USER}:x:{UID}:\nspark-stage:x:4712:{USER}\nteam:x:4713:{USER}",
           "subuid": f"{USER}:700000:65536", "subgid": f"{USER}:700000:65536"}
# No cgroups, no network and no higher limits: they need a session of systemd, or more rights than a test has.
DOCKER = """#!/bin/sh
command=$1; shift
exec podman --storage-driver vfs --cgroup-manager cgroupfs --events-backend none "$command" --pull never --cgroups disabled \\
  --network host --log-driver k8s-file --ulimit nofile=1024:1024 --ulimit nproc=4096:4096 "$@"
"""
# The image's `python train.py [--data FOLDER]`.
TRAIN = """#!/bin/sh
data=${3:-$SPARK_STAGE_IMAGENET}
for name in open closed team; do echo "$name $(cat "$data/$name" 2>&1)"; done
echo "owner $(stat -c %U "$data/open")"
echo "write $(touch "$data/written" 2>&1)"
"""


def mount(*arguments):
    subprocess.run(["mount", *arguments], check=True)


def executable(path, text):
    path.write_text(text)
    path.chmod(0o755)


@pytest.fixture(name="host")
def host_with_podman(folder):
    """Users, the page's image and a daemon; nothing of it exists outside of the mount namespace of the tests."""
    folder.chmod(0o755)
    for name, text in ENTRIES.items():
        copy = folder / name
        copy.write_text(Path("/etc", name).read_text() + text.format(home=folder / "home") + "\n")
        mount("--bind", copy, f"/etc/{name}")
    mount("-t", "cgroup2", "none", "/sys/fs/cgroup")
    for name in ("home", "run", "out"):
        (folder / name).mkdir()
        os.chown(folder / name, UID, UID)
    for name, mode, group in (("open", 0o644, 0), ("closed", 0o600, 0), ("team", 0o640, 4713)):
        file = folder / "source" / name
        file.parent.mkdir(exist_ok=True)
        file.write_text(name)
        os.chown(file, 0, group)
        file.chmod(mode)
    (folder / "bin").mkdir()
    executable(folder / "bin/docker", DOCKER)
    (folder / "made/bin").mkdir(parents=True)
    shutil.copy("/bin/busybox", folder / "made/bin")
    for name in ("sh", "cat", "touch", "stat", "id"):
        (folder / "made/bin" / name).symlink_to("busybox")
    for name in ("tmp", "etc", "proc", "sys", "dev"):
        (folder / "made" / name).mkdir()
    (folder / "made/etc/passwd").write_text("root:x:0:0::/:/bin/sh\nnobody:x:65534:65534::/:/bin/sh\n")
    executable(folder / "made/bin/python", TRAIN)
    subprocess.run(["tar", "-C", folder / "made", "-cf", folder / "image.tar", "."], check=True)
    config = folder / "spark-stage.yaml"
    config.write_text(f"version: 1\ncache: {{path: {folder}/cache, capacity: 64MiB, keep_free: 0}}\n"
                      f"datasets: {{imagenet: {{path: {folder}/source}}}}\n")
    daemon = Running(folder, ["--config", config])
    yield folder
    daemon.stop()
    pause = folder / "run/libpod/tmp/pause.pid"  # podman leaves this process of the user
    if pause.exists():
        os.kill(int(pause.read_text()), signal.SIGKILL)
    for path in ("/sys/fs/cgroup", *(f"/etc/{name}" for name in ENTRIES)):
        subprocess.run(["umount", path], check=True)


def type_in(host, who, command):
    """As root, or as a user who has logged in; returns its output."""
    home = host / ("home" if who else "root")
    environment = {"PATH": f"{host}/bin:{BUILD}/cli:/usr/sbin:/usr/bin:/sbin:/bin", "HOME": str(home), "XDG_RUNTIME_DIR": f"{host}/run",
                   "SPARK_STAGE_SOCKET": f"{host}/api.sock"}
    if not who:
        del environment["XDG_RUNTIME_DIR"]
    login = ["setpriv", "--reuid", who, "--regid", who, "--init-groups"] if who else []
    done = subprocess.run([*login, "sh", "-c", command], env=environment, cwd=host, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done
    return done.stdout


def train(host, who, begin, *options):
    typed = blocks.find(PAGE, begin).text.replace(COPIES, f"{host}/cache/data").replace("docker run", " ".join(["docker run", *options]))
    typed = typed.replace("--gpus all ", "")  # there is none
    if who and not Path("/dev/mqueue").exists():  # a rootless container of the host's IPC mounts it
        typed = typed.replace("--ipc=host ", "")
    return dict(line.split(" ", 1) for line in type_in(host, who, typed).splitlines())


def load_image(host, who):
    type_in(host, who, f"podman --storage-driver vfs --events-backend none import {host}/image.tar my/image")


@pytest.mark.parametrize("who", [None, USER], ids=["root", "rootless"])
def test_run_around_docker_run_trains_on_the_copy(host, who):
    load_image(host, who)
    for begin in (ALONE, AS_DATA, WITH_GPU):
        said = train(host, who, begin)
        assert said["open"] == "open" and "Read-only file system" in said["write"], said
        # What only root or a group may read, a rootless container may not.
        assert said["owner"] == ("nobody" if who else "root"), said
        assert ("Permission denied" in said["closed"]) == bool(who) and ("Permission denied" in said["team"]) == bool(who), said


def test_a_rootless_container_keeps_its_users_groups_and_number_if_asked(host):
    load_image(host, USER)
    said = train(host, USER, ALONE, "--group-add", "keep-groups")
    assert said["team"] == "team" and "Permission denied" in said["closed"], said
    out = f"--mount type=bind,src={host}/out,dst=/out my/image touch"
    assert type_in(host, USER, f"docker run --rm --userns keep-id {out} /out/by-keep-id") == ""
    assert type_in(host, USER, f"docker run --rm {out} /out/by-root") == ""
    assert {name: os.stat(host / "out" / name).st_uid for name in ("by-keep-id", "by-root")} == {"by-keep-id": UID, "by-root": UID}


def lists_a_volume_mounted_later(host, page):
    """Whether the page's container, started before, sees what is mounted on the mount point then."""
    volume, listing = host / "mnt/datasets", "ls /mnt/datasets"
    volume.mkdir(parents=True, exist_ok=True)
    assert listing in page
    waits = "sh -c 'echo begun; for i in 1 2 3 4 5 6 7 8 9 10; do cat /mnt/datasets/file && break; /bin/busybox sleep 0.5; done'"
    typed = page.replace("src=/mnt,", f"src={host}/mnt,").replace(listing, waits)
    container = subprocess.Popen(["sh", "-c", typed], env={**os.environ, "PATH": f"{host}/bin:{os.environ['PATH']}"},
                                 stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        assert container.stdout.readline() == "begun\n"
        mount("-t", "tmpfs", "none", volume)
        (volume / "file").write_text("here\n")
        return "here" in container.communicate(timeout=120)[0]
    finally:
        container.kill()
        subprocess.run(["umount", volume], check=False)


def test_a_container_sees_a_volume_that_is_mounted_later_as_the_page_mounts_its_folder(host):
    load_image(host, None)
    page = blocks.find(PAGE, VOLUME).text
    # As with overlayfs, a container's root is no part of the host's root mount, which crun would make private.
    mount("--bind", "/var/lib/containers", "/var/lib/containers")
    try:
        assert lists_a_volume_mounted_later(host, page)
        assert not lists_a_volume_mounted_later(host, page.replace(",bind-propagation=rslave", ""))
    finally:
        subprocess.run(["umount", "--lazy", "/var/lib/containers"], check=True)
