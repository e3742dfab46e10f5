"""The guest's disk image: Debian + a kernel's modules + tests/vm/guest + the files of `cmake --install`."""
import shutil
import struct
import subprocess
from pathlib import Path

from . import kernel as kernels
from .cache import cached, digest
from .settings import ARCHITECTURE, BUILD, GUEST, GUEST_FILES, INSTALL, LANE

PACKAGES = """
    apt systemd systemd-sysv udev dbus kmod iproute2 iputils-ping nftables procps python3
    nvme-cli dmsetup e2fsprogs xfsprogs nfs-common nfs-kernel-server fio strace attr acl rsync curl
    libmount1 libblkid1 libsystemd0 liburing2 libxxhash0 libsqlite3-0 libprometheus-cpp-core1.0
""".split()
PACKAGES_OF = {
    "bookworm": "libnvme1 libyaml-cpp0.7 libspdlog1.10 libfmt9 libboost-json1.81.0".split(),
    "trixie": "libnvme1t64 libyaml-cpp0.8 libspdlog1.15 libfmt10 libboost-json1.83.0 ktls-utils nvme-stas".split(),
}
EXCLUDED = ["/usr/share/man/*", "/usr/share/doc/*", "/usr/share/locale/*", "/usr/share/bug/*", "/usr/share/lintian/*"]
SIZE = 4 << 30
# One partition, so that the kernel finds the root by PARTUUID: names like nvme0n1 change between boots.
PARTITION_OFFSET = 1 << 20
DISK_SIGNATURE = 0x5BA4C0DE
ROOT_PARTUUID = f"{DISK_SIGNATURE:08x}-01"
# Units of the guest that slow the boot under emulation and that no scenario needs.
MASKED = ["systemd-hwdb-update.service", "ldconfig.service", "systemd-journal-catalog-update.service",
          "systemd-update-done.service", "systemd-firstboot.service", "getty.target", "systemd-logind.service",
          "nfs-blkmap.service", "rpc-statd-notify.service", "e2scrub_reap.service", "systemd-pcrphase.service",
          "systemd-pcrphase-sysinit.service", "dpkg-db-backup.timer", "e2scrub_all.timer", "fstrim.timer",
          "systemd-tmpfiles-clean.timer", "xfs_scrub_all.timer", "dev-hugepages.mount", "dev-mqueue.mount",
          "sys-kernel-debug.mount", "sys-kernel-tracing.mount", "sys-fs-fuse-connections.mount",
          "proc-sys-fs-binfmt_misc.automount", "systemd-binfmt.service", "systemd-pstore.service",
          "modprobe@efi_pstore.service", "modprobe@drm.service", "modprobe@fuse.service", "modprobe@dm_mod.service",
          "systemd-network-generator.service", "systemd-random-seed.service", "systemd-update-utmp.service",
          "systemd-user-sessions.service", "systemd-ask-password-console.path", "systemd-ask-password-wall.path",
          "uuidd.socket", "systemd-initctl.socket"]
# Generators that run at each boot and have nothing to do here. "debug" is kept, since it reads systemd.mask=.
NO_GENERATORS = ["cryptsetup", "getty", "gpt-auto", "hibernate-resume", "integritysetup", "rc-local", "run",
                 "system-update", "sysv", "veritysetup"]
ENABLED = ["rig-agent.service", "rig-identity.service", "systemd-networkd.service",
           "systemd-networkd-wait-online.service"]
# A target starts its NFS server when a scenario exports a folder; scenarios start the others.
DISABLED = ["nfs-server.service", "nfs-kernel-server.service", "rpcbind.service", "rpcbind.socket", "nftables.service",
            "stafd.service", "stacd.service"]


def build(kernel_name, install_tree=None):
    """Returns (kernel, disk image). install_tree is a folder copied over the root, or None."""
    kernel = kernels.fetch(kernel_name)
    userland = userland_folder()
    recipe = digest(userland.name, kernel.modules.parents[1].name, GUEST_FILES, *([install_tree] if install_tree else []),
                    Path(__file__))
    kind = f"image-{GUEST}-{ARCHITECTURE}-{kernel_name}-{'product' if install_tree else 'bare'}"
    return kernel, cached(kind, recipe, lambda path: _assemble(path, userland, kernel, install_tree))


def userland_folder():
    """The guest's Debian as a cached folder; it must not be changed."""
    return cached(f"userland-{GUEST}-{ARCHITECTURE}", digest(*_packages(), *EXCLUDED), _debootstrap)


def install_product():
    """Installs the build into a separate folder, as a package would, and returns that folder."""
    if INSTALL:
        return Path(INSTALL).resolve()
    if not (BUILD / "CMakeCache.txt").exists():
        raise RuntimeError(f"the product is not built in {BUILD} - run `cmake --preset release && cmake --build "
                           "--preset release`, or set SPARK_VM_BUILD to a build folder")
    tree = BUILD / f"{LANE}-install"
    shutil.rmtree(tree, ignore_errors=True)
    done = subprocess.run(["cmake", "--install", BUILD, "--prefix", "/usr", "--strip"], capture_output=True, text=True,
                          env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "DESTDIR": str(tree)})
    if done.returncode:
        raise RuntimeError(f"cmake --install {BUILD} failed:\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    return tree


def _packages():
    if GUEST not in PACKAGES_OF:
        raise ValueError(f"no guest called '{GUEST}' - SPARK_VM_GUEST is one of {', '.join(PACKAGES_OF)}")
    return PACKAGES + PACKAGES_OF[GUEST]


def _debootstrap(path):
    command = ["mmdebstrap", "--variant=essential", f"--architectures={ARCHITECTURE}",
               f"--include={','.join(_packages())}",
               *(f"--dpkgopt=path-exclude={pattern}" for pattern in EXCLUDED),
               GUEST, path, f"deb [signed-by={kernels.KEYRING}] {kernels.MIRROR} {GUEST} main"]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"cannot make the guest's Debian from {kernels.MIRROR}:\n{done.stderr[-4000:]}")


def _assemble(path, userland, kernel, install_tree):
    # The tree consists of hard links: files in it must be replaced, never written in place.
    tree = Path(f"{path}.tree")
    subprocess.run(["rm", "-rf", tree], check=True)
    subprocess.run(["cp", "-al", userland, tree], check=True)
    (tree / "usr/lib/modules").mkdir(exist_ok=True)
    subprocess.run(["cp", "-al", kernel.modules, tree / "usr/lib/modules"], check=True)
    for overlay in filter(None, (GUEST_FILES, install_tree)):
        subprocess.run(["cp", "-rP", "--preserve=mode,links", "--remove-destination", f"{overlay}/.", tree], check=True)
    for identity in ("etc/nvme/hostnqn", "etc/nvme/hostid", "etc/hostname"):
        (tree / identity).unlink(missing_ok=True)
    enabled = ENABLED + (["spark-staged.service"] if install_tree else [])
    disabled = [unit for unit in DISABLED if (tree / "usr/lib/systemd/system" / unit).exists()]
    for verb, units in (("mask", MASKED), ("disable", disabled), ("enable", enabled)):
        subprocess.run(["systemctl", f"--root={tree}", "-q", verb, *units], check=True)
    generators = tree / "etc/systemd/system-generators"
    generators.mkdir(parents=True, exist_ok=True)
    for name in NO_GENERATORS:
        (generators / f"systemd-{name}-generator").symlink_to("/dev/null")
    _write_partition_table(path)
    subprocess.run(["/usr/sbin/mkfs.ext4", "-q", "-F", "-L", "root", "-E", f"offset={PARTITION_OFFSET}", "-d", tree, path,
                    f"{(SIZE - PARTITION_OFFSET) >> 10}k"], check=True, stdout=subprocess.DEVNULL)
    subprocess.run(["rm", "-rf", tree], check=True)


def _write_partition_table(path):
    sector = 512
    entry = struct.pack("<B3sB3sII", 0, b"\xff" * 3, 0x83, b"\xff" * 3, PARTITION_OFFSET // sector,
                        (SIZE - PARTITION_OFFSET) // sector)
    with open(path, "wb") as disk:
        disk.truncate(SIZE)
        disk.write(bytes(440) + struct.pack("<IH", DISK_SIGNATURE, 0) + entry + bytes(48) + b"\x55\xaa")
