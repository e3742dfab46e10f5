"""Measures one command from start to end: time, CPU, memory."""
import os
import signal
import subprocess
import tempfile
import threading
import time
from dataclasses import dataclass

import machine

_SAMPLE_S = 0.02


@dataclass
class Measured:
    seconds: float
    cpu_seconds: float            # user + system time of the command and its children
    machine_cpu_seconds: float    # of the whole machine in that time, including the kernel's own threads
    memfree_drop_bytes: int       # largest decrease of MemFree
    peak_rss_bytes: int           # of its largest process
    status: int
    output: str
    errors: str


class _Watch(threading.Thread):
    """Samples MemFree, and ends the command after its time limit."""

    def __init__(self, child, limit_s):
        super().__init__(daemon=True)
        self._child, self._limit_s, self._over = child, limit_s, threading.Event()
        self._meminfo = os.open("/proc/meminfo", os.O_RDONLY)
        self._first = self._lowest = self._free()
        self.timed_out = False

    def _free(self):
        return machine.memory("MemFree", os.pread(self._meminfo, 256, 0).decode())

    def run(self):
        began = time.monotonic()
        while not self._over.wait(_SAMPLE_S):
            self._lowest = min(self._lowest, self._free())
            if time.monotonic() - began > self._limit_s:
                self.timed_out = True
                end_group(self._child)
                return

    def drop(self):
        self._over.set()
        self.join()
        self._lowest = min(self._lowest, self._free())
        os.close(self._meminfo)
        return self._first - self._lowest


def end_group(child):
    try:
        os.killpg(child.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass


def wait_all(child):
    """Waits for the command and for its background processes; (status, CPU seconds, peak resident bytes)."""
    status, cpu, peak = None, 0.0, 0
    while True:
        try:
            pid, ended, usage = os.wait4(-1, 0)
        except ChildProcessError:
            return status, cpu, peak
        cpu += usage.ru_utime + usage.ru_stime
        peak = max(peak, usage.ru_maxrss * 1024)
        if pid == child.pid:
            status = child.returncode = os.waitstatus_to_exitcode(ended)


def run(command, limit_s=1800, kill_after_s=None):
    """Runs a shell command. `kill_after_s`: sends SIGKILL to all of its processes at that time."""
    with (tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors,
          tempfile.TemporaryDirectory() as scratch):
        busy = machine.busy_seconds()
        began = time.monotonic()
        # setpriv: the child dies with us, even if we are killed.
        child = subprocess.Popen(["setpriv", "--pdeathsig", "KILL", "--", "sh", "-c", command], stdout=output,
                                 stderr=errors, stdin=subprocess.DEVNULL, start_new_session=True,
                                 env=os.environ | {"TMPDIR": scratch, "LC_ALL": "C.UTF-8"})
        try:
            watch = _Watch(child, limit_s if kill_after_s is None else kill_after_s)
            watch.start()
            status, cpu, peak = wait_all(child)
            seconds = time.monotonic() - began
            drop = watch.drop()
        except BaseException:
            end_group(child)
            wait_all(child)   # no process may use the drives when they are removed
            raise
        output.seek(0)
        errors.seek(0)
        message = errors.read().decode(errors="replace").strip()
        if watch.timed_out and kill_after_s is None:
            message = f"not done after {limit_s} s"
        return Measured(seconds, cpu, machine.busy_seconds() - busy, drop, peak, status,
                        output.read().decode(errors="replace"), message)
