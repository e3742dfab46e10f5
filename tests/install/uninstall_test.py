"""What `make uninstall` removes and keeps, in a mount namespace of its own, as root: tests/install/uninstall_test.py BUILD_FOLDER."""
import os
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

TOP = Path(__file__).parents[2]
BUILD = Path()
SCRIPT = """set -eu
for folder in /usr/local /etc/spark-stage /var/lib/spark-stage; do mkdir -p $folder; mount -t tmpfs none $folder; done
mkdir -p /etc/spark-stage/keys /var/lib/spark-stage/mount-points /var/lib/spark-stage/cache/data /usr/local/bin
echo key >/etc/spark-stage/keys/fleet; echo mine >/usr/local/bin/other; echo staged >/var/lib/spark-stage/cache/data/file
echo 42 >/var/lib/spark-stage/cache/.spark-stage-cache
mount --bind -o ro /var/lib/spark-stage/cache/data /var/lib/spark-stage/cache/data
ln -s $POINT /var/lib/spark-stage/mount-points/data
chattr +i $POINT
cmake --install $BUILD --prefix /usr/local >/dev/null
/usr/local/bin/spark-stage --version
cp -r $TOP/tools $TOP/debian . && mkdir -p build/release && cp $BUILD/install_manifest.txt build/release
tools/installed.sh remove
find /usr/local ! -type d; find /usr/local -name '*spark*'
cat /etc/spark-stage/keys/fleet /var/lib/spark-stage/cache/data/file
touch $POINT/writable
grep -c 'cache/data' /proc/self/mountinfo || true
"""


class Uninstall(unittest.TestCase):
    def setUp(self):
        self.folder = Path(tempfile.mkdtemp(prefix="spark-uninstall-", dir="/var/tmp"))
        self.point = self.folder / "point"
        self.point.mkdir()

    def tearDown(self):
        subprocess.run(["chattr", "-i", str(self.point)], capture_output=True, check=False)
        shutil.rmtree(self.folder)

    def run_here(self, script):
        return subprocess.run(["unshare", "--mount", "--propagation", "private", "sh", "-c", script], cwd=self.folder,
                              env={**os.environ, "TOP": str(TOP), "BUILD": str(BUILD), "POINT": str(self.point)},
                              capture_output=True, text=True, timeout=120, check=False)

    def test_what_make_install_placed_goes_and_what_is_the_owners_stays(self):
        done = self.run_here(SCRIPT)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        version, *said = done.stdout.splitlines()
        self.assertRegex(version, r"\d+\.\d+\.\d+")
        self.assertEqual(said, [
            "spark-stage: removed",
            "spark-stage: kept: /etc/spark-stage (configuration, keys)",
            "spark-stage: kept: /var/lib/spark-stage (staged data, pinned identities)",
            "spark-stage: volumes stay mounted and connected until you unmount and disconnect them, or the host is shut down",
            "/usr/local/bin/other", "key", "staged", "0"], done.stderr)

    def test_nothing_is_guessed_without_the_list_of_what_was_installed(self):
        done = self.run_here("cp -r $TOP/tools . && tools/installed.sh remove")
        self.assertEqual(done.returncode, 1)
        self.assertIn("install_manifest.txt is missing", done.stderr)


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit("usage: tests/install/uninstall_test.py BUILD_FOLDER")
    BUILD = Path(sys.argv.pop(1)).resolve()
    unittest.main()
