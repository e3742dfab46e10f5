"""The packages, installed, upgraded, removed and purged by dpkg, alone and beside `make install`, as root in a throw-away copy of
this system, or of the one in ROOT: tests/install/packages_test.py PACKAGES BUILD_FOLDER [EARLIER_PACKAGES [ROOT]].

Its systemd only remembers what it was told. What a daemon does meanwhile is tested in virtual machines (test_package, test_upgrade).
"""
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

TOP = Path(__file__).parents[2]
PACKAGES = BUILD = EARLIER = None
ROOT = Path("/")
NAMES = ("spark-stage", "spark-stage-slurm", "spark-stage-csi")
SYSTEMCTL = """#!/bin/sh
if [ "$1" = show ]; then
  for at in /usr/local/lib /lib; do if [ -e "$at/systemd/system/$5" ]; then echo "$at/systemd/system/$5"; break; fi; done
  exit
fi
while :; do case "$1" in --*) shift ;; *) break ;; esac; done
verb=$1; shift
for unit; do case "$unit" in *.service)
  echo "$verb $unit" >>/run/calls
  case "$verb" in
    is-active) [ -e "/run/active/$unit" ] || exit 3 ;;
    is-enabled) [ -e "/run/enabled/$unit" ] && echo enabled || { echo disabled; exit 1; } ;;
    start) touch "/run/active/$unit" ;;
    stop) rm -f "/run/active/$unit" ;;
    enable) touch "/run/enabled/$unit" ;;
    disable) rm -f "/run/enabled/$unit" ;;
  esac ;;
esac; done
"""
# In the copy. The units of a running host are those that were started by hand.
BEGIN = """set -eu
export DEBIAN_FRONTEND=noninteractive LC_ALL=C.UTF-8
mkdir -p /run/systemd/system /run/active /run/enabled; : >/run/calls; rm -rf /usr/sbin/policy-rc.d /etc/spark-stage /var/lib/spark-stage
cp /packages/systemctl /usr/bin/systemctl
install_packages() { dpkg -i /packages/now/*.deb >/run/said 2>&1 || { cat /run/said; exit 1; }; }
configure() {
  mkdir -p /etc/spark-stage/keys
  echo 'version: 1' >/etc/spark-stage/spark-stage.yaml; echo key >/etc/spark-stage/keys/fleet
  mkdir -p /var/lib/spark-stage/cache; echo staged >/var/lib/spark-stage/cache/file
  touch /run/active/spark-staged.service /run/enabled/spark-staged.service; : >/run/calls
}
calls() { grep -vE '^(is-|daemon-reload)' /run/calls || true; : >/run/calls; }
left() {  # of what was installed, below /etc, /usr, /lib and /var
  find /etc /usr /lib/ /var/lib /opt \\( -name '*spark*stage*' -o -name 'spark_stage*' \\) ! -path '*/dpkg/info/*' ! -path '*/sgml/*' | sort
}
make_install() {  # PREFIX
  cd "$TOP"; tools/installed.sh check "$1"; cmake --install "$BUILD" --prefix "$1" >/dev/null
  if ! [ "$BUILD" -ef build/release ]; then mkdir -p build/release; cp "$BUILD/install_manifest.txt" build/release; fi
  tools/installed.sh add "$1"
}
"""


class Packages(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = Path(tempfile.mkdtemp(prefix="spark-packages-"))
        (cls.folder / "systemctl").write_text(SYSTEMCTL)
        (cls.folder / "systemctl").chmod(0o755)
        (cls.folder / "now").mkdir()
        for name in NAMES:
            found = sorted(PACKAGES.glob(f"{name}_*.deb"))
            assert len(found) == 1, f"{PACKAGES} has {len(found)} packages {name}"
            shutil.copy(found[0], cls.folder / "now")
        if EARLIER:
            shutil.copytree(EARLIER, cls.folder / "earlier")

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.folder)

    def lines_of(self, script, rc=0):
        """What the script prints in a copy of the system, which is thrown away."""
        # The overlay's own folders are in memory: files of packages are a few MB.
        outer = f"""set -eu
mount -t tmpfs none {self.folder}/top; mkdir {self.folder}/top/upper {self.folder}/top/work {self.folder}/top/root
mount -t overlay overlay -o lowerdir={ROOT},upperdir={self.folder}/top/upper,workdir={self.folder}/top/work {self.folder}/top/root
cd {self.folder}/top/root
mount -t proc proc proc; mount --rbind /dev dev; mount -t tmpfs none run; mount -t tmpfs none tmp
mkdir packages; mount --bind {self.folder} packages
exec chroot . sh -c "$SCRIPT"
"""
        (self.folder / "top").mkdir(exist_ok=True)
        done = subprocess.run(["unshare", "--mount", "--propagation", "private", "sh", "-c", outer], capture_output=True, text=True,
                              env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "SCRIPT": BEGIN + script, "TOP": str(TOP), "BUILD": str(BUILD)},
                              timeout=300, check=False)
        self.assertEqual(done.returncode, rc, done.stdout + done.stderr)
        return done.stdout.splitlines()

    def test_a_fresh_installation_starts_and_enables_nothing(self):
        said = self.lines_of("""install_packages; calls; dpkg --audit; dpkg-query -W -f '${db:Status-Abbrev}${Package}\n' 'spark-stage*'
getent group spark-stage | cut -d: -f1; stat -c '%a %n' /etc/spark-stage/keys; spark-stage --version; spark-staged --version; spark-stage-csi --version""")
        version = re.search(r"_([0-9.]+)", next(PACKAGES.glob("spark-stage_*.deb")).name)[1]
        self.assertEqual(said, [*(f"ii {name}" for name in sorted(NAMES)), "spark-stage", "700 /etc/spark-stage/keys",
                                *(f"{program} {version}" for program in ("spark-stage", "spark-staged", "spark-stage-csi"))])

    def test_the_members_are_compressed_as_debians_tools_read_them(self):
        """The step `package` builds with zstd as dpkg's default, as on Ubuntu."""
        for package in PACKAGES.glob("*.deb"):
            done = subprocess.run(["ar", "t", package], capture_output=True, text=True, check=True)
            self.assertEqual(done.stdout.split(), ["debian-binary", "control.tar.xz", "data.tar.xz"])

    def test_files_are_where_each_program_looks_for_them(self):
        said = set(self.lines_of("install_packages; dpkg -L spark-stage spark-stage-slurm spark-stage-csi | sed 's|^/lib/|/usr/lib/|'"))
        for file in ("/usr/bin/spark-stage", "/usr/sbin/spark-staged", "/usr/sbin/spark-stage-csi", "/etc/slurm/plugstack.conf.d/spark-stage.conf",
                     *(f"/usr/lib/systemd/system/{unit}.service" for unit in ("spark-staged", "spark-stage-release", "spark-stage-csi")),
                     "/usr/lib/modules-load.d/spark-stage.conf", "/usr/lib/sysusers.d/spark-stage.conf", "/usr/share/doc/spark-stage/README.md",
                     "/usr/share/doc/spark-stage/NEWS.md", "/usr/share/doc/spark-stage/docs/install.md", "/usr/share/man/man1/spark-stage.1.gz",
                     "/usr/share/zsh/vendor-completions/_spark-stage", "/usr/share/fish/vendor_completions.d/spark-stage.fish",
                     "/usr/share/doc/spark-stage-csi/examples/kubernetes/daemonset.yaml"):
            self.assertIn(file, said)

    def test_every_link_of_the_installed_pages_leads_to_an_installed_file(self):
        said = self.lines_of(r"""install_packages; cd /usr/share/doc/spark-stage
for page in *.md docs/*.md; do grep -oE '\]\([^)#]+' "$page" | cut -c3- | grep -v :// | while IFS= read -r link; do
  [ -e "$(dirname "$page")/$link" ] || echo "$page: $link"; done; done; echo compared""")
        self.assertEqual(said, ["compared"])

    def test_an_upgrade_restarts_what_runs_and_keeps_everything(self):
        said = self.lines_of("""install_packages; configure; rm /etc/spark-stage/spark-stage.yaml; echo 'version: 1 # mine' >/etc/spark-stage/spark-stage.yaml
dpkg-deb -R /packages/now/spark-stage_*.deb /tmp/later; sed -i 's/^Version: .*/&+later/' /tmp/later/DEBIAN/control
dpkg-deb --root-owner-group -Znone -b /tmp/later /tmp/later.deb >/dev/null; dpkg -i /tmp/later.deb >/dev/null 2>&1; calls
cat /etc/spark-stage/spark-stage.yaml /etc/spark-stage/keys/fleet /var/lib/spark-stage/cache/file; ls /run/active /run/enabled""")
        self.assertEqual(said, ["try-restart spark-staged.service", "version: 1 # mine", "key", "staged", "/run/active:", "spark-staged.service", "",
                                "/run/enabled:", "spark-staged.service"])

    def test_an_upgrade_from_earlier_packages_keeps_everything(self):
        if not EARLIER:
            self.skipTest("no earlier packages were named: tools/deb-of.sh 96dae2c4 makes those of 0.2.0, 4c67491 those of 0.1")
        said = self.lines_of("""dpkg -i /packages/earlier/*.deb >/dev/null 2>&1; configure; install_packages; calls; dpkg --audit; ls /run/active
cat /etc/spark-stage/spark-stage.yaml /etc/spark-stage/keys/fleet /var/lib/spark-stage/cache/file
dpkg --verify spark-stage; dpkg --purge spark-stage-slurm spark-stage-csi spark-stage >/dev/null 2>&1; left""")
        if said[0] == "try-restart spark-stage-csi.service":  # of earlier packages that have it
            said.pop(0)
        self.assertIn(said[0], ("restart spark-staged.service", "try-restart spark-staged.service"))
        self.assertEqual(said[1:], ["spark-staged.service", "version: 1", "key", "staged", "/etc/spark-stage", "/var/lib/spark-stage"])

    def test_a_removal_stops_the_daemon_and_keeps_what_is_the_owners(self):
        said = self.lines_of("""install_packages; configure; dpkg --remove spark-stage >/run/said 2>&1; grep '^spark-stage:' /run/said; calls
ls /run/active; cat /etc/spark-stage/spark-stage.yaml /var/lib/spark-stage/cache/file""")
        self.assertIn("removed although it is configured", said[0])
        self.assertEqual(said[1], "stop spark-staged.service")
        self.assertEqual(said[-2:], ["version: 1", "staged"])

    def test_a_purge_leaves_keys_and_data_and_nothing_else(self):
        said = self.lines_of("""install_packages; configure; dpkg --purge spark-stage-slurm spark-stage-csi spark-stage >/run/said 2>&1; grep '^spark-stage: ' /run/said; left
find /etc/spark-stage /var/lib/spark-stage -type f; ls /etc/slurm/plugstack.conf.d 2>/dev/null || true""")
        self.assertIn("keys stay in", said[1])
        self.assertEqual(said[3:], ["/etc/spark-stage", "/var/lib/spark-stage", "/etc/spark-stage/keys/fleet", "/var/lib/spark-stage/cache/file"])

    def test_a_purge_of_a_host_without_keys_and_data_leaves_nothing(self):
        self.assertEqual(self.lines_of("install_packages; dpkg --purge spark-stage-slurm spark-stage-csi spark-stage >/dev/null 2>&1; left"), [])

    def test_the_kubernetes_driver_is_stopped_by_its_removal_alone(self):
        said = self.lines_of("""install_packages; configure; touch /run/active/spark-stage-csi.service; dpkg --remove spark-stage-csi >/dev/null 2>&1
calls | sort -u; ls /run/active""")
        self.assertEqual(said, ["stop spark-stage-csi.service", "spark-staged.service"])

    def test_slurms_plugin_is_not_removed_while_a_line_requires_it(self):
        said = self.lines_of("""install_packages; mkdir -p /etc/slurm; echo 'required spank_spark_stage.so' >>/etc/slurm/plugstack.conf
dpkg --remove spark-stage-slurm >/run/said 2>&1 && exit 9; grep 'required spank' /run/said; dpkg-query -W -f '${Status}\n' spark-stage-slurm
rm /etc/slurm/plugstack.conf; dpkg --remove spark-stage-slurm >/dev/null 2>&1; dpkg-query -W -f '${Status}\n' spark-stage-slurm""")
        self.assertIn("/etc/slurm/plugstack.conf:", said[0])
        self.assertEqual(said[1:], ["deinstall ok installed", "deinstall ok config-files"])

    def has_make_install(self):
        if ROOT != Path("/"):
            self.skipTest(f"the build folder's programs are not for {ROOT}")

    def test_the_package_leaves_a_make_install_alone_through_its_whole_life(self):
        self.has_make_install()
        said = self.lines_of("""make_install /usr/local >/dev/null; configure; (cd /usr/local && find . -type f -exec sha256sum {} + | sort) >/run/before
dpkg -i /packages/now/spark-stage_*.deb 2>&1 | grep '^spark-stage: '; calls; ls /run/active /run/enabled
dpkg --remove spark-stage 2>&1 | grep '^spark-stage: '; calls; dpkg --purge spark-stage 2>&1 | grep '^spark-stage: '; calls
ls /run/active /run/enabled; cat /etc/spark-stage/spark-stage.yaml /etc/spark-stage/keys/fleet /var/lib/spark-stage/cache/file
(cd /usr/local && find . -type f -exec sha256sum {} + | sort) | cmp - /run/before; /usr/local/bin/spark-stage --version >/dev/null""")
        there = ["/run/active:", "spark-staged.service", "", "/run/enabled:", "spark-staged.service"]
        other = "spark-stage: /usr/local/sbin/spark-staged stays the daemon of this host"
        self.assertTrue(said[0].startswith(f"{other}, and its programs come first"), said)
        self.assertEqual(said[1:], [*there, other, f"{other}: its configuration, keys and data stay", *there, "version: 1", "key", "staged"])

    def test_make_install_and_make_uninstall_leave_the_package_alone(self):
        self.has_make_install()
        said = self.lines_of("""install_packages; configure; (make_install /usr 2>&1) | grep '^spark-stage: '; make_install /usr/local >/run/said; calls
tools/installed.sh remove /usr/local; calls; dpkg --verify spark-stage; ls /run/active /run/enabled; find /usr/local -name '*spark*'
cat /etc/spark-stage/spark-stage.yaml /etc/spark-stage/keys/fleet /var/lib/spark-stage/cache/file""")
        self.assertIn("the package spark-stage has its files in /usr", said[0])
        self.assertEqual(said[1:], [
            "restart spark-staged.service", "spark-stage: removed", "spark-stage: the package spark-stage is in use now, with the configuration and all data",
            "disable spark-staged.service", "disable spark-stage-release.service", "enable spark-staged.service", "try-restart spark-staged.service",
            "/run/active:", "spark-staged.service", "", "/run/enabled:", "spark-staged.service", "version: 1", "key", "staged"])

    def test_a_package_over_files_of_make_install_below_usr_keeps_its_own(self):
        self.has_make_install()
        said = self.lines_of("""make_install /usr >/dev/null; configure; install_packages; tools/installed.sh remove /usr | tail -n 1
dpkg --verify spark-stage; spark-stage --version >/dev/null; dpkg --purge spark-stage-slurm spark-stage-csi spark-stage >/dev/null 2>&1; left""")
        self.assertEqual(said, ["spark-stage: the package spark-stage is in use now, with the configuration and all data", "/etc/spark-stage",
                                "/var/lib/spark-stage"])

    def test_make_deb_between_make_install_and_make_uninstall_changes_nothing(self):
        self.has_make_install()
        said = self.lines_of("""install_packages; make_install /usr/local >/dev/null; DESTDIR=/tmp/package cmake --install "$BUILD" --prefix /usr >/dev/null
tools/installed.sh remove /usr/local | head -n 1; dpkg --verify spark-stage; find /usr/local -name '*spark*'""")
        self.assertEqual(said, ["spark-stage: removed"])


if __name__ == "__main__":
    if len(sys.argv) < 3 or os.geteuid() != 0:
        sys.exit("usage, as root: tests/install/packages_test.py PACKAGES BUILD_FOLDER [EARLIER_PACKAGES [ROOT]]")
    PACKAGES, BUILD = Path(sys.argv.pop(1)).resolve(), Path(sys.argv.pop(1)).resolve()
    more = [Path(sys.argv.pop(1)).resolve() for word in sys.argv[1:3] if word and not word.startswith("-") and Path(word).is_dir()]
    EARLIER = more[0] if more else None
    ROOT = more[1] if len(more) > 1 else ROOT
    unittest.main()
