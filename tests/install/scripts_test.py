"""The packages' maintainer scripts, as root in a mount namespace of their own: tests/install/scripts_test.py.

The programs that they call write down how they were called. Where debhelper's lines will be, a line says that they run.
"""
import os
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

TOP = Path(__file__).parents[2]
CALLED = ("deb-systemd-invoke", "systemctl", "spark-staged")
PLACE = """set -eu
for folder in /usr/local /etc/systemd /etc/spark-stage /etc/slurm /var/lib/spark-stage /run; do
  mkdir -p $folder; mount -t tmpfs none $folder
done
mkdir -p /run/systemd/system /usr/local/lib/systemd/system /usr/local/sbin /etc/systemd/system /etc/spark-stage/keys
echo key >/etc/spark-stage/keys/fleet; echo 'version: 1' >/etc/spark-stage/spark-stage.yaml
mkdir -p /var/lib/spark-stage/cache; echo staged >/var/lib/spark-stage/cache/file
"""
MAKE_INSTALL = """
printf '[Service]\\nExecStart=/usr/local/sbin/spark-staged\\n' >/usr/local/lib/systemd/system/spark-staged.service
cp /bin/true /usr/local/sbin/spark-staged
"""
GOES_ON = "/usr/local/sbin/spark-staged stays the daemon of this host"


def rule(file):
    """How the script finds the daemon that is in use."""
    text = (TOP / file).read_text()
    return text[text.index("# The program of another installation"):text.index("}\n", text.index("other_daemon() {"))]


class Scripts(unittest.TestCase):
    def setUp(self):
        self.folder = Path(tempfile.mkdtemp(prefix="spark-scripts-", dir="/var/tmp"))
        self.addCleanup(shutil.rmtree, self.folder)
        for name in CALLED:
            program = self.folder / "bin" / name
            program.parent.mkdir(exist_ok=True)
            program.write_text(f'#!/bin/sh\necho "{name} $*" >>{self.folder}/calls\n')
            program.chmod(0o755)

    def run_script(self, name, verb, before="", after="", rc=0, **environment):
        """What it says and calls; `after` is a command whose output comes last."""
        script = self.folder / name
        (self.folder / "calls").unlink(missing_ok=True)
        script.write_text((TOP / "debian" / name).read_text().replace("#DEBHELPER#", "echo debhelper"))
        done = subprocess.run(
            ["unshare", "--mount", "--propagation", "private", "sh", "-c",
             f"{PLACE}\n{before}\nstatus=0; sh {script} {verb} || status=$?; {after or ':'}; exit $status"],
            env={"PATH": f"{self.folder}/bin:{os.environ['PATH']}", **environment}, capture_output=True, text=True, timeout=60, check=False)
        self.assertEqual(done.returncode, rc, done.stdout + done.stderr)
        calls = self.folder / "calls"
        return done.stdout + done.stderr + (calls.read_text() if calls.exists() else "")

    def test_a_removal_stops_the_daemon_and_ends_the_mount_of_the_copies(self):
        said = self.run_script("prerm", "remove")
        self.assertIn("deb-systemd-invoke stop spark-staged.service spark-stage-release.service", said)
        self.assertIn("spark-staged release --copies", said)
        self.assertIn("removed although it is configured", said)
        self.assertIn("debhelper", said)

    def test_an_upgrade_stops_nothing(self):
        for name in ("prerm", "spark-stage-csi.prerm", "spark-stage-slurm.prerm"):
            self.assertEqual(self.run_script(name, "upgrade 9.9"), "debhelper\n", name)

    def test_a_removal_leaves_the_daemon_of_make_install_alone(self):
        said = self.run_script("prerm", "remove", MAKE_INSTALL)
        self.assertEqual(said, f"spark-stage: {GOES_ON}\n")

    def test_a_unit_of_the_administrator_that_starts_the_packages_daemon_is_the_packages(self):
        for unit in ("printf '[Service]\\nExecStart=/usr/sbin/spark-staged\\n' >/etc/systemd/system/spark-staged.service",
                     "ln -s /dev/null /etc/systemd/system/spark-staged.service", f"{MAKE_INSTALL}\nrm /usr/local/sbin/spark-staged"):
            self.assertIn("deb-systemd-invoke stop", self.run_script("prerm", "remove", unit))

    def test_a_linked_unit_of_another_prefix_is_known(self):
        unit = f"{MAKE_INSTALL}\nmv /usr/local/lib/systemd/system/spark-staged.service /usr/local/unit; ln -s /usr/local/unit /etc/systemd/system/spark-staged.service"
        self.assertIn(GOES_ON, self.run_script("prerm", "remove", unit))

    def test_all_scripts_find_the_daemon_in_use_in_the_same_way(self):
        for file in ("debian/prerm", "debian/postrm", "tools/installed.sh"):
            self.assertEqual(rule(file), rule("debian/postinst"), file)

    def test_a_unit_that_wraps_the_packages_daemon_is_the_packages(self):
        for starts in ("/usr/bin/nice -n 5 /usr/sbin/spark-staged", "-/usr/sbin/spark-staged"):
            unit = f"printf '[Service]\\nExecStart={starts}\\n' >/etc/systemd/system/spark-staged.service; {MAKE_INSTALL}"
            self.assertIn("deb-systemd-invoke stop", self.run_script("prerm", "remove", unit))

    def test_a_purge_removes_the_configuration_and_names_keys_and_data(self):
        said = self.run_script("postrm", "purge", after="find /etc/spark-stage /var/lib/spark-stage -type f")
        self.assertIn("keys stay in /etc/spark-stage/keys", said)
        self.assertIn("stay in /var/lib/spark-stage;", said)
        self.assertEqual(said.splitlines()[-3:], ["debhelper", "/etc/spark-stage/keys/fleet", "/var/lib/spark-stage/cache/file"])

    def test_a_purge_of_data_removes_the_state_folder(self):
        said = self.run_script("postrm", "purge", "umount /var/lib/spark-stage; mount -t tmpfs none /var/lib; mkdir -p /var/lib/spark-stage/cache",
                               "ls /var/lib", SPARK_STAGE_PURGE="data")
        self.assertIn("/var/lib/spark-stage was removed", said)
        self.assertEqual(said.splitlines()[-1], "debhelper")

    def test_a_purge_of_data_sees_a_mount_behind_a_link_above_the_state_folder(self):
        """`rm --one-file-system` goes into a bind mount of a folder of the same file system."""
        behind = ("umount /var/lib/spark-stage; mount -t tmpfs none /run; mkdir -p /run/lib/spark-stage/cache /run/photos; echo mine >/run/photos/1;"
                  "mkdir /run/tmp; mount --bind /var/tmp /run/tmp; mount -t tmpfs none /var; ln -s /run/tmp /run/lib /var")
        said = self.run_script("postrm", "purge", f"{behind}; mount --bind /run/photos /run/lib/spark-stage/cache", "cat /run/photos/1", SPARK_STAGE_PURGE="data")
        self.assertIn("/run/lib/spark-stage/cache is mounted there", said)
        self.assertEqual(said.splitlines()[-1], "mine")
        said = self.run_script("postrm", "purge", behind, "ls /run/lib", SPARK_STAGE_PURGE="data")
        self.assertIn("/var/lib/spark-stage was removed", said)
        self.assertEqual(said.splitlines()[-1], "debhelper")

    UNSENT = "mkdir /var/lib/spark-stage/stage-outs; touch /var/lib/spark-stage/stage-outs/a1.json"

    def test_a_removal_names_stage_outs_that_have_not_ended(self):
        self.assertIn("1 stage-outs have not ended", self.run_script("prerm", "remove", self.UNSENT))
        self.assertNotIn("stage-outs", self.run_script("prerm", "remove"))
        data = f"umount /var/lib/spark-stage; mount -t tmpfs none /var/lib; mkdir /var/lib/spark-stage; {self.UNSENT}"
        self.assertIn("1 stage-outs had not ended, and are forgotten", self.run_script("postrm", "purge", data, SPARK_STAGE_PURGE="data"))

    def test_a_purge_keeps_everything_while_the_daemon_of_make_install_is_there(self):
        said = self.run_script("postrm", "purge", MAKE_INSTALL + "mkdir /var/lib/spark-stage/mount-points; ln -s /nowhere /var/lib/spark-stage/mount-points/a",
                               "find /etc/spark-stage /var/lib/spark-stage ! -type d | sort", SPARK_STAGE_PURGE="data")
        self.assertEqual(said.splitlines(), [
            f"spark-stage: {GOES_ON}: its configuration, keys and data stay", "/etc/spark-stage/keys/fleet",
            "/etc/spark-stage/spark-stage.yaml", "/var/lib/spark-stage/cache/file", "/var/lib/spark-stage/mount-points/a"])

    def test_a_removal_without_a_purge_keeps_all_that_is_the_owners(self):
        said = self.run_script("postrm", "remove", after="find /etc/spark-stage /var/lib/spark-stage -type f | wc -l")
        self.assertEqual(said.splitlines(), ["debhelper", "3"])

    def test_a_configured_package_says_which_daemon_is_used(self):
        self.assertTrue(self.run_script("postinst", "configure").startswith("debhelper\n"))
        said = self.run_script("postinst", "configure", MAKE_INSTALL)
        self.assertIn(f"{GOES_ON}, and its programs come first in PATH", said)
        self.assertIn("sudo make uninstall", said)
        self.assertIn("debhelper", said)

    def test_a_package_that_comes_back_after_an_upgrade_of_the_system_says_that_nothing_runs(self):
        stopped = "printf '#!/bin/sh\n[ \"$2\" = is-enabled ]\n' >/run/systemctl; chmod +x /run/systemctl; PATH=/run:$PATH"
        said = self.run_script("postinst", "configure 0.1", stopped)
        self.assertIn("configured and enabled, and not running: 'sudo systemctl start spark-staged'", said)
        self.assertEqual(self.run_script("postinst", "configure 0.1", f"{stopped}; rm /etc/spark-stage/spark-stage.yaml"), "debhelper\n")

    def test_an_upgrade_says_that_the_daemon_did_not_come_back(self):
        fails = ("printf '#!/bin/sh\n[ \"$2\" = is-active ] || exit 0; [ ! -e /run/asked ] || exit 3; touch /run/asked\n' >/run/systemctl;"
                 "chmod +x /run/systemctl; PATH=/run:$PATH; rm /etc/spark-stage/spark-stage.yaml")
        self.assertIn("debhelper\nspark-stage: spark-staged ran before, and does not run now", self.run_script("postinst", "configure 0.1", fails))

    def test_the_kubernetes_driver_is_stopped_before_its_program_goes(self):
        said = self.run_script("spark-stage-csi.prerm", "remove")
        self.assertEqual(said, "debhelper\ndeb-systemd-invoke stop spark-stage-csi.service\n")

    def test_a_removal_of_the_kubernetes_driver_names_the_volumes_of_pods(self):
        note = "d=/var/lib/kubelet/pods/1/volumes/kubernetes.io~csi; mount -t tmpfs none /var/lib; mkdir -p $d/a $d/b; echo '{{\"driverName\":\"{}\"}}' >$d/a/vol_data.json"
        said = self.run_script("spark-stage-csi.prerm", "remove", note.format("stage.spark-stage.io"))
        self.assertIn("pods have 1 of its volumes: kubelet can't end these pods", said)
        self.assertNotIn("pods", self.run_script("spark-stage-csi.prerm", "remove", note.format("other.example.org")))

    REQUIRED = "echo 'required spank_spark_stage.so' >"

    def test_slurms_plugin_stays_while_a_line_requires_it(self):
        for line in ("{0}/etc/slurm/plugstack.conf",
                     "mkdir /etc/slurm/plugstack.conf.d; {0}/etc/slurm/plugstack.conf.d/10-site.conf",
                     "{0}/run/shared; ln -s /run/shared /etc/slurm/plugstack.conf",
                     "{0}/run/shared; echo ' plugstackconfig = /run/shared # ours' >/etc/slurm/slurm.conf",
                     "{0}/run/shared; echo 'PlugStackConfig=\"/run/shared\"' >/etc/slurm/slurm.conf",
                     "{0}/run/shared.conf; echo 'include /run/*.conf' >/etc/slurm/plugstack.conf",
                     "{0}/run/shared; echo Include /run/common >/etc/slurm/slurm.conf; printf 'PlugStackConfig=/run/shared\\ninclude /run/common\\n' >/run/common",
                     "mkdir -p /run/slurm/conf; {0}/run/slurm/conf/plugstack.conf"):
            said = self.run_script("spark-stage-slurm.prerm", "remove", line.format(self.REQUIRED), rc=1)
            self.assertIn("not removed", said)
            self.assertIn(":1:required spank_spark_stage.so", said)
            self.assertNotIn("debhelper", said)

    def test_slurms_plugin_stays_while_it_is_not_known_whether_a_line_requires_it(self):
        """A search that fails or does not end finds nothing, too."""
        for broken in ("grep", "find"):
            program = f"printf '#!/bin/sh\nexit 124\n' >/run/{broken}; chmod +x /run/{broken}; PATH=/run:$PATH; echo a >/etc/slurm/slurm.conf"
            if broken == "find":
                program = program.replace("exit 124", "echo find: /etc/slurm: Input/output error >&2")
            said = self.run_script("spark-stage-slurm.prerm", "remove", program, rc=1)
            self.assertIn("could not be searched", said)
            self.assertIn("sudo SPARK_STAGE_REMOVE=unchecked apt remove spark-stage-slurm", said)
            self.assertEqual(self.run_script("spark-stage-slurm.prerm", "remove", program, SPARK_STAGE_REMOVE="unchecked"), "debhelper\n")

    def test_slurms_plugin_goes_where_no_line_requires_it(self):
        for line in (":", "umount /etc/slurm", "echo PlugStackConfig=/run/missing >/etc/slurm/slurm.conf", "ln -s . /etc/slurm/loop", "ln -s /nowhere /etc/slurm/plugstack.conf",
                     "echo '#required spank_spark_stage.so' >/etc/slurm/plugstack.conf",
                     "echo 'required other.so # spank_spark_stage.so' >/etc/slurm/plugstack.conf",
                     "cp {0}/configs/slurm/spark-stage.conf /etc/slurm/plugstack.conf"):
            said = self.run_script("spark-stage-slurm.prerm", "remove", line.format(TOP))
            self.assertTrue(said.endswith("debhelper\n"), said)


if __name__ == "__main__":
    unittest.main()
