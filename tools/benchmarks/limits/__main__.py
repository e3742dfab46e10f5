"""Measures what the daemon costs with many volumes: memory, CPU at rest, while all are stalled and while no device answers, how
soon it answers, and how soon it notices that another host writes.

The daemon is the real one, and so are its workers, mounts, superblocks and the mount table (see loop_volumes.py). So it runs
on any Linux, without a target, at the machine's own speed.
"""
import argparse
import json
import os
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "tools/benchmarks"))
import loop_volumes  # noqa: E402  needs that folder
from loop_volumes import attach, run  # noqa: E402

BYTES = 8 << 20  # size of each file system
WRITERS, BETWEEN_S = 30, 1.3  # volumes that other hosts open for writing, one after the other
NOTICED_WITHIN_S, STALLED_WITHIN_S, SETTLED_WITHIN_S = 400, 120, 1200  # earlier daemons probed one volume a second
INCOMPAT, NEEDS_RECOVERY = 1024 + 0x60, 4  # of an ext4 superblock: a host has it open for writing
# Limits for a host with 100 subsystems and 300 namespaces.
MOST_MIB, MOST_CPU_PERCENT, MOST_ANSWER_MS = 60, 2.0, 100
TICKS = os.sysconf("SC_CLK_TCK")


def attach_many(folder, count):
    """Attaches and mounts one small file system for each volume: (device number, sectors) of each."""
    model = folder / "model.img"
    with open(model, "wb") as file:
        file.truncate(BYTES)
    run("mkfs.ext4", "-q", "-F", "-b", "4096", "-O", "^metadata_csum", model)  # see mark_open()
    drives = []
    for number in range(count):
        image = folder / f"{number}.img"
        run("cp", "--sparse=always", model, image)
        drives.append(attach(image, mount_of(folder, number)))
    return drives


def mount_of(folder, number):
    return folder / f"mnt/{number}"


def write_config(folder, count, **more):
    sections = loop_volumes.sections([mount_of(folder, number) for number in range(count)]) | more
    sections["cache"] = {"path": str(folder / "cache")}
    text = "".join(f"{name}: {json.dumps(body)}\n" for name, body in sections.items())
    (folder / "config.yaml").write_text(f"version: 1\n{text}")


def status(path):
    with socket.socket(socket.AF_UNIX) as channel:
        channel.settimeout(30)
        channel.connect(str(path))
        channel.sendall(b"GET /v1/status HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        answer = b""
        while data := channel.recv(1 << 20):
            answer += data
    return json.loads(answer.split(b"\r\n\r\n", 1)[1])


def cpu_seconds(pid):
    """CPU seconds of the daemon, of ended workers, and of idle workers."""
    def fields(of):
        return Path(f"/proc/{of}/stat").read_text().rsplit(")", 1)[1].split()
    total = sum(map(int, fields(pid)[11:15]))
    for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
        try:
            total += sum(map(int, fields(child)[11:13]))
        except OSError:
            pass
    return total / TICKS


def thread_seconds(pid):
    """CPU seconds of the daemon's only thread that decides."""
    fields = Path(f"/proc/{pid}/task/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return sum(map(int, fields[11:13])) / TICKS


def mark_open(image):
    """As another host does that mounts the volume for writing."""
    with open(image, "r+b") as file:
        file.seek(INCOMPAT)
        flags = int.from_bytes(file.read(4), "little") | NEEDS_RECOVERY
        file.seek(INCOMPAT)
        file.write(flags.to_bytes(4, "little"))


def notice_writers(folder, api, count):
    """Seconds until each of some readers says that another host writes."""
    waiting = list(range(0, count, max(1, count // WRITERS)))
    written, noticed, total = {}, {}, len(waiting)
    began = time.monotonic()
    while len(noticed) < total and time.monotonic() - began < NOTICED_WITHIN_S + total * BETWEEN_S:
        if waiting and time.monotonic() - began >= len(written) * BETWEEN_S:
            number = waiting.pop(0)
            mark_open(folder / f"{number}.img")
            written[f"v{number}"] = time.monotonic()
        for volume in status(api)["volumes"]:
            name = volume["name"]
            if name in written and name not in noticed and "written by another host" in (volume["reason"] or ""):
                noticed[name] = time.monotonic() - written[name]
        time.sleep(0.1)
    if len(noticed) != total:
        sys.exit(f"limits: {len(noticed)} of {total} readers noticed a writer")
    return sorted(noticed.values())


def stall(daemon, api, seconds):
    """All connections go down: the share of a CPU that the daemon's thread and all of its processes take."""
    def show(state):
        for file in Path("/sys/class/nvme").glob("*/state"):
            file.write_text(f"{state}\n")
    show("connecting")
    began = time.monotonic()
    while any(volume["state"] != "stalled" for volume in status(api)["volumes"]):
        if time.monotonic() - began > STALLED_WITHIN_S:
            sys.exit("limits: not all volumes are stalled")
        time.sleep(0.1)
    stalled_s, shares = time.monotonic() - began, percent_of(daemon.pid, seconds)
    show("live")
    return stalled_s, *shares


def percent_of(pid, seconds):
    """Of one core: the daemon's thread, and all of its processes."""
    thread, cpu, since = thread_seconds(pid), cpu_seconds(pid), time.monotonic()
    time.sleep(seconds)
    took = time.monotonic() - since
    return (thread_seconds(pid) - thread) / took * 100, (cpu_seconds(pid) - cpu) / took * 100


def silence(folder, count, seconds, binary):
    """On a simulated host: no device answers, over links that are up. The share of a core that the daemon's thread takes."""
    folder = folder / "silent"
    folder.mkdir()
    write_config(folder, count, simulation={"events": [
        {"after": "0s" if number else "signal", "volume": f"v{number}", "latency": "never"} for number in range(count)]})
    api = folder / "api.sock"
    daemon = subprocess.Popen([binary, "--sim", folder / "config.yaml", "--socket", api, "--state-dir", folder / "state"],
                              stdout=open(folder / "log", "wb"), stderr=subprocess.STDOUT)
    try:
        wait_all(daemon, api, count, "ready", time.monotonic())
        daemon.send_signal(signal.SIGUSR1)
        wait_all(daemon, api, count, "stalled", time.monotonic())
        return percent_of(daemon.pid, seconds)[0]
    finally:
        daemon.kill()
        daemon.wait(30)


def resident_mib(pid):
    line = next(line for line in Path(f"/proc/{pid}/status").read_text().splitlines() if line.startswith("VmHWM"))
    return int(line.split()[1]) / 1024


def measure(folder, count, seconds, binary):
    """Ends the daemon; everything else ends with the namespace."""
    loop_volumes.show_as_nvme(attach_many(folder, count))
    write_config(folder, count)
    api = folder / "api.sock"
    began = time.monotonic()
    daemon = subprocess.Popen([binary, "--config", folder / "config.yaml", "--socket", api, "--state-dir", folder / "state"],
                              stdout=open(folder / "log", "wb"), stderr=subprocess.STDOUT)
    try:
        row = observe(daemon, api, began, count, seconds)
        stalled_s, thread, all_of_it = stall(daemon, api, seconds)
        row.update(stalled_s=stalled_s, stalled_thread_percent=thread, stalled_cpu_percent=all_of_it)
        time.sleep(10)  # until all are ready again
        noticed = notice_writers(folder, api, count)
        row.update(noticed_s=statistics.median(noticed), last_noticed_s=noticed[-1])
    finally:
        daemon.terminate()
        daemon.wait(30)
    return {**row, "silent_thread_percent": silence(folder, count, seconds, binary)}


def wait_all(daemon, api, count, state, began):
    there = 0
    while there < count:
        if daemon.poll() is not None or time.monotonic() - began > SETTLED_WITHIN_S:
            sys.exit(f"limits: {there} of {count} volumes became {state}; the daemon said:\n"
                     f"{(api.parent / 'log').read_text()[-3000:]}")
        time.sleep(0.2)
        if api.exists():
            there = sum(volume["state"] == state for volume in status(api)["volumes"])
    return time.monotonic() - began


def observe(daemon, api, began, count, seconds):
    took = wait_all(daemon, api, count, "ready", began)
    time.sleep(10)  # the work after the start
    cpu, since = cpu_seconds(daemon.pid), time.monotonic()
    time.sleep(seconds)
    share = (cpu_seconds(daemon.pid) - cpu) / (time.monotonic() - since)
    answers = []
    for _ in range(100):
        asked = time.monotonic()
        status(api)
        answers.append((time.monotonic() - asked) * 1000)
        time.sleep(0.02)
    return {"volumes": count, "ready_s": took, "memory_mib": resident_mib(daemon.pid), "cpu_percent": share * 100,
            "answer_ms": statistics.median(answers), "longest_answer_ms": max(answers)}


def measure_apart(count, seconds, binary):
    """In a separate process with private mounts."""
    with tempfile.TemporaryDirectory(prefix="spark-limits-") as folder:
        run("mount", "-t", "tmpfs", "none", folder)
        try:
            done = subprocess.run(
                ["unshare", "--mount", "--propagation", "private", sys.executable, __file__, "--inside", folder,
                 "--volumes", str(count), "--seconds", str(seconds), "--binary", binary],
                capture_output=True, text=True, check=False)
        finally:
            run("umount", "--lazy", folder)
    if done.returncode:
        sys.exit(done.stderr.strip() or done.stdout)
    return json.loads(done.stdout)


def show(rows):
    print(f"\n{'volumes':>8} {'all ready':>10} {'memory':>10} {'CPU at rest':>12} {'status':>9} {'longest':>9}")
    for row in rows:
        print(f"{row['volumes']:>8} {row['ready_s']:>8.1f} s {row['memory_mib']:>6.1f} MiB {row['cpu_percent']:>10.2f} % "
              f"{row['answer_ms']:>6.1f} ms {row['longest_answer_ms']:>6.1f} ms")
    print(f"\n{'volumes':>8} {'all stalled':>12} {'CPU then':>10} {'of its thread':>14} {'silent':>9} {'writer noticed':>15} "
          f"{'last':>8}")
    for row in rows:
        print(f"{row['volumes']:>8} {row['stalled_s']:>10.1f} s {row['stalled_cpu_percent']:>8.2f} % "
              f"{row['stalled_thread_percent']:>12.2f} % {row['silent_thread_percent']:>7.2f} % {row['noticed_s']:>13.1f} s "
              f"{row['last_noticed_s']:>6.1f} s")
    one, many = rows[0], rows[-1]
    print(f"\n{many['volumes']} volumes for {one['volumes']}: memory {many['memory_mib'] / one['memory_mib']:.1f} x, "
          f"CPU {many['cpu_percent'] / max(one['cpu_percent'], 0.01):.0f} x, "
          f"status {many['answer_ms'] / one['answer_ms']:.0f} x\n")
    goals = [("memory", many["memory_mib"], MOST_MIB, "MiB"), ("CPU at rest", many["cpu_percent"], MOST_CPU_PERCENT, "%"),
             ("status, longest", many["longest_answer_ms"], MOST_ANSWER_MS, "ms")]
    for name, value, most, unit in goals:
        print(f"{name:<16} {value:>8.2f} {unit:<4} at most {most:>5} {unit:<4} {'met' if value <= most else 'MISSED'}")
    return all(value <= most for _, value, most, _ in goals)


def compare(rows, before):
    now, old = rows[-1], before[-1]
    print("\nnow for before: " + ", ".join(f"{what} {now[key] / max(old[key], 0.01):.2f} x" for what, key in (
        ("all ready", "ready_s"), ("memory", "memory_mib"), ("CPU at rest", "cpu_percent"), ("status", "answer_ms"),
        ("CPU while silent", "silent_thread_percent"), ("writer noticed", "noticed_s"), ("last", "last_noticed_s"))))


def measure_all(volumes, seconds, binary):
    rows = []
    for count in (1, volumes):
        print(f"limits: {count} volume{'s' * (count > 1)}, {seconds} s at rest …", flush=True)
        rows.append(measure_apart(count, seconds, binary))
    return rows


def main():
    parser = argparse.ArgumentParser(prog="tools/benchmarks/limits", description=__doc__.split("\n")[0])
    parser.add_argument("--volumes", type=int, default=300, help="of them three a subsystem (default: 300)")
    parser.add_argument("--seconds", type=int, default=60, help="at rest (default: 60)")
    parser.add_argument("--binary", default=str(ROOT / "build/release/daemon/spark-staged"), help="the spark-staged to measure")
    parser.add_argument("--before", help="an earlier spark-staged, measured beside it")
    parser.add_argument("--require", action="store_true", help="exit 1 if a goal is missed")
    parser.add_argument("--inside", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.inside:
        print(json.dumps(measure(Path(given.inside), given.volumes, given.seconds, given.binary)))
        return 0
    if os.geteuid() != 0:
        sys.exit("limits: root is needed for loop devices and mounts")
    made = not Path("/etc/nvme").exists()
    Path("/etc/nvme").mkdir(exist_ok=True)
    try:
        before = measure_all(given.volumes, given.seconds, given.before) if given.before else None
        rows = measure_all(given.volumes, given.seconds, given.binary)
    finally:
        if made:
            Path("/etc/nvme").rmdir()
    if before:
        print("\nbefore:", end="")
        show(before)
        print("\nnow:", end="")
    met = show(rows)
    if before:
        compare(rows, before)
    return 1 if given.require and not met else 0


if __name__ == "__main__":
    sys.exit(main())
