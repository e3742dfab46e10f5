"""`make install` over other versions and beside the package, and what `make uninstall` removes and keeps, as root in a mount
namespace of its own: tests/install/uninstall_test.py BUILD_FOLDER."""
import os
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

TOP = Path(__file__).parents[2]
BUILD = Path()
PLACE = """set -eu
for folder in /usr/local /etc/spark-stage /var/lib/spark-stage /run; do mkdir -p $folder; mount -t tmpfs none $folder; done
mkdir -p build/release && cp -r $TOP/tools $TOP/debian .
"""
SCRIPT = PLACE + """
mkdir -p /etc/spark-stage/keys /var/lib/spark-stage/mount-points /var/lib/spark-stage/cache/data /usr/local/bin
echo key >/etc/spark-stage/keys/fleet; echo mine >/usr/local/bin/other; echo staged >/var/lib/spark-stage/cache/data/file
echo 42 >/var/lib/spark-stage/cache/.spark-stage-cache
mount --bind -o ro /var/lib/spark-stage/cache/data /var/lib/spark-stage/cache/data
ln -s $POINT /var/lib/spark-stage/mount-points/data
chattr +i $POINT
cmake --install $BUILD --prefix /usr/local >/dev/null
cp $BUILD/install_manifest.txt build/release
tools/installed.sh add /usr/local
/usr/local/bin/spark-stage --version
# The build folder's own list is of what was installed from it last, as `make deb` does below /usr.
echo /usr/local/bin/other >build/release/install_manifest.txt
tools/installed.sh remove /usr/local
find /usr/local ! -type d; find /usr/local /etc/fish -name '*spark*'
cat /etc/spark-stage/keys/fleet /var/lib/spark-stage/cache/data/file
touch $POINT/writable
grep -c 'cache/data' /proc/self/mountinfo || true
"""
# With a systemd that only remembers, and one file for each kind.
SYSTEMD = PLACE + """
mkdir -p /run/systemd/system /run/bin /run/below/upper /run/below/work
PATH=/run/bin:$PATH
cat >/run/bin/systemctl <<'END'
#!/bin/sh
[ "$1" != --quiet ] || shift
echo "systemctl $*" >>/run/calls
case "$1 $2" in
  "is-active "*) [ -e /run/active ] ;;
  "is-enabled "*) if [ -e /run/enabled ]; then echo enabled; else echo disabled; exit 1; fi ;;
  "disable --now") rm -f /run/enabled /run/active ;;
  "disable "*) rm -f /run/enabled ;;
  "enable "*) touch /run/enabled ;;
  "cat "*) [ -e "/usr/local/lib/systemd/system/$2" ] || [ -e "/run/packaged/$2" ] ;;
  "show "*) [ ! -e "/run/edited/$5" ] || { echo "/etc/systemd/system/$5"; exit; }
    for at in /usr/local/lib/systemd/system /run/packaged; do if [ -e "$at/$5" ]; then echo "$at/$5"; break; fi; done ;;
esac
END
printf '#!/bin/sh\\nexit 0\\n' >/run/bin/systemd-sysusers; cp /run/bin/systemd-sysusers /run/bin/systemd-tmpfiles
chmod +x /run/bin/*
place() {  # PREFIX FILE…: as cmake does
  prefix=$1; shift; : >build/release/install_manifest.txt
  for file in sbin/spark-staged lib/systemd/system/spark-staged.service lib/systemd/system/spark-stage-release.service "$@"; do
    mkdir -p "$(dirname "$prefix/$file")"; printf '#!/bin/sh\\necho "daemon $*" >>/run/calls\\n' >"$prefix/$file"; chmod +x "$prefix/$file"
    echo "$prefix/$file" >>build/release/install_manifest.txt
  done
}
package() {  # FILE…: installed by dpkg
  mount -t overlay overlay -o lowerdir=/usr/sbin,upperdir=/run/below/upper,workdir=/run/below/work /usr/sbin
  cp /bin/true /usr/sbin/spark-staged
  { echo '#!/bin/sh'; for file in /usr/sbin/spark-staged "$@"; do echo "echo $file"; done; } >/run/bin/dpkg-query
  chmod +x /run/bin/dpkg-query
  mkdir /run/packaged; touch /run/packaged/spark-staged.service /run/packaged/spark-stage-release.service
}
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

    def lines_of(self, script):
        done = self.run_here(SYSTEMD + script)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return done.stdout.splitlines()

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
        done = self.run_here(PLACE + "echo /usr/local/bin/other >build/release/install_manifest.txt; tools/installed.sh remove /usr/local")
        self.assertEqual(done.returncode, 1)
        self.assertIn("/usr/local/share/spark-stage/installed is missing", done.stderr)

    def test_a_later_version_removes_the_files_that_it_has_no_more(self):
        said = self.lines_of("""
place /usr/local bin/gone bin/stays; tools/installed.sh add /usr/local; touch /run/active
place /usr/local bin/stays; touch /usr/local/bin/mine; tools/installed.sh add /usr/local
ls /usr/local/bin; grep restart /run/calls; tools/installed.sh remove /usr/local; find /usr/local ! -type d""")
        self.assertIn("installed - next:", said[0])
        self.assertIn("restarted and is of this version now", said[1])
        self.assertEqual(said[2:5], ["mine", "stays", "systemctl restart spark-staged.service"])
        self.assertEqual(said[-1], "/usr/local/bin/mine")

    def test_another_prefix_is_made_known_to_systemd(self):
        said = self.lines_of("mount -t tmpfs none /opt; place /opt/spark; tools/installed.sh add /opt/spark; grep link /run/calls; "
                             "tools/installed.sh remove /opt/spark; find /opt ! -type d; tail -n 1 /run/calls")
        self.assertEqual(said[1:3], [f"systemctl link /opt/spark/lib/systemd/system/{unit}"
                                     for unit in ("spark-staged.service", "spark-stage-release.service")])
        self.assertEqual(said[-1], "systemctl daemon-reload")

    def test_another_prefix_is_made_known_although_systemd_knows_the_packages_units(self):
        said = self.lines_of("mount -t tmpfs none /opt; package; place /opt/spark; tools/installed.sh add /opt/spark >/dev/null; grep link /run/calls; "
                             "rm /run/calls; place /usr/local; tools/installed.sh add /usr/local >/dev/null; grep -c link /run/calls || true")
        self.assertEqual(said, [*(f"systemctl link /opt/spark/lib/systemd/system/{unit}"
                                  for unit in ("spark-staged.service", "spark-stage-release.service")), "0"])

    def test_a_unit_that_the_administrator_edited_stays_and_is_named(self):
        said = self.lines_of("mkdir /run/edited; touch /run/edited/spark-staged.service; place /usr/local; tools/installed.sh add /usr/local; "
                             "grep link /run/calls || true")
        self.assertEqual(said[0], "spark-stage: /etc/systemd/system/spark-staged.service stays the unit in use")
        self.assertEqual(len(said), 2, said)

    def test_make_install_does_not_write_over_the_packages_files(self):
        for prefix in ("/usr", "/usr/", "//usr/./"):
            with self.subTest(prefix):
                done = self.run_here(SYSTEMD + f"package; tools/installed.sh check /usr/local && tools/installed.sh check {prefix}")
                self.assertEqual((done.returncode, done.stdout), (1, ""))
                self.assertIn("the package spark-stage has its files in /usr", done.stderr)

    def test_a_package_that_is_there_takes_over_the_daemon(self):
        said = self.lines_of("""
package; touch /run/active /run/enabled; mkdir /var/lib/spark-stage/mount-points; ln -s $POINT /var/lib/spark-stage/mount-points/a
place /usr/local; tools/installed.sh add /usr/local; echo >/run/calls
tools/installed.sh remove /usr/local; cat /run/calls; ls -A /usr/local/sbin /run/active /run/enabled /var/lib/spark-stage/mount-points""")
        self.assertIn("the package spark-stage stays installed, and is not used any more", said[0])
        self.assertEqual(said[2:4], ["spark-stage: removed", "spark-stage: the package spark-stage is in use now, with the configuration and all data"])
        calls = said[5:said.index("/run/active")]
        self.assertEqual(calls[-3:], ["systemctl daemon-reload", "systemctl enable spark-staged.service", "systemctl try-restart spark-staged.service"])
        self.assertFalse([call for call in calls if call.startswith("daemon") or "--now" in call], calls)
        self.assertEqual(said[said.index("/run/active"):],
                         ["/run/active", "/run/enabled", "", "/usr/local/sbin:", "", "/var/lib/spark-stage/mount-points:", "a"])

    def test_a_file_that_a_package_has_placed_since_stays(self):
        said = self.lines_of("""
place /usr/local bin/one bin/two; tools/installed.sh add /usr/local; package /usr/local/bin/one
tools/installed.sh remove /usr/local; find /usr/local ! -type d""")
        self.assertEqual(said[-1:], ["/usr/local/bin/one"])


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit("usage: tests/install/uninstall_test.py BUILD_FOLDER")
    BUILD = Path(sys.argv.pop(1)).resolve()
    unittest.main()
