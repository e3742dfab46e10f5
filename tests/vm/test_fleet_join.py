"""Two Sparks with the package and nothing else: no configuration, and a daemon that was never started. Everything that their
owner types is in docs/two-sparks.md; ssh is replaced by the second machine itself."""
import json
import re

import pytest

from rig import blocks
from rig.made import made_of
from rig.product import CONFIG, UNIT, Product

PAGE = "docs/two-sparks.md"
BEGIN = "sudo spark-stage fleet join spark2="
# `fleet join` and `fleet test` end with 1 where the link is slow, as an emulated one is.
LINK_STATUS = (0, 1)


class Sparks:
    def __init__(self, rig):
        self.first, self.second = rig.add_host("spark1"), rig.add_host("spark2")

    def start(self):
        for host in (self.first, self.second):
            host.start()
        for host in (self.first, self.second):
            host.wait_ready()
            host.sh(f"systemctl disable --now {UNIT}; systemctl reset-failed {UNIT}; test ! -e {CONFIG}", 60)

    def type(self, line):
        """A line of the page, on the machine that it is for; returns how it ended."""
        line = line.replace("10.0.0.1", self.first.address).replace("10.0.0.2", self.second.address)
        carried = re.fullmatch(r"sudo cat (\S+) \| ssh \S+ 'umask 077; cat > (\S+)'", line)
        if carried:
            self.second.put(f"/root/{carried[2]}", self.first.get(carried[1]), "600")
            return None
        there = re.fullmatch(r"ssh (?:-t )?\S+ (.*)", line)
        host, command = (self.second, there[1]) if there else (self.first, line)
        done = host.run(f"cd /root && {command.removeprefix('sudo ')}", 180)
        print(f"{host.name}: {command}: {done.rc}\n{done.out}{done.err}")
        return done


@pytest.fixture(scope="module")
def sparks():
    yield from made_of(Sparks)


def answering(host):
    """The peers that answer, by name."""
    return {peer["name"] for peer in json.loads(host.sh("spark-stage status --json"))["fleet"]["peers"] if peer["answers"]}


def test_the_page_leads_from_nothing_to_two_sparks_that_answer_each_other(sparks):
    lines = blocks.find(PAGE, BEGIN).lines
    ended = [(line, sparks.type(line)) for line in lines]
    for line, done in ended:
        tests_link = line.endswith(("fleet join", "fleet test"))
        assert done is None or done.rc in (LINK_STATUS if tests_link else (0,)), (line, done)
    tested = [done for line, done in ended if line.endswith(("fleet join", "fleet test"))]
    assert len(tested) == 2, lines
    for done, (own, other) in zip(tested, ((sparks.second, "spark1"), (sparks.first, "spark2"))):
        assert re.search(rf"{other} +\d", done.out), (own.name, done)
    assert answering(sparks.first) == {"spark2"} and answering(sparks.second) == {"spark1"}
    assert sparks.second.run("test -e /root/fleet.key").rc != 0, "the page deletes the carried key"


def test_a_reboot_brings_the_fleet_back(sparks):
    sparks.second.poweroff()
    sparks.second.start()
    sparks.second.wait_ready(until="spark-stage status")
    host = sparks.second
    host.wait_until("spark-stage status --json | python3 -c 'import json, sys; "
                    "sys.exit(not any(p[\"answers\"] for p in json.load(sys.stdin)[\"fleet\"][\"peers\"]))'", 120, 1)
    assert Product(host).status()["fleet"]["serving"]
