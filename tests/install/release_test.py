"""The checkouts that tools/release.sh refuses: tests/install/release_test.py."""
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

TOP = Path(__file__).parents[2]
FILES = {
    "debian/changelog": "spark-stage (1.2.3) unstable; urgency=medium\n\n  * Notes.\n",
    "CHANGELOG.md": "# Changes\n\n## 1.2.3\n\n- A note.\n\n## 1.2.2\n\n- An older note.\n",
    "configs/kubernetes/kustomization.yaml": "images:\n  - name: spark-stage\n    newTag: 1.2.3\n",
    "docs/kubernetes.md": "skopeo copy docker://registry.example/spark-stage:1.2.3\n",
    "docs/openapi.yaml": "info:\n  version: 1.2.3\n",
}


class Release(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="spark-release-")
        self.addCleanup(folder.cleanup)
        self.top = Path(folder.name)
        for name, text in FILES.items():
            self.write(name, text)
        (self.top / "tools").mkdir()
        shutil.copy(TOP / "tools/release.sh", self.top / "tools")
        self.git("init", "-q")
        self.commit()

    def git(self, *words):
        subprocess.run(["git", "-c", "user.name=a", "-c", "user.email=a@b", *words], cwd=self.top, check=True, timeout=60)

    def commit(self):
        self.git("add", "-A")
        self.git("commit", "-q", "--allow-empty", "-m", "a")

    def write(self, name, text):
        (self.top / name).parent.mkdir(parents=True, exist_ok=True)
        (self.top / name).write_text(text)

    def refusal(self):
        """Empty if the checkout can be released."""
        done = subprocess.run(["tools/release.sh", "check"], cwd=self.top, capture_output=True, text=True, timeout=60, check=False)
        self.assertEqual(done.returncode != 0, bool(done.stderr), done.stderr)
        return done.stderr

    def test_a_committed_checkout_with_notes_can_be_released(self):
        self.assertEqual(self.refusal(), "")

    def test_uncommitted_changes_are_refused(self):
        self.write("new", "")
        self.assertIn("not committed", self.refusal())

    def test_a_version_without_notes_is_refused(self):
        for notes in ("# Changes\n\n## 1.2.2\n\n- An older note.\n", "# Changes\n\n## 1.2.3\n\n## 1.2.2\n\n- An older note.\n"):
            self.write("CHANGELOG.md", notes)
            self.commit()
            self.assertIn("no notes for 1.2.3", self.refusal())

    def test_notes_without_a_version_are_refused(self):
        self.write("CHANGELOG.md", FILES["CHANGELOG.md"].replace("## 1.2.3", "## Unreleased\n\n- Another.\n\n## 1.2.3"))
        self.commit()
        self.assertIn("Unreleased", self.refusal())

    def test_a_malformed_version_is_refused(self):
        self.write("debian/changelog", "spark-stage (1.2) unstable; urgency=medium\n")
        self.commit()
        self.assertIn("debian/changelog", self.refusal())

    def test_a_file_that_names_another_version_is_refused(self):
        for name in ("configs/kubernetes/kustomization.yaml", "docs/kubernetes.md", "docs/openapi.yaml"):
            self.write(name, FILES[name].replace("1.2.3", "1.2.2"))
            self.commit()
            self.assertIn(f"{name} names another version", self.refusal())
            self.write(name, FILES[name])

    def test_a_version_released_from_another_commit_is_refused(self):
        self.git("tag", "v1.2.3")
        self.assertEqual(self.refusal(), "")
        self.commit()
        self.assertIn("released already", self.refusal())


if __name__ == "__main__":
    unittest.main()
