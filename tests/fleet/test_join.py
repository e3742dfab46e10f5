"""Two owners of Sparks join them with one command on each."""
import os
import re
from pathlib import Path

import pytest
from fleet import BUILD, Fleet, wait_until
from test_elsewhere import safetensors, stage


def hosts_without_a_fleet():
    """Two, each with a dataset and a comment in its configuration."""
    fleet = Fleet(2, [("one", 4096)])
    for daemon in fleet.daemons:
        text = daemon.config.read_text()
        daemon.config.write_text(text[:text.index("fleet:")] + "# the end\n")
        assert daemon.ask("POST", "/v1/reload")[0] == 200
        wait_until(lambda daemon=daemon: daemon.fleet() is None, "it has left the fleet")
    yield fleet
    fleet.stop()


two = pytest.fixture(hosts_without_a_fleet, scope="module", name="two")
fresh = pytest.fixture(hosts_without_a_fleet, name="fresh")


def commands_of_page():
    page = (Path(__file__).parents[2] / "docs/two-sparks.md").read_text()
    return page.split("## Without a target", 1)[1].split("```text\n", 1)[1].split("```", 1)[0].splitlines()


def join(daemon, *words):
    done = daemon.host.run(BUILD / "cli/spark-stage", "--config", daemon.config, "--socket", daemon.socket, "fleet", "join", *words)
    print(f"{daemon.host.name}: {done.returncode}\n{done.stdout}{done.stderr}")
    return done


def test_two_hosts_join_and_one_gets_a_model_that_only_the_other_has(two):
    first, second = two.daemons
    own = first.folder / "keys/fleet"
    before = first.config.read_text()
    done = join(first, f"n2={second.host.address}")
    assert done.returncode == 0, done
    assert first.config.read_text().startswith(before) and f"listen: {first.host.address}:7789" in first.config.read_text()
    assert own.stat().st_mode & 0o777 == 0o600 and own.parent.stat().st_mode & 0o777 == 0o700
    key = own.read_text().strip()
    said = done.stdout.replace(str(own), "/etc/spark-stage/keys/fleet")
    said = said.replace(second.host.address, "10.0.0.2").replace(first.host.address, "10.0.0.1")
    said = re.sub(r"join \S*=?10.0.0.1 ", "join spark1=10.0.0.1 ", said)
    for line in commands_of_page()[2:4]:
        assert line in said, (line, said)
    assert "this host is reached at" in done.stdout and "eth0" in done.stdout

    alone = join(first, f"n2={second.host.address}")
    assert alone.returncode == 4 and "n2" in alone.stderr, "the other has not joined yet"

    carried = two.folder / "carried"
    carried.touch(0o600)
    carried.write_text(os.urandom(32).hex() + "\n")
    wrong = join(second, f"n1={first.host.address}", "--key-file", carried)
    assert wrong.returncode == 1 and "key" in wrong.stderr and "n1" in wrong.stderr, wrong
    carried.write_text(key + "\n")
    other = join(second, f"n1={first.host.address}", "--key-file", carried)
    assert other.returncode == 7 and "another key" in other.stderr, other
    (second.folder / "keys/fleet").unlink()
    right = join(second, f"n1={first.host.address}", "--key-file", carried)
    assert right.returncode == 0 and re.search(rf"n1 +{first.host.address}", right.stdout), right

    files = {daemon: daemon.config.read_text() for daemon in two.daemons}
    for daemon, peer in ((first, f"n2={second.host.address}"), (second, first.host.address)):
        again = join(daemon, peer)
        assert again.returncode == 0 and daemon.config.read_text() == files[daemon], again
    for done in (done, alone, wrong, other, right, again):
        assert key not in done.stdout + done.stderr

    folder = two.folder / "tiny"
    folder.mkdir()
    (folder / "config.json").write_text("{}")
    (folder / "one.safetensors").write_bytes(safetensors(9, 1))
    for daemon, line in ((first, f"{{path: {folder}, model: org/tiny, adopt: true}}"), (second, "{source: peers, model: org/tiny}")):
        daemon.config.write_text(files[daemon].replace("datasets:\n", f"datasets:\n  tiny: {line}\n"))
        assert daemon.ask("POST", "/v1/reload")[0] == 200
    wait_until(lambda: first.fleet()["adopted"][0]["state"] == "offered", lambda: f"it is offered: {first.fleet()}", 60)
    Fleet.wait_for_peers(second, 1)
    assert stage(second, "tiny")["from"] == ["n1"]


def test_a_host_that_is_not_there_or_another_address_is_an_error_that_names_it(two):
    first = two.daemons[0]
    before = first.config.read_text()
    away = join(first, "10.77.0.77")
    assert away.returncode == 4 and "10.77.0.77" in away.stderr, away
    assert "10.77.0.77: [10.77.0.77]" in first.config.read_text()
    first.config.write_text(before)
    assert first.ask("POST", "/v1/reload")[0] == 200
    for words, why in (((first.host.address,), "this host"), (("n2=10.77.0.2", "--listen", "10.77.0.9"), "no IP address of this host"),
                       (("n2=10.77.0.2", "--listen", f"{first.host.address}:7800"), "fleet.listen is"),
                       (("n9=10.77.0.2",), "is peer n2 already")):
        refused = join(first, *words)
        assert refused.returncode in (2, 7) and why in refused.stderr, refused
    assert first.config.read_text() == before


def test_with_a_port_of_ones_own_both_directions_work_as_printed(fresh):
    first, second = fresh.daemons
    done = join(first, f"n2={second.host.address}", "--listen", f"{first.host.address}:7800")
    assert done.returncode == 0, done
    words = re.search(r"fleet join (.*) --key-file fleet.key(.*)", done.stdout)
    other = join(second, *words[1].split(), "--key-file", first.folder / "keys/fleet", *words[2].split())
    assert other.returncode == 0 and f"{first.host.address}" in other.stdout, other
    back = join(first)
    assert back.returncode == 0 and re.search(rf"n2 +{second.host.address}", back.stdout), back
