"""The package on a clean machine: installed, configured in three lines, upgraded under a reader, removed, purged."""
import re
import subprocess
from pathlib import Path

import pytest

from rig.bare import NQN
from rig.product import CONFIG, UNIT, Product, config_text
from rig.settings import PACKAGE

pytestmark = pytest.mark.skipif(not PACKAGE, reason="SPARK_VM_PACKAGE names no folder with a package: `make deb` makes one")
MOUNT = "/mnt/data"
APT = "DEBIAN_FRONTEND=noninteractive apt-get -q -y --no-install-recommends"


@pytest.fixture(scope="module")
def packages(tmp_path_factory):
    """The package, and the same under a later version."""
    found = list(Path(PACKAGE).glob("*.deb"))
    assert len(found) == 1, f"{PACKAGE} has {len(found)} packages: one is wanted"
    tree = tmp_path_factory.mktemp("later")
    subprocess.run(["dpkg-deb", "-R", found[0], tree / "tree"], check=True)
    control = tree / "tree/DEBIAN/control"
    control.write_text(re.sub("^(Version: .*)$", r"\1+later", control.read_text(), flags=re.MULTILINE))
    subprocess.run(["dpkg-deb", "--root-owner-group", "-Zgzip", "-b", tree / "tree", tree / "later.deb"], check=True,
                   stdout=subprocess.DEVNULL)
    return found[0].read_bytes(), (tree / "later.deb").read_bytes()


@pytest.fixture(scope="module")
def host(bare_pair, packages):
    target, machine = bare_pair
    machine.put("/root/spark-stage.deb", packages[0])
    machine.put("/root/later.deb", packages[1])
    yield machine
    machine.kill()
    target.machine.kill()


def mount_id(host):
    return host.sh(f"grep ' {MOUNT} ' /proc/self/mountinfo").split()[0]


def staged_files(host):
    return host.sh("find /var/lib/spark-stage -name file -path '*set*'").split()


def test_it_installs_with_what_it_depends_on_and_starts_nothing(host):
    host.sh(f"{APT} install /root/spark-stage.deb", 300)
    assert host.run(f"systemctl is-enabled {UNIT}").out.strip() == "disabled"
    assert host.run(f"systemctl is-active {UNIT}").out.strip() == "inactive"
    assert "spark-stage" in host.sh("spark-stage --version; getent group spark-stage")


def test_three_lines_of_configuration_make_a_volume_ready(host, bare_pair):
    text = config_text(targets={"rose": {"address": bare_pair[0].address}},
                       volumes={"data": {"target": "rose", "subsystem": NQN, "mount": MOUNT}})
    assert len(text.splitlines()) == 3
    host.put(CONFIG, text)
    host.sh(f"systemctl enable --now {UNIT}", 120)
    Product(host).wait_volume("data", "ready", 90)
    assert host.get(f"{MOUNT}/greeting") == "hello\n"


def test_an_upgrade_disturbs_no_mount_and_no_reader(host):
    product = Product(host)
    before, pid = mount_id(host), product.main_pid()
    reader = host.spawn(f"exec 9<{MOUNT}/greeting; until [ -e /run/enough ]; do "
                        f"dd if={MOUNT}/data iflag=direct bs=1M status=none | sha256sum || exit 1; done")
    try:
        host.sh(f"{APT} install /root/later.deb", 300)
    finally:
        host.sh("touch /run/enough")
    seen = reader.wait(60)
    sums = seen.out.split("\n")[:-1]
    assert seen.rc == 0 and not seen.err and len(sums) > 1 and len(set(sums)) == 1, seen
    assert "+later" in host.sh("dpkg-query -W -f '${Version}' spark-stage")
    assert product.main_pid() not in (0, pid), "the daemon still is the one of before"
    product.wait_volume("data", "ready", 60)
    assert mount_id(host) == before


def test_removal_leaves_the_mount_the_configuration_and_what_was_staged(host):
    Product(host).sh("stage data:set", 120)
    assert len(staged_files(host)) == 1
    before = mount_id(host)
    host.sh(f"{APT} remove spark-stage", 300)
    assert host.run(f"systemctl is-active {UNIT}").out.strip() == "inactive"
    assert mount_id(host) == before and host.get(f"{MOUNT}/greeting") == "hello\n"
    assert host.get(CONFIG) and len(staged_files(host)) == 1


def test_purging_takes_the_configuration_and_keeps_what_was_staged(host):
    said = host.sh(f"{APT} purge spark-stage", 300)
    assert "/var/lib/spark-stage" in said
    assert host.run(f"test -e {CONFIG}").rc != 0
    assert len(staged_files(host)) == 1 and host.get(staged_files(host)[0]) == "one\n"
