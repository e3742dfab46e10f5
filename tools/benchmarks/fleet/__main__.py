"""What a volume serves when several hosts stage one dataset: each for itself, and as a fleet. Both sides in one run, hosts being namespaces.

Times are of one computer that all hosts share: compare them with each other only. Bytes and CPU seconds count.
"""
import argparse
import os
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
sys.path[:0] = [str(ROOT / "tests/fleet"), str(ROOT / "tests/slurm")]
from fleet import Fleet  # noqa: E402  pylint: disable=wrong-import-position

MIB = 1 << 20
TICKS = os.sysconf("SC_CLK_TCK")


def cpu_seconds(daemon):
    """CPU seconds of the daemon, of its ended workers, and of the process that serves peers."""
    fields = Path(f"/proc/{daemon.pid()}/stat").read_text().rpartition(")")[2].split()
    ticks = sum(int(fields[index]) for index in (11, 12, 13, 14))
    for pid in daemon.workers("serve-peers"):
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        ticks += int(fields[11]) + int(fields[12])
    return ticks / TICKS


def measure(fleet, stage):
    before, cpu = fleet.drive.bytes_read(), [cpu_seconds(daemon) for daemon in fleet.daemons]
    start = time.monotonic()
    jobs = stage()
    seconds = time.monotonic() - start
    assert all(job["state"] == "done" for job in jobs), jobs
    staged = [job["result"]["datasets"][0] for job in jobs]
    assert len({one["hash"] for one in staged}) == 1
    used = [cpu_seconds(daemon) - earlier for daemon, earlier in zip(fleet.daemons, cpu)]
    gib = fleet.drive.size / (1 << 30)
    return {"read": (fleet.drive.bytes_read() - before) / fleet.drive.size, "seconds": seconds, "cpu": sum(used) / len(used) / gib,
            "memfree": max(one["memfree_drop_bytes"] for one in staged) / MIB}


def alone(fleet):
    """Each host separately: without the section `fleet`."""
    configs = {daemon: daemon.config.read_text() for daemon in fleet.daemons}
    for daemon, text in configs.items():
        daemon.config.write_text(text.partition("fleet:")[0])
        assert daemon.ask("POST", "/v1/reload")[0] == 200
    found = measure(fleet, fleet.stage_all)
    for daemon, text in configs.items():
        daemon.config.write_text(text)
        assert daemon.ask("POST", "/v1/reload")[0] == 200
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--hosts", type=int, nargs="+", default=[4, 20])
    parser.add_argument("--size", type=int, default=512, help="MiB of the dataset")
    options = parser.parse_args()
    files = [(f"large/{i}.bin", 32 * MIB) for i in range(options.size // 40)]
    files += [(f"small/{i // 100}/{i}.txt", 40_000) for i in range((options.size - 32 * len(files)) * MIB // 40_000)]
    print("hosts  way           read from the volume  CPU s/GiB/host  MemFree drop MiB  seconds")
    for hosts in options.hosts:
        fleet = Fleet(hosts, files)
        try:
            for way, run in (("each alone", alone), ("as a fleet", lambda one: measure(one, one.stage_all))):
                fleet.evict_all()
                found = run(fleet)
                print(f"{hosts:5}  {way:12}  {found['read']:17.3f} x  {found['cpu']:14.2f}  {found['memfree']:16.0f}  {found['seconds']:7.1f}",
                      flush=True)
                for daemon in fleet.daemons:
                    Fleet.wait_for_peers(daemon, hosts - 1)
        finally:
            fleet.stop()


if __name__ == "__main__":
    main()
