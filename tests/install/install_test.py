"""What `cmake --install` places, and that systemd takes it: tests/install/install_test.py BUILD_FOLDER."""
import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

BUILD = Path()
TOP = Path(__file__).parents[2]
DOC = "share/doc/spark-stage"
EXAMPLES = ("spark-stage.yaml", "examples/rosa.yaml", "examples/try.yaml")
PAGES = {path.relative_to(TOP).as_posix() for path in (TOP / "docs").rglob("*") if path.is_file() and path.parent.name != "man"}
FILES = {
    "bin/spark-stage", "sbin/spark-staged",
    "lib/systemd/system/spark-stage-release.service",
    "lib/systemd/system/spark-staged.service",
    "lib/sysusers.d/spark-stage.conf", "lib/tmpfiles.d/spark-stage.conf", "lib/modules-load.d/spark-stage.conf",
    "share/man/man1/spark-stage.1", "share/man/man5/spark-stage.yaml.5", "share/man/man8/spark-staged.8",
    "share/bash-completion/completions/spark-stage", "share/zsh/vendor-completions/_spark-stage",
    "share/fish/vendor_completions.d/spark-stage.fish",
    *(f"{DOC}/{page}" for page in ("README.md", "LICENSE", "CHANGELOG.md", "CONTRIBUTING.md", *PAGES)),
    *(f"{DOC}/configs/{file}" for file in (
        *EXAMPLES, "grafana/spark-stage.json", "prometheus/alerts.yml", "prometheus/scrape.yml", "slurm/burst_buffer.lua",
        "slurm/spark-stage.conf")),
}


def run(*command, **more):
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False, **more)


class Install(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="spark-install-")
        self.addCleanup(folder.cleanup)
        self.root = Path(folder.name)

    def install(self, prefix):
        done = run("cmake", "--install", str(BUILD), "--prefix", prefix,
                   env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "DESTDIR": str(self.root)})
        self.assertEqual(done.returncode, 0, done.stderr)
        return self.root / prefix.lstrip("/")

    def test_every_file_is_in_its_place_and_nothing_else(self):
        tree = self.install("/usr")
        placed = {path.relative_to(tree).as_posix() for path in tree.rglob("*") if not path.is_dir()}
        self.assertEqual(placed, FILES)
        self.assertEqual(sorted(path.name for path in self.root.iterdir()), ["usr"])

    def test_the_installed_programs_start(self):
        tree = self.install("/usr")
        for program in ("bin/spark-stage", "sbin/spark-staged"):
            done = run(str(tree / program), "--version")
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertRegex(done.stdout, r"\d+\.\d+\.\d+")

    def test_the_manual_page_has_the_verbs_of_the_program(self):
        tree = self.install("/usr")
        page = (tree / "share/man/man1/spark-stage.1").read_text()
        self.assertNotIn("@", page.replace("@reboot", ""))
        for verb in ("status [NAME...]", "volumes take NAME", "run DATASET... \\-\\- COMMAND..."):
            self.assertIn(f'.SS "spark\\-stage {verb}"\n', page)
        done = run("mandoc", "-T", "lint", "-W", "warning", str(tree / "share/man/man1/spark-stage.1"))
        self.assertEqual((done.stdout, done.returncode), ("", 0))

    def test_the_example_configurations_are_valid(self):
        tree = self.install("/usr")
        for config in EXAMPLES:
            done = run(str(tree / "bin/spark-stage"), "config", "check", str(tree / DOC / "configs" / config))
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_every_link_of_the_installed_pages_leads_to_an_installed_file(self):
        folder = self.install("/usr") / DOC
        for page in [*folder.glob("*.md"), *folder.glob("docs/*.md")]:
            for link in re.findall(r"\]\(([^)#]+)", page.read_text()):
                if "://" not in link:
                    self.assertTrue((page.parent / link).exists(), f"{page.relative_to(folder)}: {link}")

    def test_completions_of_a_local_installation_lie_where_the_shells_look(self):
        tree = self.install("/usr/local")
        looked_at = run("zsh", "-c", "print -l $fpath").stdout.split()
        self.assertTrue((tree / "share/zsh/site-functions/_spark-stage").is_file())
        self.assertIn("/usr/local/share/zsh/site-functions", looked_at)
        self.assertTrue((self.root / "etc/fish/completions/spark-stage.fish").is_file())
        self.assertIn("/etc/fish/completions", run("fish", "-c", "string join \\n $fish_complete_path").stdout.split())

    def complete(self, shell, script, typed):
        """What a real shell offers behind these words."""
        tree = self.install("/usr")
        path = f"{tree / 'bin'}:/usr/bin:/bin"
        (self.root / "config.yaml").write_text(
            "version: 1\nvolumes:\n  nas: {nfs: '10.0.0.1:/a', mount: /mnt/a}\n")
        words = ["spark-stage", "--config", str(self.root / "config.yaml"), *typed]
        done = run(shell, "-c", script, shell, *words, cwd=self.root,
                   env={"PATH": path, "HOME": str(self.root), "SPARK_STAGE_SOCKET": "/nowhere", "TREE": str(tree),
                        "TERM": "dumb"})
        self.assertEqual(done.stderr, "")
        return done.stdout.split()

    SHELLS = {
        "bash": 'source "$TREE/share/bash-completion/completions/spark-stage"; COMP_WORDS=("$@");'
                ' COMP_CWORD=$(($# - 1)); _spark_stage; echo "${COMPREPLY[@]}"',
        # Outside of its line editor zsh has no compadd and no _files.
        "zsh": 'compadd() { shift; print -l -- $@ }; _files() { print -l -- *(N) }; words=("$@"); CURRENT=$#;'
               ' . "$TREE/share/zsh/vendor-completions/_spark-stage"',
        "fish": 'source "$TREE/share/fish/vendor_completions.d/spark-stage.fish"; complete -C "$argv[2..-1]"',
    }

    def test_every_shell_offers_verbs_options_volumes_and_files(self):
        for shell, script in self.SHELLS.items():
            with self.subTest(shell):
                self.assertIn("doctor", self.complete(shell, script, [""]))
                self.assertEqual(set(self.complete(shell, script, ["volumes", ""])), {"up", "down", "publish", "take", "format"})
                self.assertIn("--lease", self.complete(shell, script, ["stage", "--"]))
                self.assertEqual(self.complete(shell, script, ["wait", ""]), ["nas"])
                self.assertIn("config.yaml", self.complete(shell, script, ["config", "check", ""]))

    def test_the_unit_starts_the_program_of_its_own_prefix(self):
        for prefix in ("/usr", "/opt/spark"):
            unit = (self.install(prefix) / "lib/systemd/system/spark-staged.service").read_text()
            self.assertIn(f"ExecStart={prefix}/sbin/spark-staged\n", unit)
            self.assertIn(f"file:{prefix}/share/doc/spark-stage/README.md\n", unit)

    def test_the_daemons_copies_may_lock_their_buffers(self):
        """Their fixed pool, registered with io_uring, is more than the default of 8 MiB, and the unit has no CAP_IPC_LOCK."""
        unit = (self.install("/usr") / "lib/systemd/system/spark-staged.service").read_text()
        self.assertIn("\nLimitMEMLOCK=infinity\n", unit)

    def test_systemd_accepts_the_units(self):
        folder = self.install("/usr") / "lib/systemd/system"
        # The program is not on this machine, and this test is not about it.
        units = {unit.name: unit.read_text().replace("/usr/sbin/spark-staged", "/bin/true") for unit in folder.iterdir()}
        self.assertEqual(len(units), 2)
        self.assertEqual(self.verify(units), "")
        for name in units:
            self.assertIn("Nonsense", self.verify({**units, name: units[name] + "\n[Service]\nNonsense=yes\n"}))

    def test_the_services_have_the_documented_exposure_level(self):
        folder = self.install("/usr") / "lib/systemd/system"
        page = " ".join(Path(__file__).parents[2].joinpath("docs/security.md").read_text().split())
        for unit, words in (("spark-staged.service", r"the figure is ([\d.]+)"),
                            ("spark-stage-release.service", r"shutdown has ([\d.]+)")):
            done = run("systemd-analyze", "security", "--offline=true", str(folder / unit))
            figure = re.search(rf"exposure level for {unit}: ([\d.]+)", done.stdout + done.stderr)
            self.assertEqual(figure[1], re.search(words, page)[1], unit)

    def verify(self, units):
        folder = self.root / "units"
        folder.mkdir(exist_ok=True)
        for name, text in units.items():
            (folder / name).write_text(text)
        done = run("systemd-analyze", "verify", "--man=no", *(str(folder / name) for name in units))
        return "\n".join(line for line in (done.stdout + done.stderr).splitlines() if "spark" in line)

    def test_the_group_and_the_folders_are_created(self):
        tree = self.install("/usr")
        (self.root / "etc").mkdir()
        done = run("systemd-sysusers", f"--root={self.root}", str(tree / "lib/sysusers.d/spark-stage.conf"))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("\nspark-stage:", "\n" + (self.root / "etc/group").read_text())
        done = run("systemd-tmpfiles", f"--root={self.root}", "--create", str(tree / "lib/tmpfiles.d/spark-stage.conf"))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual((self.root / "etc/spark-stage/keys").stat().st_mode & 0o7777, 0o700)


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit("usage: tests/install/install_test.py BUILD_FOLDER")
    BUILD = Path(sys.argv.pop(1)).resolve()
    unittest.main()
