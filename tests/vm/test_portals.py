"""A target with two addresses: the volume stays ready as long as one of them works."""
import time
from contextlib import contextmanager

import pytest

from rig.house import TARGET_ADDRESS
from rig.target import NVMET, PORT

SECOND = "10.77.0.111"
NAME = "twin"


@pytest.fixture(scope="module")
def twin(house):
    machine = house.target_machine
    port = f"{NVMET}/ports/2"
    machine.sh(f"ip address add {SECOND}/24 dev $(ip -o -4 address show to {TARGET_ADDRESS} | cut -d' ' -f2)")
    targets = {NAME: {"portals": [TARGET_ADDRESS, f"{SECOND}:{PORT}"]}}
    with house.volume(NAME, target=NAME, targets=targets, fill="head -c 1M /dev/urandom >file"):
        machine.sh(f"""set -e
            mkdir {port}
            echo tcp >{port}/addr_trtype; echo ipv4 >{port}/addr_adrfam
            echo {SECOND} >{port}/addr_traddr; echo {PORT} >{port}/addr_trsvcid
            ln -s {NVMET}/subsystems/{NAME} {port}/subsystems/""")
        yield house
    machine.sh(f"rmdir {port} 2>/dev/null; ip address del {SECOND}/24 dev "
               f"$(ip -o -4 address show to {SECOND} | cut -d' ' -f2)")


@contextmanager
def cut(house, *addresses):
    machine = house.target_machine
    machine.sh("nft add table ip cut && nft add chain ip cut in '{ type filter hook input priority 0; }'")
    for address in addresses:
        machine.sh(f"nft add rule ip cut in ip daddr {address} tcp dport {PORT} drop")
    try:
        yield
    finally:
        machine.sh("nft delete table ip cut")


def live(volume):
    return {path["address"] for path in volume["paths"] if path["state"] == "live"}


BOTH = {f"{TARGET_ADDRESS}:{PORT}", f"{SECOND}:{PORT}"}


def all_live(volume):
    return volume["state"] == "ready" and live(volume) == BOTH


def read(house):
    house.host.sh(f"dd if=/mnt/{NAME}/file iflag=direct bs=64k of=/dev/null status=none", 30)


def test_both_portals_are_connected_and_make_one_device(twin):
    volume = twin.product.wait_volume(NAME, all_live, 90)
    assert len({path["controller"] for path in volume["paths"]}) == 2
    read(twin)


def test_one_portal_out_is_seen_and_stalls_nothing(twin):
    twin.product.wait_volume(NAME, all_live, 90)
    outages = twin.product.volume(NAME)["outages"]
    with cut(twin, SECOND):
        volume = twin.product.wait_volume(NAME, lambda volume: live(volume) == {f"{TARGET_ADDRESS}:{PORT}"}, 60)
        assert volume["state"] == "ready"
        read(twin)
    volume = twin.product.wait_volume(NAME, all_live, 90)
    assert volume["outages"] == outages


def test_a_path_that_was_deleted_is_connected_again(twin):
    volume = twin.product.wait_volume(NAME, all_live, 90)
    controller = volume["paths"][0]["controller"]
    twin.host.sh(f"echo 1 >/sys/class/nvme/{controller}/delete_controller", 60)
    volume = twin.product.wait_volume(
        NAME, lambda volume: all_live(volume) and all(path["controller"] for path in volume["paths"]), 90)
    assert not volume["outages"]


def test_with_both_out_it_stalls_and_heals_without_a_remount(twin):
    volume = twin.product.wait_volume(NAME, all_live, 90)
    with cut(twin, TARGET_ADDRESS, SECOND):
        twin.product.wait_volume(NAME, "stalled", 60)
    mended = time.monotonic()
    twin.product.wait_volume(NAME, "ready", 120)
    print(f"healing: both portals out: ready {time.monotonic() - mended:.1f} s after the fault's end")
    after = twin.product.wait_volume(NAME, all_live, 120)
    assert after["reconnects"] == volume["reconnects"] + 1 and after["recoveries"] == volume["recoveries"]
    read(twin)
