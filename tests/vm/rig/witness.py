"""Runs readers and writers during a fault, and checks data and answers afterwards."""
import json
import os
import signal
from contextlib import contextmanager

SEEN = "/run/witnesses"  # numbers acknowledged, files read, questions answered


def progress(house):
    """Waits until both writer and reader have made progress."""
    house.host.wait_until(f"""test -n "$before" || before=$(cat {SEEN}); read w r _ <{SEEN}; set -- $before
                              [ $w -gt $(($1 + 3)) ] && [ $r -gt $(($2 + 1)) ]""", 60)


def answers(house):
    return int(house.host.get(SEEN).split()[2])


def assert_bare(house, mount):
    """Checks that the folder under the mount is empty and can't be written to."""
    host = house.host
    host.sh("mkdir -p /run/below && mount --bind / /run/below")
    try:
        found = host.sh(f"find /run/below{mount} -mindepth 1")
        assert not found, f"written to the root disk, below {mount}: {found}"
        assert host.run(f"touch /run/below{mount}/file").rc != 0, f"{mount} can be written to while nothing is mounted there"
    finally:
        host.sh("umount /run/below")


@contextmanager
def witnessed(house, journal, file):
    """Runs writer, reader and status requests. Afterwards checks: every acknowledged number is there, no wrong byte was
    read, the daemon (which must not be ended meanwhile) answered every request, and nothing was written below the mounts."""
    process = house.host.spawn(f"exec /usr/local/lib/rig/witnesses {journal} {file}")
    process.wait_said("watching")
    house.host.sh(f"truncate -s 0 {journal}")
    try:
        progress(house)
        asked_before = answers(house)
        yield
        answered = answers(house) - asked_before
        progress(house)
    finally:
        process.signal(signal.SIGTERM)
        seen = json.loads(process.wait(30).out)
    assert seen["wrong"] == 0 and seen["reads"] > 2, seen
    written = {int(line) for line in house.host.get(journal).split() if line.isdigit()}
    missing = set(range(10, seen["acknowledged"])) - written  # the first few were removed by the truncation
    assert not missing, f"{len(missing)} of {seen['acknowledged']} acknowledged writes are lost, first {min(missing)}"
    assert answered > 1 and not seen["unanswered"], f"{answered} answers during the fault; {seen}"
    print(f"the longest answer took {seen['longest_ask_ms']:.0f} ms")
    assert seen["made"] > 2, seen
    for path in (journal, file):
        assert_bare(house, os.path.dirname(path))
        house.host.run(f"rm -rf {os.path.dirname(path)}/job")
