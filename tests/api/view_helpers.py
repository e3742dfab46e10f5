"""Processes for tests of a live view. A process that waits in the view's file system may be unkillable until a daemon answers, so none of
them may be the test's own, hold the connection, or start a daemon.

Run as a program, the file is one of them: `read`, `early`, `keep`, `start`, `once`, `crowd`."""
import ctypes
import fcntl
import json
import mmap
import os
import random
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

BLOCK = 65536
DEADLINE_S = 240  # then the connections that are kept end, and all readers with them


class Helper:
    """A helper process: `lines` are read and written as JSON."""

    def __init__(self, *arguments, program=__file__):
        self.process = subprocess.Popen([sys.executable, program, *map(str, arguments)], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        text=True)

    def hear(self):
        return json.loads(self.process.stdout.readline())

    def tell(self):
        """Lets it go on, or end."""
        self.process.stdin.write("\n")
        self.process.stdin.flush()

    def end(self, patience_s=60):
        out, _ = self.process.communicate(timeout=patience_s)
        return json.loads(out) if out else None


def reader(path, source, seed, count=0):
    """Reads at random, `count` times or until told, and compares with the source. Its end says {"right", "wrong"}."""
    return Helper("read", path, source, seed, count)


def early(path, source):
    """Has the file open and mapped; told to go on, reads all of it."""
    helper = Helper("early", path, source)
    assert helper.hear() == "open"
    return helper


def mounts_on(folder, process="self"):
    """Lines of mountinfo."""
    return [line for line in Path(f"/proc/{process}/mountinfo").read_text().splitlines() if line.split()[4] == str(folder)]


def connections(folder, process="self"):
    """The numbers of the FUSE connections that are mounted there."""
    return [int(line.split()[2].split(":")[1]) for line in mounts_on(folder, process) if " - fuse" in line]


def abort(numbers):
    """Ends connections, and with them all of their readers: one that can't be killed would be left for ever."""
    with tempfile.TemporaryDirectory() as control:
        subprocess.run(["mount", "-t", "fusectl", "none", control], check=True)
        try:
            for number in numbers:
                one = Path(control, str(number), "abort")
                if one.exists():
                    one.write_text("1")
        finally:
            subprocess.run(["umount", control], check=True)


def once(path, at, way, alarms=False):
    """Reads one block, `way`: read, direct, map, random. Its end says what came, the errno, and how many signals were handled."""
    helper = Helper("once", path, at, way, int(alarms))
    assert helper.hear() == "reads"
    return helper


def crowd(path, count, step):
    """So many threads that each wait for a page of its own; told to, it ends."""
    helper = Helper("crowd", path, count, step)
    assert helper.hear() == "reads"
    return helper


def is_told():
    os.set_blocking(0, False)
    try:
        return bool(os.read(0, 1))
    except BlockingIOError:
        return False


def _read(path, source, seed, count):
    right = Path(source).read_bytes()
    where, done, wrong = random.Random(int(seed)), 0, []
    with open(path, "rb", buffering=0) as file:
        while done < int(count) if int(count) else not is_told():
            at = where.randrange(len(right) - BLOCK)
            try:
                got = os.pread(file.fileno(), BLOCK, at)
            except OSError as failure:
                got = str(failure)
            if got != right[at:at + BLOCK]:
                wrong.append([at, got if isinstance(got, str) else "other bytes"])
            done += 1
    print(json.dumps({"right": done - len(wrong), "wrong": wrong[:5]}))


def _early(path, source):
    right = Path(source).read_bytes()
    with open(path, "rb", buffering=0) as file, mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ) as mapped:
        print(json.dumps("open"), flush=True)
        sys.stdin.readline()
        print(json.dumps({"read": file.read() == right, "mapped": mapped[:] == right}))


def _once(path, at, way, alarms):
    libc, handled = ctypes.CDLL(None, use_errno=True), []
    file, buffer = os.open(path, os.O_RDONLY | (os.O_DIRECT if way == "direct" else 0)), mmap.mmap(-1, BLOCK)
    mapped = mmap.mmap(file, 0, prot=mmap.PROT_READ)
    if way == "random":
        mapped.madvise(mmap.MADV_RANDOM)
    if int(alarms):
        signal.signal(signal.SIGALRM, lambda *_: handled.append(1))
        signal.siginterrupt(signal.SIGALRM, False)
        signal.setitimer(signal.ITIMER_REAL, 0.05, 0.05)
    print(json.dumps("reads"), flush=True)
    failed, at = 0, int(at)
    if way in ("map", "random"):
        got = mapped[at:at + BLOCK]
    else:  # not Python's own, which reads again after EINTR
        if libc.pread(file, ctypes.byref(ctypes.c_char.from_buffer(buffer)), BLOCK, ctypes.c_long(at)) != BLOCK:
            failed = ctypes.get_errno() or -1
        got = buffer[:]
    signal.setitimer(signal.ITIMER_REAL, 0)
    print(json.dumps({"errno": failed, "handled": len(handled), "got": got.hex()}))


def _crowd(path, count, step):
    """Half of them direct, so that each has a request of its own; the others read through the page cache, without read-ahead."""
    threading.stack_size(64 << 10)
    buffered, direct = os.open(path, os.O_RDONLY), os.open(path, os.O_RDONLY | os.O_DIRECT)
    os.posix_fadvise(buffered, 0, 0, os.POSIX_FADV_RANDOM)
    pages = mmap.mmap(-1, 4096)
    for number in range(int(count)):
        way = (lambda at: os.preadv(direct, [pages], at)) if number % 2 else (lambda at: os.pread(buffered, 4096, at))
        threading.Thread(target=way, args=(number * int(step),), daemon=True).start()
    time.sleep(0.5)
    print(json.dumps("reads"), flush=True)
    sys.stdin.readline()


class Manager:
    """Keeps descriptors for a daemon in a process of its own, as systemd does: FDSTORE=1, FDSTOREREMOVE=1, LISTEN_FDS."""

    def __init__(self, folder, deadline_s=DEADLINE_S):
        self.folder = folder
        self.keeper = Helper("keep", folder, deadline_s)
        assert self.keeper.hear() == "keeps"

    def within(self):
        """The daemon's command begins with this."""
        return [sys.executable, __file__, "start", self.folder]

    def end(self):
        self.keeper.process.kill()
        self.keeper.process.wait()


def _keep(folder, deadline_s):
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG: it ends with the test
    signal.alarm(int(deadline_s))
    notices, starts = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM), socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    notices.bind(f"{folder}/notify")
    starts.bind(f"{folder}/starts")
    starts.listen()
    notices.setblocking(False)
    starts.settimeout(0.02)
    print(json.dumps("keeps"), flush=True)
    kept = {}
    while True:
        try:
            asking, _ = starts.accept()
        except TimeoutError:
            asking = None
        while True:
            try:
                text, descriptors, _, _ = socket.recv_fds(notices, 4096, 16)
            except BlockingIOError:
                break
            fields = dict(line.split("=", 1) for line in text.decode().split("\n") if "=" in line)
            if "FDSTORE" in fields:
                kept[fields["FDNAME"]] = descriptors[0]
            if "FDSTOREREMOVE" in fields and fields["FDNAME"] in kept:
                os.close(kept.pop(fields["FDNAME"]))
        if asking:
            socket.send_fds(asking, [":".join(kept).encode() or b"-"], list(kept.values()))
            asking.close()


def _start(folder, *command):
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as asking:
        asking.connect(f"{folder}/starts")
        names, descriptors, _, _ = socket.recv_fds(asking, 4096, 64)
    high = [fcntl.fcntl(one, fcntl.F_DUPFD, 100) for one in descriptors]
    for i, one in enumerate(high):
        os.dup2(one, 3 + i, inheritable=True)
    os.closerange(3 + len(high), 200)
    os.environ |= {"NOTIFY_SOCKET": f"{folder}/notify", "LISTEN_PID": str(os.getpid()), "LISTEN_FDS": str(len(high)),
                   "LISTEN_FDNAMES": "" if names == b"-" else names.decode()}
    os.execv(command[0], command)


if __name__ == "__main__":
    {"read": _read, "early": _early, "keep": _keep, "start": _start, "once": _once, "crowd": _crowd}[sys.argv[1]](*sys.argv[2:])
