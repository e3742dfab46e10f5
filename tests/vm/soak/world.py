"""The machines of a walk: two hosts with jobs on both volumes, and one target."""
import json
import time

from rig.agent import CommandFailed
from rig.disks import ext4
from rig.house import CACHE, LOCAL, TARGET_ADDRESS
from rig.product import CONFIG, Product, config_text
from rig.settings import KERNEL, patience
from rig.target import Target, stable_uuid

from .model import BATON, BOOKS, HOSTS, READER, VOLUMES, WRITER, name_of

OTHER = "/srv/other.img"  # another disk that the target may offer in a volume's place
BELOW = "/run/soak/below"
DRIVE = 256 << 20
# The witness's names for its uses of a volume.
USES = {BATON: {"baton-log", "baton-made"}, BOOKS: {"books-data", "books-made"}}


def mount_of(volume):
    return f"/mnt/{volume}"


def image_of(volume):
    return f"/srv/{volume}.img"


class World:
    def __init__(self, rig):
        self.reconnect_s = {host: 2 for host in HOSTS}
        drive = ext4(rig.folder / "local.raw", DRIVE, stable_uuid("local"))
        self.hosts = [rig.add_host(name_of(host), disks=[drive] if host == READER else [], files={CONFIG: self.config(host)})
                      for host in HOSTS]
        self.target = Target(rig.add_target("target"))
        self.products = [Product(machine) for machine in self.hosts]
        self.acked = {}  # writing process -> the highest number acknowledged as durable
        self.daemons = {}  # host -> PID of its daemon
        self.leases = []  # (ID, path, content), as in the model
        self._epoch = 0
        self._controls = {host: {"serial": 0, "paused": [], "books": None} for host in HOSTS}

    def config(self, host):
        books = {"access": "exclusive" if host == WRITER else "read-only"}
        volumes = {BATON: {"access": "exclusive"}, BOOKS: books}
        for name, keys in volumes.items():
            keys |= {"target": "rose", "subsystem": name, "mount": mount_of(name), "filesystem": {"uuid": stable_uuid(name)}}
        cache = {"path": CACHE, "capacity": "1GiB", "keep_free": "5%"}
        return config_text(targets={"rose": {"address": TARGET_ADDRESS, "reconnect_delay": f"{self.reconnect_s[host]}s"}},
                           volumes=volumes, **({"cache": cache, "datasets": {"set": {"volume": BOOKS, "path": "data"}}}
                                               if host == READER else {}))

    # --- machines ---

    def start(self):
        """Waits until both volumes are ready, the first books are published, and jobs use both volumes."""
        for machine in (self.target.machine, *self.hosts):
            machine.start()
        self.target.machine.wait_ready()
        for volume in VOLUMES:
            # The baton covers the case of reservation plus multi-mount protection, so the books get the latter only if the
            # kernel has no reservations.
            mmp = volume == BATON or KERNEL == "6.1"
            self.target.filesystem(self.target.image(volume, "64M"), name=volume, mmp=mmp,
                                   fill="touch log && mkdir data")
        self.target.filesystem(self.target.image("other", "32M"), name="other", fill="echo other >file")
        self.target.machine.sh(f"cp {OTHER} {OTHER}.before && sync")
        self.export(BOOKS)
        for host in HOSTS:
            self.settle_in(host, with_witness=False)
        self.products[WRITER].wait_volume(BOOKS, "ready", 120)
        self.hosts[WRITER].ask("soak-write_books", mount_of(BOOKS), 1)
        self.products[WRITER].sh(f"volumes publish {BOOKS}", 120)
        # The first host gets the baton, because the second one brings the volume up only afterwards.
        self.products[READER].sh(f"volumes down {BATON}", 60)
        self.export(BATON)
        self.products[WRITER].wait_volume(BATON, "ready", 120)
        self.products[READER].sh(f"volumes up {BATON}", 60)
        for host in HOSTS:
            self.start_witness(host)

    def has_reservations(self):
        return self.target.machine.run("[ -e /sys/kernel/config/nvmet/subsystems/baton/namespaces/1/resv_enable ]").rc == 0

    def export(self, volume):
        self.target.export(volume, image_of(volume), reservations=True)

    def restart_target(self):
        self.target.machine.start()
        self.target.machine.wait_ready()
        for volume in VOLUMES:
            self.export(volume)

    def settle_in(self, host, with_witness=True):
        """Prepares a host after it was switched on."""
        machine = self.hosts[host]
        machine.wait_ready()
        machine.sh(f"mkdir -p {BELOW} {' '.join(map(mount_of, VOLUMES))} && mount --bind / {BELOW} && "
                   f"mount --make-private {BELOW}")
        if host == READER:
            machine.wait_until(f"mountpoint -q {LOCAL}", 60)
        self.note_daemon(host)
        if with_witness:
            self.start_witness(host)

    def note_daemon(self, host):
        """Notes the new daemon after it was restarted, by us or by systemd."""
        self.hosts[host].wait_until("spark-stage status", 120)
        self.daemons[host] = daemon_of(self.look(host))

    # --- jobs ---

    def start_witness(self, host):
        self._epoch += 1
        self._tell(host, books=None)  # the books may have been written while the host was off
        self.hosts[host].spawn(f"exec /usr/local/lib/rig/soak-witness {self._epoch} >/run/soak/words 2>&1")
        self.hosts[host].wait_until("[ -s /run/soak/seen ]", 60)

    def _tell(self, host, **changes):
        control = self._controls[host]
        control |= {"serial": control["serial"] + 1, **changes}
        self.hosts[host].put("/run/soak/control.json", json.dumps(control))

    def expect_books(self, host, content):
        """Sets the expected content of every read that begins from now on; None: any content."""
        if self._controls[host]["books"] != content:
            self._tell(host, books=content)

    def pause(self, host, volume):
        """Makes the jobs stop using the volume, which must happen before it is taken down."""
        self._tell(host, paused=[*self._controls[host]["paused"], volume])
        end = time.monotonic() + patience(30)
        while not USES[volume] <= set(self.seen(host)["pausing"]):
            assert time.monotonic() < end, f"jobs on {name_of(host)} hang in {mount_of(volume)}: {self.seen(host)}"
            time.sleep(0.3)

    def go_on(self, host, volume):
        self._tell(host, paused=[one for one in self._controls[host]["paused"] if one != volume])

    # --- observations ---

    def seen(self, host):
        """The jobs' results; records the numbers acknowledged as durable."""
        text = self.hosts[host].get("/run/soak/seen").rstrip()
        found = json.loads(text)
        self.acked[found["epoch"]] = max(found["acked"], self.acked.get(found["epoch"], 0))
        return found

    def look(self, host):
        return json.loads(self.hosts[host].ask("soak-surroundings"))

    def log(self, host):
        return self.hosts[host].get(f"{mount_of(BATON)}/log")

    def difference(self, host, folder, content):
        try:
            return self.hosts[host].ask("soak-compare", folder, content)
        except CommandFailed as error:
            return str(error)


def daemon_of(look):
    """The PID of its daemon, or None."""
    return next((one["pid"] for one in look["processes"] if one["parent"] == 1 and "worker" not in one["arguments"]), None)
