"""Debian's cloud kernels: ext4 and NVMe over PCI are built in, so they boot from a disk without an initramfs."""
import struct
import subprocess
from dataclasses import dataclass
from pathlib import Path

from .cache import cached, digest
from .settings import ARCHITECTURE

MIRROR = "http://deb.debian.org/debian"
KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"
# Kernel: the suites to take it from, best first; each is (suite, the suite it completes).
SOURCES = {
    "6.1": [("bookworm", None)],
    "newest": [("trixie-backports", "trixie"), ("bookworm-backports", "bookworm")],
}


@dataclass(frozen=True)
class Kernel:
    release: str
    image: Path
    modules: Path


def fetch(name):
    """The kernel called "6.1" or "newest", unpacked, its modules uncompressed and indexed."""
    if name not in SOURCES:
        raise ValueError(f"no kernel called '{name}' - SPARK_VM_KERNEL is one of {', '.join(SOURCES)}")
    recipe = digest(str(SOURCES[name]), Path(__file__))
    tree = cached(f"kernel-{ARCHITECTURE}-{name}", recipe, lambda path: _unpack(name, path))
    modules = next((tree / "modules").iterdir())
    return Kernel(modules.name, tree / "vmlinuz", modules)


def _unpack(name, path):
    failures = []
    for suite, base in SOURCES[name]:
        done = subprocess.run(_mmdebstrap(suite, base, f"{path}.tree"), capture_output=True, text=True)
        if done.returncode == 0:
            return _keep_what_boots(Path(f"{path}.tree"), path)
        failures.append(f"{suite}:\n{done.stderr[-2000:]}")
    raise RuntimeError(f"cannot fetch kernel '{name}' from {MIRROR}:\n" + "\n".join(failures))


def _mmdebstrap(suite, base, tree):
    subprocess.run(["rm", "-rf", tree], check=True)
    lines = [f"deb [signed-by={KEYRING}] {MIRROR} {s} main" for s in (base, suite) if s]
    return ["mmdebstrap", "--variant=extract", f"--aptopt=APT::Default-Release \"{suite}\"",
            f"--architectures={ARCHITECTURE}",
            f"--include=linux-image-cloud-{ARCHITECTURE}", base or suite, tree, *lines]


def _keep_what_boots(tree, path):
    modules = next(m for folder in ("usr/lib/modules", "lib/modules") for m in tree.glob(f"{folder}/*"))
    kept = path / "modules" / modules.name
    kept.parent.mkdir(parents=True)
    images = [*modules.glob("vmlinuz"), *tree.glob("boot/vmlinuz-*")]
    image = images[0].read_bytes()
    (path / "vmlinuz").write_bytes(_without_compression(image) if ARCHITECTURE == "amd64" else image)
    modules.rename(kept)
    # Uncompressed modules load faster under emulation; depmod wants the layout of a root tree.
    subprocess.run(["find", kept, "-name", "*.ko.xz", "-exec", "xz", "-d", "{}", "+"], check=True)
    # Removes tracing data, which slows the loading of modules: for xfs, 7 of 8 seconds.
    if ARCHITECTURE == "amd64":
        subprocess.run(f"find {kept} -name '*.ko' -print0 | xargs -0 -n 1 objcopy -w -R '*__mcount_loc' -R '*_ftrace_e*'",
                       shell=True, check=True)
    (path / "lib").symlink_to(".")
    subprocess.run(["/usr/sbin/depmod", "-b", path, modules.name], check=True)
    (path / "lib").unlink()
    subprocess.run(["rm", "-rf", tree], check=True)


def _without_compression(image):
    """An emulated CPU needs seconds to unpack a zstd payload; QEMU can start the bare ELF file as well."""
    setup_sectors = image[0x1F1] or 4
    offset, length = struct.unpack_from("<II", image, 0x248)
    begin = (setup_sectors + 1) * 512 + offset
    if image[begin:begin + 4] != b"\x28\xb5\x2f\xfd":
        return image
    # The last four bytes of the payload are its length, appended by the kernel's build.
    return subprocess.run(["zstd", "-dcq"], input=image[begin:begin + length - 4], stdout=subprocess.PIPE,
                          check=True).stdout
