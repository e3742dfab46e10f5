"""DH-HMAC-CHAP: the configured authentication is enforced, or the volume is refused, and no key is visible anywhere."""
import base64
import struct
import time
import zlib
from contextlib import contextmanager

import pytest

from rig.product import UNIT
from rig.settings import KERNEL

FOLDER = "/etc/spark-stage/keys"
HOST_FILE, CONTROLLER_FILE = f"{FOLDER}/host", f"{FOLDER}/ctrl"
needs_authentication = pytest.mark.skipif(
    KERNEL == "6.1", reason="Debian's 6.1 has no in-band authentication: what it does is a scenario of its own")


def key(seed):
    secret = bytes([seed]) * 32
    return f"DHHC-1:01:{base64.b64encode(secret + struct.pack('<I', zlib.crc32(secret))).decode()}:"


KEY, CONTROLLER_KEY, OTHER_KEY = key(1), key(2), key(3)


@contextmanager
def secured(house, *, asked=KEY, given=KEY, asked_back=None, given_back=None, mode="600", configured=HOST_FILE):
    """A volume of a target that requires the key `asked`; the host's file contains `given`. The same for the opposite direction."""
    hostnqn = house.host.get("/etc/nvme/hostnqn").strip()
    auth = {"host_key_file": configured}
    house.host.put(HOST_FILE, given + "\n", mode=mode)
    if given_back:
        auth["controller_key_file"] = CONTROLLER_FILE
        house.host.put(CONTROLLER_FILE, given_back + "\n", mode="600")
    if asked:
        house.target.ask_for_key(hostnqn, asked, asked_back)
    targets = {"locked": {"address": house.target.address, "auth": auth}}
    try:
        with house.volume("secret", target="locked", targets=targets, fill="echo hello >file",
                          allowed_hosts=[hostnqn] if asked else None):
            yield hostnqn
    finally:
        house.target.forget_host(hostnqn)
        house.host.sh(f"rm -rf {FOLDER}")


def refused(house, *words):
    volume = house.product.wait_volume("secret", "refused", 60)
    for word in words:
        assert word in volume["reason"], volume["reason"]
    assert not volume["paths"], "something is connected nevertheless"
    return volume


def assert_no_key_is_seen(house):
    seen = house.host.sh(f"journalctl -b -o json -u {UNIT}; dmesg; cat /proc/[0-9]*/cmdline | tr '\\0' ' '; "
                         "spark-stage status --json; spark-stage config show --json; "
                         "grep -r . /var/lib/spark-stage/volumes", 60)
    for secret in (KEY, CONTROLLER_KEY, OTHER_KEY):
        assert secret not in seen and secret.split(":")[2] not in seen


@needs_authentication
def test_the_right_key_connects_and_appears_nowhere(house):
    with secured(house):
        volume = house.product.wait_volume("secret", "ready", 60)
        controller = volume["paths"][0]["controller"]
        assert house.host.get(f"/sys/class/nvme/{controller}/dhchap_secret").strip() == KEY
        assert house.host.get("/mnt/secret/file") == "hello\n"
        assert_no_key_is_seen(house)
        # A restarted daemon takes over the connection, since it has the key.
        house.product.restart()
        volume = house.product.wait_volume("secret", "ready", 60)
        assert volume["paths"][0]["controller"] == controller
        # A changed key in the file applies to the next connection; the present one was authenticated and stays.
        house.host.put(HOST_FILE, OTHER_KEY, mode="600")
        house.product.restart()
        volume = house.product.wait_volume("secret", "ready", 60)
        assert volume["paths"][0]["controller"] == controller
        assert any("earlier key" in warning for warning in volume["warnings"]), volume["warnings"]
        house.host.put(HOST_FILE, KEY, mode="600")


@needs_authentication
def test_no_core_dump_contains_a_key(house):
    """A core dump piped to a program, as with systemd-coredump, ignores size limits."""
    pattern = house.host.get("/proc/sys/kernel/core_pattern")
    house.host.sh("mkdir -p /run/cores; echo '|/bin/dd of=/run/cores/%e.%p' >/proc/sys/kernel/core_pattern")
    try:
        with secured(house):
            house.product.wait_volume("secret", "ready", 60)
            house.host.run("bash -c 'kill -ABRT $$'")
            house.host.wait_until("test -s /run/cores/bash.*", 30)  # other programs still write one
            workers = house.host.sh("pgrep -f '^[^ ]*spark-staged worker'").split()
            assert workers
            house.host.sh(f"kill -ABRT {' '.join(workers)}")
            house.host.wait_until(f"! kill -0 {' '.join(workers)} 2>/dev/null", 30)
            house.host.sh("sleep 1")
            house.product.wait_volume("secret", "ready", 60)
            for secret in (KEY, KEY.split(":")[2]):
                assert house.host.run(f"grep -rlaF '{secret}' /run/cores", 60).rc == 1
            # The daemon reads its connections' keys as long as it runs, so it must not write a core at all.
            house.host.sh(f"kill -ABRT {house.product.main_pid()}")
            house.host.wait_until(f"[ $(systemctl show -P NRestarts {UNIT}) -gt 0 ] && spark-stage status", 60)
            assert not house.host.sh("ls /run/cores | grep spark-staged || true")
    finally:
        house.host.sh(f"echo '{pattern.strip()}' >/proc/sys/kernel/core_pattern; rm -rf /run/cores")


@needs_authentication
def test_a_wrong_key_is_refused_with_its_file_named_and_retried(house):
    with secured(house, given=OTHER_KEY):
        assert refused(house, "rejected the key in", HOST_FILE)["next_attempt"]
        assert_no_key_is_seen(house)
        house.host.put(HOST_FILE, KEY, mode="600")
        began = time.monotonic()
        house.product.wait_volume("secret", "ready", 60)
        print(f"auth: right key put in place: ready {time.monotonic() - began:.1f} s later")


@needs_authentication
def test_a_key_may_come_as_a_credential_of_systemd(house):
    credential = f"/run/credentials/{UNIT}/key"
    with secured(house, configured=credential):
        house.product.wait_volume("secret", lambda volume: credential in (volume["reason"] or ""), 60)
        drop_in = f"/run/systemd/system/{UNIT}.d"
        house.host.put(f"{drop_in}/key.conf", f"[Service]\nLoadCredential=key:{HOST_FILE}\n")
        try:
            house.host.sh("systemctl daemon-reload")
            house.product.restart()
            house.product.wait_volume("secret", "ready", 60)
            assert_no_key_is_seen(house)
        finally:
            house.host.sh(f"rm -r {drop_in}; systemctl daemon-reload")
            house.product.restart()


@needs_authentication
@pytest.mark.long
def test_a_key_changed_on_the_target_is_requested_and_then_used(house):
    with secured(house) as hostnqn:
        controller = house.product.wait_volume("secret", "ready", 60)["paths"][0]["controller"]
        house.target.ask_for_key(hostnqn, OTHER_KEY)
        house.host.run(f"echo 1 >/sys/class/nvme/{controller}/reset_controller", 60)  # the reset fails, and so does the
                                                                                      # reconnect
        refused(house, "rejected the key in", HOST_FILE)
        house.host.put(HOST_FILE, OTHER_KEY, mode="600")
        began = time.monotonic()
        house.product.wait_volume("secret", "ready", 60)
        print(f"auth: changed key put in place: ready {time.monotonic() - began:.1f} s later")
        assert house.host.get("/mnt/secret/file") == "hello\n"


@needs_authentication
def test_the_target_must_authenticate_too_if_configured(house):
    with secured(house, asked_back=CONTROLLER_KEY, given_back=CONTROLLER_KEY):
        controller = house.product.wait_volume("secret", "ready", 60)["paths"][0]["controller"]
        house.host.sh(f"dmesg | grep '{controller}: qid 0: controller authenticated'")
        assert_no_key_is_seen(house)


@needs_authentication
def test_a_target_with_another_controller_key_is_refused(house):
    with secured(house, asked_back=OTHER_KEY, given_back=CONTROLLER_KEY):
        refused(house, CONTROLLER_FILE)


@needs_authentication
def test_a_target_that_asks_for_no_key_is_refused(house):
    with secured(house, asked=None):
        refused(house, "did not ask for the key in", HOST_FILE)


@pytest.mark.on_6_1
@pytest.mark.skipif(KERNEL != "6.1", reason="newer kernels have authentication")
def test_a_kernel_without_authentication_refuses_the_volume(house):
    hostnqn = house.host.get("/etc/nvme/hostnqn").strip()
    house.host.put(HOST_FILE, KEY, mode="600")
    targets = {"locked": {"address": house.target.address, "auth": {"host_key_file": HOST_FILE}}}
    try:
        with house.volume("secret", target="locked", targets=targets, allowed_hosts=[hostnqn]):
            refused(house, "this kernel was built without NVMe authentication")
    finally:
        house.target.forget_host(hostnqn)
        house.host.sh(f"rm -rf {FOLDER}")
