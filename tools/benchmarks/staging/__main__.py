"""Measures `spark-stage copy` beside the copiers that people use: /usr/bin/python3 tools/benchmarks/staging --help"""
import argparse
import datetime
import json
import os
import signal
import sys
from pathlib import Path

import contenders
import drives
import long
import machine
import rounds
import sets
import table
import targets
from machine import GIB, Problem

ROOT = Path(__file__).resolve().parents[3]
EXAMPLES = """\
examples:
  make bench-staging                                  for the record: everything, five rounds, on drives made in memory
  tools/benchmarks/staging --sets large,small --contenders spark-stage,cp,rsync --rounds 3
  tools/benchmarks/staging --source /mnt/nas --target /data      folders that are there, such as a volume and the local NVMe
  make bench-staging ARGS="--json run.json --require"  every number in a file, and exit 1 for a missed target
  tools/benchmarks/staging --contenders spark-stage --before OLD/cli/spark-stage      what a change did to the speed
  tools/benchmarks/staging --scale 0.02 --rounds 1               does it work at all? the numbers mean nothing"""


def tell(line):
    print(line, file=sys.stderr, flush=True)


def names_of(known):
    def parse(text):
        names = text.split(",")
        for name in names:
            if name not in known:
                raise argparse.ArgumentTypeError(f"{name!r} is none of {', '.join(known)}")
        return names
    return parse


def arguments():
    sets_known, names_known = list(sets.SETS), list(contenders.all_of("spark-stage"))
    parser = argparse.ArgumentParser(prog="tools/benchmarks/staging", description=__doc__.split(":")[0] + ".", epilog=EXAMPLES,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--sets", type=names_of(sets_known), default=sets_known, metavar="A,B", help=", ".join(sets_known))
    add("--contenders", type=names_of(names_known), default=names_known, metavar="A,B", help=", ".join(names_known))
    add("--rounds", type=int, default=5, metavar="N", help="runs of each (default: 5)")
    add("--binary", default=str(ROOT / "build/release/cli/spark-stage"), metavar="PATH",
        help="the spark-stage to measure (default: build/release/cli/spark-stage)")
    add("--before", metavar="PATH", help="an earlier spark-stage, measured beside it")
    add("--source", metavar="DIR", help="copy from a new folder here, not from a drive in memory")
    add("--target", metavar="DIR", help="copy to a new folder here")
    add("--long", action="store_true", help="also 1,000,000 files, and kill -9 at half way; some minutes more")
    add("--scale", type=float, default=1, metavar="F", help="sets of this size (default: 1)")
    add("--json", metavar="FILE", help="every run's numbers")
    add("--require", action="store_true", help="exit 1 if a target is missed")
    add("--keep", action="store_true", help="wait at the end, so that the last copy can be looked at")
    options = parser.parse_args()
    if bool(options.source) != bool(options.target):
        parser.error("--source and --target go together")
    if options.rounds < 1 or not 0 < options.scale <= 1:
        parser.error("--rounds is at least 1, --scale above 0 and at most 1")
    return options


def open_drives(options, chosen):
    if os.geteuid() != 0:
        raise Problem("root is needed, to drop the page cache and to make drives - run it with sudo")
    used = [*chosen, sets.MILLION, sets.SETS["large"]] if options.long else chosen
    size = sets.drive_size(used, options.scale)
    if options.source:
        return drives.Folders(options.source, options.target, size)
    tell(f"making two drives of {size / GIB:.1f} GiB in memory")
    # A buffered copier uses the page cache for both the read and the written data.
    return drives.LoopDrives(size, int(2 * options.scale * max(made.bytes for made in chosen)))


def choose(options):
    """(available contenders, messages about the missing ones)."""
    if not os.access(options.binary, os.X_OK):
        raise Problem(f"{options.binary} is not a program - build it (make build), or give --binary")
    here, absent = [], []
    before = os.path.abspath(options.before) if options.before else None
    for name, contender in contenders.all_of(os.path.abspath(options.binary), before).items():
        if name not in [*options.contenders, contenders.BEFORE]:
            continue
        missing = contender.missing()
        if missing:
            absent.append(f"{name}: not installed - package {' '.join(missing)}, or tools/setup.sh bench")
        else:
            here.append(contender)
    return here, absent


def report(results, found, order, absent, facts):
    medians = table.medians(results.points)
    print(f"# Staging, measured {facts['date']}\n\n{facts['drives']}; {facts['cpus']} CPUs ({facts['machine']}), "
          f"{facts['memory_bytes'] / GIB:.0f} GiB, kernel {facts['kernel']}; rounds: {facts['rounds']}.")
    if facts["scale"] != 1:
        print(f"The sets are scaled by {facts['scale']}: these numbers mean nothing.")
    print(f"\n{table.LEGEND}\n")
    for name, content in results.content.items():
        remarks = {who: words for (made, who), words in results.remarks.items() if made == name}
        print(table.of_set(content, medians.get(name, {}), remarks, order) + "\n")
    for words in absent:
        print(f"- {words}")
    verdicts = targets.judge(medians, found)
    print(("\n" if absent else "") + table.of_verdicts(verdicts))
    return verdicts


def wait_for_user(place):
    tell(f"kept: {place.source} and {place.target}, from elsewhere below /proc/{os.getpid()}/root - "
         f"Enter or ^C ends and removes it")
    try:
        sys.stdin.readline()
    except KeyboardInterrupt:
        pass


def main():
    options = arguments()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    chosen = [sets.SETS[name] for name in options.sets]
    taking_part, absent = choose(options)
    for words in absent:
        tell(words)
    place = open_drives(options, chosen)
    try:
        machine.adopt_orphans()
        facts = machine.facts() | {
            "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d %H:%M UTC"), "drives": place.kind,
            "rounds": options.rounds, "scale": options.scale,
            "versions": {one.name: one.version() for one in taking_part if one.copies}}
        results = rounds.run(place, chosen, taking_part, options.rounds, options.scale, tell)
        ours = {one.name: one for one in taking_part}.get(contenders.OURS)
        found = long.run(place, ours, options.scale, tell) if options.long and ours else {}
        verdicts = report(results, found, [one.name for one in taking_part], absent, facts)
        if options.json:
            Path(options.json).write_text(json.dumps(
                {"facts": facts, "sets": results.content, "points": results.points, "long": found,
                 "remarks": [[*key, words] for key, words in results.remarks.items()],
                 "targets": [vars(one) for one in verdicts]}, indent=1) + "\n", encoding="utf-8")
        if options.keep:
            wait_for_user(place)
    finally:
        place.close()
    broken = any(who == contenders.OURS for _, who in results.failed)
    missed = options.require and any(one.verdict == "missed" for one in verdicts)
    return 1 if broken or missed else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except Problem as problem:
        sys.exit(f"bench-staging: {problem}")
    except KeyboardInterrupt:
        sys.exit(130)
