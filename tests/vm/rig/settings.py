"""Settings of the rig, all from environment variables."""
import os
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[3]
GUEST_FILES = REPOSITORY / "tests/vm/guest"

CACHE = Path(os.environ.get("SPARK_VM_CACHE", REPOSITORY / "build/vm-cache"))
KERNEL = os.environ.get("SPARK_VM_KERNEL", "6.1")
# The name of this run, if several run in parallel.
LANE = os.environ.get("SPARK_VM_LANE", f"vm-{KERNEL}")
# The Debian release of the machines. Release 13 has the handshake service and the libnvme needed for TLS.
GUEST = os.environ.get("SPARK_VM_GUEST", "bookworm")
# The architecture of the machines. For others than amd64, user-mode emulation sets up Debian's packages (tools/setup.sh others).
ARCHITECTURE = os.environ.get("SPARK_VM_ARCH", "amd64")
ACCELERATOR = os.environ.get("SPARK_VM_ACCEL", "tcg")
# CPUs of a host machine. On a busy computer emulated CPUs wait for each other: two need a third more CPU time.
CPUS = int(os.environ.get("SPARK_VM_CPUS", "2"))
# The software on the host machines: a folder filled by `cmake --install` with DESTDIR, or "" to install BUILD, a CMake build folder.
INSTALL = os.environ.get("SPARK_VM_INSTALL", "")
BUILD = Path(os.environ.get("SPARK_VM_BUILD", REPOSITORY / "build/release")).resolve()
# A folder with our packages to install on clean machines, or "" to skip those scenarios.
PACKAGE = os.environ.get("SPARK_VM_PACKAGE", "")
# A folder with the package to upgrade from, or "" to skip those scenarios.
FIRST_PACKAGE = os.environ.get("SPARK_VM_FIRST_PACKAGE", "")
# The archive of our container image, or "" to skip those scenarios.
CONTAINER_IMAGE = os.environ.get("SPARK_VM_IMAGE", "")
# The unit tests of nvmetcp; a host runs their contract part on its kernel.
CONTRACT_TESTS = Path(os.environ.get("SPARK_VM_CONTRACT_TESTS",
                                     REPOSITORY / "build/release/tests/unit/nvmetcp/spark_nvmetcp_tests"))
# Multiplies every deadline, for busy machines.
PATIENCE = float(os.environ.get("SPARK_VM_PATIENCE", "1"))
# Keeps the machines' folders (disks, console logs).
KEEP = os.environ.get("SPARK_VM_KEEP", "") not in ("", "0")


def patience(seconds):
    return seconds * PATIENCE
