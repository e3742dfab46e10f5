"""QEMU's monitor: one command at a time; events are ignored."""
import json
import subprocess

from .agent import connect
from .settings import patience


class Qmp:
    def __init__(self, path):
        self._socket = connect(path)
        self._socket.settimeout(patience(20))
        self._file = self._socket.makefile("rw")
        json.loads(self._file.readline())  # greeting
        self.execute("qmp_capabilities")

    def execute(self, command, **arguments):
        self._file.write(json.dumps({"execute": command, "arguments": arguments}) + "\n")
        self._file.flush()
        while True:
            answer = json.loads(self._file.readline())
            if "error" in answer:
                raise RuntimeError(f"QEMU refused {command} {arguments}: {answer['error']['desc']}")
            if "return" in answer:
                return answer["return"]

    def quit(self, process, deadline=10):
        """Ends QEMU regardless of its guest; returns whether it has ended."""
        try:
            self.execute("quit")
            process.wait(deadline)
        except (OSError, ValueError, RuntimeError, subprocess.TimeoutExpired):
            pass
        return process.poll() is not None

    def close(self):
        self._socket.close()
