"""Additional Debian packages for a machine, downloaded once from the mirror."""
import subprocess
from pathlib import Path

from .cache import cached, digest
from .disks import tree_of
from .kernel import KEYRING, MIRROR
from .settings import ARCHITECTURE, GUEST


def download(path, status, names):
    """Downloads the packages into the folder `path`, with their dependencies that are missing in the machine (see its dpkg status)."""
    work = Path(f"{path}.apt")
    for folder in (path, work / "lists/partial", work / "cache/archives/partial"):
        folder.mkdir(parents=True, exist_ok=True)
    (work / "status").write_text(status)
    (work / "sources.list").write_text(f"deb [signed-by={KEYRING}] {MIRROR} {GUEST} main\n")
    apt = ["apt-get", "-q", "-y", *(word for option in (
        f"Dir::Etc::SourceList={work}/sources.list", "Dir::Etc::SourceParts=/dev/null", f"Dir::State::Lists={work}/lists",
        f"Dir::State::status={work}/status", f"Dir::Cache={work}/cache", "APT::Sandbox::User=root",
        f"APT::Architecture={ARCHITECTURE}", f"APT::Architectures::={ARCHITECTURE}", "APT::Install-Recommends=false",
        "Debug::NoLocking=1") for word in ("-o", option))]
    subprocess.run([*apt, "update"], check=True, stdout=subprocess.DEVNULL)
    subprocess.run([*apt, "install", "--download-only", *names], check=True, stdout=subprocess.DEVNULL)
    for package in (work / "cache/archives").glob("*.deb"):
        package.rename(path / f"{package.name.split('_')[0]}.deb")
    subprocess.run(["rm", "-rf", work], check=True)


def drive(kind, userland, names):
    """A cached ext4 image with the files of the packages and of their missing dependencies. Their maintainer scripts have
    not run: programs need LD_LIBRARY_PATH or PYTHONPATH. For packages that are too large to install in a guest."""
    status = (userland / "var/lib/dpkg/status").read_text()

    def make(path):
        packages = Path(f"{path}.debs")
        download(packages, status, names)
        tree = Path(f"{path}.tree")
        for package in sorted(packages.glob("*.deb")):
            subprocess.run(["dpkg-deb", "--extract", package, tree], check=True)
        tree_of(path, tree)
        subprocess.run(["rm", "-rf", packages, tree], check=True)

    return cached(f"{kind}-{GUEST}-{ARCHITECTURE}", digest(status, *names, Path(__file__)), make)
