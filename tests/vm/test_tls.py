"""TLS: the configured encryption is enforced, or the volume is refused and nothing is sent in clear text."""
import base64
import struct
import time
import zlib
from contextlib import contextmanager

import pytest

from rig.product import UNIT
from rig.settings import GUEST, KERNEL

FOLDER = "/etc/spark-stage/keys"
FILE = f"{FOLDER}/psk"
NAME, PORT = "sealed", 4430
has_tls = pytest.mark.skipif(
    GUEST == "bookworm", reason="Debian 12 has no tlshd and a libnvme without TLS keys: what it does is a scenario here")


def key(seed):
    secret = bytes([seed]) * 32
    return f"NVMeTLSkey-1:01:{base64.b64encode(secret + struct.pack('<I', zlib.crc32(secret))).decode()}:"


KEY, OTHER_KEY = key(4), key(5)


@contextmanager
def sealed(house, *, given=KEY, tls=True):
    """A volume at a port that accepts only TLS (or only clear text) while the host's file contains the key `given`."""
    house.host.put(FILE, given + "\n", mode="600")
    targets = {NAME: {"address": house.target.address, "port": PORT, "tls": {"psk_file": FILE}}}
    try:
        with house.volume(NAME, target=NAME, targets=targets, port=PORT, tls=tls,
                          fill="echo hello >file; head -c 4M /dev/urandom >big"):
            yield
    finally:
        house.host.sh(f"rm -rf {FOLDER}")


@pytest.fixture(scope="module")
def shaking(house):
    """Both sides run the handshake service, and nvme-cli has given the key to the target."""
    hostnqn = house.host.get("/etc/nvme/hostnqn").strip()
    for machine in (house.host, house.target_machine):
        # The counters exist only after the module is loaded.
        machine.sh("modprobe tls && systemctl start tlshd && systemctl is-active tlshd", 60)
    house.target_machine.sh(f"modprobe nvmet-tcp; nvme check-tls-key --identity 0 --insert --hostnqn {hostnqn} "
                            f"--subsysnqn {NAME} --keydata '{KEY}'", 60)
    return house


def encrypted_sessions(machine):
    """The kernel's current number of TLS sessions in software."""
    return sum(int(line.split()[1]) for line in machine.get("/proc/net/tls_stat").splitlines()
               if line.split()[0] in ("TlsCurrTxSw", "TlsCurrTxDevice"))


def psk_in_force(house, controller):
    return house.host.get(f"/sys/class/nvme/{controller}/tls_key").strip()


def refused(house, *words):
    volume = house.product.wait_volume(NAME, "refused", 60)
    for word in words:
        assert word in volume["reason"], volume["reason"]
    assert not volume["paths"], "something is connected nevertheless"


def handshake_failed(house):
    """The volume keeps retrying, since the target's handshake service may be unavailable only temporarily."""
    volume = house.product.wait_volume(NAME, lambda v: "the TLS handshake failed" in (v["reason"] or ""), 90)
    assert volume["state"] == "waiting" and not volume["paths"], volume
    return volume["reason"]


@has_tls
def test_every_queue_is_encrypted_and_the_key_appears_nowhere(shaking):
    house = shaking
    before = encrypted_sessions(house.host)
    with sealed(house):
        volume = house.product.wait_volume(NAME, "ready", 60)
        controller = volume["paths"][0]["controller"]
        assert psk_in_force(house, controller)
        queues = int(house.host.get(f"/sys/class/nvme/{controller}/queue_count"))
        assert queues > 1 and encrypted_sessions(house.host) - before == queues
        assert house.host.get(f"/mnt/{NAME}/file") == "hello\n"
        seen = house.host.sh(f"journalctl -b -o json -u {UNIT}; dmesg; cat /proc/[0-9]*/cmdline | tr '\\0' ' '; "
                             "spark-stage status --json; spark-stage config show --json", 60)
        assert KEY.split(":")[2] not in seen


@has_tls
def test_a_restarted_daemon_adopts_the_connection(shaking):
    house = shaking
    with sealed(house):
        controller = house.product.wait_volume(NAME, "ready", 60)["paths"][0]["controller"]
        house.product.restart()
        volume = house.product.wait_volume(NAME, "ready", 60)
        assert volume["paths"][0]["controller"] == controller and psk_in_force(house, controller)


@has_tls
def test_a_link_that_comes_back_is_encrypted_again(shaking):
    house = shaking
    with sealed(house):
        volume = house.product.wait_volume(NAME, "ready", 60)
        controller = volume["paths"][0]["controller"]
        house.target_machine.sh("nft add table ip cut && nft add chain ip cut in "
                                "'{ type filter hook input priority 0; }' && "
                                f"nft add rule ip cut in tcp dport {PORT} drop")
        try:
            house.product.wait_volume(NAME, "stalled", 60)
        finally:
            house.target_machine.sh("nft delete table ip cut")
        began = time.monotonic()
        house.product.wait_volume(NAME, "ready", 60)
        print(f"tls: link back: ready {time.monotonic() - began:.1f} s later")
        assert psk_in_force(house, controller)
        house.host.sh(f"dd if=/mnt/{NAME}/big iflag=direct bs=64k of=/dev/null status=none", 30)


@has_tls
def test_a_wrong_key_is_refused_with_its_file_named_and_the_right_one_then_accepted(shaking):
    house = shaking
    with sealed(house, given=OTHER_KEY):
        assert FILE in handshake_failed(house)
        house.host.put(FILE, KEY + "\n", mode="600")
        began = time.monotonic()
        house.product.wait_volume(NAME, "ready", 90)
        print(f"tls: right key put in place: ready {time.monotonic() - began:.1f} s later")


@has_tls
def test_a_target_that_only_takes_clear_text_is_refused(shaking):
    house = shaking
    with sealed(house, tls=False):
        handshake_failed(house)


@has_tls
def test_a_manual_connection_in_clear_text_is_not_used(shaking):
    house = shaking
    with sealed(house, tls=False):
        house.product.sh(f"volumes down {NAME}")
        house.host.sh(f"nvme connect -t tcp -a {house.target.address} -s {PORT} -n {NAME}", 30)
        try:
            house.product.sh(f"volumes up {NAME}")
            volume = house.product.wait_volume(NAME, "refused", 60)
            assert "in clear text" in volume["reason"], volume["reason"]
            assert not house.host.sh(f"findmnt -n /mnt/{NAME} || true").strip()
        finally:
            house.host.sh(f"nvme disconnect -n {NAME}", 30)


@has_tls
def test_a_missing_handshake_service_is_reported(shaking):
    house = shaking
    house.host.sh("systemctl stop tlshd")
    try:
        with sealed(house):
            refused(house, "no program on this host performs TLS handshakes")
            house.host.sh("systemctl start tlshd")
            house.product.wait_volume(NAME, "ready", 90)
    finally:
        house.host.sh("systemctl start tlshd")


@pytest.mark.skipif(GUEST != "bookworm", reason="newer Debians have TLS")
@pytest.mark.long
def test_a_host_without_tls_refuses_before_it_connects(house):
    missing = "does not know the connection option tls" if KERNEL == "6.1" else "libnvme 1.3"
    with sealed(house, tls=False):
        refused(house, missing)
