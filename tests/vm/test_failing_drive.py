"""A drive that fails during a copy: an error message, an exit status, nothing published, and a recovery."""
import re
from contextlib import contextmanager

import pytest

from rig.house import DATASETS_MOUNT, LOCAL, SLOW_MIB

MIB = 1 << 20
RATE = 20 * MIB
FOLDER = f"{LOCAL}/failing"
DRIVE, OTHER = f"{FOLDER}/drive", f"{FOLDER}/other"
SAME = "/usr/local/lib/rig/same-tree"


class Drive:
    """A mounted drive that can be made to fail."""

    def __init__(self, host):
        self.host = host
        self.loop = host.sh(f"""set -e
            modprobe -a dm-flakey loop; mkdir -p {DRIVE} {OTHER}; truncate -s 400M {FOLDER}/image
            losetup --show -f {FOLDER}/image""").strip()
        self.sectors = int(host.sh(f"blockdev --getsz {self.loop}"))
        host.sh(f"echo '{self._table('linear')}' | dmsetup create failing && mkfs.ext4 -q /dev/mapper/failing")
        self.mount()

    def _table(self, kind):
        return {"linear": f"0 {self.sectors} linear {self.loop} 0", "error": f"0 {self.sectors} error",
                "error_writes": f"0 {self.sectors} flakey {self.loop} 0 0 1000 1 error_writes"}[kind]

    def become(self, kind):
        self.host.sh(f"dmsetup suspend --noflush --nolockfs failing && echo '{self._table(kind)}' | "
                     "dmsetup reload failing && dmsetup resume failing")

    def mount(self):
        self.host.sh(f"mount /dev/mapper/failing {DRIVE}")

    def heal(self):
        self.host.run(f"umount {DRIVE}")
        self.become("linear")
        self.mount()


@contextmanager
def made(host):
    try:
        yield Drive(host)
    finally:
        host.run(f"umount {DRIVE}; dmsetup remove failing; losetup -D; rm -rf {FOLDER}", 60)


@pytest.fixture
def drive(house):
    with made(house.host) as drive:
        yield drive


def tree(folder):
    """Large files and small ones."""
    return f"""set -e; mkdir -p {folder}/small
        for i in 1 2 3 4; do head -c {12 * MIB + 1} /dev/urandom >{folder}/large-$i; done
        for i in $(seq 150); do head -c $((i * 200)) /dev/urandom >{folder}/small/$i; done; sync"""


def wait_journal(host, copy, lines):
    """Waits until that many files or pieces of files are in the journal."""
    folder, name = copy.rsplit("/", 1)
    host.wait_until(f"[ $(grep -cE '^[0-9a-f]+ [PF] ' {folder}/.{name}.spark-partial/journal) -ge {lines} ]", 60)


def copy_until(drive, kind, source, copy, io):
    """Starts a copy that takes some seconds, makes the drive fail, and returns the copy's result."""
    process = drive.host.spawn(f"spark-stage copy {source} {copy} --io={io} --max-rate={RATE // 2}B/s")
    wait_journal(drive.host, copy, 3)
    drive.become(kind)
    return process.wait(60)


def also(*parameters):
    """For make check-long: both I/O methods with each fault."""
    return pytest.param(*parameters, marks=pytest.mark.long)


@pytest.mark.parametrize("kind, io", [("error", "io_uring"), also("error", "threads"), also("error_writes", "io_uring"), ("error_writes", "threads")])
def test_a_failing_local_drive_publishes_nothing_and_the_next_copy_succeeds(drive, kind, io):
    drive.host.sh(tree(f"{OTHER}/source"), 60)
    copy = f"{DRIVE}/copy"
    ended = copy_until(drive, kind, f"{OTHER}/source", copy, io)
    assert ended.rc == 1, ended
    assert any(word in ended.err for word in ("Input/output error", "Read-only file system")), ended.err
    drive.heal()
    drive.host.sh(f"[ ! -e {copy} ]")
    drive.host.sh(f"spark-stage copy {OTHER}/source {copy} --io={io} --verify && {SAME} {OTHER}/source {copy}", 120)


@pytest.mark.parametrize("io", ["io_uring", also("threads")])
def test_a_failing_source_drive_is_named_and_the_next_copy_resumes(drive, io):
    drive.host.sh(tree(f"{DRIVE}/source"), 60)
    copy = f"{OTHER}/copy"
    ended = copy_until(drive, "error", f"{DRIVE}/source", copy, io)
    assert ended.rc in (1, 4), ended
    assert "Input/output error" in ended.err and f"{DRIVE}/source" in ended.err, ended.err
    drive.host.sh(f"[ ! -e {copy} ]")
    drive.heal()
    resumed = drive.host.sh(f"spark-stage copy {DRIVE}/source {copy} --io={io} --json | grep resumed_bytes")
    assert int("".join(filter(str.isdigit, resumed))) > 0
    drive.host.sh(f"{SAME} {DRIVE}/source {copy}", 60)


def sectors_read(house):
    """Sectors read from the volume's NVMe/TCP device, or from its paths if the kernel counts there (before 6.4)."""
    device = house.host.sh(f"basename $(findmnt -no SOURCE {DATASETS_MOUNT})").strip()
    paths = re.sub(r"n(\d+)$", r"c*n\1", device)
    counts = [int(house.host.sh(f"cat /sys/class/block/{name}/stat | awk '{{s += $3}} END {{print s + 0}}'"))
              for name in (device, paths)]
    return max(counts)


@pytest.mark.long
def test_a_cable_out_for_30_s_costs_less_than_two_seconds_of_reading(house):
    copy = f"{LOCAL}/cable"
    before = sectors_read(house)
    process = house.host.spawn(f"spark-stage copy {DATASETS_MOUNT}/slow {copy} --max-rate={RATE}B/s")
    wait_journal(house.host, copy, 5)
    house.target_machine.set_link(False)
    house.host.sh("sleep 30", 60)
    house.target_machine.set_link(True)
    ended = process.wait(180)
    assert ended.rc == 0, ended.err
    read = (sectors_read(house) - before) * 512
    print(f"{SLOW_MIB} MiB copied, {read / MIB:.1f} MiB read")
    house.host.sh(f"{SAME} {DATASETS_MOUNT}/slow {copy}", 120)
    assert SLOW_MIB * MIB <= read < SLOW_MIB * MIB + 2 * RATE
    house.host.sh(f"rm -rf {copy} {LOCAL}/.cable.spark-*")
    house.wait_ready()
