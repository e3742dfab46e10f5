"""The record that tools/shards.py prints of a program that passes, skips, fails, crashes and hangs: tests/install/shards_test.py."""
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

TOP = Path(__file__).parents[2]
# As GoogleTest: 30 cases that pass, and one of each other kind in the second shard.
PROGRAM = r"""#!/bin/sh
if [ "${1:-}" = --gtest_list_tests ]; then
  echo A.; for i in $(seq 30); do echo "  Passes$i"; done
  for case in $OTHERS; do echo "  $case  # GetParam() = 1"; done; echo '  DISABLED''_Never'; exit
fi
if [ "$GTEST_SHARD_INDEX" = 0 ]; then
  for i in $(seq 30); do echo "[ RUN      ] A.Passes$i"; echo "[       OK ] A.Passes$i (0 ms)"; done; exit
fi
for case in $OTHERS; do
  echo "[ RUN      ] A.$case"
  case $case in
    Skips) printf 'a_test.cpp:1: Skipped\nonly root may mount\n\n[  SKIPPED ] A.Skips (0 ms)\n' ;;
    Fails) printf 'a_test.cpp:2: Failure\nExpected: 1\n[  FAILED  ] A.Fails, where GetParam() = 1 (0 ms)\n' ;;
    Needs) printf 'starting fio: No such file or directory\n[  FAILED  ] A.Needs (0 ms)\n' ;;
    Dies) exit 134 ;;
    Hangs) sleep 60 ;;
  esac
done
printf '[  SKIPPED ] 1 test, listed below:\n[  SKIPPED ] A.Skips\n'
"""


class Shards(unittest.TestCase):
    def setUp(self):
        self.build = Path(tempfile.mkdtemp(prefix="spark-shards-"))
        self.addCleanup(shutil.rmtree, self.build)
        program = self.build / "tests/unit/a/spark_a_tests"
        program.parent.mkdir(parents=True)
        program.write_text(PROGRAM)
        program.chmod(0o755)

    def record(self, others, rc, seconds="60"):
        # Without fio in PATH, whatever this computer has.
        folder = self.build / "bin"
        folder.mkdir(exist_ok=True)
        for name in ("sh", "seq", "sleep", "rsync"):
            if not (folder / name).exists():
                (folder / name).symlink_to(shutil.which(name) or "/bin/true")
        done = subprocess.run([sys.executable, TOP / "tools/shards.py", self.build, "2", seconds], capture_output=True, text=True,
                              env={"PATH": str(folder), "OTHERS": others}, timeout=120, check=False)
        self.assertEqual((done.returncode, done.stderr), (rc, ""), done.stdout)
        return done.stdout

    def test_what_passed_and_what_was_skipped_and_why(self):
        said = self.record("Skips", 0)
        self.assertIn("31 cases in 2 processes", said)
        self.assertIn("31 cases: 30 passed, 1 skipped, 0 failed, 0 did not run", said)
        self.assertIn("skipped: only root may mount: A.Skips", said)

    def test_a_failure_without_a_missing_program_is_one(self):
        said = self.record("Fails Needs", 1)
        self.assertIn("30 passed, 0 skipped, 2 failed, 0 did not run", said)
        self.assertIn("failed: A.Fails; others of its suite name what is missing here: fio\na_test.cpp:2: Failure\nExpected: 1", said)
        self.assertIn("failed: A.Needs; names what is missing here: fio", said)

    def test_failures_by_a_missing_program_alone_are_named(self):
        self.assertRegex(self.record("Needs", 0), "programs that are missing here: fio .*\n.*names what is missing here: fio")

    def test_a_program_that_dies_is_a_failure_and_what_it_did_not_reach_is_counted(self):
        said = self.record("Skips Dies Fails", 1)
        self.assertIn("30 passed, 1 skipped, 1 failed, 1 did not run", said)
        self.assertIn("failed: A.Dies, ended with status 134", said)

    def test_a_case_that_hangs_ends_at_the_deadline(self):
        self.assertIn("failed: A.Hangs, was running at the deadline", self.record("Hangs", 1, "3"))


if __name__ == "__main__":
    unittest.main()
