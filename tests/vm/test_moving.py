"""A newcomer's first hour on a host with a manual setup, by docs/moving-in.md: doctor reports its problems, import writes the
replacing configuration, the steps in that file are taken, the first dataset is staged, a boot comes up, and all is undone."""
import json
import re
import signal

import pytest

from rig import blocks
from rig.house import DATASETS_MOUNT, NAS_MOUNT
from rig.manual import FILL, MOUNT, UNIT, UNIT_FILE, VOLUMES, connect_and_mount, connections, content, head_of
from rig.pair import NAME as SHARED
from rig.product import CONFIG
from rig.product import UNIT as DAEMON

PAGE = "docs/moving-in.md"
KEPT = "/var/lib/spark-stage/before-import"
IDENTITY = ("/etc/nvme/hostnqn", "/etc/nvme/hostid")
SAVED = "/root/saved"  # not /tmp, which a boot empties
# The largest packet in bytes that the "switch" forwards. TCP is not affected: it uses the target's own 1500, and the
# target's card may merge packets into larger ones.
LARGEST = 1500
TCP_HEADERS = 40
AWAY = "10.77.0.99"  # no machine has it


def typed(block):
    """A block of the page as one script of root's commands, for the volume "data" of this host."""
    return "set -e\n" + block.text.replace("sudo ", "").replace("rosa-storage", "data").replace("$USER", "nobody")


@pytest.fixture(scope="module")
def by_hand(house):
    """No configuration and no daemon; two manually configured volumes; jumbo frames, which the way to the target drops; another machine's
    host ID, in files that are older than this machine."""
    host, target = house.host, house.target
    for name in VOLUMES:
        device = target.image(name, "128M")
        target.filesystem(device, kind="ext4", name=name, fill=FILL)
        target.export(name, device)
    host.sh(f"systemctl stop {DAEMON}; mv {CONFIG} {CONFIG}.house; mkdir {SAVED}; cp -p /etc/fstab {' '.join(IDENTITY)} {SAVED}", 60)
    found = connect_and_mount(host, target.address)
    host.put("/etc/nvme/hostid", house.target_machine.get("/etc/nvme/hostid"))
    host.sh(f"ip link set eth0 mtu 9000; touch -d 2020-01-01 {' '.join(IDENTITY)}")
    house.target_machine.sh(f"""nft add table ip switch
        nft add chain ip switch in '{{ type filter hook prerouting priority -300; }}'
        nft add rule ip switch in meta l4proto icmp ip length gt {LARGEST} drop""")
    yield found
    house.target_machine.sh(f"nft delete table ip switch; ip route del {host.address} || true")
    house.product.run("evict imagenet")
    house.product.run("volumes down", 120)
    host.run(f"""systemctl stop {DAEMON}; umount {MOUNT}/*
        cp -p {SAVED}/fstab /etc/fstab; cp -p {SAVED}/hostnqn {SAVED}/hostid /etc/nvme/; ip link set eth0 mtu 1500
        rm -rf {UNIT_FILE} {KEPT} {SAVED} /etc/systemd/system/multi-user.target.wants/{UNIT}; systemctl daemon-reload
        for name in {' '.join(VOLUMES)}; do nvme disconnect -n $name; done
        rm -f /var/lib/spark-stage/volumes/*.intent.json
        mv -f {CONFIG}.house {CONFIG}; systemctl enable --now {DAEMON}""", 120)
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


def test_a_unit_that_connects_all_stays_while_one_of_its_arrays_is_away(house):
    host, target, name, unit = house.host, house.target, "by-connect-all", "connect-all.service"
    device = target.image(name, "64M")
    target.filesystem(device, kind="ext4", name=name, fill="echo hello >file")
    target.export(name, device)
    arrays = [f"--transport=tcp --traddr={address} --trsvcid=4420\n" for address in (house.target.address, AWAY)]
    host.put("/etc/nvme/discovery.conf", "".join(arrays))
    host.put(f"/etc/systemd/system/{unit}", "[Service]\nType=oneshot\nRemainAfterExit=yes\nExecStart=/usr/sbin/nvme connect-all\n")
    host.sh("cp -p /etc/fstab /root/fstab; systemctl daemon-reload")
    try:
        print(host.run(f"systemctl start {unit}; journalctl -u {unit} --no-pager", 120).out)
        line = f"/dev/{head_of(host, name)} /mnt/{name} ext4 ro,_netdev 0 0"
        host.sh(f"mkdir -p /mnt/{name}; echo '{line}' >>/etc/fstab; udevadm settle; mount /mnt/{name}", 60)
        imported = house.product.sh("import")
        assert f"it connects {AWAY}, where no connection over TCP leads to now" in imported, imported
        assert f"umount /mnt/{name}" in imported and f"disable {unit}" not in imported, imported
        host.put("/etc/nvme/discovery.conf", arrays[0])
        assert f"disable {unit}" in house.product.sh("import")
    finally:
        host.run(f"umount /mnt/{name}; nvme disconnect -n {name}; rm /etc/nvme/discovery.conf /etc/systemd/system/{unit}; "
                 "mv /root/fstab /etc/fstab; systemctl daemon-reload; systemctl reset-failed", 60)
        target.remove(name)
        house.target_machine.sh(f"rm -f {device}")
        house.wait_ready()


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


def test_a_daemon_for_other_volumes_leaves_the_manual_setup_alone(house, by_hand):
    host = house.host
    before = connections(host), content(host)
    host.sh(f"cp {CONFIG}.house {CONFIG}; cp /etc/nvme/hostid {SAVED}/copied; cp {SAVED}/hostid /etc/nvme/; systemctl start {DAEMON}", 60)
    try:
        house.wait_ready()
        assert (connections(host), content(host)) == before
    finally:
        host.sh(f"systemctl stop {DAEMON}; rm {CONFIG}; cp {SAVED}/copied /etc/nvme/hostid", 60)
    assert (connections(host), content(host)) == before


def fix_what_is_not_moved(house, report):
    """Fixes the host ID, with the command suggested by doctor."""
    identity = "sed 's/.*uuid://' /etc/nvme/hostnqn | sudo tee /etc/nvme/hostid"
    assert identity in of("identity", report)
    house.host.sh(identity.replace("sudo ", ""))


def kinds(commands):
    """The kind of each command, each once, without what a failed check says."""
    words = [command.removeprefix("sudo ").split() for line in commands for command in line.split(" && {")[0].split(" && ")]
    return list(dict.fromkeys(" ".join(one[:2] if one[0] in ("systemctl", "spark-stage") else one[:1]) for one in words))


def import_configuration(house, look, move):
    """Types the page's import; returns the steps at the end of the imported file."""
    print(house.host.sh(typed(look), 60))
    assert house.product.run(f"import --output {CONFIG}").rc == 7
    steps = [line[4:] for line in house.host.get(CONFIG).splitlines() if re.match(r"#   \S", line)]
    assert kinds(steps) == kinds(move.lines), steps
    # The drive for staged copies is not part of the old setup.
    cache = next(line for line in house.config().splitlines() if line.startswith("cache:"))
    house.host.sh(f"cat >>{CONFIG}", stdin=f"{cache}\n".encode())
    return steps


def assert_moved_in(house, imported):
    host, product = house.host, house.product
    for name in imported:
        product.wait_volume(name, "ready", 120)
    assert host.sh(f"findmnt -no OPTIONS {MOUNT}/data").startswith("ro")
    assert host.run(f"ls {UNIT_FILE}").rc != 0 and host.run(f"grep '^[^#]*{MOUNT}' /etc/fstab").rc != 0


def assert_copied(house):
    """The copy has the volume's bytes."""
    sums = "cd {}; sha256sum *"
    path = house.product.dataset("imagenet")["path"]
    assert house.host.sh(sums.format(path)) == house.host.sh(sums.format(f"{MOUNT}/data/imagenet"))


def test_the_page_moves_the_setup_and_stages_its_first_dataset(house, by_hand):
    host, product = house.host, house.product
    before = connections(host), content(host)
    fix_what_is_not_moved(house, doctor(product))
    look, script, move, named, reload, stage = blocks.of_page(PAGE)
    steps = import_configuration(house, look, move)
    imported = product.json("config show")["volumes"]
    names = {body["subsystem"]: name for name, body in imported.items() if body["mount"] in VOLUMES.values()}
    assert names == {"by-hand-data": "data", "by-hand-models": "models"}
    assert {imported[name]["access"] for name in names.values()} == {"read-only"}
    for mount in VOLUMES.values():
        assert f"findmnt -M {mount} >/dev/null && umount {mount}" in steps

    # A program still uses a volume: nothing is changed but the other's mount, and the steps are begun again.
    fstab, program = host.get("/etc/fstab"), host.spawn(f"cd {MOUNT}/models; exec 9<data.bin; echo has it; exec sleep 3600")
    program.wait_said("has it")
    busy = host.run(typed(script), 120)
    assert busy.rc != 0 and "target is busy" in busy.err, busy
    assert host.get("/etc/fstab") == fstab and host.run(f"ls {UNIT_FILE} && ! ls {KEPT}").rc == 0
    program.signal(signal.SIGKILL)
    program.wait(60)
    print(host.sh(typed(script), 120))
    assert_moved_in(house, imported)
    assert (connections(host), content(host)) == before

    host.sh(f"cat >>{CONFIG}", stdin=typed(named).removeprefix("set -e\n").encode())
    host.sh(typed(reload), 60)
    said = host.sh(typed(stage), 120).splitlines()
    assert said[-4:] == [f"{number}.bin" for number in (1, 2, 3, 4)], said
    assert_copied(house)
    report = doctor(product)
    print(product.run("doctor", 90).out)
    for area in ("config", "daemon", "fstab", "unit", "network", "volume"):
        assert of(area, report) == "", of(area, report)
    assert "is not the UUID" not in of("identity", report)
    way, = report["network"]
    assert (way["address"], way["packet"], way["carried_by"]) == (house.target.address, LARGEST, "eth0")
    # The host's other mounts still exist.
    assert host.run(f"mountpoint -q {NAS_MOUNT} && mountpoint -q {DATASETS_MOUNT}").rc == 0


def test_a_boot_comes_up_with_spark_stage_alone(house, by_hand):
    host, product = house.host, house.product
    before = content(host)
    imported = [volume["name"] for volume in product.status()["volumes"]]
    host.poweroff(verb="reboot")
    house.start_host()
    host.wait_until("spark-stage status", 60)
    assert_moved_in(house, imported)
    assert content(host) == before
    assert len(connections(host).splitlines()) == len(VOLUMES)
    assert host.run(f"systemctl cat {UNIT}").rc != 0
    product.sh("run imagenet -- true", 60)
    assert_copied(house)


# Without a boot: the restored lines name devices as they were called before, and after another boot they may be others.
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
