"""What docs/containers.md says of containers on an ordinary host, typed with podman from Debian, as root and as a user.

No step of tools/steps.py runs this one: it was written without being run, and has not passed yet.
"""
import shlex
from pathlib import Path

import pytest

from rig import blocks
from rig.cache import cached, digest
from rig.house import CACHE, DATASETS_MOUNT
from rig.packages import download
from rig.settings import ARCHITECTURE, GUEST

PAGE, COPIES, IMAGE = "docs/containers.md", "/var/lib/spark-stage/cache/data", "my/image"
PACKAGES = ["podman", "crun", "uidmap", "busybox-static"]
APT = "DEBIAN_FRONTEND=noninteractive apt-get -q -y -o APT::Install-Recommends=false"
USER = "alice"
# The image's `python train.py [--data FOLDER]`: tells what it can do with the data.
TRAIN = """#!/bin/sh
data=${3:-$SPARK_STAGE_IMAGENET}
echo "sum $(cat "$data"/shard-*.bin | sha256sum | cut -d ' ' -f 1)"
echo "owner $(stat -c %U "$data/shard-0.bin")"
echo "write $(touch "$data/written" 2>&1)"
[ ! -e "$data/closed.bin" ] || echo "closed $(cat "$data/closed.bin" 2>&1)"
"""
# No network and no limits: neither is what this is about, and a user's need a session of systemd.
DOCKER = """#!/bin/sh
command=$1; shift
exec podman --cgroup-manager cgroupfs --events-backend none "$command" \\
  --pull never --cgroups disabled --network host --log-driver k8s-file "$@"
"""
MAKE_IMAGE = """set -e
mkdir -p /srv/made && cd /srv/made
mkdir -p bin tmp etc proc sys dev
cp /bin/busybox bin/
for name in sh cat cut sha256sum touch stat; do ln -sf busybox bin/$name; done
printf '%s:/:/bin/sh\\n' root:x:0:0: nobody:x:65534:65534: >etc/passwd
install -m 755 /tmp/train bin/python
tar -c -f /srv/image.tar ."""
ALONE, AS_DATA = "spark-stage run imagenet -- docker", "spark-stage run imagenet -- sh"


def run(machine, who, command, timeout=120):
    """As root, or as a user who has logged in."""
    if who is None:
        return machine.run(f"export HOME=/root; {command}", timeout)
    command = f"export XDG_RUNTIME_DIR=/run/user/$(id -u) HOME=/home/{who}; cd; {command}"
    return machine.run(f"setpriv --reuid {who} --regid {who} --init-groups bash -c {shlex.quote(command)}", timeout)


@pytest.fixture(scope="module")
def host(house):
    """The house's host with podman, and the page's image in it for root and for a user."""
    machine = house.host
    status = machine.get("/var/lib/dpkg/status")
    debs = cached(f"podman-{GUEST}-{ARCHITECTURE}", digest(status, *PACKAGES, Path(__file__)),
                  lambda path: download(path, status, PACKAGES))
    for package in debs.glob("*.deb"):
        machine.put(f"/srv/debs/{package.name}", package.read_bytes())
    machine.sh(f"{APT} install /srv/debs/*.deb && rm -r /srv/debs", 600)
    machine.put("/tmp/train", TRAIN, "755")
    machine.put("/usr/local/bin/docker", DOCKER, "755")
    machine.sh(f"modprobe overlay; {MAKE_IMAGE}", 60)
    machine.sh(f"""set -e
        useradd -m {USER} && usermod -aG spark-stage {USER}
        install -d -m 700 -o {USER} -g {USER} /run/user/$(id -u {USER})""")
    for who in (None, USER):
        imported = run(machine, who, f"podman --events-backend none import /srv/image.tar {IMAGE}", 180)
        assert imported.rc == 0, imported
    with house.configured(datasets={"imagenet": {"volume": "datasets", "path": "images"}}):
        yield machine
    machine.sh(f"podman rmi --all --force; userdel -f -r {USER}; rm /usr/local/bin/docker", 120)


def train(machine, who, begin, dataset="imagenet"):
    """What the page's lines say, by its first word."""
    typed = blocks.find(PAGE, begin).text.replace(COPIES, f"{CACHE}/data")
    typed = typed.replace("imagenet", dataset).replace("SPARK_STAGE_IMAGENET", f"SPARK_STAGE_{dataset.upper()}")
    done = run(machine, who, typed, 300)
    assert done.rc == 0, done
    return dict(line.split(" ", 1) for line in done.out.splitlines())


@pytest.mark.parametrize("who", [None, USER], ids=["root", "rootless"])
@pytest.mark.parametrize("begin", [ALONE, AS_DATA], ids=["by its variable", "as /data"])
def test_run_around_docker_run_trains_on_the_copy(house, host, begin, who):
    said = train(host, who, begin)
    assert said["sum"] == host.sh(f"cat {DATASETS_MOUNT}/images/shard-*.bin | sha256sum", 120).split()[0]
    assert "Read-only file system" in said["write"], said
    assert said["owner"] == ("root" if who is None else "nobody"), said
    assert house.product.dataset("imagenet")["leases"] == []


def test_a_rootless_container_reads_what_the_host_s_users_may(house, host):
    with house.volume("hidden", access="exclusive", fence="none", datasets={"hidden": {"volume": "hidden", "path": "set"}},
                      fill="mkdir set; echo open >set/shard-0.bin; echo secret >set/closed.bin; chmod 600 set/closed.bin"):
        house.product.wait_volume("hidden", "ready")
        assert train(host, None, AS_DATA, "hidden")["closed"] == "secret"
        assert "Permission denied" in train(host, USER, AS_DATA, "hidden")["closed"]
        house.product.sh("evict hidden")
    house.product.configure(house.config(datasets={"imagenet": {"volume": "datasets", "path": "images"}}))
