"""`fleet test` names what slows a link, and nothing on a link in order. Links are slow here, so that the computer's speed
does not matter: a card is said to have 200 Mb/s where a real one has 200 Gb/s."""
import json
import os
import subprocess
import time
from contextlib import contextmanager

import pytest

from fleet import BUILD, Fleet, wait_until

# This host's cards with other speeds than veth has, in the mounts of one command alone: NAME=MBIT…, then the command.
SYSFS = r"""set -e
mount -t tmpfs none /sys/class/net
while [ "$1" != -- ]; do
  card=${1%%=*}; folder=/sys/class/net/$card; mkdir -p $folder; echo "${1#*=}" > $folder/speed
  for file in mtu operstate carrier statistics; do
    [ ! -e /sys/devices/virtual/net/$card/$file ] || ln -s /sys/devices/virtual/net/$card/$file $folder/$file
  done
  shift
done
shift; eval "$SETUP"; exec "$@" """
# eth0 and eth0b as the two halves of a port whose lanes carry 120 Mb/s each.
HALVES = r"""for pair in eth0=0000:01:00.0 eth0b=0002:01:00.0; do
  device=/sys/class/net/.devices/${pair#*=}; mkdir -p $device
  echo "0.15 GT/s PCIe" > $device/current_link_speed; echo 1 > $device/current_link_width
  echo 0x15b3 > $device/vendor; echo 0x1021 > $device/device
  ln -s $device /sys/class/net/${pair%%=*}/device; echo p0 > /sys/class/net/${pair%%=*}/phys_port_name
done"""
# One connection that sends all it can to 10.77.0.2, and its other end, which writes the time and the bytes so far ten times a second.
SENDER = """import socket
out = socket.create_connection(("10.77.0.2", 9000), 10)
while True:
    out.sendall(bytes(16384))"""
RECEIVER = """import socket, sys, time
listening = socket.create_server(("10.77.0.2", 9000))
print("listening", flush=True)
into, total, told = listening.accept()[0], 0, 0
while got := len(into.recv(65536)):
    total += got
    if time.monotonic() - told >= 0.1:
        told = time.monotonic()
        print(told, total, flush=True)"""
RUNS = int(os.environ.get("SPARK_LINK_RUNS", "1"))  # on each link in order
WITHIN_S = int(os.environ.get("SPARK_LINK_WITHIN_S", "20"))  # 10 on an idle computer


@pytest.fixture(scope="module")
def two():
    fleet = Fleet(2, [("one", 4096)])
    for host in fleet.hosts[1:]:
        host.do("mount", "-t", "sysfs", "sysfs", "/sys")  # of its own network
    yield fleet
    fleet.stop()


def run_test(fleet, *cards, setup="", words=("fleet", "test", "--json")):
    daemon = fleet.daemons[0]
    begun = time.monotonic()
    done = daemon.host.run("unshare", "--mount", "sh", "-c", SYSFS, "sh", *cards, "--", BUILD / "cli/spark-stage", "--config", daemon.config,
                           "--socket", daemon.socket, *words, environment={"SETUP": setup})
    took = time.monotonic() - begun
    print(f"{took:.1f} s, status {done.returncode}: {done.stdout}{done.stderr}")
    return done, took


def faults_of(fleet, *cards, **more):
    done, took = run_test(fleet, *cards, **more)
    report = json.loads(done.stdout)
    [link] = report["links"]
    assert done.returncode == (1 if link["faults"] else 0), done
    assert took < WITHIN_S
    return link["faults"], report["findings"]


@contextmanager
def limited(fleet, megabits):
    """Both directions between the hosts."""
    for host in fleet.hosts[1:]:
        host.do("tc", "qdisc", "add", "dev", "eth0", "root", "tbf", "rate", f"{megabits}mbit", "burst", "64kb", "latency", "50ms")
    try:
        yield
    finally:
        for host in fleet.hosts[1:]:
            host.do("tc", "qdisc", "del", "dev", "eth0", "root")


def test_a_link_that_negotiated_200_and_moves_13_is_named(two):
    with limited(two, 13):
        faults, findings = faults_of(two, "eth0=200")
    assert faults == ["slow"]
    assert "negotiated 200 Mb/s on eth0" in findings[0]["what"] and "n2 (10.77.0.2)" in findings[0]["what"]


def test_half_of_a_port_is_named_with_its_other_half(two):
    with limited(two, 98):
        faults, findings = faults_of(two, "eth0=200", "eth0b=200", setup=HALVES)
    assert faults == ["half"]
    assert "eth0b, which is not in use" in findings[0]["why"]


def test_traffic_on_the_slow_card_while_a_fast_one_leads_to_the_peer_is_named(two):
    head, first, second = two.hosts
    head.do("ip", "link", "add", "fast", "type", "bridge")
    head.do("ip", "link", "set", "fast", "up")
    for number, host in ((1, first), (2, second)):
        host.do("ip", "link", "add", "fast0", "type", "veth", "peer", "name", f"fast{number}")
        two.give(host, f"fast{number}", head)
        head.do("ip", "link", "set", f"fast{number}", "master", "fast", "up")
        host.do("ip", "address", "add", f"10.78.0.{number}/24", "dev", "fast0")
        host.do("ip", "link", "set", "fast0", "up")
    try:
        with limited(two, 95):
            faults, findings = faults_of(two, "eth0=100", "fast0=1000")
    finally:
        for host in (first, second):
            host.do("ip", "link", "del", "fast0")
        head.do("ip", "link", "del", "fast")
    assert faults == ["interface"]
    assert "goes through eth0 (100 Mb/s)" in findings[0]["what"] and "10.78.0.2" in findings[0]["what"]


def test_a_smaller_mtu_in_the_middle_is_named(two):
    head, *hosts = two.hosts
    ends = [(host, "eth0") for host in hosts] + [(head, host.name) for host in hosts] + [(head, "wire")]
    for host, card in ends:
        host.do("ip", "link", "set", card, "mtu", "9000")
    try:
        assert faults_of(two, "eth0=0")[0] == []
        head.do("ip", "link", "set", "n2", "mtu", "1500")
        faults, findings = faults_of(two, "eth0=200")
    finally:
        for host, card in ends:
            host.do("ip", "link", "set", card, "mtu", "1500")
    assert faults == ["mtu"]
    assert "packets of 9000 bytes do not pass" in findings[0]["what"] and "1500 bytes do" in findings[0]["what"]


@pytest.mark.parametrize("megabits", [10, 50, 100, 200])
def test_no_fault_is_found_on_a_link_in_order(two, megabits):
    with limited(two, megabits * 0.96):
        for _ in range(RUNS):
            assert faults_of(two, f"eth0={megabits}")[0] == []


def test_a_link_faster_than_the_processors_is_not_at_fault(two):
    for _ in range(RUNS):
        faults, findings = faults_of(two, "eth0=200000")
        assert faults == [] and [one["level"] for one in findings] in ([], ["note"])


@contextmanager
def transfer(sender, receiver, log):
    """A connection of another program."""
    with open(log, "w", encoding="ascii") as lines, receiver.start("python3", "-c", RECEIVER, stdout=lines) as receiving:
        wait_until(lambda: "listening" in log.read_text(), "the receiver listens")
        with sender.start("python3", "-c", SENDER, stderr=subprocess.DEVNULL) as sending:
            try:
                yield
            finally:
                sending.kill()
                receiving.kill()


def slowest_second(log, begun, ended):
    """The fewest bytes in a second between two times."""
    points = [(float(time), int(total)) for time, total in map(str.split, log.read_text().splitlines()[1:-1])]
    within = [point for point in points if begun <= point[0] <= ended]
    rates = [(later[1] - one[1]) / (later[0] - one[0]) for one in within for later in within if 1 <= later[0] - one[0] < 1.5]
    return min(rates)


def test_the_traffic_of_others_keeps_most_of_the_link(two, tmp_path):
    first, second = two.hosts[1:]
    with limited(two, 96), transfer(first, second, tmp_path / "log"):
        wait_until(lambda: len((tmp_path / "log").read_text().splitlines()) > 10, "the other transfer is at its rate")
        begun = time.monotonic()
        faults, _ = faults_of(two, "eth0=100")
        rate = slowest_second(tmp_path / "log", begun, time.monotonic()) * 8 / 1e6
    assert faults == [], "what others move counts as moved"
    assert rate > 60, f"{rate:.0f} Mb/s are left of 96; 47 are with --full"


def test_the_table_names_the_fault_and_fits_80_columns(two):
    with limited(two, 13):
        done, _ = run_test(two, "eth0=200", words=("fleet", "test", "n2"))
    assert done.returncode == 1
    assert all(len(line) <= 80 or line.startswith("       ") for line in done.stdout.splitlines()), done.stdout
    assert "WRONG" in done.stdout and "Fix:" in done.stdout


def test_doctor_tests_the_links_too(two):
    with limited(two, 13):
        assert faults_of(two, "eth0=200", words=("doctor", "--network", "--json"))[0] == ["slow"]
    assert faults_of(two, "eth0=0", words=("doctor", "--network", "--json"))[0] == []


def test_a_peer_that_is_away_is_named(two):
    second = two.daemons[1]
    second.stop()
    try:
        wait_until(lambda: not any(peer["answers"] for peer in two.daemons[0].fleet()["peers"]), "the daemon has noticed")
        assert faults_of(two, "eth0=200")[0] == ["silent"]
    finally:
        second.start()
        two.wait_for_peers(two.daemons[0], 1)


def test_an_unknown_peer_is_an_error(two):
    done, _ = run_test(two, "eth0=200", words=("fleet", "test", "n9"))
    assert done.returncode == 3 and "n2" in done.stderr, done
