"""nvme-stas on the same host: it listens to the same target and connects the offered subsystems."""
import time
from contextlib import contextmanager

import pytest

from rig.house import DATASETS_MOUNT, SUBSYSTEM, TARGET_ADDRESS
from rig.product import UNIT
from rig.settings import GUEST, patience

pytestmark = pytest.mark.skipif(GUEST == "bookworm", reason="Debian 12 has no nvme-stas")
OTHER = "not-a-volume"
STACD = "/etc/stas/stacd.conf"


def connections(house, subsystem):
    """The controllers of a subsystem, by kernel name."""
    return house.host.sh(f"grep -lx {subsystem} /sys/class/nvme/*/subsysnqn | cut -d/ -f5 || true").split()


def of_the_volume(house):
    return (connections(house, SUBSYSTEM), house.host.sh(f"findmnt -no ID,SOURCE {DATASETS_MOUNT}"),
            house.product.volume("datasets")["outages"])


def wait_connected(house, subsystem, deadline=60):
    house.host.wait_until(f"grep -qx {subsystem} /sys/class/nvme/*/subsysnqn", deadline)
    return connections(house, subsystem)


def wait_target(house, wanted, deadline=60):
    end = time.monotonic() + patience(deadline)
    while not wanted(target := house.product.status()["targets"][0]):
        assert time.monotonic() < end, target
        time.sleep(0.3)
    return target


@pytest.fixture(scope="module")
def stas(house):
    """stafd queries the volumes' target, and stacd connects the subsystems offered there, including one that is no volume's."""
    before = of_the_volume(house)
    device = house.target.image(OTHER, "64M")
    house.target.export(OTHER, device)
    house.host.put("/etc/stas/stafd.conf", "[Service Discovery]\nzeroconf=disabled\n"
                   f"[Controllers]\ncontroller=transport=tcp;traddr={TARGET_ADDRESS};trsvcid=4420\n")
    house.host.sh("systemctl start stafd stacd", 120)
    wait_connected(house, OTHER, 120)
    yield before
    house.host.sh("systemctl stop stacd stafd", 60)
    house.host.sh(f"nvme disconnect -n {OTHER}", 60)
    house.target.remove(OTHER)
    house.target_machine.sh(f"rm -f {device}")
    house.product.restart()
    house.wait_ready()


def test_connections_of_stas_and_the_volumes_stay_unchanged(house, stas):
    others = connections(house, OTHER)
    assert of_the_volume(house) == stas
    house.product.restart()
    house.wait_ready()
    house.host.sh(f"systemctl reload {UNIT}")
    assert connections(house, OTHER) == others and of_the_volume(house) == stas
    assert OTHER in {one["subsystem"] for one in house.product.status()["targets"][0]["offered"]}


def test_both_daemons_listen_while_stafd_disables_nvme_clis_rule(house, stas):
    house.product.restart()
    ours = wait_target(house, lambda target: target["controller"])["controller"]
    assert house.host.get(f"/sys/class/nvme/{ours}/state").strip() == "live"
    # stafd shares the connection, and disconnects it when it ends.
    house.host.sh("systemctl stop stafd", 60)
    wait_target(house, lambda target: "70-nvmf-autoconnect.rules" in (target["reason"] or ""))
    house.host.sh("systemctl start stafd", 60)


def test_a_connection_made_first_by_stacd_serves_its_volume(house, stas):
    with house.volume("early", fill="echo hello >file"):
        house.product.wait_volume("early", "ready", 60)
        house.product.sh("volumes down early")
        made = wait_connected(house, "early", 120)
        house.product.sh("volumes up early")
        path, = house.product.wait_volume("early", "ready", 60)["paths"]
        assert [path["controller"]] == made == connections(house, "early")
        assert house.host.get("/mnt/early/file") == "hello\n"
        house.host.sh("systemctl stop stacd", 60)
        assert connections(house, "early") == made
        house.product.sh("volumes down early")
        assert connections(house, "early") == []
        house.host.sh("systemctl start stacd", 60)


@contextmanager
def told(house, text):
    """Changes stacd's configuration for the duration of the block."""
    before = house.host.get(STACD)
    house.host.put(STACD, text)
    house.host.sh("systemctl reload stacd")
    try:
        yield
    finally:
        house.host.put(STACD, before)
        house.host.sh("systemctl reload stacd")


def test_a_volume_excluded_in_stacd_stays_down(house, stas):
    with (house.volume("aside", fill="true"),
          told(house, f"[Controllers]\nexclude=transport=tcp;traddr={TARGET_ADDRESS};nqn=aside\n")):
        house.product.wait_volume("aside", "ready", 60)
        house.product.sh("volumes down aside")
        house.host.sh(f"nvme disconnect -n {OTHER}", 60)
        wait_connected(house, OTHER, 120)  # stacd would have had time to connect it
        assert connections(house, "aside") == []


def test_the_doctor_names_stacd_and_its_worst_setting(house, stas):
    assert "stacd.service (nvme-stas) manages NVMe connections" in house.product.run("doctor").out.replace("\n", " ")
    before = house.host.get(STACD)  # stacd is not reloaded: it would disconnect
    house.host.put(STACD, "[I/O controller connection management]\n"
                   "disconnect-scope=all-connections-matching-disconnect-trtypes\n")
    found = house.product.run("doctor")
    house.host.put(STACD, before)
    assert found.rc == 1 and "stacd disconnects every NVMe/TCP connection" in found.out, found.out
