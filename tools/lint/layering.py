"""The allowed includes between folders: the table of docs/architecture.md, without cycles."""
import re

import sources


def rooms_of(page):
    """Folder -> its allowed includes of our headers: folders, folders of a folder ("X/*"), or single headers. Its own are
    always allowed."""
    rows = re.findall(r"^\| `([a-z_/]+)/` \|[^|]*\|([^|]*)\|$", page, re.MULTILINE)
    return {room: [one.strip() for one in allowed.split(",") if one.strip()] for room, allowed in rows}


# A path belongs to the longest folder in the table that it starts with.
ALLOWED = rooms_of((sources.ROOT / "docs/architecture.md").read_text())
# A program's main file, and tests, may use all folders.
ASSEMBLES = re.compile(r"(?:cli|daemon)/main\.cpp|tests/.*")

# External headers -> the only files that may include them (path prefixes). Tests include them through the code under test.
ADAPTERS = [
    (r"libnvme\.h|nvme/.*", [f"nvmetcp/{room}/libnvme_" for room in ("connect", "device", "reservations", "security")]),
    (r"libmount\.h|libmount/.*", ["daemon/mounts/libmount_call."]),
    (r"blkid\.h|blkid/.*", ["daemon/mounts/filesystems/identity."]),
    (r"ext2fs/.*", ["daemon/mounts/filesystems/mmp_claim."]),
    (r"yaml-cpp/.*", ["daemon/config/"]),
    (r"sqlite3\.h", ["staging/cache/catalog"]),
    (r"xxhash\.h|xxh3\.h", ["staging/manifest/hash."]),
    (r"linux/fuse\.h", ["staging/view/fuse/fuse_view."]),
    (r"liburing\.h", ["staging/files/io/uring"]),
    (r"systemd/sd-(device|event)\.h", ["daemon/uevents"]),
    (r"systemd/(?!sd-(device|event)\.h).*", ["daemon/systemd"]),
    (r"spdlog/.*|fmt/.*", ["daemon/log"]),
    (r"CLI/.*", ["cli/command_line/", "daemon/main."]),
    (r"openssl/.*", ["staging/models/sha256.", "fleet/transport/channel.", "csi/pods."]),
    (r"boost/beast.*", ["daemon/api", "cli/client/client.", "fleet/transport/http."]),
    (r"boost/asio.*", ["daemon/", "cli/client/client."]),
    (r"prometheus/.*", ["daemon/metrics/prometheus_text."]),
    (r"boost/json.*", ["base/json."]),
    (r"boost/(describe|mp11|pfr).*", ["base/described."]),
    (r"boost/math.*", ["bench/record/statistics."]),
    (r"json-c/.*", ["slurm/json."]),
    (r"slurm/spank\.h", ["slurm/plugin."]),
    (r"grpcpp/.*|google/protobuf/.*|(csi|registration)(\.grpc)?\.pb\.h", ["csi/server/"]),
    (r"tl/expected.hpp", ["base/result."]),
]

# The daemon decides, workers act: its other parts may not even include these headers.
WORKERS_ONLY = re.compile(r"nvmetcp/\w+/libnvme_.*|daemon/mounts/libmount_.*")
WORKERS = ("daemon/workers/", "daemon/mounts/", "daemon/main.")

_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*([<"])([^>"\n]+)[>"]', re.MULTILINE)


def room_of(path):
    return max((room for room in ALLOWED if path.startswith(room + "/")), key=len, default=None)


def _is_allowed(room, other, header):
    return any(one in (other, header) or (one.endswith("/*") and other.rpartition("/")[0] == one[:-2]) for one in ALLOWED[room])


def includes_of(text):
    """(line, header, is it quoted) of every include."""
    return [(text.count("\n", 0, found.start()) + 1, found.group(2), found.group(1) == '"')
            for found in _INCLUDE.finditer(text)]


def _ours(path, header):
    room, other = room_of(path), room_of(header)
    if path.startswith("daemon/") and WORKERS_ONLY.fullmatch(header) and not path.startswith(WORKERS):
        return f'"{header}" may block: only {", ".join(place + "*" for place in WORKERS)} may use it in the daemon'
    if other == room:
        return None
    if other is None:
        if path.startswith("tests/") and (header.startswith("tests/") or "/" not in header):
            return None  # a test's helper
        return f'"{header}" is in no room of ours: write the path from the top folder, or <> for an outside header'
    if ASSEMBLES.fullmatch(path) or _is_allowed(room, other, header):
        return None
    return f'{room}/ may not include "{header}": it may use {", ".join(ALLOWED[room]) or "nothing of ours"}'


def _outside(path, header):
    for pattern, places in ADAPTERS:
        if re.fullmatch(pattern, header) and not path.startswith(tuple(places)):
            return f"<{header}> may be seen only by {', '.join(place + '*' for place in places)}"
    return None


def check(path, text):
    """Problems of one file; path is relative to the top folder."""
    if room_of(path) is None and not path.startswith("tests/"):
        return []
    problems = []
    for line, header, quoted in includes_of(text):
        problem = _ours(path, header) if quoted else None if path.startswith("tests/") else _outside(path, header)
        if problem:
            problems.append(f"{path}:{line}: {problem}")
    return problems


def check_cycles(graph):
    """Cycles in {header: [headers that it includes]}."""
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
