"""An upgrade from packages that are in use (the steps `upgrade` and `upgrade-0.2` of check-long build these commits), during
operation.

The host reads one volume and an NFS export, writes another volume, keeps copies with leases and has had an outage. The packages
for Slurm and Kubernetes, which the first version did not have, are installed in the same step.
"""
import json
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

from rig import image, packages
from rig.bare import NQN
from rig.cache import cached, digest
from rig.machine import disk
from rig.product import CONFIG, Product, config_text
from rig.settings import ARCHITECTURE, FIRST_PACKAGE, GUEST, PACKAGE
from rig.target import stable_uuid

pytestmark = pytest.mark.skipif(
    not (FIRST_PACKAGE and PACKAGE),
    reason="SPARK_VM_FIRST_PACKAGE and SPARK_VM_PACKAGE name no folders with packages: make check-long STEPS=upgrade makes both")
READ, WRITTEN, NAS = "/mnt/data", "/mnt/work", "/mnt/nas"
WORK_NQN = "raid5-work"
VOLUMES = ("data", "work", "nas")
NAMES = ("spark-stage", "spark-stage-slurm", "spark-stage-csi")
STATE = "/var/lib/spark-stage"
KEPT = ("reconnects", "recoveries", "filesystem", "mount", "device", "access", "subsystem", "namespace")


@dataclass
class Seen:
    """A snapshot of a host, from its kernel, its state folder and spark-stage."""
    mounts: dict      # mount point: mount ID
    controllers: str  # with their NQNs
    pins: dict        # file in the state folder: content
    volumes: dict     # rows of `status`, by name
    datasets: dict    # rows of `ls`, by name


def look(host):
    product = Product(host)
    table = [line.split() for line in host.get("/proc/self/mountinfo").splitlines()]
    pins = json.loads(host.sh(f"""cd {STATE} && python3 -c 'import json, pathlib
print(json.dumps({{str(f): json.loads(f.read_text()) for f in pathlib.Path(".").glob("**/volumes/*.json")}}))'"""))
    return Seen({words[4]: words[0] for words in table if words[4] in (READ, WRITTEN, NAS)},
                host.sh("grep -H . /sys/class/nvme/*/subsysnqn"), pins,
                {row["name"]: row for row in product.status()["volumes"]},
                {row["name"]: row for row in product.datasets()})


def package_in(folder, name="spark-stage"):
    found = list(Path(folder).glob(f"{name}_*.deb"))
    assert len(found) == 1, f"{folder} has {len(found)} packages {name}: one is wanted"
    return found[0]


def needed_packages():
    """The packages of Debian that ours need and the machine may lack, by file name."""
    asked = ",".join(subprocess.run(["dpkg-deb", "-f", package_in(PACKAGE, name), "Depends"], check=True, capture_output=True, text=True).stdout
                    for name in NAMES)
    names = sorted({one.split()[0] for one in asked.split(",")})  # the first of alternatives
    status = (image.userland_folder() / "var/lib/dpkg/status").read_text()
    folder = cached(f"upgrade-{GUEST}-{ARCHITECTURE}", digest(status, *names), lambda path: packages.download(path, status, names))
    return {file.name: file.read_bytes() for file in sorted(folder.glob("*.deb"))}


def put_packages(host):
    """/root/first has the first package, /root/now all present ones and the packages that they need."""
    host.sh("mkdir -p /root/first /root/now")
    host.put("/root/first/spark-stage.deb", package_in(FIRST_PACKAGE).read_bytes())
    for name in NAMES:
        host.put(f"/root/now/{name}.deb", package_in(PACKAGE, name).read_bytes())
    for name, content in needed_packages().items():
        host.put(f"/root/now/{name}", content)


def configuration(target):
    return config_text(
        targets={"rose": {"address": target.address}},
        volumes={"data": {"target": "rose", "subsystem": NQN, "namespace": 1, "mount": READ},
                 "work": {"target": "rose", "subsystem": WORK_NQN, "namespace": 1, "mount": WRITTEN, "access": "exclusive"},
                 "nas": {"nfs": f"{target.address}:/srv/nas", "mount": NAS}},
        cache={"path": f"{STATE}/cache", "capacity": "300MiB", "keep_free": "1%"},
        datasets={"set": {"volume": "data", "path": "set"}, "more": {"volume": "data", "path": "more"},
                  "held": {"volume": "data", "path": "held"}})


def export_volumes(target):
    target.fill(disk(1), "for d in more held; do mkdir -p $d; dd if=/dev/urandom of=$d/file bs=1M count=8 status=none; done")
    target.filesystem(target.image("work", "256M"), name="work", mmp=True)
    target.export(WORK_NQN, target.image("work", "256M"), reservations=True)
    target.machine.sh("mkdir -p /srv/nas && echo nas >/srv/nas/file")
    target.export_nfs("/srv/nas")


def have_an_outage(target, product):
    target.machine.set_link(False)
    product.wait_volume("data", "stalled", 60)
    target.machine.set_link(True)
    for name in VOLUMES:
        product.wait_volume(name, "ready", 120)


@dataclass
class Upgrade:
    host: object
    target: object
    before: Seen
    after: Seen
    reader: object   # Result of the reader that ran all the time
    written: str     # text written to the other volume
    holder: object   # Process started by `spark-stage run` of the earlier version


@pytest.fixture(scope="module")
def upgrade(bare_pair):
    target, host = bare_pair
    target.unlink(NQN)
    export_volumes(target)
    target.link(NQN)
    put_packages(host)
    host.sh("dpkg -i /root/first/*.deb", 120)
    host.put(CONFIG, configuration(target))
    host.sh("systemctl enable --now spark-staged", 60)
    product = Product(host)
    for name in VOLUMES:
        product.wait_volume(name, "ready", 120)
    product.sh("stage set --lease 1h", 120)
    product.sh("stage more", 120)
    holder = host.spawn(f"spark-stage run held -- sh -c 'echo holding >&2; until [ -e /run/enough ]; do sleep 0.2; done; "
                        "sha256sum $SPARK_STAGE_HELD/file'")
    product.wait_dataset("held", lambda row: row["leases"], 120)
    have_an_outage(target, product)
    before = look(host)
    reader = host.spawn(f"until [ -e /run/read-enough ]; do dd if={READ}/data iflag=direct bs=1M status=none | sha256sum "
                        "|| exit 1; done")
    writer = host.spawn(f"until [ -e /run/read-enough ]; do date +%s.%N >>{WRITTEN}/journal && sync {WRITTEN}/journal "
                        "|| exit 1; sleep 0.1; done; echo written")
    try:
        host.sh("dpkg -i /root/now/*.deb", 240)
        for name in VOLUMES:
            product.wait_volume(name, "ready", 120)
    finally:
        host.sh("touch /run/read-enough")
    read, written = reader.wait(60), writer.wait(60)
    yield Upgrade(host, target, before, look(host), read, written, holder)
    host.sh("touch /run/enough")
    host.kill()
    target.machine.kill()


def test_all_packages_have_the_same_version_and_none_is_older(upgrade):
    versions = upgrade.host.sh(f"dpkg-query -W -f '${{Version}} ${{Status}}\n' {' '.join(NAMES)}").splitlines()
    assert len(versions) == 3 and len(set(versions)) == 1 and versions[0].endswith(" install ok installed"), versions
    upgrade.host.sh(f"dpkg --compare-versions {versions[0].split()[0]} ge $(dpkg-deb -f /root/first/spark-stage.deb Version)")
    version = versions[0].split("~")[0]
    for program in ("spark-stage", "spark-staged", "spark-stage-csi"):
        assert upgrade.host.sh(f"{program} --version").strip() == f"{program} {version}"
    assert Product(upgrade.host).status()["version"] == version
    assert upgrade.host.run("systemctl is-active spark-stage-csi").out.strip() == "inactive"


def test_every_mount_and_every_connection_is_unchanged(upgrade):
    assert len(upgrade.before.mounts) == 3
    assert upgrade.after.mounts == upgrade.before.mounts
    assert upgrade.after.controllers == upgrade.before.controllers


def test_readers_and_writers_continue_without_interruption(upgrade):
    sums = upgrade.reader.out.splitlines()
    assert upgrade.reader.rc == 0 and not upgrade.reader.err and len(sums) > 1 and len(set(sums)) == 1, upgrade.reader
    assert upgrade.written.rc == 0 and upgrade.written.out == "written\n", upgrade.written


def test_outages_and_records_of_each_volume_are_kept(upgrade):
    assert upgrade.before.volumes["data"]["reconnects"] > 0 and upgrade.before.volumes["data"]["last_outage_s"] > 0
    for name, row in upgrade.before.volumes.items():
        assert upgrade.after.volumes[name]["last_outage_s"] == pytest.approx(row["last_outage_s"], abs=0.001), name
        assert {key: upgrade.after.volumes[name][key] for key in KEPT} == {key: row[key] for key in KEPT}, name


def test_copies_are_kept_with_their_hash_and_nothing_is_copied_again(upgrade):
    product = Product(upgrade.host)
    for name, row in upgrade.before.datasets.items():
        taken = upgrade.after.datasets[name]
        assert taken["state"] == "ready", taken
        for key in ("path", "bytes", "files", "generation", "staged_at"):
            assert taken[key] == row[key], (name, key)
        staged = product.json(f"stage {name}", 60)["datasets"][0]
        assert staged["served_from"] == "cache" and staged["path"] == row["path"], staged
        product.sh(f"verify {name}", 60)


def test_leases_are_kept_and_end_with_their_holders(upgrade):
    def by_id(seen):
        return {lease["id"]: lease for row in seen.datasets.values() for lease in row["leases"]}

    assert len(by_id(upgrade.before)) == 2 and by_id(upgrade.after) == by_id(upgrade.before)
    refused = Product(upgrade.host).run("evict held")
    assert refused.rc == 7, refused
    upgrade.host.sh("touch /run/enough")
    held = upgrade.holder.wait(60)
    assert held.rc == 0 and held.out.split(), held
    Product(upgrade.host).wait_dataset("held", lambda row: not row["leases"], 60)


def test_only_the_file_system_pinned_by_the_earlier_version_is_mounted(upgrade):
    pins = upgrade.before.pins
    assert any(pin.get("uuid") for pin in pins.values())
    for file, pin in pins.items():
        now = upgrade.after.pins[file]
        assert {key: now.get(key) for key in pin if key in ("type", "uuid")} == \
               {key: value for key, value in pin.items() if key in ("type", "uuid")}, file
    product = Product(upgrade.host)
    product.sh("volumes down work", 120)
    upgrade.target.replace(WORK_NQN, None)
    other = upgrade.target.image("other", "128M")
    upgrade.target.filesystem(other, name="other", mmp=True)
    upgrade.target.replace(WORK_NQN, other)
    product.run("volumes up work", 120)
    volume = product.wait_volume("work", "refused", 120)
    assert stable_uuid("other") in volume["reason"], volume
