"""What a volume serves when several hosts stage one dataset: each for itself, as a fleet, and as a fleet of which one host loses its power.

All sides in one run; hosts are namespaces of this computer. Times are of one computer that all hosts share: compare them with each other
only. Bytes and CPU seconds count. With --links the hosts are joined by shaped links to a source of limited speed, and times count.
"""
import argparse
import os
import sys
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
sys.path[:0] = [str(ROOT / "tests/fleet"), str(ROOT / "tests/slurm")]
from fleet import Fleet, wait_until  # noqa: E402  pylint: disable=wrong-import-position

from groups import Links, Memory  # noqa: E402  pylint: disable=wrong-import-position

MIB, GIB = 1 << 20, 1 << 30
TICKS = os.sysconf("SC_CLK_TCK")
GOALS = {"as a fleet": 1.05, "one loses power": 1.15, "one has it": 0.0}
CPU_GOAL, MEMORY_GOAL, LINKS_GOAL = 0.9, 300, 1.3
LIMITED_S = 15
METADATA = 0.01  # of the dataset: what a host reads of the file system itself


def cpu_seconds(daemon):
    """CPU seconds of the daemon, of its ended workers, and of the process that serves peers."""
    fields = Path(f"/proc/{daemon.pid()}/stat").read_text().rpartition(")")[2].split()
    ticks = sum(int(fields[index]) for index in (11, 12, 13, 14))
    for pid in daemon.workers("serve-peers"):
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        ticks += int(fields[11]) + int(fields[12])
    return ticks / TICKS


def measure(fleet, stage, daemons, has_links=False):
    """`stage` returns the ended jobs of these daemons. With links their control groups are taken: memory is then not measured."""
    before, cpu = fleet.drive.bytes_read(), [cpu_seconds(daemon) for daemon in daemons]
    with Memory(fleet.folder.name, [] if has_links else daemons) as memory:
        start = time.monotonic()
        jobs = stage()
        seconds = time.monotonic() - start
    assert all(job["state"] == "done" for job in jobs), jobs
    staged = [job["result"]["datasets"][0] for job in jobs]
    assert len({one["hash"] for one in staged}) == 1
    used = [cpu_seconds(daemon) - earlier for daemon, earlier in zip(daemons, cpu)]
    because = sum((Counter(one.get("read_because", {})) for one in staged), Counter())
    return {"read": (fleet.drive.bytes_read() - before) / fleet.drive.size, "seconds": seconds,
            "cpu": sum(used) / len(used) / fleet.drive.size * GIB, "memory": max(memory.most, default=0) / MIB,
            "because": {why: round(count / fleet.drive.size, 3) for why, count in because.items()}}


def alone(fleet, has_links=False):
    """Each host separately: without the section `fleet`."""
    configs = {daemon: daemon.config.read_text() for daemon in fleet.daemons}
    for daemon, text in configs.items():
        daemon.config.write_text(text.partition("fleet:")[0])
        assert daemon.ask("POST", "/v1/reload")[0] == 200
    found = measure(fleet, fleet.stage_all, fleet.daemons, has_links)
    for daemon, text in configs.items():
        daemon.config.write_text(text)
        assert daemon.ask("POST", "/v1/reload")[0] == 200
    return found


def together(fleet):
    return measure(fleet, fleet.stage_all, fleet.daemons)


def one_has_it(fleet):
    first, others = fleet.daemons[0], fleet.daemons[1:]
    assert first.stage()["state"] == "done"
    return measure(fleet, lambda: fleet.stage_all(others), others)


def one_loses_power(fleet):
    """When it has a third, it is silent from one moment to the next, and then gone. A limit makes the staging longer than its start."""
    lost, others = fleet.daemons[0], fleet.daemons[1:]

    def stage():
        jobs = [daemon.begin(fleet.drive.size // LIMITED_S) for daemon in fleet.daemons]
        wait_until(lambda: lost.progress().get("bytes_done", 0) > fleet.drive.size / 3, "a third is there")
        fleet.unplug(lost)
        with ThreadPoolExecutor(64) as at_once:
            return list(at_once.map(lambda one: one[0].end_of(one[1]), zip(others, jobs[1:])))

    found = measure(fleet, stage, others)
    fleet.plug_in(lost)
    return found


WAYS = {"each alone": alone, "as a fleet": together, "one loses power": one_loses_power, "one has it": one_has_it}


def files_of(size, small, of_small=40_000):
    """`size` in MiB; `small`: the part of it in files of `of_small` bytes."""
    large = max(1, round(size * (1 - small) / 32))
    files = [(f"large/{i}.bin", 32 * MIB) for i in range(large)]
    return files + [(f"small/{i // 100}/{i}.txt", of_small) for i in range(max(0, size - 32 * large) * MIB // of_small)]


def met(goal, value):
    return "met" if value <= goal else "MISSED"


def run_way(fleet, hosts, way):
    fleet.evict_all()
    found = WAYS[way](fleet)
    goals = []
    if way in GOALS:
        goals.append(f"read ≤ {GOALS[way]} x: {met(GOALS[way] + (METADATA if GOALS[way] == 0 else 0), found['read'])}")
    if way == "as a fleet":
        goals += [f"CPU ≤ {CPU_GOAL}: {met(CPU_GOAL, found['cpu'])}", f"memory ≤ {MEMORY_GOAL}: {met(MEMORY_GOAL, found['memory'])}"]
    print(f"{hosts:5}  {way:15}  {found['read']:17.3f} x  {found['cpu']:14.2f}  {found['memory']:15.0f}  {found['seconds']:7.1f}  "
          f"{found['because'] or ''}  {'; '.join(goals)}", flush=True)
    for daemon in fleet.daemons:
        Fleet.wait_for_peers(daemon, hosts - 1)


def measure_reads(options):
    print("hosts  way              read from the volume  CPU s/GiB/host  memory MiB/host  seconds  read because (x the dataset)")
    for hosts in options.hosts:
        fleet = Fleet(hosts, files_of(options.size, options.small, options.small_bytes))
        try:
            for way in options.ways.split(","):
                for _ in range(options.rounds):
                    run_way(fleet, hosts, way)
        finally:
            fleet.stop()


def measure_links(options):
    """The time of one host, then of four, behind the same links."""
    hosts = 4
    fleet = Fleet(hosts, files_of(options.size, 0))
    links = Links(fleet, options.source_gbit, options.peers_gbit)
    try:
        links.shape()
        sides = {"one host": lambda: measure(fleet, lambda: fleet.stage_all(fleet.daemons[:1]), fleet.daemons[:1], True),
                 "four as a fleet": lambda: measure(fleet, fleet.stage_all, fleet.daemons, True),
                 "four, each alone": lambda: alone(fleet, True)}
        seconds = {}
        for side, run in sides.items():
            fleet.evict_all()
            for daemon in fleet.daemons:
                Fleet.wait_for_peers(daemon, hosts - 1)
            found = run()
            seconds[side] = found["seconds"]
            print(f"{side:16}  {found['seconds']:6.1f} s  {found['seconds'] / seconds['one host']:5.2f} x  "
                  f"{found['read']:.3f} x the dataset read from the source", flush=True)
        ratio = seconds["four as a fleet"] / seconds["one host"]
        print(f"source {options.source_gbit} Gbit/s, peers {options.peers_gbit} Gbit/s: goal ≤ {LINKS_GOAL} x: {met(LINKS_GOAL, ratio)}")
    finally:
        links.stop()
        fleet.stop()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hosts", type=int, nargs="+", default=[4, 20])
    parser.add_argument("--size", type=int, default=512, help="MiB of the dataset")
    parser.add_argument("--small", type=float, default=0.2, help="the part of it in small files")
    parser.add_argument("--small-bytes", type=int, default=40_000, help="of each small file")
    parser.add_argument("--ways", default=",".join(WAYS), help="of: " + ", ".join(WAYS))
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--links", action="store_true", help="only the time of four hosts behind shaped links")
    parser.add_argument("--source-gbit", type=float, default=1, help="with --links: of the source, shared by all hosts")
    parser.add_argument("--peers-gbit", type=float, default=5, help="with --links: of each host, in each direction")
    options = parser.parse_args()
    if options.links:
        measure_links(options)
    else:
        measure_reads(options)


if __name__ == "__main__":
    main()
