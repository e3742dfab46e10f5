"""A target machine: NVMe/TCP subsystems through nvmet's configfs, and NFS 4.2 exports."""
import uuid

NVMET = "/sys/kernel/config/nvmet"
PORT = 4420


def stable_uuid(name):
    """The same name gives the same UUID in each run."""
    return str(uuid.uuid5(uuid.NAMESPACE_DNS, f"{name}.rig.spark-stage"))


class Target:
    def __init__(self, machine):
        self.machine = machine
        self.address = machine.address

    # --- NVMe/TCP ---

    def export(self, nqn, device, *, namespace_uuid=None, port=PORT, allowed_hosts=None,
               reservations=False, tls=False):
        """Offers a block device or file as namespace 1 of a new subsystem. allowed_hosts: NQNs, or None for all hosts.
        reservations: if the kernel supports them. tls: the port requires TLS."""
        self.machine.ask("nvmet-export", nqn, device, namespace_uuid or stable_uuid(nqn), allowed_hosts is None, reservations)
        for hostnqn in allowed_hosts or ():
            self.allow(nqn, hostnqn)
        self.link(nqn, port, tls)

    def add(self, nqn, number, device, namespace_uuid):
        """Adds a namespace to a subsystem."""
        self.machine.ask("nvmet-add", nqn, number, device, namespace_uuid, False)

    def link(self, nqn, port=PORT, tls=False):
        """Offers a subsystem at a port, which is created if needed."""
        self.machine.ask("nvmet-link", nqn, self.address, port, tls)

    def unlink(self, nqn, port=PORT):
        self.machine.ask("nvmet-unlink", nqn, port)

    def replace(self, nqn, device, namespace_uuid=None):
        """Replaces the device or identity of the subsystem's namespace 1; without a device there is none until the next call."""
        self.machine.ask("nvmet-replace", nqn, device, namespace_uuid or stable_uuid(nqn))

    def allow(self, nqn, hostnqn):
        self.machine.ask("nvmet-allow", nqn, hostnqn)

    def forbid(self, nqn, hostnqn):
        self.machine.ask("nvmet-forbid", nqn, hostnqn)

    def ask_for_key(self, hostnqn, key, controller_key=None):
        """Requires this key from the host, which must be allowed by name. With controller_key, the target authenticates to
        the host as well."""
        folder = f"{NVMET}/hosts/{hostnqn}"
        self.machine.sh(f"""set -e
            modprobe nvmet-tcp
            mountpoint -q /sys/kernel/config || mount -t configfs none /sys/kernel/config
            mkdir -p {folder}
            echo '{key}' >{folder}/dhchap_key
            if [ -n '{controller_key or ""}' ]; then echo '{controller_key or ""}' >{folder}/dhchap_ctrl_key; fi""")

    def forget_host(self, hostnqn):
        """Forgets the host and its keys; no subsystem may still allow it by name."""
        self.machine.sh(f"[ ! -d {NVMET}/hosts/{hostnqn} ] || rmdir {NVMET}/hosts/{hostnqn}")

    def remove(self, nqn):
        """Removes a subsystem from all ports, and the ports that then offer nothing."""
        self.machine.ask("nvmet-remove", nqn)

    # --- NFS ---

    def export_nfs(self, path):
        self.machine.sh(f"""set -e
            mkdir -p {path}
            systemctl start nfs-server
            exportfs -o rw,no_root_squash,insecure,fsid=$(echo {path} | cksum | cut -d' ' -f1) '*:{path}'""", 60)

    # --- content of the devices ---

    def image(self, name, size):
        """Creates a file to export."""
        path = f"/srv/{name}.img"
        self.machine.sh(f"mkdir -p /srv && truncate -s {size} {path}")
        return path

    def filesystem(self, device, *, kind="ext4", name=None, mmp=False, fill="true"):
        """Makes a file system with a UUID derived from its name and runs the shell text `fill` in its root; returns the UUID."""
        fs_uuid = stable_uuid(name or device)
        # nvmet gives a file's namespace sectors of 4 KiB, so a file system made for smaller sectors can't be mounted.
        if kind == "ext4":
            make = f"mkfs.ext4 -q -F -b 4096 -J size=4 -E nodiscard -U {fs_uuid} {'-O mmp' if mmp else ''} {device}"
        else:
            make = f"mkfs.xfs -q -f -s size=4096 -m uuid={fs_uuid} {device}"
        self.machine.sh(make, 60)
        self.fill(device, fill)
        return fs_uuid

    def fill(self, device, commands):
        """Runs shell text in the root of the device's file system."""
        self.machine.sh(f"""set -e
            mkdir -p /run/fill
            mount $([ -f {device} ] && echo -o loop) {device} /run/fill
            (cd /run/fill && {commands})
            umount /run/fill
            [ -f {device} ] || sync""", 120)
