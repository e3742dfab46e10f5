"""Tests each check with samples that it must find and samples that it must accept: a check that can't fail is useless."""
import contextlib
import dataclasses
import io
import sys
import tempfile
import threading
import unittest
import unittest.mock
from pathlib import Path

import built
import clocks
import co_await
import coroutines
import man
import sizes
import sources
import throwing
import units
import words

sys.path.append(str(Path(__file__).parents[1]))
import check  # noqa: E402  make check
import steps  # noqa: E402


class Sources(unittest.TestCase):
    def test_comments_and_strings_are_removed_and_lines_kept(self):
        text = 'a("x;{"); // it\'s {\n/* [p]{\n*/ b(\';\', 1\'000); R"(co_await\n)" c();'
        code = sources.code_of(text)
        self.assertEqual(code.count("\n"), text.count("\n"))
        for gone in ("x", "it", "co_await", "[p]"):
            self.assertNotIn(gone, code)
        for kept in ("a(", "b(", "1'000", "c()"):
            self.assertIn(kept, code)


class CoAwait(unittest.TestCase):
    BAD = {
        "lambda": "auto r = co_await lane.run([p] { return p->size(); });",
        "lambda over lines": "co_await\n  lane.run(\n    a,\n    [name = std::move(name)]() mutable {\n return name; });",
        "reference capture": "co_await f([&] { x(); });",
        "aggregate": "co_await connect(Options{name, {}});",
        "aggregate of a template": "co_await connect(Box<std::string>{name});",
        "list": "co_await f({a, b});",
        "in a condition": "if (auto r = co_await f(Agg{s}); !r) {\n}",
        "in a loop's range": "for (auto& x : co_await list(Filter{name})) {\n}",
        "beside the wait": "g([p] { return p; }, co_await f());",
        "aggregate beside the wait": "g(Agg{name}, co_await f());",
        "operand": "co_await (a(Agg{name}) || timer());",
        "second wait": "co_await f();\nco_return co_await g(Agg{x});",
        "in a lambda's own body": "spawn(io, []() -> awaitable<void> { co_await f(Agg{x}); });",
        "ternary": "auto r = ok ? co_await f(Agg{x}) : co_await g();",
        "arm of a ternary": "const auto r = ok ? co_await f() : co_await g();",
        "in an arm": "h(ok ? 1 : co_await g());",
        "after an index": "co_await f(a[b[1]], [s] {});",
    }
    GOOD = {
        "named first": "auto job = [p] { return p->size(); };\nco_await lane.run(std::move(job));",
        "named aggregate": "Options options{name, {}};\nco_await connect(std::move(options));",
        "captureless": "co_await f([](int x) { return Agg{x}; });",
        "strings": 'co_await f(std::string("a{b}"), "[p]{");',
        "index": "co_await f(a[1], b()[2], c[d[3]]);",
        "block after the condition": "if (co_await f()) {\n  g([p] {});\n  Agg a{1};\n}",
        "block after a loop": "for (auto x : co_await f()) { h(Agg{x}); }",
        "statement before": "g([p] {}); co_await f();",
        "block before": "{ Agg a{1}; }\nco_await f();",
        "header before": "if (x == Agg{1}) co_await f();",
        "lambda around": "spawn(io, [p]() -> awaitable<void> { co_await f(p); }, detached);",
        "empty braces": "co_await f({}, Agg{});",
        "comment": "// co_await f([p] {});\nf([p] {});",
        "result into a named aggregate": "Row row{co_await f(), 1};",
        "bindings": "auto [error, size] = co_await read(buffer);\nfor (;;) { g([p] {}); }",
        "condition of a ternary": "const auto r = co_await f() ? 1 : 2;",
        "attribute": "[[maybe_unused]] auto x = co_await f();",
    }

    def test_bad_is_found(self):
        for name, code in self.BAD.items():
            with self.subTest(name):
                self.assertTrue(co_await.check("x.cpp", "void f() {\n" + code + "\n}"))

    def test_good_is_accepted(self):
        for name, code in self.GOOD.items():
            with self.subTest(name):
                self.assertEqual(co_await.check("x.cpp", "void f() {\n" + code + "\n}"), [])

    def test_a_problem_is_reported_once_with_its_line(self):
        code = "void f() {\n  co_await g(\n      co_await h(),\n      Agg{x});\n}"
        self.assertEqual(co_await.check("x.cpp", code), [f"x.cpp:4: {co_await.BRACES}"])


class Coroutines(unittest.TestCase):
    BAD = ["co_spawn(context, run(), boost::asio::detached);", "asio::co_spawn(context_,\n  run(), asio::detached);",
           "#include <boost/asio/detached.hpp>"]
    GOOD = ['launch(executor, "volume x", run());', "const auto detached = unmount();  // not asio::detached",
            "asio::co_spawn(context, run(), stop_after_the_last);"]

    def test_bad_is_found(self):
        for code in self.BAD:
            with self.subTest(code):
                self.assertEqual(len(coroutines.check("daemon/a.cpp", code)), 1)

    def test_good_is_accepted(self):
        for code in self.GOOD:
            with self.subTest(code):
                self.assertEqual(coroutines.check("daemon/a.cpp", code), [])
        for path in ("daemon/launch.cpp", "tests/unit/daemon/a.cpp"):
            self.assertEqual(coroutines.check(path, self.BAD[0]), [])


class Throwing(unittest.TestCase):
    ERROR = "std::error_code error, gone;\n"
    BAD = ["return fs::exists(path);", "std::filesystem::weakly_canonical(config.path).native();",
           "fs::rename(from,\n  to / name(a, error));", "for (const auto& entry : fs::directory_iterator(folder)) {}",
           "fs::recursive_directory_iterator walk(folder);", "std::vector<std::jthread> threads;", "std::thread([] {});",
           "std::async(std::launch::async, work);", "if (fs::is_directory(entry->path())) {}"]
    GOOD = ["return fs::exists(path, error);", "fs::rename(from, to, gone);", "entry != fs::directory_iterator();",
            "fs::directory_iterator entry(folder, error), end;", "fs::exists(fs::symlink_status(file, error));",
            "const fs::file_status status = fs::symlink_status(file, error);\nfs::is_symlink(status);",
            "std::thread::hardware_concurrency();", "std::this_thread::sleep_for(1s);", "// fs::exists(path)",
            "std::async(std::launch::async | std::launch::deferred, [&] { work(); });", "fs::path(text);",
            "work(std::thread& running);", "std::thread thread_;"]

    def test_bad_is_found(self):
        for code in self.BAD:
            with self.subTest(code):
                self.assertEqual(len(throwing.check("staging/a.cpp", self.ERROR + code)), 1)

    def test_good_is_accepted(self):
        for code in self.GOOD:
            with self.subTest(code):
                self.assertEqual(throwing.check("staging/a.cpp", self.ERROR + code), [])
        for path in ("base/threads.cpp", "tests/unit/base/a.cpp"):
            self.assertEqual(throwing.check(path, self.BAD[0] + self.BAD[5]), [])


class Clocks(unittest.TestCase):
    def test_folders_that_decide_read_the_seam(self):
        for code in ("const auto now = std::chrono::steady_clock::now();", "asio::steady_timer pause_;",
                     "if (std::chrono::system_clock::now() < end) {}", "::time(nullptr);", "::clock_gettime(CLOCK_REALTIME, &now);"):
            for path in ("daemon/volumes/a.cpp", "daemon/outputs/a.hpp"):
                with self.subTest(code):
                    self.assertEqual(len(clocks.check(path, code)), 1)
        self.assertEqual(len(clocks.check("staging/cache/a.cpp", "std::chrono::steady_clock::now();")), 1)
        self.assertEqual(len(clocks.check("staging/copy/a.cpp", "std::chrono::system_clock::now();")), 1)

    def test_aliases_hide_no_clock(self):
        for code in ("using Clock = std::chrono::steady_clock;\nauto now = Clock::now();", "typedef std::chrono::system_clock Wall;\nWall::now();",
                     "namespace time = std::chrono;\nauto now = time::steady_clock::now();", "using namespace std::chrono;\nsystem_clock::now();",
                     "using std::chrono::high_resolution_clock;\nauto now = high_resolution_clock::now();"):
            with self.subTest(code):
                self.assertEqual([problem.split(":")[1] for problem in clocks.check("daemon/volumes/a.cpp", code)], ["2"])
        self.assertEqual(len(clocks.check("daemon/volumes/a.hpp", "using Clock = std::chrono::steady_clock;")), 1)
        self.assertEqual(clocks.check("staging/copy/a.hpp", "using Clock = std::chrono::steady_clock;"), [])
        self.assertEqual(clocks.check("staging/cache/room.cpp", "using Clock = std::chrono::steady_clock;\nClock::now();"), [])

    def test_waits_in_real_time_are_accepted(self):
        for path, code in (("staging/copy/a.cpp", "std::chrono::steady_clock::now();"), ("daemon/timer.cpp", "asio::steady_timer system;"),
                           ("daemon/workers/verbs/a.cpp", "std::chrono::steady_clock::now();"), ("daemon/a.cpp", "// steady_clock::now()"),
                           ("base/clock.hpp", "std::chrono::system_clock::now();"), ("daemon/a.cpp", "clock.steady();"),
                           ("tests/unit/a.cpp", "asio::steady_timer timer;")):
            with self.subTest(code):
                self.assertEqual(clocks.check(path, code), [])


class Built(unittest.TestCase):
    NAMED = built.compiled({"a": "spark_library(x SOURCES one.cpp sub/two.cpp)",
                            "a/b": "# other.cpp\nadd_executable(y three.cpp\n../four.cpp ${PROJECT_SOURCE_DIR}/c/five.cpp)"})

    def test_files_that_are_not_compiled_are_found(self):
        for path in ("a/two.cpp", "a/b/one.cpp", "a/other.cpp", "c/one.cpp"):
            with self.subTest(path):
                self.assertTrue(built.check(path, self.NAMED))

    def test_compiled_files_are_accepted(self):
        for path in ("a/one.cpp", "a/sub/two.cpp", "a/b/three.cpp", "a/four.cpp", "c/five.cpp"):
            with self.subTest(path):
                self.assertEqual(built.check(path, self.NAMED), [])


class Sizes(unittest.TestCase):
    def test_long_files_are_found(self):
        self.assertEqual(sizes.check("a.cpp", "\n" * 300), ([], []))
        self.assertTrue(sizes.check("a.cpp", "\n" * 301)[1])
        self.assertTrue(sizes.check("a.cpp", "\n" * 401)[0])

    def test_long_python_functions_are_found(self):
        self.assertTrue(sizes.check("a.py", "def f():\n" + "  x = 1\n" * 60)[0])
        self.assertFalse(sizes.check("a.py", "def f():\n" + "  x = 1\n" * 59)[0])

    CLASS = """
class [[nodiscard]] Seam : public Base<int> {  // class Not {
 public:
  Seam() : value_{1} {}
  explicit Seam(int value);
  virtual ~Seam() = default;
  Seam& operator=(const Seam&) = delete;
  virtual int read(const std::string& text = "}") const = 0;
  int twice() const { if (value_) { return 2 * value_; } return 0; }
  static Seam of(int value);
  enum class Kind { One, Two };
  struct Inner { int a, b; };

 private:
  using Sink = std::function<void(int)>;
  static constexpr int kMost = 3;
  std::function<void(int)> sink_;
  int value_ = 0, other_{2};
};
"""

    def test_methods_members_and_virtual_methods_are_counted(self):
        self.assertEqual(list(sizes.classes(self.CLASS)), [sizes.Class("Seam", 2, methods=3, members=2, virtuals=1)])
        self.assertEqual(list(sizes.classes(self.CLASS.replace(" = 0;", ";")))[0].virtuals, 0)
        self.assertEqual(list(sizes.classes("enum class A { B };\nclass C;\nstruct D { int e; };")), [])

    def test_large_classes_and_folders_are_found(self):
        for kind, most in (("int f{}();", sizes.METHODS), ("int m{}_;", sizes.MEMBERS),
                           ("virtual int v{}() = 0;", sizes.VIRTUALS)):
            for number, problems in ((most, 0), (most + 1, 1)):
                with self.subTest(kind, number=number):
                    text = "class A {\n" + "\n".join(kind.format(at) for at in range(number)) + "\n};"
                    self.assertEqual(len(sizes.check_classes("a.hpp", text)), problems)
        self.assertEqual(sizes.check_folders([f"a/{at}.cpp" for at in range(sizes.FILES)]), [])
        self.assertEqual(len(sizes.check_folders([f"a/{at}.cpp" for at in range(sizes.FILES + 1)])), 1)


class Words(unittest.TestCase):
    # Assembled from parts, so that this file passes its own check.
    BAD = ["// TO" + "DO: later", "path = '/wo" + "rk/me'", "TEST(A, DIS" + "ABLED_b)", "GTEST_" + "SKIP();",
           "@pytest.mark.sk" + "ip", "a " + "\t", "<" * 7 + " HEAD"]
    GOOD = ["// method", "the network/work/case", 'GTEST_SKIP() << "no loop devices";',
            '@pytest.mark.skipif(x, reason="y")', "a << b"]

    def test_bad_is_found(self):
        for line in self.BAD:
            with self.subTest(line):
                self.assertTrue(words.check("a", line))

    def test_good_is_accepted(self):
        for line in self.GOOD:
            with self.subTest(line):
                self.assertEqual(words.check("a", line), [])


class Man(unittest.TestCase):
    def test_the_daemons_options_match_its_manual_page(self):
        source = 'app.add_option("--config", x, "a")->envname("A_B");\napp.set_help_flag("-h,--help", "b\\nc");'
        page = ('.SH OPTIONS\n.TP\n.BI \\-\\-config " FILE"\nx\n.TP\n.BR \\-h ", " \\-\\-help\nx\n.SH ENVIRONMENT\n.TP\n'
                '.B A_B\nx\n.SH FILES\n')
        self.assertEqual(man.check_daemon(source, page), [])
        self.assertTrue(man.check_daemon(source, page.replace("config", "other")))
        self.assertTrue(man.check_daemon(source, page.replace("A_B", "A_C")))
        self.assertTrue(man.check_daemon(source.replace('"a"', f'"{"a" * 81}"'), page))

    def test_a_missing_key_is_found(self):
        reference = "# It\n# offers: more\ncache:\n  # scrub: 30d   # once\n"
        self.assertEqual(man.check_keys(reference, ".B cache\nx\n.B scrub\ny\n"), [])
        self.assertTrue(man.check_keys(reference, ".B cache\nx\n"))


class Units(unittest.TestCase):
    def test_a_mount_namespace_is_found(self):
        self.assertTrue(units.check("a.service", "[Service]\nProtectSystem=strict"))
        self.assertTrue(units.check("a.service", "PrivateTmp = yes"))
        self.assertEqual(units.check("a.service", "# ProtectSystem=\nNoNewPrivileges=yes\nUMask=0022"), [])


class Lanes(unittest.TestCase):
    def test_a_lane_begins_when_the_programs_that_it_needs_are_there(self):
        began = {step: threading.Event() for step in [*steps.FIRST, steps.PROGRAMS, steps.PACKAGE, steps.IMAGES, *(
            step for lane in [*steps.LANES, *steps.BUILDS] for step in lane)]}
        early = []

        def run(step, is_background):
            began[step].set()
            if step is steps.PROGRAMS:
                early.extend(other.name for other in began if other.needs_programs and began[other].is_set())
            return check.Outcome(step, None, 0, 0)

        with unittest.mock.patch.object(check, "run_step", run):
            outcomes = check.run_all(list(began))
        self.assertEqual((len(outcomes), early), (len(began), []))

    def test_the_programs_of_histories_are_built_with_the_others_since_the_package_forgets_their_targets(self):
        built = steps.PROGRAMS.commands[-1]
        for area in steps.WITH_HISTORIES:
            self.assertIn(f"spark_{area}_histories", built)
        self.assertFalse([command for step in steps.BUILDS[1] if step.name == "histories" for command in step.commands if command[0] == "cmake"])


class Commands(unittest.TestCase):
    def test_of_histories_all_run_and_the_failing_files_and_seeds_are_named(self):
        lines = ["FAILED tests/histories/a/found/x.history: a fixed defect is back", "FAILED a: seed 7 violates two-writers, after 7 histories"]
        commands = [["sh", "-c", f"echo '{line}'; exit 1"] for line in lines]
        step = steps.Step("histories-test", "x", 60, commands, runs_all=True)
        with tempfile.TemporaryDirectory() as logs, unittest.mock.patch.object(check, "LOGS", Path(logs)), \
                unittest.mock.patch.object(check, "ROOT", Path(logs)), contextlib.redirect_stdout(io.StringIO()):
            outcome = check.run_step(step, False)
            self.assertEqual(outcome.reasons(), lines)
            first = check.run_step(dataclasses.replace(step, runs_all=False), False)
            self.assertEqual(first.reasons(), lines[:1])


class SecondAttempt(unittest.TestCase):
    def test_failures_of_a_machine_lane_are_rerun_by_a_valid_pytest_command(self):
        test = "tests/vm/test_boot.py::test_it[ext4]"
        for step in steps.MACHINES:
            failed, command = check.of_failures(step.commands[-1], f"FAILED {test} - AssertionError\n")
            self.assertEqual(([*failed], command[-1]), ([test], test), step.name)
            cut = [word for word in command if word.startswith("--") and "=" not in word]
            self.assertEqual(cut, [], f"{step.name}: the file names behind these were left out")

    def test_a_machine_that_does_not_start_counts_as_one_failure(self):
        log = "".join(f"ERROR tests/vm/test_a.py::test_{number} - rig.agent.GuestTimeout: host2: still running\n" for number in range(30))
        failed, _ = check.of_failures(["pytest"], log + "FAILED tests/vm/test_a.py::test_other - AssertionError\n")
        self.assertEqual((len(failed), len(set(failed.values()))), (31, 2))


if __name__ == "__main__":
    unittest.main()
