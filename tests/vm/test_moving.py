"""A host set up by hand, as people have it today: doctor names what is wrong, import writes what replaces it."""
import json

import pytest

from rig.house import NAS_MOUNT

NAME = "by-hand"
MOUNT = "/mnt/by-hand"
UNIT = "nvme-rosa-connect.service"
UNIT_FILE = f"/etc/systemd/system/{UNIT}"
# Bytes of a packet that the "switch" lets through. Of TCP nothing is dropped: it keeps to the target's own 1500, and what
# the target's card has put together again is longer.
LARGEST = 1500


@pytest.fixture(scope="module")
def by_hand(house):
    """The volume connected by a oneshot unit and mounted by its kernel name; jumbo frames on one side only."""
    device = house.target.image(NAME, "256M")
    house.target.filesystem(device, kind="ext4", name=NAME, fill="head -c 32M /dev/urandom >data.bin")
    house.target.export(NAME, device)
    host = house.host
    host.put(UNIT_FILE, f"""[Unit]
After=network-online.target
[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=/usr/sbin/nvme connect -t tcp -n {NAME} -a {house.target.address} -s 4420
ExecStop=/usr/sbin/nvme disconnect -n {NAME}
[Install]
WantedBy=multi-user.target
""")
    host.sh(f"cp -p /etc/fstab /tmp/fstab.before; cp -p /etc/nvme/hostnqn /tmp/hostnqn.before; systemctl daemon-reload; "
            f"systemctl enable --now {UNIT}", 60)
    name = host.sh(f"grep -l '^{NAME}$' /sys/class/nvme/nvme*/subsysnqn").strip().split("/")[4]
    host.wait_until(f"ls -d /sys/class/nvme/{name}/nvme*n1", 30)
    host.sh("udevadm settle", 30)
    node = host.sh(f"ls /sys/class/nvme/{name} | grep -E '^nvme[0-9]+(c[0-9]+)?n1$'").strip()
    head = node if "c" not in node[4:] else f"nvme{node[4:].split('c')[0]}n1"
    host.sh(f"""set -e
        mkdir -p {MOUNT}
        echo '/dev/{head} {MOUNT} ext4 defaults,noatime,_netdev 0 2' >>/etc/fstab
        systemctl daemon-reload
        mount {MOUNT}
        ip link set eth0 mtu 9000
        touch -d 2020-01-01 /etc/nvme/hostnqn""", 60)
    house.target_machine.sh(f"""nft add table ip switch
        nft add chain ip switch in '{{ type filter hook prerouting priority -300; }}'
        nft add rule ip switch in meta l4proto icmp ip length gt {LARGEST} drop""")
    yield head
    house.target_machine.sh("nft delete table ip switch")
    house.product.run(f"volumes down {NAME}")
    house.product.configure(house.config())
    host.run(f"umount {MOUNT}; cp -p /tmp/fstab.before /etc/fstab; cp -p /tmp/hostnqn.before /etc/nvme/hostnqn; "
             f"ip link set eth0 mtu 1500; rm -f {UNIT_FILE} /etc/systemd/system/multi-user.target.wants/{UNIT}; "
             f"systemctl daemon-reload; nvme disconnect -n {NAME}", 60)
    house.target.remove(NAME)
    house.wait_ready()


def findings(house):
    answer = house.product.run("doctor --json", 60)
    report = json.loads(answer.out)
    assert answer.rc == (1 if report["wrong"] else 0)
    return [(row["area"], f"{row['what']} | {row['why']} | {row['fix']}") for row in report["findings"]]


def of(area, rows):
    return " ".join(text for its, text in rows if its == area)


def test_doctor_names_each_fault_of_a_host_set_up_by_hand(house, by_hand):
    rows = findings(house)
    assert f"/dev/{by_hand} on {MOUNT}" in of("fstab", rows) and "order of connecting" in of("fstab", rows)
    assert UNIT in of("unit", rows) and "disconnects under the mount" in of("unit", rows)
    assert f"packets of 9000 bytes do not reach target rose, {LARGEST} do" in of("network", rows)
    assert "older than /etc/machine-id" in of("identity", rows)
    assert "given up 600 s after" in of("connection", rows)


def test_the_move_by_the_imported_configuration_loses_no_byte_and_no_connection(house, by_hand):
    host, product = house.host, house.product
    before = host.sh(f"sha256sum <{MOUNT}/data.bin; readlink /sys/class/block/{by_hand}")
    product.sh("import --output /tmp/imported.yaml")
    product.sh("config check /tmp/imported.yaml")
    assert product.run("import --output /tmp/imported.yaml").rc == 7
    imported = json.loads(host.sh("spark-stage --config /tmp/imported.yaml config show --json"))
    name, volume = next((name, body) for name, body in imported["volumes"].items() if body["mount"] == MOUNT)
    assert (name, volume["subsystem"], volume["access"]) == (NAME, NAME, "read-only")

    # What the imported file says to do, in its order.
    host.sh(f"""set -e
        umount {MOUNT}
        sed -i '\\|{MOUNT}|s/^/#/' /etc/fstab
        systemctl disable {UNIT} && mv {UNIT_FILE} /root/
        systemctl daemon-reload""", 60)
    product.configure(house.config(targets={volume["target"]: imported["targets"][volume["target"]]},
                                   volumes={name: volume}))
    product.wait_volume(name, "ready", 90)
    assert host.sh(f"sha256sum <{MOUNT}/data.bin; readlink /sys/class/block/{by_hand}") == before
    rows = findings(house)
    assert MOUNT not in of("fstab", rows) and of("unit", rows) == "", rows
    assert host.run(f"mountpoint -q {NAS_MOUNT}").rc == 0
