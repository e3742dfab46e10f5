"""The rig's end of the guest agent: runs commands in a machine over a virtio port, without any network."""
import base64
import itertools
import json
import signal
import socket
import threading
import time
from dataclasses import dataclass

from .settings import patience


class CommandFailed(AssertionError):
    """A command in a guest ended with an unexpected status."""


class GuestTimeout(AssertionError):
    """An event in a guest did not happen before its deadline."""


@dataclass(frozen=True)
class Result:
    rc: int
    out: str
    err: str


class Process:
    """A command that runs in a guest. `out` and `err` grow while it runs."""

    def __init__(self, agent, number, command, on_output):
        self.command = command
        self.rc = None
        self._agent = agent
        self._number = number
        self._on_output = on_output
        self._data = {1: b"", 2: b""}
        self._ended = threading.Event()

    @property
    def out(self):
        return self._data[1].decode(errors="surrogateescape")

    @property
    def err(self):
        return self._data[2].decode(errors="surrogateescape")

    def signal(self, wanted):
        """Sends a signal to the command's whole process group."""
        self._agent.send(id=self._number, signal=int(wanted))

    def wait_said(self, word, timeout=30):
        """Waits until the command has written `word` to either output."""
        end = time.monotonic() + patience(timeout)
        while word not in self.out + self.err:
            if self._ended.is_set() or time.monotonic() > end:
                raise GuestTimeout(f"{self._agent.name}: has not said '{word}' after {patience(timeout):.0f} s: "
                                   f"{self.command}\n{self.out}{self.err}")
            time.sleep(0.05)

    def wait(self, timeout):
        """Waits for the end and returns a Result; after the timeout, kills the command and raises."""
        if not self._ended.wait(patience(timeout)):
            self.signal(signal.SIGKILL)
            raise GuestTimeout(f"{self._agent.name}: still running after {patience(timeout):.0f} s: {self.command}\n"
                               f"{self.out}{self.err}")
        if self.rc is None:
            raise GuestTimeout(f"{self._agent.name}: the machine went away during: {self.command}\n{self.out}{self.err}")
        return Result(self.rc, self.out, self.err)

    def _take(self, message):
        if "rc" in message:
            self.rc = message["rc"]
            self._ended.set()
            return
        data = base64.b64decode(message["data"])
        self._data[message["fd"]] += data
        if self._on_output:
            self._on_output(data.decode(errors="replace"))

    def _abandon(self):
        self._ended.set()


class Agent:
    """Connects to QEMU's end of the port; a command sent before the guest is up runs as soon as it is."""

    def __init__(self, name, path):
        self.name = name
        self._processes = {}
        self._numbers = itertools.count(1)
        self._lock = threading.Lock()
        self._socket = connect(path)
        threading.Thread(target=self._receive, daemon=True).start()

    def start(self, command, stdin=b"", on_output=None):
        process = Process(self, next(self._numbers), command, on_output)
        self._processes[process._number] = process
        self.send(id=process._number, run=command, stdin=base64.b64encode(stdin).decode())
        return process

    def ask(self, what, *arguments):
        """Requests that the agent handles itself: "http" SOCKET METHOD PATH BODY, "write" PATH BASE64 MODE, "read" PATH."""
        process = Process(self, next(self._numbers), f"{what} {' '.join(str(one)[:80] for one in arguments)}", None)
        self._processes[process._number] = process
        self.send(id=process._number, ask=what, arguments=arguments)
        return process

    def send(self, **message):
        with self._lock:
            self._socket.sendall((json.dumps(message) + "\n").encode())

    def close(self):
        self._socket.close()

    def _receive(self):
        buffered = b""
        while data := self._read():
            *lines, buffered = (buffered + data).split(b"\n")
            for line in lines:
                message = json.loads(line)
                if process := self._processes.get(message["id"]):
                    process._take(message)
        for process in list(self._processes.values()):
            process._abandon()

    def _read(self):
        try:
            return self._socket.recv(1 << 16)
        except OSError:
            return b""


def connect(path, deadline=20):
    """Retries, since QEMU creates the socket some time after its start."""
    end = time.monotonic() + patience(deadline)
    while True:
        channel = socket.socket(socket.AF_UNIX)
        try:
            channel.connect(path)
            return channel
        except OSError:
            channel.close()
            if time.monotonic() > end:
                raise
            time.sleep(0.05)
