"""The conditions that must hold after every step."""
import json
import time

from rig.agent import GuestTimeout
from rig.settings import patience

from .model import BATON, BOOKS, HOSTS, READER, VOLUMES, name_of
from .world import OTHER, daemon_of

SETTLES_S = 100  # generous: documented are 5 and 10 s, 30 s between retries of a refused volume, 22 s after a crashed
                 # writer
RECORD = 16
DISCOVERY = "nqn.2014-08.org.nvmexpress.discovery"


def check(world, model):
    """Returns the seconds until every volume was in its expected state."""
    began = time.monotonic()
    hosts = [host for host in HOSTS if model.answers(host)]
    for host in hosts:
        reach_states(world, model, host)
    seconds = time.monotonic() - began
    for host in hosts:
        world.expect_books(host, expected_books(model, host))
    make_progress(world, model, hosts)
    for host in hosts:
        check_host(world, model, host)
    check_log(world, model)
    check_copies(world, model)
    wrong = world.target.machine.run(f"cmp {OTHER} {OTHER}.before", 60) if world.target.machine.is_running() and \
        model.fault is not None and model.fault.kind == "replaced" else None
    assert wrong is None or wrong.rc == 0, f"the disk in the volume's place was written: {wrong.out}{wrong.err}"
    return seconds


def expected_books(model, host):
    """The number that a read must find on that host; None if the read may fail or find several."""
    if not model.serves(host, BOOKS) or model.is_torn(host, BOOKS):
        return None
    return model.content


# --- states ---

def reach_states(world, model, host):
    def is_right(volume):
        name = volume["name"]
        if volume["state"] not in model.states(host, name):
            return False
        if volume["state"] != "ready" or name != BOOKS:
            return True
        return is_as_published(model, host, volume)

    for name in VOLUMES:
        try:
            world.products[host].wait_volume(name, is_right, SETTLES_S)
        except GuestTimeout as error:
            raise AssertionError(f"{name_of(host)}: {name} should be {' or '.join(sorted(model.states(host, name)))}, as in "
                                 f"{model}: {error}") from error


def is_as_published(model, host, volume):
    if host == READER and volume["foreign_writes"] != model.is_torn(host, BOOKS):
        return False
    return model.is_writing or (volume["published"] or {}).get("generation") == model.generation


# --- jobs ---

def make_progress(world, model, hosts):
    """Checks that jobs make progress where they can, and that none has seen a wrong byte."""
    before = {host: world.seen(host) for host in hosts}
    waiting = {host: wanted(model, host) for host in hosts}
    end = time.monotonic() + patience(60)
    while any(waiting.values()):
        assert time.monotonic() < end, "no progress of " + ", ".join(
            f"{name_of(host)}'s {what}: {world.seen(host)}" for host in hosts for what in waiting[host])
        time.sleep(0.3)
        for host in hosts:
            seen = world.seen(host)
            waiting[host] = {what for what in waiting[host] if seen[what] < before[host][what] + 2}
    for host in hosts:
        assert not world.seen(host)["wrong"], f"{name_of(host)}: {world.seen(host)['wrong']}"


def wanted(model, host):
    """The jobs of the host that must make progress."""
    writes = {"acked"} if model.serves(host, BATON) else set()
    return writes | ({"reads"} if expected_books(model, host) is not None else set())


def check_log(world, model):
    """Checks that every acknowledged record is there once, from its own writer: there was one writer at a time."""
    if model.holder is None or not model.serves(model.holder, BATON):
        return
    check_records(world.log(model.holder), world.acked)


def check_records(text, acked):
    """`acked`: for each writer, the highest number acknowledged as durable."""
    assert len(text) % RECORD == 0, f"the log has {len(text)} bytes"
    last_of = {}
    for number in range(len(text) // RECORD):
        record = text[number * RECORD:(number + 1) * RECORD]
        assert record[:10] == f"{number + 1:010}" and record[15] == "\n", f"record {number + 1} of the log is {record!r}"
        last_of[int(record[11:15])] = number + 1
    for writer, number in acked.items():
        assert number <= last_of.get(writer, 0), (f"process {writer} was told that its record {number} is on the disk, and its "
                                                  f"last one there is {last_of.get(writer)}: {last_of}")


# --- a host ---

def check_host(world, model, host):
    """Checks that no file is under a mount point at any time, and that nothing is leaked after the host has settled."""
    end = time.monotonic() + patience(60)
    while True:
        look = world.look(host)
        assert not look["below"], f"{name_of(host)}: files under a bare mount point: {look['below']}"
        assert daemon_of(look) == world.daemons[host], f"{name_of(host)}: its daemon ended, and nothing in this walk ended it"
        wrong = [*mount_faults(model, host, look), *connection_faults(model, host, look), *worker_faults(model, host, look)]
        if not wrong:
            return
        assert time.monotonic() < end, f"{name_of(host)}: {'; '.join(wrong)}; it is {model}"
        time.sleep(1)


def mount_faults(model, host, look):
    for volume in VOLUMES:
        mounts = look["mounts"][volume]
        if model.serves(host, volume) and (mounts or not model.is_torn(host, volume)):
            if [writable for _, writable in mounts] != [model.is_writable(host, volume)]:
                yield f"{volume} is mounted as {mounts}"
        elif mounts and not model.may_serve(host, volume):
            yield f"{volume} is still mounted: {mounts}"


def connection_faults(model, host, look):
    for volume in VOLUMES:
        states = [state for nqn, state in look["controllers"] if nqn == volume]
        if model.serves(host, volume) and not model.is_torn(host, volume) and states != ["live"]:
            yield f"connections to {volume}: {states}"
        if len(states) > (1 if model.is_up(host, volume) else 0):
            yield f"{len(states)} connections to {volume}"
    asking = [state for nqn, state in look["controllers"] if nqn == DISCOVERY]
    if len(asking) > 1:
        yield f"{len(asking)} connections to the discovery service"


def worker_faults(model, host, look):
    daemon = daemon_of(look)
    workers = [one for one in look["processes"] if "worker" in one["arguments"]]
    if lost := [one for one in workers if one["parent"] != daemon]:
        yield f"workers without their daemon: {lost}"
    if model.fault is None and (stuck := [one for one in workers if one["state"] == "D"]):
        yield f"workers that hang: {stuck}"
    if len(workers) > 8:
        yield f"{len(workers)} workers"


# --- the cache ---

def check_copies(world, model):
    if not model.answers(READER):
        return
    product = world.products[READER]
    row = product.dataset("set")
    # The last attempt may have failed because the drive was full.
    wanted_states = ("absent", "failed") if model.staged is None else ("ready",)
    assert row["state"] in wanted_states, f"the copy should be {' or '.join(wanted_states)}: {json.dumps(row)}"
    leases = sorted(lease["id"] for lease in row["leases"])
    assert leases == sorted(lease for lease, _, _ in world.leases), f"leases {leases} instead of {world.leases}"
    if model.staged is not None:
        wrong = world.difference(READER, row["path"], model.staged)
        assert not wrong, f"the copy: {wrong}"
    for lease, path, content in world.leases:
        wrong = world.difference(READER, path, content)
        assert not wrong, f"the copy that lease {lease} keeps: {wrong}"
    stuck = product.status()["stuck_workers"]
    assert stuck == 0 or model.fault is not None, f"{stuck} workers are stuck"
