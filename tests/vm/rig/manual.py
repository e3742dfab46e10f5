"""A manual setup on a host: a unit that connects two subsystems once, and two lines of fstab with kernel device names."""
import re

MOUNT = "/mnt/by-hand"
VOLUMES = {"by-hand-data": f"{MOUNT}/data", "by-hand-models": f"{MOUNT}/models"}
UNIT = "nvme-rosa-connect.service"
UNIT_FILE = f"/etc/systemd/system/{UNIT}"
FILL = """mkdir imagenet && for i in 1 2 3 4; do head -c 3M /dev/urandom >imagenet/$i.bin; done
    head -c 16M /dev/urandom >data.bin; find . -type f ! -name SUMS | sort | xargs sha256sum >/tmp/SUMS; mv /tmp/SUMS ."""
# Reads from the target, not from the page cache.
READ = """set -e; echo 3 >/proc/sys/vm/drop_caches; cd {mount}
    sha256sum --quiet --strict -c SUMS; sha256sum SUMS $(cut -c67- SUMS)"""


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
    """Returns {subsystem: (kernel name, number of its line in fstab)}."""
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


def content(host):
    """The checksums of each volume's files."""
    return {subsystem: host.sh(READ.format(mount=mount), 60) for subsystem, mount in VOLUMES.items()}


def connections(host):
    """Each connection of the two subsystems, with its number at the target."""
    return host.sh(f"for n in {' '.join(VOLUMES)}; do for c in $(grep -l \"^$n$\" /sys/class/nvme/nvme*/subsysnqn); do "
                   "echo $n $c $(cat ${c%subsysnqn}cntlid); done; done")
