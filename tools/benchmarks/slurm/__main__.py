"""Measures what `srun --stage` adds to a job whose data is staged already.

Uses the cluster of tests/slurm: a real Slurm, its node in namespaces, the real daemon. Each dataset is on a volume (see
loop_volumes.py). It is measured as part of the volume and as a plain folder, for which no superblock shows that nothing was
written. Jobs with and without the option alternate in one run, so that other load on this computer affects both. Exits
with 1 if the median difference exceeds the limit.
"""
import argparse
import json
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
sys.path[:0] = [str(ROOT / "tests/slurm"), str(ROOT / "tools/benchmarks")]
import loop_volumes  # noqa: E402  needs the folders above
from cluster import Cluster  # noqa: E402
from node import Dataset  # noqa: E402

MOST_MS = 100
PYTHON = "/usr/bin/python3"
PER_FOLDER = 1000


def make_image(image, mount, sets):
    """An ext4 file system with all sets, each in a folder."""
    room = sum(one.files * (one.size + 1024) for one in sets.values()) + (256 << 20)
    with open(image, "wb") as file:
        file.truncate(-(-room // (1 << 20)) << 20)
    # Small files are stored in their inodes, so a million of them are made in a minute.
    loop_volumes.run("mkfs.ext4", "-q", "-F", "-O", "inline_data", "-N", str(sum(one.files for one in sets.values()) * 2 + 10_000), image)
    mount.mkdir()
    loop_volumes.run("mount", "-o", "loop", image, mount)
    try:
        for name, one in sets.items():
            fill(mount / name, one)
    finally:
        loop_volumes.run("umount", mount)


def fill(folder, dataset):
    content = os.urandom(dataset.size)
    for number in range(dataset.files):
        if number % PER_FOLDER == 0:
            inside = folder / str(number // PER_FOLDER)
            inside.mkdir(parents=True)
        with open(inside / f"{number}.bin", "wb", buffering=0) as file:
            file.write(content)


def seconds_of(cluster, *options):
    begun = time.monotonic()
    done = cluster.slurm("srun", "-w", "n1", *options, "true", timeout=1800)
    seconds = time.monotonic() - begun
    if done.returncode:
        sys.exit(f"bench-slurm: srun {' '.join(options)}: {done.stderr}")
    return seconds


def measure(cluster, name, pairs):
    """The median of a job without the option, and each pair's difference, in ms."""
    for _ in range(2):
        seconds_of(cluster, f"--stage={name}")  # stages it and records its state
    differences, plain = [], []
    for pair in range(pairs):
        both = {}
        for option in ([], [f"--stage={name}"]) if pair % 2 else ([f"--stage={name}"], []):
            both[bool(option)] = seconds_of(cluster, *option)
        plain.append(both[False])
        differences.append((both[True] - both[False]) * 1000)
    return statistics.median(plain) * 1000, differences


def cluster_on(place, sets):
    image, mount, folder = place / "volume.img", place / "volume", place / "folder"
    folder.mkdir()
    make_image(image, mount, sets)
    datasets = {}
    for name, one in sets.items():
        datasets[name] = Dataset(one.files, one.size, place={"volume": "v0", "path": name})
        datasets[f"folder-{name}"] = Dataset(one.files, one.size, place={"path": f"{folder}/{name}"})
    sections = "".join(f"{name}: {json.dumps(body)}\n" for name, body in loop_volumes.sections([mount]).items())
    program = ROOT / "tools/benchmarks/loop_volumes.py"
    # Only the daemon sees it, since slurmd reads /sys as well.
    inside = ("unshare", "--mount", "--propagation", "slave", PYTHON, program, image, mount, "sh", "-c",
              f'mount --make-rshared / && mount --bind {mount} {folder} && exec "$@"', "sh")
    return Cluster(("n1",), datasets, "200GiB", sections, inside)


def wait_ready(daemon, patience_s=60):
    end = time.monotonic() + patience_s
    while (volumes := daemon.ask("GET", "/v1/status")[1]["volumes"])[0]["state"] != "ready":
        if time.monotonic() > end:
            sys.exit(f"bench-slurm: the volume is not ready: {volumes[0]}")
        time.sleep(0.1)


def show(cluster, sets, pairs):
    """The worst median of a dataset on the volume, in ms."""
    print(f"{'files':>9} {'MB':>6} {'without, ms':>12} {'added, ms: volume':>18} {'quartiles':>12} {'folder':>8} {'folder / volume':>16}")
    worst = 0
    for name, dataset in sets.items():
        plain, differences = measure(cluster, name, pairs)
        low, median, high = statistics.quantiles(differences, n=4)
        folder = statistics.median(measure(cluster, f"folder-{name}", max(3, pairs // 4))[1])
        print(f"{dataset.files:>9,} {dataset.files * dataset.size / 1e6:>6.0f} {plain:>12.0f} {median:>18.0f} "
              f"{f'{low:.0f} to {high:.0f}':>12} {folder:>8.0f} {folder / median:>14.1f} x", flush=True)
        worst = max(worst, median)
    return worst


def measure_on_cluster(place, sets, pairs):
    cluster = cluster_on(place, sets)
    try:
        wait_ready(cluster.nodes["n1"].daemon)
        return show(cluster, sets, pairs)
    finally:
        cluster.stop()


def main():
    parser = argparse.ArgumentParser(prog="bench-slurm", description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--pairs", type=int, default=30, help="jobs with the option, and as many without")
    parser.add_argument("--sets", default="10x4096,10x100000000,20000x4096,200000x64",
                        help="datasets, each as FILESxBYTES of a file (default %(default)s)")
    options = parser.parse_args()
    if os.geteuid() != 0:
        sys.exit("bench-slurm: needs root, for namespaces and for Slurm's daemons")
    sets = {f"set-{shape}": Dataset(*map(int, shape.split("x"))) for shape in options.sets.split(",")}
    with tempfile.TemporaryDirectory(prefix="spark-bench-slurm-") as folder:
        os.chmod(folder, 0o755)
        try:
            worst = measure_on_cluster(Path(folder), sets, options.pairs)
        finally:
            loop_volumes.run("chattr", "-i", Path(folder, "volume"))  # the daemon guards its mount points
    print(f"worst median of a dataset on a volume: {worst:.0f} ms more; at most {MOST_MS} ms are accepted")
    return worst > MOST_MS


if __name__ == "__main__":
    sys.exit(main())
