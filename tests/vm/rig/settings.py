"""What a person can set from outside, all by environment variables."""
import os
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[3]
GUEST_FILES = REPOSITORY / "tests/vm/guest"

CACHE = Path(os.environ.get("SPARK_VM_CACHE", REPOSITORY / "build/vm-cache"))
KERNEL = os.environ.get("SPARK_VM_KERNEL", "6.1")
# What this run is called where others go on beside it.
LANE = os.environ.get("SPARK_VM_LANE", f"vm-{KERNEL}")
# The Debian that the machines run. 13 has the handshake service and the libnvme that TLS needs.
GUEST = os.environ.get("SPARK_VM_GUEST", "bookworm")
# What the machines are. Not amd64: Debian's packages are set up by the emulator of single programs (tools/setup.sh others).
ARCHITECTURE = os.environ.get("SPARK_VM_ARCH", "amd64")
ACCELERATOR = os.environ.get("SPARK_VM_ACCEL", "tcg")
# Of a host machine. Emulated CPUs that share a busy computer wait for each other: two take a third more of its time.
CPUS = int(os.environ.get("SPARK_VM_CPUS", "2"))
# What the host machines run: a folder as `cmake --install` fills it under DESTDIR, or "": what BUILD, a CMake build
# folder, installs.
INSTALL = os.environ.get("SPARK_VM_INSTALL", "")
BUILD = Path(os.environ.get("SPARK_VM_BUILD", REPOSITORY / "build/release")).resolve()
# A folder with our packages, which are installed on clean machines, or "": those scenarios are skipped.
PACKAGE = os.environ.get("SPARK_VM_PACKAGE", "")
# A folder with the package that hosts are upgraded from, or "": those scenarios are skipped.
FIRST_PACKAGE = os.environ.get("SPARK_VM_FIRST_PACKAGE", "")
# The archive of our container image, or "": those scenarios are skipped.
CONTAINER_IMAGE = os.environ.get("SPARK_VM_IMAGE", "")
# The unit tests of nvmetcp, whose contract part a host runs on its kernel.
CONTRACT_TESTS = Path(os.environ.get("SPARK_VM_CONTRACT_TESTS",
                                     REPOSITORY / "build/release/tests/unit/nvmetcp/spark_nvmetcp_tests"))
# Multiplies every deadline: a busy machine needs patience, not another test.
PATIENCE = float(os.environ.get("SPARK_VM_PATIENCE", "1"))
# Leave machines' folders (disks, console logs) behind.
KEEP = os.environ.get("SPARK_VM_KEEP", "") not in ("", "0")


def patience(seconds):
    return seconds * PATIENCE
