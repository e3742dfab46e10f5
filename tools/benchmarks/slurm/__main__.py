"""Measures what `srun --stage` adds to a job whose data is staged already.

The cluster is the one of tests/slurm: a real Slurm, its nodes in namespaces, the real daemon on each. Jobs with the option and
without it take turns in one run, so that whatever else the computer does hits both. Ends with 1 if the median difference is
more than a job may notice.
"""
import argparse
import os
import statistics
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "tests/slurm"))
from cluster import Cluster  # noqa: E402  needs the folder of the tests
from node import Dataset  # noqa: E402

MOST_MS = 100


def seconds_of(cluster, *options):
    begun = time.monotonic()
    done = cluster.slurm("srun", "-w", "n1", *options, "true")
    seconds = time.monotonic() - begun
    if done.returncode:
        sys.exit(f"bench-slurm: srun {' '.join(options)}: {done.stderr}")
    return seconds


def measure(cluster, name, pairs):
    """Each pair's difference in ms, and the median of a job without the option."""
    cluster.slurm("srun", "-w", "n1", f"--stage={name}", "true")  # staged
    differences, plain = [], []
    for pair in range(pairs):
        both = {}
        for option in ([], [f"--stage={name}"]) if pair % 2 else ([f"--stage={name}"], []):
            both[bool(option)] = seconds_of(cluster, *option)
        plain.append(both[False])
        differences.append((both[True] - both[False]) * 1000)
    return differences, statistics.median(plain) * 1000


def main():
    parser = argparse.ArgumentParser(prog="bench-slurm", description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--pairs", type=int, default=30, help="jobs with the option, and as many without")
    parser.add_argument("--sets", default="10x4096,10x100000000,1000x4096,20000x4096",
                        help="datasets, each as FILESxBYTES of a file (default %(default)s)")
    options = parser.parse_args()
    if os.geteuid() != 0:
        sys.exit("bench-slurm: needs root, for namespaces and for Slurm's daemons")
    sets = {f"set-{shape}": Dataset(*map(int, shape.split("x"))) for shape in options.sets.split(",")}
    cluster = Cluster(("n1",), sets, "64GiB")
    try:
        print(f"{'files':>8} {'MB':>8} {'without, ms':>12} {'added, ms':>10} {'quartiles':>16}")
        worst = 0
        for name, dataset in sets.items():
            differences, plain = measure(cluster, name, options.pairs)
            low, median, high = statistics.quantiles(differences, n=4)
            megabytes = dataset.files * dataset.size / 1e6
            print(f"{dataset.files:>8} {megabytes:>8.0f} {plain:>12.0f} {median:>10.0f} {f'{low:.0f} to {high:.0f}':>16}", flush=True)
            worst = max(worst, median)
    finally:
        cluster.stop()
    print(f"worst median: {worst:.0f} ms more; at most {MOST_MS} ms are accepted")
    return worst > MOST_MS


if __name__ == "__main__":
    sys.exit(main())
