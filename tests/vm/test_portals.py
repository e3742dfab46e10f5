"""A target with two addresses: the volume stays ready as long as one of them works."""
import time
from contextlib import contextmanager

import pytest

from rig.house import TARGET_ADDRESS
from rig.target import NVMET, PORT
from rig.witness import witnessed

SECOND = "10.77.0.111"
NAME = "twin"


@pytest.fixture(scope="module")
def twin(house):
    machine = house.target_machine
    port = f"{NVMET}/ports/2"
    machine.sh(f"ip address add {SECOND}/24 dev $(ip -o -4 address show to {TARGET_ADDRESS} | cut -d' ' -f2)")
    targets = {NAME: {"portals": [TARGET_ADDRESS, f"{SECOND}:{PORT}"], "io_policy": "round-robin"}}
    with house.volume(NAME, target=NAME, targets=targets, access="exclusive", fence="none",
                      fill="touch journal; head -c 256K /dev/urandom >file"):
        machine.sh(f"""set -e
            mkdir {port}
            echo tcp >{port}/addr_trtype; echo ipv4 >{port}/addr_adrfam
            echo {SECOND} >{port}/addr_traddr; echo {PORT} >{port}/addr_trsvcid
            ln -s {NVMET}/subsystems/{NAME} {port}/subsystems/""")
        yield house
    machine.sh(f"rmdir {port} 2>/dev/null; ip address del {SECOND}/24 dev "
               f"$(ip -o -4 address show to {SECOND} | cut -d' ' -f2)")


def set_cut(house, *addresses):
    """Blocks these addresses from now on, and unblocks all others."""
    rules = "".join(f"add rule ip cut in ip daddr {address} tcp dport {PORT} drop\n" for address in addresses)
    house.target_machine.sh("nft -f - <<'.'\nadd table ip cut\ndelete table ip cut\nadd table ip cut\n"
                            f"add chain ip cut in {{ type filter hook input priority 0; }}\n{rules}.\n")


@contextmanager
def cut(house, *addresses):
    set_cut(house, *addresses)
    try:
        yield
    finally:
        set_cut(house)


def live(volume):
    return {path["address"] for path in volume["paths"] if path["state"] == "live"}


FIRST_LIVE, SECOND_LIVE = {f"{TARGET_ADDRESS}:{PORT}"}, {f"{SECOND}:{PORT}"}
BOTH = FIRST_LIVE | SECOND_LIVE


def all_live(volume):
    return volume["state"] == "ready" and live(volume) == BOTH


def read(house):
    house.host.sh(f"dd if=/mnt/{NAME}/file iflag=direct bs=64k of=/dev/null status=none", 30)


def test_both_portals_are_connected_and_make_one_device(twin):
    volume = twin.product.wait_volume(NAME, all_live, 90)
    assert len({path["controller"] for path in volume["paths"]}) == 2
    policy = twin.host.sh(f"cat $(dirname $(grep -lx {NAME} /sys/class/nvme-subsystem/*/subsysnqn))/iopolicy")
    assert policy.strip() == "round-robin"
    read(twin)


def seconds_until(twin, wanted, deadline=120, name=NAME):
    began = time.monotonic()
    twin.product.wait_volume(name, wanted, deadline)
    return time.monotonic() - began


def test_losing_one_or_both_portals_loses_no_data_and_fails_back(twin):
    """Writer and reader continue over the remaining portal; with both out they wait, and nothing is remounted."""
    before = twin.product.wait_volume(NAME, all_live, 90)
    with witnessed(twin, f"/mnt/{NAME}/journal", f"/mnt/{NAME}/file"), cut(twin, SECOND):
        volume = twin.product.wait_volume(NAME, lambda volume: live(volume) == FIRST_LIVE, 60)
        assert volume["state"] == "ready" and volume["outages"] == before["outages"]
        read(twin)
        set_cut(twin, TARGET_ADDRESS, SECOND)
        twin.product.wait_volume(NAME, "stalled", 60)
        set_cut(twin, TARGET_ADDRESS)
        seconds = seconds_until(twin, lambda volume: volume["state"] == "ready" and live(volume) == SECOND_LIVE)
        print(f"healing: both portals out, the other one back: ready {seconds:.1f} s after the fault's end")
        set_cut(twin)
        print(f"healing: fail back: both paths live {seconds_until(twin, all_live):.1f} s after the fault's end")
    after = twin.product.volume(NAME)
    assert after["reconnects"] == before["reconnects"] + 1 and after["recoveries"] == before["recoveries"]


# These come last, since they remove the twin from the configuration.
def lead_to(house, address):
    house.host.sh(f"sed -i '/ named.lan$/d' /etc/hosts; echo '{address} named.lan' >>/etc/hosts")


@pytest.mark.long
def test_a_target_continues_at_its_new_address_while_the_kernel_retries_the_old_one(twin):
    """Waiting requests continue over the new address, and nothing is remounted. By default the kernel retries the old one
    indefinitely."""
    lead_to(twin, TARGET_ADDRESS)
    with twin.volume("moving", target="named", targets={"named": {"address": "named.lan"}},
                     fill="touch journal; head -c 256K /dev/urandom >file", access="exclusive", fence="none"):
        assert live(twin.product.wait_volume("moving", "ready", 90)) == FIRST_LIVE
        twin.target_machine.sh(f"ln -s {NVMET}/subsystems/moving {NVMET}/ports/2/subsystems/")
        mounted = twin.host.sh("findmnt -no ID /mnt/moving")
        with witnessed(twin, "/mnt/moving/journal", "/mnt/moving/file"), cut(twin, TARGET_ADDRESS):
            twin.product.wait_volume("moving", "stalled", 60)
            lead_to(twin, SECOND)
            seconds = seconds_until(twin, lambda volume: volume["state"] == "ready" and
                                    [path["state"] for path in volume["paths"]] == ["live"], name="moving")
            print(f"healing: the target's name leads elsewhere: ready {seconds:.1f} s later")
        assert twin.host.sh("findmnt -no ID /mnt/moving") == mounted
        assert live(twin.product.volume("moving")) == SECOND_LIVE
    twin.wait_ready(120)


@pytest.mark.long
def test_a_target_is_found_at_its_new_address_after_the_old_connection_is_lost(twin):
    lead_to(twin, TARGET_ADDRESS)
    targets = {"named": {"address": "named.lan", "controller_loss": "5s"}}
    with twin.volume("named", target="named", targets=targets, fill="echo hello >file"):
        assert live(twin.product.wait_volume("named", "ready", 90)) == FIRST_LIVE
        twin.target_machine.sh(f"ln -s {NVMET}/subsystems/named {NVMET}/ports/2/subsystems/")
        lead_to(twin, SECOND)
        with cut(twin, TARGET_ADDRESS):
            volume = twin.product.wait_volume("named", lambda volume: live(volume) == SECOND_LIVE and
                                              volume["state"] == "ready", 120)
            assert volume["outages"][-1]["healed_by"] == "spark-stage"
            assert twin.host.get("/mnt/named/file") == "hello\n"
    lead_to(twin, TARGET_ADDRESS)
    twin.wait_ready(120)
