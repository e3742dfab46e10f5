"""One virtual machine: its life, its commands, its faults."""
import base64
import ctypes
import io
import os
import signal
import subprocess
import tarfile
import time
import uuid
from pathlib import Path

from . import emulator
from .agent import Agent, CommandFailed, GuestTimeout
from .disks import blank
from .image import ROOT_PARTUUID
from .qmp import Qmp
from .settings import patience
from .wire import NETWORK

class Machine:
    """number: last byte of its address, unique on the wire. disks: extra NVMe drives, see disk():
    sizes in bytes, or raw images that the machine then uses.

    files: {absolute path: text or bytes} present from the first boot on. Disks are in `folder` and exist as long as it,
    through kill() and start(): a power loss loses only data that the guest had not written to its disk.
    """

    def __init__(self, name, number, image, kernel, wire, folder, *, accelerator="tcg", cpus=2, memory="1G", disks=(),
                 files=None, append=""):
        self.name = name
        self.address = f"{NETWORK}.{number}"
        self.kernel = kernel
        machine_id = uuid.uuid5(uuid.NAMESPACE_DNS, f"{name}.rig.spark-stage")
        self.hostnqn = f"nqn.2014-08.org.nvmexpress:uuid:{machine_id}"
        self._wire = wire
        self._folder = Path(folder)
        self._folder.mkdir(parents=True)
        self._process = self._agent = self._qmp = None
        self._frozen = False
        self._cpu_of_past_lives = 0.0
        self._arguments = [
            *emulator.command(), "-name", name, "-nodefaults", "-no-user-config", "-display", "none",
            *emulator.board(accelerator), "-smp", str(cpus), "-m", memory,
            "-kernel", str(kernel.image), "-append",
            f"root=PARTUUID={ROOT_PARTUUID} rootwait rootfstype=ext4 rw net.ifnames=0 panic=-1 "
            f"{emulator.KERNEL_ARGUMENTS} "
            f"systemd.hostname={name} systemd.machine_id={machine_id.hex} systemd.show_status=no "
            f"rig.address={self.address}/24 {append}", "-no-reboot",
            "-uuid", str(uuid.uuid5(uuid.NAMESPACE_DNS, f"{name}.board.rig.spark-stage")),
            "-chardev", f"file,id=console,append=on,path={self._folder}/console.log", "-serial", "chardev:console",
            "-qmp", f"unix:{self._folder}/qmp,server=on,wait=off",
            "-device", "virtio-rng-pci", "-device", "virtio-serial-pci",
            "-chardev", f"socket,id=agent,path={self._folder}/agent,server=on,wait=off",
            "-device", "virtserialport,chardev=agent,name=rig.agent",
            "-fw_cfg", f"name=opt/rig/files,file={self._write_files(files or {})}",
            *self._make_disks(image, disks), *wire.arguments(number)]

    # --- life ---

    def start(self):
        # The kernel may hold the locks of a killed QEMU for a moment longer, so retry.
        for attempt in range(10):
            try:
                return self._start_once()
            except RuntimeError:
                if attempt == 9 or self.is_running():
                    raise
                time.sleep(1)

    def _start_once(self):
        # PR_SET_PDEATHSIG is about the thread that starts the child: call start() from the main thread only.
        parent = os.getpid()
        console = self._folder / "console.log"
        self._console_begin = console.stat().st_size if console.exists() else 0
        with open(self._folder / "qemu.log", "ab") as log:
            self._process = subprocess.Popen(self._arguments, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                             preexec_fn=lambda: _die_with(parent))
        try:
            self._agent = Agent(self.name, str(self._folder / "agent"))
            self._qmp = Qmp(str(self._folder / "qmp"))
        except OSError as error:
            raise RuntimeError(f"{self.name}: QEMU did not start: {error}\n{(self._folder / 'qemu.log').read_text()}")
        self._wire.widen(self._process.pid)

    def wait_ready(self, deadline=120, until=""):
        """Waits until commands run and the network interface has its address, then until a command succeeds, if one is
        given. The deadline applies to each.

        Some boots fail because of the emulator, before any of our code runs: about one in fifty ends in a reset within two
        seconds, and on a busy computer about one in several hundred has a CPU with a dead timer. Those machines are started
        again. The agent answers without the timer, so a first command may be what detects this.
        """
        for attempt in range(3):
            try:
                self._wait_up(deadline)
                if until:
                    self.wait_until(until, deadline)
                return
            except GuestTimeout:
                fault = "ended while it booted" if not self.is_running() else self._timer_fault()
                if not fault or attempt == 2:
                    raise
                print(f"rig: {self.name} {fault} and is started again", flush=True)
                self.kill()
                self.start()

    def _wait_up(self, deadline):
        end = time.monotonic() + patience(deadline)
        while (missing := self._ask("is-up", max(1, end - time.monotonic()) / patience(1))) != "yes":
            if time.monotonic() > end:
                raise GuestTimeout(f"{self.name}: {missing} after {patience(deadline):.0f} s")
            time.sleep(0.2)

    def _timer_fault(self):
        with open(self._folder / "console.log", errors="replace") as console:
            console.seek(self._console_begin)
            return "has lost a CPU's timer" if "timer wakeup didn't happen" in console.read() else ""

    def is_running(self):
        return self._process is not None and self._process.poll() is None

    def cpu_seconds(self):
        """CPU seconds of the emulator, over all starts of this machine except those that the guest ended itself."""
        if not self.is_running():
            return self._cpu_of_past_lives
        fields = Path(f"/proc/{self._process.pid}/stat").read_text().rpartition(")")[2].split()
        return self._cpu_of_past_lives + (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def kill(self):
        """Power loss."""
        if self._process is None:
            return
        # "quit" stops the guest at once, but QEMU first writes its metadata to the qcow2 file. A killed QEMU would lose
        # that metadata, and the guest's file system would be damaged although the guest had flushed it.
        self._cpu_of_past_lives = self.cpu_seconds()
        if not (self._qmp and self._qmp.quit(self._process)):
            self._process.kill()
        self._process.wait()
        for channel in filter(None, (self._agent, self._qmp)):
            channel.close()
        self._process = self._agent = self._qmp = None
        self._frozen = False

    def poweroff(self, deadline=60, verb="poweroff", command=None):
        """An orderly shutdown; returns its seconds. `reboot` also ends the emulator, so start the machine again. command: without systemd."""
        began = time.monotonic()
        self._agent.start(command or f"systemctl --no-block {verb}")
        try:
            self._process.wait(patience(deadline))
        except subprocess.TimeoutExpired:
            raise GuestTimeout(f"{self.name}: not off {patience(deadline):.0f} s after {verb}")
        self.kill()
        return time.monotonic() - began

    # --- commands ---

    def spawn(self, command, stdin=b"", on_output=None):
        """Starts a command and returns its Process."""
        return self._agent.start(command, stdin, on_output)

    def run(self, command, timeout=30, stdin=b""):
        """Runs a bash command; returns Result(rc, out, err)."""
        return self.spawn(command, stdin).wait(timeout)

    def sh(self, command, timeout=30, stdin=b""):
        """Like run(), but fails if the command fails; returns its stdout."""
        result = self.run(command, timeout, stdin)
        if result.rc:
            raise CommandFailed(f"{self.name}: exit {result.rc}: {command}\n{result.out}{result.err}")
        return result.out

    def http(self, socket_file, method, path, body=None, timeout=30):
        """Returns (status, body)."""
        status, body = self._ask("http", timeout, socket_file, method, path, body).split("\n", 1)
        return int(status), body

    def put(self, path, content, mode="644"):
        data = content.encode() if isinstance(content, str) else content
        self._ask("write", 60, path, base64.b64encode(data).decode(), int(mode, 8))

    def get(self, path):
        return self._ask("read", 30, path)

    def ask(self, what, *arguments):
        """Sends a request to the agent itself, which needs almost no CPU time in the guest."""
        return self._ask(what, 60, *arguments)

    def _ask(self, what, timeout, *arguments):
        result = self._agent.ask(what, *arguments).wait(timeout)
        if result.rc:
            raise CommandFailed(f"{self.name}: {what}: {result.err}")
        return result.out

    def wait_until(self, command, deadline=30, interval=0.2):
        """Polls in the guest until a command succeeds; returns the seconds."""
        began = time.monotonic()
        self.sh(f"until {{ {command}\n}} >/tmp/rig-wait 2>&1; do sleep {interval}; done", deadline)
        return time.monotonic() - began

    # --- faults ---

    def freeze(self):
        """Stops the CPU: the machine neither answers nor refuses packets."""
        self._qmp.execute("stop")
        self._frozen = True

    def thaw(self):
        self._qmp.execute("cont")
        self._frozen = False

    def set_link(self, up):
        """Plugs or unplugs the network cable."""
        self._qmp.execute("set_link", name="nic", up=up)

    # --- evidence ---

    def report(self):
        """Console, journal and kernel log, for analysing a failure."""
        parts = [f"===== {self.name}: console (end) =====", self._console_end()]
        if self.is_running() and not self._frozen:
            for title, command in (("kernel log", "dmesg | tail -n 60"), ("journal", "journalctl -b --no-pager -n 120"),
                                   ("processes", "ps -eLo pid,tid,stat,ni,wchan:20,args | grep -v ]$"),
                                   ("mounts", "grep -E ' - (ext4|xfs|nfs4?) ' /proc/self/mountinfo"),
                                   ("nvme", "grep -H . /sys/class/nvme/*/{state,address,subsysnqn}")):
                try:
                    parts += [f"===== {self.name}: {title} =====", self.run(command, 10).out]
                except (AssertionError, OSError) as error:  # the machine may have ended meanwhile
                    parts.append(f"(not to be had: {error})")
        return "\n".join(parts)

    def _console_end(self):
        path = self._folder / "console.log"
        return path.read_text(errors="replace")[-6000:] if path.exists() else "(none)"

    # --- making ---

    def _make_disks(self, image, disks):
        root = self._folder / "root.qcow2"
        subprocess.run(["qemu-img", "create", "-q", "-f", "qcow2", "-F", "raw", "-b", str(image), str(root)], check=True)
        arguments = ["-drive", f"id=root,if=none,format=qcow2,cache=unsafe,file={root}",
                     "-device", "nvme,drive=root,serial=root"]
        for number, given in enumerate(disks, 1):
            path = blank(self._folder / f"disk{number}.raw", given) if isinstance(given, int) else given
            arguments += ["-drive", f"id=disk{number},if=none,format=raw,cache=unsafe,discard=unmap,file={path}",
                          "-device", f"nvme,drive=disk{number},serial=disk{number}"]
        return arguments

    def _write_files(self, files):
        path = self._folder / "files.tar"
        with tarfile.open(path, "w") as tar:
            for name, content in files.items():
                data = content.encode() if isinstance(content, str) else content
                entry = tarfile.TarInfo(name.lstrip("/"))
                entry.size, entry.mode = len(data), 0o644
                tar.addfile(entry, io.BytesIO(data))
        return path


def disk(number):
    """The guest's stable name for its extra drive, numbered from 1; /dev/nvmeXnY changes between boots."""
    return f"/dev/disk/by-id/nvme-QEMU_NVMe_Ctrl_disk{number}"


def _die_with(parent):
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])  # ^C is handled by the test run, which then ends its machines
    if os.getppid() != parent:
        os._exit(1)
