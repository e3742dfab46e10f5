"""The package on a clean machine: installed, configured in three lines, upgraded under a reader, removed, purged.

The machine's Debian includes packages for other scenarios. Those that our package depends on are removed first and put into
a local repository, like on a mirror: apt must find and install them.
"""
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from rig import blocks
from rig.bare import NQN
from rig.cache import cached, digest
from rig.image import PACKAGES_OF
from rig.kernel import KEYRING, MIRROR
from rig.product import CONFIG, UNIT, Product
from rig.settings import ARCHITECTURE, GUEST, PACKAGE

pytestmark = pytest.mark.skipif(not PACKAGE, reason="SPARK_VM_PACKAGE names no folder with a package: `make deb` makes one")
MOUNT = "/mnt/data"
RELEASE = "spark-stage-release.service"
STATE = "/var/lib/spark-stage"
KEY = "/etc/spark-stage/keys/host"
PAGE = "docs/install.md"
FIRST_VOLUME = "docs/first-volume.md"
APT = "DEBIAN_FRONTEND=noninteractive apt-get -q -y"
# The other dependencies are installed for other packages of the machine (libfmt for fio).
LIBRARIES = [name for name in PACKAGES_OF[GUEST] if name.startswith("lib") and not name.startswith("libfmt")]
LIBRARIES.append("libprometheus-cpp-core1.0")
ABSENT = LIBRARIES + ["nvme-cli"]  # a recommended package
REPOSITORY = "/srv/repository"


@pytest.fixture(scope="module")
def packages(tmp_path_factory):
    """The package, and the same with a later version number."""
    found = list(Path(PACKAGE).glob("spark-stage_*.deb"))
    assert len(found) == 1, f"{PACKAGE} has {len(found)} packages: one is wanted"
    tree = tmp_path_factory.mktemp("later")
    subprocess.run(["dpkg-deb", "-R", found[0], tree / "tree"], check=True)
    control = tree / "tree/DEBIAN/control"
    control.write_text(re.sub("^(Version: .*)$", r"\1+later", control.read_text(), flags=re.MULTILINE))
    subprocess.run(["dpkg-deb", "--root-owner-group", "-Zgzip", "-b", tree / "tree", tree / "later.deb"], check=True,
                   stdout=subprocess.DEVNULL)
    return found[0].read_bytes(), (tree / "later.deb").read_bytes()


def fetch_absent(path):
    """Downloads the packages from Debian's mirror, verified by its keys, with an index; this computer's packages are not changed."""
    work = Path(f"{path}.apt")
    for folder in (path, work / "lists/partial", work / "cache/archives/partial"):
        folder.mkdir(parents=True, exist_ok=True)
    (work / "sources.list").write_text(f"deb [signed-by={KEYRING}] {MIRROR} {GUEST} main\n")
    apt = ["apt-get", "-q", *(word for option in (
        f"Dir::Etc::SourceList={work}/sources.list", "Dir::Etc::SourceParts=/dev/null", f"Dir::State::Lists={work}/lists",
        "Dir::State::status=/dev/null", f"Dir::Cache={work}/cache", "APT::Sandbox::User=root",
        f"APT::Architecture={ARCHITECTURE}", f"APT::Architectures::={ARCHITECTURE}") for word in ("-o", option))]
    subprocess.run([*apt, "update"], check=True, stdout=subprocess.DEVNULL)
    subprocess.run([*apt, "download", *ABSENT], cwd=path, check=True, stdout=subprocess.DEVNULL)
    for package in path.glob("*.deb"):  # %3a stands for the colon of a version, and apt would decode it again
        package.rename(path / f"{package.name.split('_')[0]}.deb")
    index = subprocess.run(["dpkg-scanpackages", "."], cwd=path, check=True, capture_output=True).stdout
    (path / "Packages").write_bytes(index)
    shutil.rmtree(work)


@pytest.fixture(scope="module")
def host(bare_pair, packages):
    target, machine = bare_pair
    machine.put("/root/spark-stage.deb", packages[0])
    machine.put("/root/later.deb", packages[1])
    repository = cached(f"repository-{GUEST}-{ARCHITECTURE}", digest(*ABSENT, Path(__file__)), fetch_absent)
    machine.sh(f"mkdir -p {REPOSITORY}; rm -rf /etc/apt/sources.list.d/*")
    for file in repository.iterdir():
        machine.put(f"{REPOSITORY}/{file.name}", file.read_bytes())
    machine.put("/etc/apt/sources.list", f"deb [trusted=yes] file:{REPOSITORY} ./\n")
    machine.sh(f"{APT} remove {' '.join(ABSENT)} && {APT} update", 300)
    yield machine
    machine.kill()
    target.machine.kill()


def mount_id(host):
    return host.sh(f"grep ' {MOUNT} ' /proc/self/mountinfo").split()[0]


def controllers(host):
    """The connected controllers, with their numbers and NQNs."""
    return host.sh("grep -H . /sys/class/nvme/*/subsysnqn /sys/class/nvme/*/state | grep -v ':nqn.2019-08.org.qemu:'").split()


def staged_files(host):
    return host.sh(f"find {STATE} -name file -path '*set*'").split()


def installed(host, names):
    shown = host.run("dpkg-query -W -f '${db:Status-Status} ${Package}\n' " + " ".join(names)).out
    return {line.split()[1] for line in shown.splitlines() if line.startswith("installed ")}


def as_the_page_says(begin, package="/root/spark-stage.deb"):
    """A line of the page adapted to this machine: its folder of packages, and no prompts."""
    typed = blocks.line(PAGE, begin).removeprefix("sudo ").replace("./build/deb/spark-stage_*.deb", package)
    return re.sub(r"\bapt ", f"{APT} ", typed)


def test_the_package_installs_with_its_dependencies_and_starts_nothing(host):
    assert installed(host, ABSENT + ["spark-stage"]) == set()
    asked = host.sh("dpkg-deb -f /root/spark-stage.deb Depends")
    assert {name for name in LIBRARIES if re.search(rf"\b{re.escape(name)}\b", asked)}, f"nothing of {asked} was removed"
    host.sh(as_the_page_says("sudo apt install"), 300)
    assert installed(host, ABSENT) == set(ABSENT)
    host.sh("apt-get check -q")
    assert host.run(f"systemctl is-enabled {UNIT}").out.strip() == "disabled"
    assert host.run(f"systemctl is-active {UNIT}").out.strip() == "inactive"
    assert "spark-stage" in host.sh("spark-stage --version; getent group spark-stage")


def test_three_lines_of_configuration_make_a_volume_ready(host, bare_pair):
    """The lines and commands of the page about the first volume."""
    text = blocks.find(FIRST_VOLUME, "version: 1").text.replace("192.168.0.100", bare_pair[0].address)
    assert len(text.splitlines()) == 3 and NQN in text and MOUNT in text
    host.put(CONFIG, text)
    for line in blocks.find(FIRST_VOLUME, "sudo spark-stage config check").lines:
        shown = host.sh(line.removeprefix("sudo "), 150)
        print(f"$ {line}\n{shown}")
    assert "greeting" in shown  # the last command lists the volume's files
    assert Product(host).volume("data")["state"] == "ready"
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


def test_removal_leaves_the_mount_the_configuration_and_staged_data(host):
    Product(host).sh("stage data:set", 120)
    assert len(staged_files(host)) == 1
    before, connected = mount_id(host), controllers(host)
    assert connected and host.run(f"systemctl is-active {RELEASE}").out.strip() == "active"
    host.sh(f"{APT} remove spark-stage", 300)
    for unit in (UNIT, RELEASE):
        assert host.run(f"systemctl is-active {unit}").out.strip() == "inactive"
        assert host.sh(f"systemctl show -P LoadState {unit}").strip() == "not-found"
    assert mount_id(host) == before and host.get(f"{MOUNT}/greeting") == "hello\n"
    assert controllers(host) == connected
    assert host.get(CONFIG) and len(staged_files(host)) == 1
    assert f" {STATE}/cache/data " not in host.get("/proc/self/mountinfo"), "their owner could not delete them"


def can_write_below_the_mount(host):
    """True if the folder itself, on the system's own disk, is writable."""
    done = host.run(f"""mkdir -p /run/below && mount --bind / /run/below || exit 9
                        touch /run/below{MOUNT}/file && rm /run/below{MOUNT}/file; rc=$?; umount /run/below; exit $rc""")
    assert done.rc != 9, done
    return done.rc == 0


def test_purging_removes_the_configuration_and_keeps_staged_data_and_keys(host):
    host.put(KEY, "a key\n", "600")
    before = mount_id(host)
    assert not can_write_below_the_mount(host)
    said = host.sh(f"{APT} purge spark-stage", 300)
    assert can_write_below_the_mount(host) and mount_id(host) == before
    assert STATE in said and "/etc/spark-stage/keys" in said
    assert host.run(f"test -e {CONFIG}").rc != 0
    assert len(staged_files(host)) == 1 and host.get(staged_files(host)[0]) == "one\n"
    assert host.get(KEY) == "a key\n"


def test_purging_data_keeps_everything_while_something_is_mounted_there(host):
    below = f"{STATE}/cache/mine"
    host.sh(f"{APT} install /root/later.deb; mkdir -p {below}; mount -t tmpfs mine {below}; echo mine >{below}/file", 300)
    said = host.sh(as_the_page_says("sudo SPARK_STAGE_PURGE=data"), 300)
    assert f"{STATE} stays as it is: {below} is mounted there" in said
    assert host.get(f"{below}/file") == "mine\n" and len(staged_files(host)) == 1
    host.sh(f"umount {below}")


def test_purging_data_removes_staged_data_but_no_key_and_no_mount(host):
    before = mount_id(host)
    host.sh(f"{APT} install /root/later.deb", 300)
    said = host.sh(as_the_page_says("sudo SPARK_STAGE_PURGE=data"), 300)
    assert f"{STATE} was removed" in said and host.run(f"test -e {STATE}").rc != 0
    assert host.get(KEY) == "a key\n"
    assert mount_id(host) == before and host.get(f"{MOUNT}/greeting") == "hello\n"
