"""Finds decisions that read another clock than the `Clock` seam, or wait by another timer than `Timer`.

Histories run the daemon's logic in virtual time (docs/testing.md). What waits in real time for the kernel, another process
or a peer, and what measures a duration, may read the steady clock. The wall clock is for the few files named here.
"""
import re

from sources import code_of, line_of

DECIDES = "the system's clock in a folder that decides: use the Clock seam, or steady_now() of daemon/timer.hpp"
WAITS = "another timer: use Timer or Event of daemon/timer.hpp and daemon/event.hpp"
ALIAS = "an alias of a clock in a header, which the check can't follow: name the clock itself"
WALL = "the wall clock: use the Clock seam, or add the file and its reason to tools/lint/clocks.py"

_FOLDERS = ("daemon/", "staging/cache/", "staging/leases/", "staging/manifest/", "staging/outputs/")
# Workers: they wait for the kernel, for peers, and for the space that other workers use.
_REAL_TIME = ("daemon/workers/verbs/", "daemon/mounts/", "staging/cache/room.cpp")
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
_WALL_NOW = re.compile(r"\b(?:system_clock|high_resolution_clock)::now\b|(?<!\w)(?:::|std::)time\(|\b(?:clock_gettime|gettimeofday)\(")
_TIMER = re.compile(r"\b(?:steady_timer|system_timer|high_resolution_timer)\b(?!\.hpp)")
_ALIAS = re.compile(r"\b(?:using\s+(\w+)\s*=\s*|typedef\s+)(?:\w*::)*(steady_clock|system_clock|high_resolution_clock)\b(?:\s+(\w+))?\s*;")


def named(code):
    """The code with each clock by its own name, where it is used by an alias; and the aliases: (place, clock)."""
    aliases = [(found.start(), found[2], found[1] or found[3]) for found in _ALIAS.finditer(code)]
    for _, clock, alias in aliases:
        code = re.sub(rf"\b{alias}::now\b", f"{clock}::now", code)
    return code, [(at, clock) for at, clock, _ in aliases]


def check(path, text):
    if path.startswith("tests/"):
        return []
    code, aliases = named(code_of(text))
    problems = []
    decides = path.startswith(_FOLDERS) and not path.startswith(_REAL_TIME) and path not in _TIMERS
    if decides:
        problems += [(found.start(), DECIDES) for found in _STEADY_NOW.finditer(code)]
    if path.startswith("daemon/") and path not in _TIMERS:
        problems += [(found.start(), WAITS) for found in _TIMER.finditer(code)]
    if path.endswith(".hpp"):
        problems += [(at, ALIAS) for at, clock in aliases if decides or clock != "steady_clock"]
    if not path.startswith(tuple(_WALL)):
        problems += [(found.start(), WALL) for found in _WALL_NOW.finditer(code)]
    return [f"{path}:{line_of(code, at)}: this is {why}" for at, why in sorted(problems)]
