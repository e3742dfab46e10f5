"""A host with a typical manual setup: doctor reports its problems, import writes the replacing configuration, and the steps
listed in that file are followed."""
import json
import re

import pytest

from rig import blocks
from rig.house import DATASETS_MOUNT, NAS_MOUNT
from rig.pair import NAME as SHARED
from rig.product import CONFIG
from rig.product import UNIT as DAEMON

MOUNT = "/mnt/by-hand"
VOLUMES = {"by-hand-data": f"{MOUNT}/data", "by-hand-models": f"{MOUNT}/models"}
UNIT = "nvme-rosa-connect.service"
UNIT_FILE = f"/etc/systemd/system/{UNIT}"
KEPT = "/var/lib/spark-stage/before-import"
IDENTITY = ("/etc/nvme/hostnqn", "/etc/nvme/hostid")
# The largest packet in bytes that the "switch" forwards. TCP is not affected: it uses the target's own 1500, and the
# target's card may merge packets into larger ones.
LARGEST = 1500
TCP_HEADERS = 40
FILL = """mkdir shards && for i in 1 2 3 4; do head -c 3M /dev/urandom >shards/$i.bin; done
    head -c 16M /dev/urandom >data.bin; find . -type f ! -name SUMS | sort | xargs sha256sum >/tmp/SUMS; mv /tmp/SUMS ."""
# Reads from the target, not from the page cache, and prints the connection in use.
READ = """set -e; echo 3 >/proc/sys/vm/drop_caches; cd {mount}
    sha256sum --quiet --strict -c SUMS; sha256sum SUMS $(cut -c67- SUMS); readlink /sys/class/block/{head}"""


def commands_of(page):
    """The blocks of a page, each as a list of root's commands."""
    return [[line.removeprefix("sudo ") for line in block.lines] for block in blocks.of_page(page)]


def connect_unit(address):
    """ArgentAIOS's setup: one unit that connects both subsystems once, one after the other."""
    def lines(key, verb):
        return "\n".join(f"{key}=/usr/sbin/nvme {verb.format(name=name)}" for name in VOLUMES)
    return f"""[Unit]
Description=Connect to the storage server
After=network-online.target
Wants=network-online.target
[Service]
Type=oneshot
RemainAfterExit=yes
{lines("ExecStart", "connect -t tcp -n {name} -a " + address + " -s 4420")}
{lines("ExecStop", "disconnect -n {name}")}
[Install]
WantedBy=multi-user.target
"""


def head_of(host, subsystem):
    """The block device, for example "nvme1n1", once it exists."""
    name = host.sh(f"grep -l '^{subsystem}$' /sys/class/nvme/nvme*/subsysnqn").strip().split("/")[4]
    host.wait_until(f"ls -d /sys/class/nvme/{name}/nvme*n1", 30)
    node = host.sh(f"ls /sys/class/nvme/{name} | grep -E '^nvme[0-9]+(c[0-9]+)?n1$'").strip()
    return re.sub(r"c\d+", "", node)


def connect_and_mount(host, address):
    """Two fstab lines with kernel device names, and one unit; returns {subsystem: (kernel name, fstab line)}."""
    host.put(UNIT_FILE, connect_unit(address))
    host.sh(f"systemctl daemon-reload; systemctl enable --now {UNIT}", 60)
    found = {}
    for subsystem, mount in VOLUMES.items():
        head = head_of(host, subsystem)
        host.sh(f"mkdir -p {mount}; echo '/dev/{head} {mount} ext4 defaults,noatime,_netdev 0 2' >>/etc/fstab")
        found[subsystem] = head, int(host.sh("wc -l </etc/fstab"))
    host.sh("udevadm settle; systemctl daemon-reload", 60)
    for mount in VOLUMES.values():
        host.sh(f"mount {mount}", 60)
    return found


@pytest.fixture(scope="module")
def by_hand(house):
    """No configuration and no daemon; two manually configured volumes; jumbo frames, which the way to the target drops; another machine's
    host ID, in files that are older than this machine."""
    host, target = house.host, house.target
    for name in VOLUMES:
        device = target.image(name, "128M")
        target.filesystem(device, kind="ext4", name=name, fill=FILL)
        target.export(name, device)
    host.sh(f"systemctl stop {DAEMON}; mv {CONFIG} {CONFIG}.house; cp -p /etc/fstab {' '.join(IDENTITY)} /tmp/", 60)
    found = connect_and_mount(host, target.address)
    host.put("/etc/nvme/hostid", house.target_machine.get("/etc/nvme/hostid"))
    host.sh(f"ip link set eth0 mtu 9000; touch -d 2020-01-01 {' '.join(IDENTITY)}")
    house.target_machine.sh(f"""nft add table ip switch
        nft add chain ip switch in '{{ type filter hook prerouting priority -300; }}'
        nft add rule ip switch in meta l4proto icmp ip length gt {LARGEST} drop""")
    yield found
    house.target_machine.sh(f"nft delete table ip switch; ip route del {host.address} || true")
    house.product.run("volumes down", 120)
    host.run(f"""systemctl stop {DAEMON}; umount {MOUNT}/*
        cp -p /tmp/fstab /etc/fstab; cp -p /tmp/hostnqn /tmp/hostid /etc/nvme/; ip link set eth0 mtu 1500
        rm -rf {UNIT_FILE} {KEPT} /etc/systemd/system/multi-user.target.wants/{UNIT}; systemctl daemon-reload
        for name in {' '.join(VOLUMES)}; do nvme disconnect -n $name; done
        rm -f /var/lib/spark-stage/volumes/*.intent.json
        mv -f {CONFIG}.house {CONFIG}; systemctl start {DAEMON}""", 120)
    for name in VOLUMES:
        target.remove(name)
        house.target_machine.sh(f"rm -f /srv/{name}.img")
    house.wait_ready()


def doctor(product):
    answer = product.run("doctor --json", 90)
    report = json.loads(answer.out)
    assert answer.rc == (1 if report["wrong"] else 0)
    return report


def of(area, report):
    return "\n".join(f"{row['what']} | {row['why']} | {row['fix']}" for row in report["findings"] if row["area"] == area)


# Must be first: the following tests have a house without a daemon.
@pytest.mark.long
def test_doctor_on_a_copied_machine_reports_its_copied_identity(pair):
    original, copy = pair.hosts
    own = copy.get("/etc/nvme/hostid")
    copy.put("/etc/nvme/hostid", original.get("/etc/nvme/hostid"))
    try:
        pair.configure(0, "exclusive")
        pair.products[0].wait_volume(SHARED, "ready", 120)
        pair.configure(1, "exclusive")
        pair.products[1].wait_volume(SHARED, "refused", 120)
        report = doctor(pair.products[1])
        copied = copy.get("/etc/nvme/hostid").strip()
        assert f"/etc/nvme/hostid {copied} is not the UUID in /etc/nvme/hostnqn" in of("identity", report)
        if pair.has_reservations():
            assert f"{SHARED}: another host or program has registered for and holds its reservation" in of("identity", report)
            assert f"volume {SHARED} is refused" in of("identity", report)
        else:  # multi-mount protection knows the writer's name, not that it is the original machine
            assert f"volume {SHARED} is refused" in of("volume", report) and "host1" in of("volume", report)
        assert "another host or program" not in of("identity", doctor(pair.products[0]))
    finally:
        pair.down(1)
        copy.put("/etc/nvme/hostid", own)


def test_doctor_names_each_fault_of_a_manual_setup_without_a_configuration(house, by_hand):
    way = f"{house.target.address} ({UNIT})"
    assert f"packets of 9000 bytes do not reach {way}, {LARGEST} do" in of("network", doctor(house.product))
    # From now on it advertises what a target without jumbo frames does, so that this host sends no larger ones.
    house.target_machine.sh(f"ip route add {house.host.address} dev eth0 advmss {LARGEST - TCP_HEADERS}")
    report = doctor(house.product)
    print(json.dumps(report, indent=1))
    assert "there is no configuration yet" in of("config", report)
    lines = of("fstab", report).split("\n")
    assert len(lines) == 2, lines
    for text, (subsystem, (head, line)) in zip(lines, by_hand.items()):
        assert f"line {line} of /etc/fstab (/dev/{head} on {VOLUMES[subsystem]})" in text
        for fault in ("order of connecting", "two hosts that do so damage", "no nofail", "asks for fsck"):
            assert fault in text, text
    for words in (UNIT, "others are not tried", "disconnects under the mount"):
        assert words in of("unit", report)
    assert of("network", report) == "", of("network", report)
    assert [(row["target"], row["interface"], row["mtu"], row["packet"]) for row in report["network"]] == [
        (way, "eth0", 9000, LARGEST)]
    copied = house.host.get("/etc/nvme/hostid").strip()
    assert f"/etc/nvme/hostid {copied} is not the UUID in /etc/nvme/hostnqn" in of("identity", report)
    assert "older than /etc/machine-id" in of("identity", report)
    for subsystem in VOLUMES:
        assert f"({subsystem}) is connected as another host" in of("identity", report)
        assert f"({subsystem}) is given up 600 s after" in of("connection", report)


def mend_what_is_not_moved(house, report):
    """Fixes the host ID, with the command suggested by doctor."""
    identity = "sed 's/.*uuid://' /etc/nvme/hostnqn | sudo tee /etc/nvme/hostid"
    assert identity in of("identity", report)
    house.host.sh(identity.replace("sudo ", ""))


def kinds(commands):
    """The kind of each command, without consecutive duplicates."""
    said = []
    for words in (command.split() for line in commands for command in line.split("&&")):
        kind = " ".join(words[:2] if words[0] in ("systemctl", "spark-stage") else words[:1])
        said += [kind] if said[-1:] != [kind] else []
    return said


def import_configuration(house):
    """Follows docs/moving-in.md; returns the steps at the end of the imported file."""
    look, move = commands_of("docs/moving-in.md")
    for line in look:
        house.host.sh(line)
    assert house.product.run(f"import --output {CONFIG}").rc == 7
    steps = [line[4:] for line in house.host.get(CONFIG).splitlines() if re.match(r"#   \S", line)]
    assert kinds(steps) == kinds(move), steps
    # The drive for staged copies is not part of the old setup.
    cache = next(line for line in house.config().splitlines() if line.startswith("cache:"))
    house.host.sh(f"cat >>{CONFIG}", stdin=f"{cache}\n".encode())
    return steps


def test_the_steps_of_the_imported_file_lose_no_byte_and_no_connection(house, by_hand):
    host, product = house.host, house.product

    def look():
        return {subsystem: host.sh(READ.format(mount=mount, head=by_hand[subsystem][0]), 60)
                for subsystem, mount in VOLUMES.items()}

    before = look()
    mend_what_is_not_moved(house, doctor(product))
    steps = import_configuration(house)
    imported = product.json("config show")["volumes"]
    names = {body["subsystem"]: name for name, body in imported.items() if body["mount"] in VOLUMES.values()}
    assert names == {"by-hand-data": "data", "by-hand-models": "models"}
    assert {imported[name]["access"] for name in names.values()} == {"read-only"}

    assert {f"umount {MOUNT}/data", f"umount {MOUNT}/models"} <= set(steps)
    for step in steps:
        print(f"# {step}\n{host.sh(step, 120)}")
    for name in imported:
        product.wait_volume(name, "ready", 120)
    assert look() == before
    assert host.sh(f"findmnt -no OPTIONS {MOUNT}/data").startswith("ro")

    report = doctor(product)
    print(product.run("doctor", 90).out)
    for area in ("config", "daemon", "fstab", "unit", "network", "volume"):
        assert of(area, report) == "", of(area, report)
    assert "is not the UUID" not in of("identity", report)
    way, = report["network"]
    assert (way["address"], way["packet"], way["carried_by"]) == (house.target.address, LARGEST, "eth0")
    # The host's other mounts still exist.
    assert host.run(f"mountpoint -q {NAS_MOUNT} && mountpoint -q {DATASETS_MOUNT}").rc == 0


def test_undo_restores_fstab_and_the_unit_that_connected(house, by_hand):
    host, product = house.host, house.product
    assert host.run(f"ls {UNIT_FILE}").rc != 0, "it has been moved in"
    undone = product.run("import --undo")
    assert undone.rc == 0, undone
    fstab = host.get("/etc/fstab").splitlines()
    for _, line in by_hand.values():
        assert fstab[line - 1].startswith("/dev/nvme"), fstab
    assert "ExecStart=/usr/sbin/nvme connect" in host.get(UNIT_FILE)
    assert f"systemctl enable {UNIT}" in undone.err
    assert product.run("import --undo").rc == 3
