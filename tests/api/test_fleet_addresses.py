"""The addresses of a fleet's hosts: several of one host, its own among its peers, and names that no name service looks up."""
import os
import socket
import subprocess
import time

import pytest

from simulated import CLIENT
from staged import Daemon, free_port

SECTION = 'fleet: {{listen: {listen}, key_file: {key}, peers: {peers}}}\n'


@pytest.fixture
def key(tmp_path):
    path = tmp_path / "fleet.key"
    subprocess.run([CLIENT, "fleet", "key", "--output", path], check=True)
    return path


@pytest.fixture
def host(tmp_path, key):
    """Starts a host of a fleet: host(name, listen, peers). All have this computer's machine ID, as cloned hosts do."""
    running = []

    def start(name, listen, peers, **how):
        folder = tmp_path / name
        folder.mkdir()
        running.append(Daemon(folder, more=SECTION.format(listen=listen, key=key, peers=peers), **how))
        return running[-1]

    yield start
    for one in running:
        one.stop()


def fleet_of(daemon):
    return daemon.ask("GET", "/v1/status")[1]["fleet"]


def peers_of(daemon):
    """Name -> the address that answered, for all peers that this host has asked."""
    return {peer["name"]: peer.get("address") for peer in fleet_of(daemon)["peers"] if peer["answers"]}


@pytest.mark.parametrize("addresses, own", [(["127.0.0.3"], "127.0.0.3"), (["127.0.0.1", "127.0.0.3"], "127.0.0.3"), (["0.0.0.0"], "127.0.0.1")])
def test_a_host_knows_itself_among_its_peers_and_the_others_at_any_of_their_addresses(host, addresses, own):
    port, other, closed = free_port(), free_port(), free_port()
    listen = [f"{address}:{port}" for address in addresses]
    first = host("first", listen, f'{{me: ["{own}:{port}"], second: ["127.0.0.1:{other}"]}}')
    second = host("second", f'"127.0.0.1:{other}"', f'{{first: ["127.0.0.1:{closed}", "127.0.0.3:{port}"], me: ["127.0.0.1:{other}"]}}')
    first.wait_until(lambda: "second" in peers_of(first), "was answered by the second host")
    second.wait_until(lambda: "first" in peers_of(second), "was answered by the first host")
    assert peers_of(second) == {"first": f"127.0.0.3:{port}"}, "at the one of its addresses that answers"
    assert [peer["name"] for peer in fleet_of(first)["peers"]] == ["second"], "it is no peer of its own"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can have a name service of its own")
def test_a_name_service_that_does_not_answer_holds_up_neither_the_start_nor_a_staging(host, tmp_path):
    """Its packets are received and never answered, as by a server behind a broken firewall."""
    settings, port = tmp_path / "resolv.conf", free_port()
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as silent:
        try:
            silent.bind(("127.0.0.53", 53))
        except OSError as error:
            pytest.skip(f"this host has a name service of its own: {error}")
        settings.write_text("nameserver 127.0.0.53\noptions timeout:30 attempts:5\n")
        done = subprocess.run(["unshare", "--mount", "mount", "--bind", settings, "/etc/resolv.conf"], capture_output=True, check=False)
        if done.returncode != 0:
            pytest.skip(f"mounting is not allowed here: {done.stderr}")
        begun = time.monotonic()
        daemon = host("host", f'"127.0.0.1:{port}"', '{far: ["far.example"], near: ["127.0.0.2"]}',
                      within=["unshare", "--mount", "sh", "-c", f'mount --bind {settings} /etc/resolv.conf && exec "$0" "$@"'])
        daemon.wait_until(lambda: fleet_of(daemon)["serving"], "served its peers")
        assert time.monotonic() - begun < 10
        begun = time.monotonic()
        job = daemon.finish("/v1/stagings", {"datasets": ["imagenet"]})
        assert job["state"] == "done" and time.monotonic() - begun < 10, job
        silent.settimeout(5)
        assert b"far" in silent.recv(512), "the name service was asked"
