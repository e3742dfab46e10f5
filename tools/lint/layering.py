"""The allowed includes. Between the top folders: the table of docs/architecture.md. Between deeper ones: the libraries that a
folder's CMakeLists.txt links, with those that these show (PUBLIC). Without cycles."""
import re

import sources


def rooms_of(page):
    """Top folder -> what it may use of others besides base: folders with all below them, or single headers."""
    rows = re.findall(r"^\| `([a-z_]+)/` \|[^|]*\|([^|]*)\|$", page, re.MULTILINE)
    return {room: [one.strip() for one in allowed.split(",") if one.strip()] for room, allowed in rows}


_CALL = re.compile(r"(spark_library|add_executable|add_library|target_link_libraries)\(\s*([\w-]+)([^()]*)\)")


def links_of(cmake_lists):
    """Folder -> folders that it links, from {folder: text of its CMakeLists.txt}. A line `# May include: FOLDER` adds one whose
    library links this one. A spark_program() is its main file alone, which may use all."""
    place, direct, shown, more = {}, {folder: set() for folder in cmake_lists}, {}, {}
    for folder, text in cmake_lists.items():
        more[folder] = {one for line in re.findall(r"^# May include: (.*)$", text, re.MULTILINE) for one in line.split(", ")}
        for call, name, body in _CALL.findall(re.sub(r"#[^\n]*", "", text)):
            if call != "target_link_libraries":
                place[name] = folder
            direct[folder] |= set(re.findall(r"\bspark_\w+", body))
            public = re.search(r"\bPUBLIC\b(.*?)(?:\bPRIVATE\b|$)", body, re.DOTALL)
            shown.setdefault(name, set()).update(re.findall(r"\bspark_\w+", public.group(1)) if public else ())
    top = {name: folder.split("/")[0] for name, folder in place.items()}
    links = {}
    for folder, libraries in direct.items():
        own, found, left = folder.split("/")[0], set(), list(libraries)
        while left:
            library = left.pop()
            if library in found:
                continue
            found.add(library)
            # Another top folder's library shows its own folder's, and not what that uses of others.
            left += [one for one in shown.get(library, ()) if top.get(library) in (own, top.get(one))]
        links[folder] = ({place[one] for one in found if one in place} | more[folder]) - {folder}
    return links


ALLOWED = rooms_of((sources.ROOT / "docs/architecture.md").read_text())
_LISTS = {path.parent.relative_to(sources.ROOT).as_posix(): path.read_text() for path in sources.files("CMakeLists.txt")}
LINKED = links_of({folder: text for folder, text in _LISTS.items() if folder.split("/")[0] in ALLOWED and not folder.startswith("tests")})
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
    """A path belongs to the deepest folder with a CMakeLists.txt."""
    return max((room for room in LINKED if path.startswith(room + "/")), key=len, default=None)


def why_not(room, other, header):
    """Why the folder may not include the header of the other; empty if it may."""
    top = room.split("/")[0]
    fits = [one for one in ("base", *ALLOWED[top]) if header == one or header.startswith(one + "/")]
    if other.split("/")[0] != top and not fits:
        return f"{top}/ may use {', '.join(('base', *ALLOWED[top]))} (docs/architecture.md)"
    # A single header that the table names has no library, or is used without it.
    if other in LINKED[room] or header in fits:
        return ""
    return f"its CMakeLists.txt links {', '.join(sorted(LINKED[room])) or 'nothing of ours'}"


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
    reason = "" if ASSEMBLES.fullmatch(path) else why_not(room, other, header)
    return f'{room}/ may not include "{header}": {reason}' if reason else None


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
