"""Hosts made of namespaces: each has its own network, name, mounts and processes; one network connects them."""
import os
import subprocess
import sys
from pathlib import Path

PYTHON = "/usr/bin/python3"
HERE = Path(__file__).resolve().parent


class Host:
    """Its processes end with it, like at a power loss."""

    def __init__(self, name, address, hosts, groups="/etc/group"):
        self.name, self.address = name, address
        # Ends with this process, even if it is killed.
        self.holder = subprocess.Popen(
            ["setpriv", "--pdeathsig", "KILL", "unshare", "--fork", "--pid", "--mount-proc", "--kill-child=KILL", "--net",
             "--uts", "--mount", "--propagation", "slave", PYTHON, str(HERE / "init.py"), name, str(hosts), str(groups)],
            stdout=subprocess.PIPE, text=True)
        if self.holder.stdout.readline() != "ready\n":
            sys.exit(f"{name}: no namespaces; root is needed")
        holder = self.holder.pid
        self.init = int(Path(f"/proc/{holder}/task/{holder}/children").read_text().split()[0])

    def command(self, arguments, user=None, folder="/"):
        as_user = ["setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups"] if user else []
        return ["nsenter", f"--target={self.init}", "--all", f"--wd={folder}", *as_user, *map(str, arguments)]

    def run(self, *arguments, user=None, folder="/", environment=None, timeout=120, **more):
        return subprocess.run(self.command(arguments, user, folder), capture_output=True, text=True, timeout=timeout, check=False,
                              env=os.environ | (environment or {}), **more)

    def start(self, *arguments, user=None, folder="/", environment=None, **more):
        return subprocess.Popen(self.command(arguments, user, folder), text=True, env=os.environ | (environment or {}), **more)

    def do(self, *arguments):
        done = self.run(*arguments)
        assert done.returncode == 0, f"{self.name}: {arguments}: {done.stderr}"
        return done.stdout

    def pids_of(self, program, *words):
        """PIDs, in the outer namespace, of this host's processes with that name and these words in the command line."""
        mine = os.stat(f"/proc/{self.init}/ns/pid").st_ino
        found = []
        for entry in Path("/proc").iterdir():
            try:
                if entry.name.isdigit() and os.stat(entry / "ns/pid").st_ino == mine:
                    line = (entry / "cmdline").read_bytes().decode(errors="replace").split("\0")
                    # A worker is started by /proc/self/exe, and has the name "exe".
                    names = [(entry / "comm").read_text().strip(), (entry / "exe").readlink().name]
                    if program in names and all(word in " ".join(line) for word in words):
                        found.append(int(entry.name))
            except OSError:
                pass  # it has ended
        return sorted(found)

    def stop(self):
        self.holder.kill()
        self.holder.wait()
        self.holder.stdout.close()


def connect(head, nodes):
    """Creates a bridge on the head, and a link from it to each node."""
    head.do("ip", "link", "add", "wire", "type", "bridge")
    head.do("ip", "address", "add", f"{head.address}/24", "dev", "wire")
    head.do("ip", "link", "set", "wire", "up")
    for node in nodes:
        # From outside, since a host's own /proc shows no other host's processes.
        subprocess.run(["nsenter", f"--net=/proc/{head.init}/ns/net", "ip", "link", "add", node.name, "type", "veth", "peer",
                        "name", "eth0", "netns", str(node.init)], check=True)
        head.do("ip", "link", "set", node.name, "master", "wire", "up")
        node.do("ip", "address", "add", f"{node.address}/24", "dev", "eth0")
        node.do("ip", "link", "set", "eth0", "up")
