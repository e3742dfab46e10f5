"""Runs the unit tests of a build in shards and says what became of every case: tools/shards.py BUILD_FOLDER [JOBS [SECONDS]].

For a computer on which not everything can run (tools/borrowed.sh): skipped cases are listed with their reasons, failed ones with
the programs that are missing there and named in their output, and cases that never ended are counted. SECONDS is the deadline of
all together. Exit status 1 if a case failed for another reason than a missing program, or did not run.
"""
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

# What tests call, beside the shell's usual programs.
CALLED = ("fio", "gnuplot", "rsync", "mkfs.ext4", "mkfs.xfs", "strace", "setfacl", "setfattr", "ip", "unshare", "nsenter")
CASES_PER_SHARD = 30
EVENT = re.compile(r"\[\s*(RUN|OK|FAILED|SKIPPED)\s*\] ([\w./]+)(?:,| \(|$)")


@dataclass
class Case:
    name: str
    result: str  # OK, FAILED, SKIPPED, or why it has none
    output: str


def cases_of(program):
    """The number of cases that are not disabled."""
    done = subprocess.run([program, "--gtest_list_tests"], capture_output=True, text=True, timeout=120, check=False)
    names = [line for line in done.stdout.splitlines() if line.startswith("  ") and not line.strip().startswith("DISABLED_")]
    return len(names) if done.returncode == 0 else None


def results_in(text, why_unfinished):
    cases, begun, lines = [], None, []
    for line in text.splitlines():
        event = EVENT.search(line)
        if event and event[1] == "RUN":
            if begun:
                cases.append(Case(begun, why_unfinished, "\n".join(lines)))
            begun, lines = event[2], []
        elif event and event[2] == begun:
            cases.append(Case(begun, event[1], "\n".join(lines)))
            begun = None
        elif begun:
            lines.append(line)
    if begun:
        cases.append(Case(begun, why_unfinished, "\n".join(lines)))
    return cases


def run_shard(program, shard, shards, end):
    """All of its cases that began."""
    left = end - time.monotonic()
    if left <= 0:
        return []
    environment = os.environ | {"GTEST_TOTAL_SHARDS": str(shards), "GTEST_SHARD_INDEX": str(shard)}
    with tempfile.TemporaryFile("w+", errors="replace") as output:
        process = subprocess.Popen([program], env=environment, stdout=output, stderr=subprocess.STDOUT)
        try:
            why = f"ended with status {process.wait(timeout=left)}"
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            why = "was running at the deadline"
        output.seek(0)
        return results_in(output.read(), why)


def reason_of(case):
    """Of a skipped one: the line behind 'FILE:LINE: Skipped'."""
    lines = [line for line in case.output.splitlines() if line.strip()]
    at = next((i for i, line in enumerate(lines) if line.endswith(": Skipped")), -1)
    return lines[at + 1] if at + 1 < len(lines) else "no reason was given"


def report(cases, expected, missing):
    """Prints the record. True if every case ran, and none failed but for a missing program."""
    counts = Counter(case.result if case.result in ("OK", "SKIPPED") else "FAILED" for case in cases)
    print(f"shards: {expected} cases: {counts['OK']} passed, {counts['SKIPPED']} skipped, {counts['FAILED']} failed, "
          f"{expected - len(cases)} did not run")
    print(f"shards: programs that are missing here: {' '.join(missing) or 'none'}")
    skipped = defaultdict(list)
    for case in cases:
        if case.result == "SKIPPED":
            skipped[reason_of(case)].append(case.name)
    for reason, names in sorted(skipped.items()):
        print(f"shards: skipped: {reason}: {' '.join(sorted(names))}")
    failed = sorted((case for case in cases if case.result not in ("OK", "SKIPPED")), key=lambda one: one.name)
    named = {case.name: [name for name in missing if re.search(rf"(?<![\w.-]){re.escape(name)}(?![\w-])", case.output)] for case in failed}
    of_suite = defaultdict(set)
    for name, programs in named.items():
        of_suite[name.split(".")[0]].update(programs)
    for case in failed:
        why = "" if case.result == "FAILED" else f", {case.result}"
        if named[case.name]:
            why += f"; names what is missing here: {' '.join(named[case.name])}"
        elif of_suite[case.name.split(".")[0]]:
            why += f"; others of its suite name what is missing here: {' '.join(sorted(of_suite[case.name.split('.')[0]]))}\n{case.output}"
        else:
            why += f"\n{case.output}"
        print(f"shards: failed: {case.name}{why}")
    return len(cases) == expected and all(named[case.name] and case.result == "FAILED" for case in failed)


def main(build, jobs, seconds):
    end = time.monotonic() + seconds
    programs = sorted(path for path in Path(build, "tests/unit").rglob("spark_*_tests") if path.is_file() and os.access(path, os.X_OK))
    if not programs:
        sys.exit(f"shards: {build} has no unit tests")
    missing = [name for name in CALLED if not shutil.which(name)]
    numbers = {program: cases_of(program) for program in programs}
    for program in programs:
        if numbers[program] is None:
            sys.exit(f"shards: {program} does not start")
    expected, work, cases = sum(numbers.values()), [], []
    for program, number in sorted(numbers.items(), key=lambda one: -one[1]):  # the largest first, so that no long one is last
        shards = -(-number // CASES_PER_SHARD)
        work += [(program, shard, shards) for shard in range(shards)]
        print(f"shards: {program.name}: {number} cases in {shards} processes", flush=True)
    with ThreadPoolExecutor(jobs) as pool:
        for done in pool.map(lambda one: run_shard(*one, end), work):
            cases += done
    sys.exit(0 if report(cases, expected, missing) else 1)


if __name__ == "__main__":
    if not 2 <= len(sys.argv) <= 4:
        sys.exit("usage: tools/shards.py BUILD_FOLDER [JOBS [SECONDS]]")
    main(sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else os.cpu_count(), float(sys.argv[3]) if len(sys.argv) > 3 else 3600)
