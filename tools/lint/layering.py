"""Who may include whom. The table is docs/architecture.md's, and the arrows run one way only."""
import re

# Room -> what it may include of ours: rooms, or single headers. Its own headers always.
# The longest room that a path starts with is the one it is in.
ALLOWED = {
    "base": [],
    "nvmetcp": ["base"],
    "staging": ["base"],
    "bench": ["base", "staging/copy.hpp"],
    "daemon/config": ["base", "nvmetcp/types.hpp", "nvmetcp/validate.hpp"],
    "daemon/mounts": ["base"],
    "daemon": ["base", "nvmetcp", "staging", "bench", "daemon/config", "daemon/mounts"],
    "host": ["base", "nvmetcp", "daemon/config", "daemon/mounts/table.hpp"],
    "doctor": ["base", "nvmetcp", "daemon/config", "daemon/mounts/table.hpp", "host"],
    "cli": ["base", "nvmetcp", "staging", "bench", "daemon/config", "daemon/mounts/new_filesystem.hpp",
            "daemon/mounts/table.hpp", "host", "doctor"],
    "tests": ["base", "nvmetcp", "staging", "bench", "daemon/config", "daemon/mounts", "daemon", "host", "doctor",
              "cli"],
}

# Outside headers -> the only files that may see them (prefixes of paths). Tests see what they test through it.
ADAPTERS = [
    (r"libnvme\.h|nvme/.*", ["nvmetcp/libnvme_"]),
    (r"libmount/.*|blkid/.*", ["daemon/mounts/"]),
    (r"yaml-cpp/.*", ["daemon/config/"]),
    (r"sqlite3\.h", ["staging/catalog"]),
    (r"xxhash\.h|xxh3\.h", ["staging/hash."]),
    (r"liburing\.h", ["staging/uring"]),
    (r"systemd/sd-(device|event)\.h", ["daemon/uevents"]),
    (r"systemd/(?!sd-(device|event)\.h).*", ["daemon/systemd"]),
    (r"spdlog/.*|fmt/.*", ["daemon/log"]),
    (r"CLI/.*", ["cli/app.", "cli/verb.", "daemon/main."]),
    (r"boost/beast.*", ["daemon/api", "cli/client"]),
    (r"boost/asio.*", ["daemon/", "cli/client"]),
    (r"prometheus/.*", ["daemon/metrics/prometheus_text."]),
    (r"boost/json.*", ["base/json."]),
    (r"boost/math.*", ["bench/statistics."]),
    (r"tl/expected.hpp", ["base/result."]),
]

# The daemon thinks, workers touch: of these headers of ours its other parts may not even know.
WORKERS_ONLY = re.compile(r"nvmetcp/libnvme_.*|daemon/mounts/libmount_.*")
WORKERS = ("daemon/workers/", "daemon/mounts/", "daemon/main.")

_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*([<"])([^>"\n]+)[>"]', re.MULTILINE)


def room_of(path):
    return max((room for room in ALLOWED if path.startswith(room + "/")), key=len, default=None)


def includes_of(text):
    """(line, header, is it written with quotes) of every include."""
    return [(text.count("\n", 0, found.start()) + 1, found.group(2), found.group(1) == '"')
            for found in _INCLUDE.finditer(text)]


def _ours(path, header):
    room, other = room_of(path), room_of(header)
    if room == "daemon" and WORKERS_ONLY.fullmatch(header) and not path.startswith(WORKERS):
        return f'"{header}" may block: only {", ".join(place + "*" for place in WORKERS)} may use it in the daemon'
    if other == room:
        return None
    if other is None:
        if room == "tests" and "/" not in header:
            return None  # a test's helper beside it
        return f'"{header}" is in no room of ours: write the path from the top folder, or <> for an outside header'
    if other in ALLOWED[room] or header in ALLOWED[room]:
        return None
    return f'{room}/ may not include "{header}": it may use {", ".join(ALLOWED[room]) or "nothing of ours"}'


def _outside(path, header):
    for pattern, places in ADAPTERS:
        if re.fullmatch(pattern, header) and not path.startswith(tuple(places)):
            return f"<{header}> may be seen only by {', '.join(place + '*' for place in places)}"
    return None


def check(path, text):
    """Sentences about one file; path is relative to the top folder."""
    if room_of(path) is None:
        return []
    problems = []
    for line, header, quoted in includes_of(text):
        problem = _ours(path, header) if quoted else None if path.startswith("tests/") else _outside(path, header)
        if problem:
            problems.append(f"{path}:{line}: {problem}")
    return problems


def check_cycles(graph):
    """Sentences about circles in {header: [headers that it includes]}."""
    problems, done = [], set()

    def walk(node, trail):
        if node in trail:
            problems.append("headers include each other: " + " -> ".join(trail[trail.index(node):] + [node]))
        elif node not in done:
            for other in graph.get(node, []):
                walk(other, trail + [node])
            done.add(node)

    for node in sorted(graph):
        walk(node, [])
    return problems
