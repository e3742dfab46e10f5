"""Training while it stages, beside staging first: both sides in one invocation, from a volume that is read at a limited rate.

The daemon is the real one, and so are the volume's file system, superblock and mounts, the drive, and the kernel's FUSE. Every byte that
a reader gets is compared. Other work on this computer lengthens everything: the figures are of an idle one. Needs root, and room in
memory (or in --folder) for two and a half times the dataset. Exits with 1 if a byte was wrong, or --require is given and a goal was missed.
"""
import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import kernel
from content import GIB, MIB, Content
from figures import Wrong, background, epoch, first_batch, middle, published, training
from place import Place, own_mounts

FIRST_SAMPLE_S, BATCH_S, EPOCH, BACKGROUND, LEAST_NOISE = 0.15, 0.5, 1.1, 1.1, 0.05
FIGURES = ("first", "epoch", "background", "published")
WITH_GPU = "training"  # needs a GPU, PyTorch and torchvision


class Report:
    def __init__(self):
        self.goals = []

    def goal(self, what, value, most, unit=""):
        is_met = value <= most
        self.goals.append({"goal": what, "figure": value, "most": most, "met": is_met})
        print(f"  {'PASS' if is_met else 'FAIL'}  {what}: {value:.3g}{unit}, at most {most:.3g}{unit}", flush=True)


def show_first(report, found):
    live, later = found["live"], found["staged_first"]
    print(f"First batch, {len(live)} rounds: first sample {middle(live, 'sample'):.3f} s after the walk ({middle(live, 'request'):.3f} s after the request), "
          f"batch {middle(live, 'batch'):.3f} s (" + ", ".join(f"{one['batch']:.2f}" for one in live) + "); staged first: "
          f"{middle(later, 'sample'):.2f} s and {middle(later, 'batch'):.2f} s, {middle(later, 'batch') / middle(live, 'batch'):.0f} x")
    report.goal("first sample after the walk", middle(live, "sample"), FIRST_SAMPLE_S, " s")
    report.goal("batch of 32 after the walk", middle(live, "batch"), BATCH_S, " s")


def show_epoch(report, found):
    longer, both = max(found["stage"], found["compute"]), found["stage"] + found["train"]
    ratio = found["now"] / longer
    order = {"stream": "shards in a random order, each from its begin to its end", "random": "samples in a random order"}[found["order"]]
    print(f"First epoch, {order}: stages {found['stage']:.1f} s, computes {found['compute']:.1f} s; `stage`, then train {both:.1f} s; "
          f"`run --now` {found['now']:.1f} s, {both / found['now']:.2f} x; first batch after {found['first_batch']:.2f} s")
    if found["order"] == "stream":
        report.goal("`run --now`, of the longer of staging and computing", ratio, EPOCH)
    else:
        print(f"        {ratio:.2f} of the longer of the two (no goal)")


def show_background(report, found):
    seconds = {kind: middle(rounds, "seconds") for kind, rounds in found.items()}
    print(f"Background staging: alone {seconds['alone']:.2f} s, with a view that nobody reads {seconds['unread']:.2f} s, with four readers "
          f"{seconds['read']:.2f} s ({sum(one['reads'] for one in found['read']):,} reads, the longest {max(one['longest'] for one in found['read']):.2f} s)")
    report.goal("staging with four readers, of staging alone", seconds["read"] / seconds["alone"], BACKGROUND)


def show_published(report, found):
    for kind, ways in found.items():
        plain, view, inside = (sorted(ways[way])[len(ways[way]) // 2] for way in ("plain", "view", "container"))
        noise = max(LEAST_NOISE, (max(ways["plain"]) - min(ways["plain"])) / plain)
        print(f"After publishing, {kind}: plain copy {plain:.3f} s, by the view's path {view:.3f} s, in a container of before {inside:.3f} s "
              f"({inside / plain:.2f} x, no goal)")
        report.goal(f"{kind}, by the view's path, of the plain copy", view / plain, 1 + noise)


def show_training(found):
    for kind, one in found.items():
        rates = ", ".join(f"{epoch['pictures'] / epoch['seconds']:,.0f}" for epoch in one["epochs"])
        print(f"Training, {kind.replace('_', ' ')}: first step after {one['first_step']:.1f} s, {rates} pictures/s in epochs 1, 2 …, all {one['seconds']:.1f} s "
              f"(ResNet-50, PyTorch {one['torch']}, {one['gpu']})")


def measure(place, options, report):
    found, rounds = {}, options.rounds
    if "first" in options.figures:
        found["first"] = first_batch(place, rounds)
        show_first(report, found["first"])
    if "epoch" in options.figures:
        found["epoch"] = [epoch(place, order) for order in ("stream", "random")]
        for one in found["epoch"]:
            show_epoch(report, one)
    if "background" in options.figures:
        found["background"] = background(place, max(1, rounds // 2))
        show_background(report, found["background"])
    if "published" in options.figures:
        found["published"] = published(place, rounds)
        show_published(report, found["published"])
    if WITH_GPU in options.figures:
        found["training"] = training(place)
        show_training(found["training"])
    return found


def options_of():
    parser = argparse.ArgumentParser(prog="bench-live", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gib", type=float, default=4, help="size of the set of shards")
    parser.add_argument("--shards", type=int, default=32)
    parser.add_argument("--small", type=int, default=20_000, help="files of the other set, of 34,000 bytes each")
    parser.add_argument("--rate", type=float, default=200, help="MB/s of the source")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--figures", nargs="+", choices=(*FIGURES, WITH_GPU), default=FIGURES,
                        help=f"{WITH_GPU}: a PyTorch job on a GPU, only on request")
    parser.add_argument("--folder", help="on the drive to use, instead of memory")
    parser.add_argument("--quick", action="store_true", help="does it work here? 256 MiB, 500 small files, two rounds; the goals are of the full size")
    parser.add_argument("--json", metavar="FILE", help="all numbers of all rounds")
    parser.add_argument("--require", action="store_true", help="exit with 1 if a goal was missed")
    options = parser.parse_args()
    if options.quick:
        options.gib, options.shards, options.small, options.rounds = 0.25, 8, 500, 2
    return options


def main():
    options = options_of()
    if os.geteuid() != 0:
        sys.exit("bench-live: run it as root")
    own_mounts()
    folder, report = Path(tempfile.mkdtemp(prefix="bench-live-", dir=options.folder)), Report()
    if not options.folder:
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=100%", "bench-live", folder], check=True)
    try:
        about = kernel.facts()
        shard = int(options.gib * GIB / options.shards) // MIB * MIB
        sets = {"big": {"files": options.shards, "bytes": shard}, "small": {"files": options.small, "bytes": 34_000}}
        place = Place(folder, Content.make(folder / "shape.json", sets), int(options.rate * 1e6))
        about |= {"throttle": place.limit.words, "rate": options.rate}
        try:
            print(f"Linux {about['kernel']}, FUSE {about['protocol']}: passthrough {'yes' if about['passthrough'] else 'no'}, RESEND "
                  f"{'yes' if about['resend'] else 'no'}; {about['cpus']} CPUs; the source is limited to {options.rate:.0f} MB/s by {about['throttle']}", flush=True)
            found = measure(place, options, report)
        finally:
            place.end()
    except Wrong as wrong:
        sys.exit(f"bench-live: WRONG BYTES or a failed read: {wrong}")
    finally:
        if not options.folder:
            subprocess.run(["umount", "--lazy", folder], check=False)
        shutil.rmtree(folder, ignore_errors=True)
    missed = [one for one in report.goals if not one["met"]]
    print(f"every byte was compared, none was wrong; {len(report.goals) - len(missed)} of {len(report.goals)} goals met" + (" (QUICK: not the sizes of the goals)" if options.quick else ""))
    if options.json:
        Path(options.json).write_text(json.dumps(about | {"goals": report.goals, "figures": found}, indent=1) + "\n")
    return 1 if options.require and missed else 0


if __name__ == "__main__":
    sys.exit(main())
