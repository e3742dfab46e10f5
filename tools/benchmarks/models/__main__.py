"""A model from one host to another: spark-stage, rsync over ssh, rsync's daemon and rclone, in turns.

Two hosts in namespaces of this computer, each with a drive of its own (ext4 on a loop device with direct I/O), and a link that
the kernel's tbf limits. The model is four shards and is on the first host alone, which has adopted it: it makes no copy there, and
reads the model once to hash it, before the first copy. That is shown by itself, and is in no other figure.
Each contender ends when its copy is durable on the second host's drive. spark-stage compares a hash of every file, the
others none. CPU seconds are those of the whole computer, both hosts and the kernel, so no other work may run. Exits with 1
if --require is given and a goal was missed. Needs root; contenders whose programs are missing are left out and named.
"""
import argparse
import json
import os
import shutil
import statistics
import struct
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "tests/slurm"))
from hosts import Host, connect  # noqa: E402  pylint: disable=wrong-import-position
from node import BUILD, UnixConnection  # noqa: E402  pylint: disable=wrong-import-position

MIB, GIB = 1 << 20, 1 << 30
SHARDS = 4
LEAST_RATE = 0.9            # of the slower of link and drives
MOST_READ = 1.05            # of the model, from its drive
MOST_MEMFREE = 300 * MIB
TICKS = os.sysconf("SC_CLK_TCK")
OURS = "spark-stage"
CONFIG = """version: 1
cache: {{path: {cache}, keep_free: 0, page_cache: leave}}
datasets:
  model: {dataset}
fleet:
  listen: {address}:7789
  key_file: {key}
  peers: {{one: [10.78.0.1], two: [10.78.0.2]}}
"""
SSHD = """Port 2222
HostKey {folder}/host_key
AuthorizedKeysFile {folder}/user_key.pub
PidFile {folder}/sshd.pid
StrictModes no
UsePAM no
"""


class Drive:
    """An ext4 file system on a loop device, whose reads are counted by the kernel."""

    def __init__(self, folder, size):
        folder.mkdir()
        self.image, self.mount = folder / "image", folder / "mount"
        self.mount.mkdir()
        run("truncate", "-s", str(size), self.image)
        run("mkfs.ext4", "-q", "-m", "0", self.image)
        self.device = run("losetup", "--find", "--show", "--direct-io=on", self.image).strip()
        try:
            run("mount", self.device, self.mount)
        except BaseException:
            self.stop()
            raise

    def bytes_read(self):
        return int((Path("/sys/block") / Path(self.device).name / "stat").read_text().split()[2]) * 512

    def rate(self, size):
        """Bytes per second of writes and of reads in large blocks, past the page cache."""
        path, seconds = self.mount / "rate", []
        count = str(max(1, size // (8 * MIB)))
        for words in ((f"of={path}", "if=/dev/zero", "oflag=direct"), (f"if={path}", "of=/dev/null", "iflag=direct")):
            began = time.monotonic()
            run("dd", *words, "bs=8M", f"count={count}")
            seconds.append(int(count) * 8 * MIB / (time.monotonic() - began))
        path.unlink()
        return seconds

    def stop(self):
        subprocess.run(["umount", "--lazy", self.mount], check=False)
        subprocess.run(["losetup", "--detach", self.device], check=False)


class Daemon:
    def __init__(self, host, folder, config):
        self.host, self.socket = host, folder / "api.sock"
        folder.mkdir()
        (folder / "config.yaml").write_text(config)
        self.log = folder / "log"
        self.process = host.start(BUILD / "daemon/spark-staged", "--config", folder / "config.yaml", "--socket", self.socket, "--state-dir",
                                  folder / "state", stdout=open(self.log, "wb"), stderr=subprocess.STDOUT)

    def ask(self, method, path, body=None):
        connection = UnixConnection(self.socket)
        try:
            connection.request(method, path, None if body is None else json.dumps(body))
            answer = connection.getresponse()
            return json.loads(answer.read())
        finally:
            connection.close()

    def wait(self, holds, what, patience=900):
        end = time.monotonic() + patience
        while True:
            try:
                if found := holds():
                    return found
            except OSError:
                pass  # it is starting
            if time.monotonic() > end:
                sys.exit(f"never: {what}\n{self.log.read_text()[-3000:]}")
            time.sleep(0.1)

    def finish(self, path, body=None):
        job = self.ask("POST", path, body or {})
        return self.wait(lambda: (found := self.ask("GET", f"/v1/jobs/{job['id']}"))["state"] != "running" and found, "the job ends")


class MemFree:
    """How far MemFree falls while something runs; in bytes."""

    def __enter__(self):
        self.first = self.lowest = self.now()
        self.over = threading.Event()
        self.thread = threading.Thread(target=self.look)
        self.thread.start()
        return self

    def now(self):
        return next(int(line.split()[1]) * 1024 for line in Path("/proc/meminfo").read_text().splitlines() if line.startswith("MemFree"))

    def look(self):
        while not self.over.wait(0.1):
            self.lowest = min(self.lowest, self.now())

    def __exit__(self, *_):
        self.over.set()
        self.thread.join()

    def fall(self):
        return self.first - self.lowest


def run(*words):
    return subprocess.run([str(word) for word in words], check=True, capture_output=True, text=True).stdout


def cpu_seconds():
    user, nice, system, _, _, irq, softirq, *_ = map(int, Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:])
    return (user + nice + system + irq + softirq) / TICKS


def write_model(folder, size):
    folder.mkdir()
    header = json.dumps({"a": {"dtype": "U8", "shape": [size], "data_offsets": [0, size]}}).encode()
    block = os.urandom(16 * MIB)
    names = [f"model-{number:05}-of-{SHARDS:05}.safetensors" for number in range(1, SHARDS + 1)]
    for name in names:
        with open(folder / name, "wb") as file:
            file.write(struct.pack("<Q", len(header)) + header)
            for at in range(0, size, len(block)):
                file.write(block[:min(len(block), size - at)])
    (folder / "config.json").write_text("{}")
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": {str(at): name for at, name in enumerate(names)}}))
    os.sync()


class Bench:
    def __init__(self, folder, options):
        self.folder, self.shard = folder, round(2 * GIB * options.scale)
        self.drives, self.hosts, self.children, self.daemons = [], [], [], []
        try:
            self.make(folder, options)
        except BaseException:
            self.stop()
            raise

    def make(self, folder, options):
        room = round(SHARDS * self.shard * 1.3) + 256 * MIB
        for name in ("drive1", "drive2"):
            self.drives.append(Drive(folder / name, room))
        self.source, self.target = self.drives[0].mount / "model", self.drives[1].mount / "copy"
        write_model(self.source, self.shard)
        self.size = sum(path.stat().st_size for path in self.source.iterdir())
        (folder / "hosts").write_text("127.0.0.1 localhost\n")
        for name, address in (("head", "10.78.0.254"), ("one", "10.78.0.1"), ("two", "10.78.0.2")):
            self.hosts.append(Host(name, address, folder / "hosts"))
        connect(self.hosts[0], self.hosts[1:])
        self.link = options.link * 125_000_000
        for host, card in ((self.hosts[1], "eth0"), (self.hosts[0], "two"), (self.hosts[2], "eth0"), (self.hosts[0], "one")):
            host.do("ip", "link", "set", "dev", card, "mtu", "9000")
            host.do("tc", "qdisc", "add", "dev", card, "root", "tbf", "rate", f"{round(options.link * 1000)}mbit", "burst", "4mb", "latency",
                    "50ms")

    def start_daemons(self):
        key = self.folder / "key"
        key.touch(mode=0o600)
        key.write_text(os.urandom(32).hex() + "\n")
        datasets = (f"{{path: {self.source}, model: org/bench, adopt: true}}", "{source: peers, model: org/bench}")
        for host, dataset, drive in zip(self.hosts[1:], datasets, self.drives):
            config = CONFIG.format(cache=drive.mount / "cache", dataset=dataset, address=host.address, key=key)
            self.daemons.append(Daemon(host, self.folder / host.name, config))
            if host is self.hosts[1]:
                self.adopt(self.daemons[0])
        second = self.daemons[1]
        second.wait(lambda: any(peer["answers"] for peer in second.ask("GET", "/v1/status")["fleet"]["peers"]), "the hosts see each other")

    def adopt(self, first):
        read, cpu, began = self.drives[0].bytes_read(), cpu_seconds(), time.monotonic()
        first.wait(lambda: first.ask("GET", "/v1/status")["fleet"]["adopted"][0]["state"] == "offered", "the model is adopted")
        print(f"adopted once, before the copies: {time.monotonic() - began:.1f} s with the wait for a folder at rest, "
              f"read {(self.drives[0].bytes_read() - read) / self.size:.3f}x, {(cpu_seconds() - cpu) / self.size * GIB:.2f} CPU s/GiB", flush=True)

    def ours(self):
        job = self.daemons[1].finish("/v1/stagings", {"datasets": ["model"]})
        if job["state"] != "done":
            sys.exit(f"spark-stage: {job['error']}")

    def serve(self, *words):
        self.children.append(self.hosts[1].start(*words, stdout=subprocess.DEVNULL, stderr=open(self.folder / "served", "ab")))

    def others(self):
        """The commands of the second host, by name; those without their programs are left out."""
        missing = [program for program in ("rsync", "rclone", "/usr/sbin/sshd", "ssh") if not shutil.which(program)]
        if missing:
            print("not measured, since these programs are missing:", ", ".join(missing))
        commands = {}
        if not {"rsync", "/usr/sbin/sshd", "ssh"} & set(missing):
            for name in ("host_key", "user_key"):
                run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", self.folder / name)
            (self.folder / "sshd").write_text(SSHD.format(folder=self.folder))
            Path("/run/sshd").mkdir(exist_ok=True)
            self.serve("/usr/sbin/sshd", "-D", "-f", self.folder / "sshd")
            ssh = f"ssh -p 2222 -i {self.folder}/user_key -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null -o LogLevel=ERROR"
            commands["rsync over ssh"] = f"rsync -a --whole-file -e '{ssh}' root@10.78.0.1:{self.source}/ {self.target}"
        if "rsync" not in missing:
            (self.folder / "rsyncd").write_text(f"uid = 0\ngid = 0\nuse chroot = no\n[model]\npath = {self.source}\nread only = yes\n")
            self.serve("rsync", "--daemon", "--no-detach", f"--config={self.folder}/rsyncd", "--port=8730")
            commands["rsync daemon"] = f"rsync -a --whole-file --port=8730 rsync://10.78.0.1/model/ {self.target}"
        if "rclone" not in missing:
            self.serve("rclone", "serve", "http", self.source, "--addr", "10.78.0.1:8731")
            commands["rclone"] = f"rclone copy --transfers 4 --http-url http://10.78.0.1:8731 :http: {self.target}"
        time.sleep(2)  # they listen
        return commands

    def theirs(self, command):
        done = self.hosts[2].run("sh", "-c", f"{command} && sync -f {self.target}", timeout=3600)
        if done.returncode != 0:
            sys.exit(f"{command}: {done.stderr}")

    def clean(self):
        shutil.rmtree(self.target, ignore_errors=True)
        if self.daemons[1].ask("GET", "/v1/datasets")["datasets"]:
            self.daemons[1].finish("/v1/datasets/model/evict")
        os.sync()
        for path in self.source.iterdir():
            with open(path, "rb") as file:
                os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        time.sleep(1)

    def measure(self, copy):
        self.clean()
        read, cpu = self.drives[0].bytes_read(), cpu_seconds()
        with MemFree() as memory:
            began = time.monotonic()
            copy()
            seconds = time.monotonic() - began
        return {"seconds": seconds, "read": (self.drives[0].bytes_read() - read) / self.size, "fall": memory.fall(),
                "cpu": (cpu_seconds() - cpu) / self.size * GIB}

    def stop(self):
        for daemon in self.daemons:
            daemon.process.terminate()
        for child in self.children:
            child.terminate()
        for host in self.hosts:
            host.stop()
        time.sleep(0.5)
        for drive in self.drives:
            drive.stop()


def show(bench, found, possible):
    def of(name, key):
        return statistics.median(one[key] for one in found[name])

    print(f"{bench.size / GIB:.2f} GiB in {SHARDS} shards; the slowest of link and drives: {possible / MIB:.0f} MiB/s")
    print(f"{'':<16} {'s':>7} {'MiB/s':>7} {'of possible':>12} {'read':>7} {'MemFree- MiB':>13} {'CPU s/GiB':>10}")
    for name in found:
        rate = bench.size / of(name, "seconds")
        print(f"{name:<16} {of(name, 'seconds'):>7.2f} {rate / MIB:>7.0f} {rate / possible:>12.2f} {of(name, 'read'):>6.3f}x "
              f"{of(name, 'fall') / MIB:>13.0f} {of(name, 'cpu'):>10.2f}", flush=True)
    rate = bench.size / of(OURS, "seconds") / possible
    goals = [(f"rate {rate:.2f} of the possible one, at least {LEAST_RATE}", rate >= LEAST_RATE),
             (f"read {of(OURS, 'read'):.3f} times, at most {MOST_READ}", of(OURS, "read") <= MOST_READ),
             (f"MemFree falls by {of(OURS, 'fall') / MIB:.0f} MiB, at most {MOST_MEMFREE / MIB:.0f}", of(OURS, "fall") <= MOST_MEMFREE)]
    for what, is_met in goals:
        print(f"{what}: {'met' if is_met else 'MISSED'}")
    return all(is_met for _, is_met in goals)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scale", type=float, default=1, help="of the shards, which have 2 GiB each")
    parser.add_argument("--link", type=float, default=10, help="Gbit/s of the link, in each direction")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()), help="with room for three times the model; in memory, it takes that from MemFree")
    parser.add_argument("--require", action="store_true", help="exit with 1 if a goal is missed")
    options = parser.parse_args()
    if os.geteuid() != 0:
        sys.exit("needs root, for namespaces and drives")
    folder = Path(tempfile.mkdtemp(prefix="spark-bench-models-", dir=options.folder))
    bench = None
    try:
        bench = Bench(folder, options)
        sample = min(GIB, bench.size // 4)
        writes, reads = bench.drives[1].rate(sample)[0], bench.drives[0].rate(sample)[1]
        print(f"link {bench.link / MIB:.0f} MiB/s, writes {writes / MIB:.0f} MiB/s, reads {reads / MIB:.0f} MiB/s; "
              f"{os.cpu_count()} CPUs, Linux {os.uname().release}")
        bench.start_daemons()
        contenders = {OURS: bench.ours} | {name: lambda command=command: bench.theirs(command) for name, command in bench.others().items()}
        found = {name: [] for name in contenders}
        for _ in range(options.rounds):
            for name, copy in contenders.items():
                found[name].append(bench.measure(copy))
        is_met = show(bench, found, min(bench.link, writes, reads))
        sys.exit(0 if is_met or not options.require else 1)
    finally:
        if bench:
            bench.stop()
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
