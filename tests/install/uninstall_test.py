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
for folder in /usr/local /etc/systemd /etc/spark-stage /var/lib/spark-stage /run; do mkdir -p $folder; mount -t tmpfs none $folder; done
mkdir -p build/release /etc/systemd/system && cp -r $TOP/tools $TOP/debian .
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
  "disable --now") rm -f /run/enabled /run/active; shift; shift; for unit; do rm -f "/etc/systemd/system/$unit"; done ;;
  "disable "*) rm -f /run/enabled; shift; for unit; do rm -f "/etc/systemd/system/$unit"; done ;;
  "link "*) ln -s "$2" /etc/systemd/system ;;
  "enable "*) touch /run/enabled ;;
  "cat "*) [ -e "/usr/local/lib/systemd/system/$2" ] || [ -e "/run/packaged/$2" ] ;;
  "show -p") for at in /etc/systemd/system /usr/local/lib/systemd/system /run/packaged; do
    [ -e "$at/$5" ] || continue
    case "$3 $(realpath "$at/$5")" in FragmentPath*) echo "$at/$5" ;; *" /dev/null") echo masked ;; *) echo loaded ;; esac
    break
  done ;;
esac
END
printf '#!/bin/sh\\nexit 0\\n' >/run/bin/systemd-sysusers; cp /run/bin/systemd-sysusers /run/bin/systemd-tmpfiles
chmod +x /run/bin/*
place() {  # PREFIX FILE…: as cmake does
  prefix=$1; shift; : >build/release/install_manifest.txt
  for file in sbin/spark-staged lib/systemd/system/spark-staged.service lib/systemd/system/spark-stage-release.service "$@"; do
    mkdir -p "$(dirname "$prefix/$file")"; printf '#!/bin/sh\\necho "daemon $*" >>/run/calls\\n' >"$prefix/$file"; chmod +x "$prefix/$file"
    case "$file" in *.service) printf '[Service]\\nExecStart=%s\\n' "$prefix/sbin/spark-staged" >"$prefix/$file" ;; esac
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
        for starts, last in (("/usr/bin/nice -n 5 /usr/local/sbin/spark-staged", "the running daemon was restarted and is of this version now"),
                             ("/bin/true --own", "the daemon of /bin/true goes on")):
            with self.subTest(starts):
                said = self.lines_of(f"printf '[Service]\\nExecStart=%s\\n' '{starts}' >/etc/systemd/system/spark-staged.service; touch /run/active; "
                                     "place /usr/local; tools/installed.sh add /usr/local; grep -E 'link|restart' /run/calls || true")
                self.assertEqual(said[:2], ["spark-stage: /etc/systemd/system/spark-staged.service stays the unit in use",
                                            f"spark-stage: installed; {last}"])
                self.assertEqual(said[2:], ["systemctl restart spark-staged.service"] if "restarted" in last else [])

    TWO = "mount -t tmpfs none /opt; touch /run/active; place /opt/a; tools/installed.sh add /opt/a >/dev/null; "

    def test_another_prefix_takes_the_place_of_an_earlier_one(self):
        for prefix, unit in (("/opt/b", "/opt/b/lib/systemd/system/spark-staged.service"), ("/usr/local", "")):
            with self.subTest(prefix):
                said = self.lines_of(f"{self.TWO} rm /run/calls; place {prefix}; tools/installed.sh add {prefix}; grep -c restart /run/calls; "
                                     "readlink /etc/systemd/system/spark-staged.service || true")
                self.assertEqual(said, ["spark-stage: installed; the running daemon was restarted and is of this version now", "1", *([unit] if unit else [])])

    def test_a_link_of_the_administrator_stays(self):
        said = self.lines_of("mkdir -p /run/own/lib/systemd/system; printf 'ExecStart=/bin/true\\n' >/run/own/lib/systemd/system/spark-staged.service; "
                             "ln -s /run/own/lib/systemd/system/spark-staged.service /etc/systemd/system; place /usr/local; tools/installed.sh add /usr/local")
        self.assertEqual(said, ["spark-stage: /etc/systemd/system/spark-staged.service stays the unit in use",
                                "spark-stage: installed; the daemon of /bin/true goes on"])

    def test_a_removal_leaves_the_daemon_of_another_prefix_alone(self):
        for prefix in ("/opt/b", "/usr/local"):
            with self.subTest(prefix):
                said = self.lines_of(f"{self.TWO} mkdir -p {prefix}; place {prefix}; tools/installed.sh add {prefix} >/dev/null; place /opt/a; "
                                     "tools/installed.sh add /opt/a; rm /run/calls; "
                                     f"tools/installed.sh remove {prefix}; cat /run/calls; find {prefix} ! -type d; ls /run/active; "
                                     "readlink /etc/systemd/system/spark-stage*.service")
                self.assertEqual(said[1:], ["spark-stage: removed", "spark-stage: /opt/a/sbin/spark-staged stays the daemon of this host",
                                            *(line for line in said if line.startswith("systemctl show")),
                                            "systemctl daemon-reload", "/run/active",
                                            *(f"/opt/a/lib/systemd/system/{unit}.service" for unit in ("spark-stage-release", "spark-staged"))])

    def test_a_masked_unit_is_named_and_nothing_is_started(self):
        said = self.lines_of("ln -s /dev/null /etc/systemd/system/spark-staged.service; place /usr/local; tools/installed.sh add /usr/local; "
                             "grep -E 'restart|link' /run/calls || true")
        self.assertEqual(said, ["spark-stage: installed; spark-staged.service is masked, and starts after 'systemctl unmask spark-staged' only"])

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
