"""Finds decisions that read another clock than the `Clock` seam, or wait by another timer than `Timer`.

Histories run the daemon's logic in virtual time (docs/testing.md). What waits in real time for the kernel, another process
or a peer, and what measures a duration, may read the steady clock. The wall clock is for the few files named here.
"""
import re

from sources import code_of, line_of

DECIDES = "the system's clock in a folder that decides: use the Clock seam, or steady_now() of daemon/timer.hpp"
WAITS = "another timer: use Timer or Event of daemon/timer.hpp and daemon/event.hpp"
WALL = "the wall clock: use the Clock seam, or add the file and its reason to tools/lint/clocks.py"

_FOLDERS = ("daemon/", "staging/cache/", "staging/leases/", "staging/manifest/", "staging/outputs/")
_REAL_TIME = ("daemon/workers/verbs/", "daemon/mounts/")  # workers: wait for the kernel and for peers
_TIMERS = ("daemon/timer.cpp", "daemon/event.hpp")
_WALL = {
    "base/clock.hpp": "the Clock of the real host",
    "daemon/mounts/filesystems/mmp_claim.cpp": "a field of ext4's multi-mount protection, for people",
    "daemon/workers/verbs/fleet.cpp": "the age of a board's file, which another process writes",
    "fleet/board/board.cpp": "the age of a board's file, which another process writes",
    "bench/": "dates of a record, and the age of leftover files",
    "csi/server/": "gRPC's deadlines are times of day",
}
_STEADY_NOW = re.compile(r"\bsteady_clock::now\b")
_WALL_NOW = re.compile(r"\bsystem_clock::now\b|(?<!\w)(?:::|std::)time\(|\b(?:clock_gettime|gettimeofday)\(")
_TIMER = re.compile(r"\b(?:steady_timer|system_timer|high_resolution_timer)\b(?!\.hpp)")


def check(path, text):
    if path.startswith("tests/"):
        return []
    code = code_of(text)
    problems = []
    decides = path.startswith(_FOLDERS) and not path.startswith(_REAL_TIME) and path not in _TIMERS
    if decides:
        problems += [(found.start(), DECIDES) for found in _STEADY_NOW.finditer(code)]
    if path.startswith("daemon/") and path not in _TIMERS:
        problems += [(found.start(), WAITS) for found in _TIMER.finditer(code)]
    if not path.startswith(tuple(_WALL)):
        problems += [(found.start(), WALL) for found in _WALL_NOW.finditer(code)]
    return [f"{path}:{line_of(code, at)}: this is {why}" for at, why in sorted(problems)]
