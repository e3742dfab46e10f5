"""The benchmark's own arithmetic: medians, ratios, tables, verdicts, and the detection of a bad copy."""
import os
import tempfile
import unittest

import check
import contenders
import sets
import table
import targets

CONTENT = {"title": "3 files of 1 GiB", "files": 3, "bytes": 3 << 30}


def point(made, contender, seconds, cpu=1.0, drop=0):
    return {"set": made, "contender": contender, "round": 1, "seconds": seconds, "cpu_seconds": cpu,
            "machine_cpu_seconds": 2 * cpu, "memfree_drop_bytes": drop, "peak_rss_bytes": 40 << 20}


def verdict_of(what, points, long=None):
    found = [one for one in targets.judge(table.medians(points), long or {}) if one.what == what]
    assert len(found) == 1, what
    return found[0].measured, found[0].verdict


class Medians(unittest.TestCase):
    def test_one_slow_run_does_not_count(self):
        by_set = table.medians([point("large", "cp", seconds) for seconds in (2, 9, 1, 2.5, 3)])
        self.assertEqual(by_set["large"]["cp"]["seconds"], 2.5)
        self.assertEqual((by_set["large"]["cp"]["low"], by_set["large"]["cp"]["high"]), (1, 9))


class Tables(unittest.TestCase):
    def test_rates_ratios_and_remarks(self):
        by_name = table.medians([point("large", "spark-stage", 1.5), point("large", "cp", 3)])["large"]
        text = table.of_set(CONTENT, by_name, {"cp": ["not kept: 2 modes"]}, ["spark-stage", "cp", "rsync"])
        ours, theirs = [line for line in text.splitlines() if line.startswith(("| spark", "| cp"))]
        self.assertEqual([cell.strip() for cell in theirs.split("|")[1:6]], ["cp", "3.00", "3.00-3.00", "1.00", "2.00"])
        self.assertIn("2.00", ours)
        self.assertIn("- cp: not kept: 2 modes", text)
        self.assertNotIn("rsync", text)

    def test_small_files_are_counted_by_the_second(self):
        by_name = table.medians([point("small", "cp", 2)])["small"]
        text = table.of_set({"title": "", "files": 20_000, "bytes": 680_000_000}, by_name, {}, ["cp"])
        self.assertIn("files/s", text)
        self.assertIn("10,000", text)

    def test_a_table_is_narrow_enough(self):
        names = list(contenders.all_of("x"))
        by_name = table.medians([point("large", name, 99.99, 99.99, 30 << 30) for name in names])["large"]
        texts = [table.of_set(CONTENT, by_name, {}, names), table.of_verdicts(targets.judge({}, {}))]
        self.assertLessEqual(max(len(line) for text in texts for line in text.splitlines()), 100)


class Verdicts(unittest.TestCase):
    def test_goals_are_met_or_missed_exactly_at_their_limit(self):
        points = [point("large", "spark-stage", 1), point("large", "cp", 2), point("large", "rsync", 4.99)]
        self.assertEqual(verdict_of("3 × 1 GiB: cp", points), ("2.00 ×", "met"))
        self.assertEqual(verdict_of("3 × 1 GiB: rsync", points), ("4.99 ×", "missed"))

    def test_the_best_parallel_cp_counts(self):
        points = [point("small", "spark-stage", 1), point("small", "cp-x4", 2), point("small", "cp-x8", 1.05)]
        self.assertEqual(verdict_of("20,000 files in 40 folders: the best parallel cp", points), ("1.05 ×", "missed"))

    def test_restaging_is_counted_beyond_the_walk(self):
        points = [point("unchanged", "spark-stage", 0.9), point("unchanged", "walk", 0.5)]
        self.assertEqual(verdict_of("restage, nothing changed: beyond the walk", points), ("0.40 s", "met"))

    def test_cpu_and_memory(self):
        points = [point("large", "spark-stage", 1, 0.2, 301 << 20), point("large", "cp", 2, 1.6)]
        self.assertEqual(verdict_of("CPU per GiB, 3 × 1 GiB: of cp's", points)[1], "met")
        self.assertEqual(verdict_of("MemFree drop over 3 GiB", points), ("301 MiB", "missed"))

    def test_the_worst_kill_counts(self):
        long = {"killed": {"large": {"copied_twice_s": 0.5}, "small": {"copied_twice_s": 2.5}}}
        self.assertEqual(verdict_of("kill -9 at half way: work copied twice", [], long), ("2.50 s", "missed"))
        long["killed"]["small"]["copied_twice_s"] = None
        self.assertEqual(verdict_of("kill -9 at half way: work copied twice", [], long), ("", "not measured"))

    def test_an_unmeasured_goal_is_neither_met_nor_missed(self):
        self.assertEqual({one.verdict for one in targets.judge({}, {})}, {"not measured"})


class Sets(unittest.TestCase):
    def test_the_sets_are_the_same_every_time(self):
        with tempfile.TemporaryDirectory() as folder:
            for name in ("small", "models"):
                trees = []
                for again in ("first", "second"):
                    sets.SETS[name].fill(f"{folder}/{name}-{again}", 0.002)
                    found = check.tree(f"{folder}/{name}-{again}")
                    trees.append(sorted((path, status.st_size) for path, status in found.items() if os.sep in path))
                self.assertTrue(trees[0])
                self.assertEqual(*trees)


class Check(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.source, self.copy = f"{scratch.name}/source", f"{scratch.name}/copy"
        for root in (self.source, self.copy):
            os.makedirs(f"{root}/inside")
            for name, text in (("a", "one"), ("inside/b", "two")):
                with open(f"{root}/{name}", "w", encoding="ascii") as file:
                    file.write(text)
                os.utime(f"{root}/{name}", (1, 1))
            os.symlink("a", f"{root}/link")

    def write(self, text):
        with open(f"{self.copy}/inside/b", "w", encoding="ascii") as file:
            file.write(text)
        os.utime(f"{self.copy}/inside/b", (1, 1))

    def test_an_equal_copy_is_accepted(self):
        self.assertEqual(check.compare(self.source, self.copy), (None, []))

    def test_missing_shorter_and_different_files_are_found(self):
        self.write("tw")
        self.assertIn("2 bytes, not 3", check.compare(self.source, self.copy)[0])
        self.write("TWO")
        self.assertIn("differ", check.compare(self.source, self.copy)[0])
        os.unlink(f"{self.copy}/inside/b")
        self.assertIn("missing", check.compare(self.source, self.copy)[0])

    def test_lost_modes_and_times_are_reported(self):
        os.chmod(f"{self.copy}/a", 0o600)
        os.utime(f"{self.copy}/a", (2, 2))
        self.assertEqual(check.compare(self.source, self.copy), (None, ["1 modes", "1 times"]))


if __name__ == "__main__":
    unittest.main()
