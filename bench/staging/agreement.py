"""Does the benchmark's `stagecopy` tell what `spark-stage copy` does? Both copy one large file, in turns, cold."""
import json
import os
import statistics

import machine
import measure
from machine import GIB, MIB, Problem
from sets import SETS

FILE_BYTES = GIB
WITHIN = 0.05
FILES_OF_A_PATH = 4   # `bench --size` is of so many files together; stagecopy copies one of them
_WRITE = MIB


def _write_file(path, size):
    with open(path, "wb", buffering=0) as file:
        for _ in range(size // _WRITE):
            file.write(os.urandom(_WRITE))
        os.fsync(file.fileno())


def _answer(what, command):
    measured = measure.run(command)
    if measured.status != 0:
        raise Problem(f"{what} failed: {measured.errors or measured.status}")
    return json.loads(measured.output)


def _benchmarked(binary, drives, size):
    """Bytes per second of the valid rounds, the warm-up left out."""
    command = (f"{binary} bench source={drives.source} local={drives.target} --scenario stagecopy --rounds 1 "
               f"--max-rounds 1 --size {FILES_OF_A_PATH * size}B --runs {drives.target}/runs --json -")
    cells = [cell for cell in _answer("spark-stage bench", command)["cells"] if cell["round"] > 0]
    rates = [cell["bytes"] / cell["seconds"] for cell in cells if cell["status"] == "valid"]
    if not rates:
        raise Problem(f"spark-stage bench has no valid stagecopy: {[cell['reasons'] for cell in cells]}")
    return statistics.median(rates)


def _copied(binary, drives):
    command = f"{binary} copy {drives.source}/file {drives.target}/copy --json"
    rate = _answer("spark-stage copy", command)["bytes_per_second"]
    os.remove(f"{drives.target}/copy")
    return rate


def run(drives, binary, rounds, scale, tell):
    """{"bench": rate, "copy": rate, "ratio": of the two}: medians, bytes per second."""
    size = max(int(FILE_BYTES * scale), MIB)
    drives.empty_source(SETS["large"].mkfs)
    drives.empty_target()
    machine.apart(_write_file, f"{drives.source}/file", size)
    rates = {"bench": [], "copy": []}
    for number in range(rounds + 1):   # the first one finds its memory, and the best way to copy, new
        drives.cold()
        benchmarked = _benchmarked(binary, drives, size)
        drives.cold()
        copied = _copied(binary, drives)
        tell(f"round {number}: bench {benchmarked / MIB:,.0f} MiB/s, copy {copied / MIB:,.0f} MiB/s")
        if number > 0:
            rates["bench"].append(benchmarked)
            rates["copy"].append(copied)
    middle = {name: statistics.median(values) for name, values in rates.items()}
    return middle | {"ratio": middle["bench"] / middle["copy"]}


def in_words(found):
    verdict = "met" if abs(found["ratio"] - 1) <= WITHIN else "missed"
    return (f"stagecopy of `spark-stage bench`: {found['bench'] / MIB:,.0f} MiB/s, `spark-stage copy`: "
            f"{found['copy'] / MIB:,.0f} MiB/s; ratio {found['ratio']:.2f}, wanted 0.95 to 1.05: {verdict}")
