"""The real program, run to its end or killed."""
import json
import os
import re
import subprocess
import time
from pathlib import Path

PROGRAM = Path(os.environ.get("SPARK_CRASH_PROGRAM", Path(__file__).parents[2] / "build/release/cli/spark-stage"))
PATIENCE_S = 120


class Copier:
    def __init__(self, source, copy, *options):
        self.source, self.copy = source, copy
        self.partial = copy.parent / f".{copy.name}.spark-partial"
        self.manifest = copy.parent / f".{copy.name}.spark-manifest"
        self.options = options
        self.command = [PROGRAM, "copy", source, copy, "--json", *options]

    def start(self, *options):
        return subprocess.Popen([*self.command, *options], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def run(self, *options):
        """Returns (exit status, stderr, what --json says)."""
        process = self.start(*options)
        out, err = process.communicate(timeout=PATIENCE_S)
        return process.returncode, err, json.loads(out) if process.returncode == 0 else {}

    def finish(self, *options):
        """A run that has to succeed; returns what --json says."""
        status, err, report = self.run(*options)
        assert status == 0, err
        return report

    def kill_after(self, seconds, begins=lambda: True, options=()):
        """kill -9 that many seconds after `begins` holds; returns whether it was still running."""
        process = self.start(*options)
        while process.poll() is None and not begins():
            time.sleep(0.0005)
        try:
            _, err = process.communicate(timeout=seconds)
            assert process.returncode == 0, err
            return False
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
            return True

    def is_copying(self):
        """From the moment on in which the first file is there: on a busy computer that is not at once."""
        return any(path.is_file() for path in (self.partial / "data").rglob("*"))

    def journal(self):
        try:
            return (self.partial / "journal").read_bytes()
        except OSError:
            return b""

    def has_journaled(self):
        """A piece of a large file, or a file with content, is known to be on the drive."""
        return re.search(rb' P |"size":[1-9].*"hash"', self.journal())

    def start_and_wait(self, begun, *options):
        """Starts a copy and waits until `begun` holds; it has to be under way then."""
        process = self.start(*options)
        end = time.monotonic() + PATIENCE_S
        while not begun():
            assert process.poll() is None and time.monotonic() < end, process.communicate()
            time.sleep(0.01)
        return process

    def is_publishing(self):
        """From the moment on in which the journal gives way to the manifest."""
        return (self.partial / "manifest").exists() or (
            (self.partial / "data").exists() and not (self.partial / "journal").exists())
