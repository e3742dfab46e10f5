#!/usr/bin/python3
"""Everything that tests spark-stage, step by step: tools/check.py [STEP…]. All steps run, then all failures are told.

A step's output goes to build/check/STEP.log; its end is shown if it fails.
"""
import os
import resource
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LOGS = ROOT / "build/check"
JOBS = str(len(os.sched_getaffinity(0)))
PYTHON = "/usr/bin/python3"


@dataclass
class Step:
    name: str
    purpose: str
    deadline_s: int
    commands: list  # of argument lists, run one after the other from the top folder
    environment: dict = field(default_factory=dict)


def configure_and_build(preset, *targets):
    target = ["--target", *targets] if targets else []
    return [["cmake", "--preset", preset], ["cmake", "--build", "--preset", preset, *target]]


def ctest(preset):
    return ["ctest", "--test-dir", f"build/{preset}", "--output-on-failure", "--no-tests=error", "-j", JOBS]


# What goes wrong with targets, networks and hosts: half an hour, so a step of its own.
FAULTS = ["test_healing.py", "test_portals.py", "test_shutdown.py"]
LOCAL_DRIVES = ["test_power.py", "test_failing_drive.py"]


def machines(name, purpose, kernel, files):
    return Step(name, f"{purpose}, in virtual machines, kernel {kernel}", 2700,
                [*configure_and_build("release"), *configure_and_build("dev", "spark_nvmetcp_tests"),
                 [PYTHON, "-m", "pytest", *files, "-q", "-p", "no:cacheprovider", "--durations=20"]],
                {"SPARK_VM_KERNEL": kernel, "SPARK_VM_PATIENCE": "2"})


def scenarios(kernel, without, why=""):
    purpose = "scenarios" + (f" without {' '.join(without)} ({why})" if why else "")
    return machines(f"vm-{kernel}", purpose, kernel,
                    ["tests/vm", *(f"--ignore=tests/vm/{name}" for name in [*without, *FAULTS])])


def faults(kernel):
    return machines(f"faults-{kernel}", "every fault of a target, a link or a host", kernel,
                    [f"tests/vm/{name}" for name in FAULTS])


STEPS = [
    Step("setup", "what building and testing needs is installed", 1200, [["tools/setup.sh", "test"]]),
    Step("lint", "layering, co_await trap, lengths, words, format, shell scripts", 120, [[PYTHON, "tools/lint/run.py"]]),
    Step("unit", "unit tests, g++ 12, under address and undefined-behaviour sanitizers", 1500,
         [*configure_and_build("asan"), ctest("asan")], {"ASAN_OPTIONS": "detect_stack_use_after_return=1"}),
    Step("tidy", "clang-tidy over every source file", 1200, [["tools/lint/tidy.sh", JOBS]]),
    # Without address randomisation: g++ 12's thread sanitizer does not know the layouts of newer kernels.
    Step("tsan", "the threaded parts under the thread sanitizer", 900,
         [*configure_and_build("tsan", "spark_staging_tests"),
          ["setarch", "-R", "build/tsan/tests/unit/staging/spark_staging_tests"]], {"TSAN_OPTIONS": "halt_on_error=1"}),
    Step("fuzz", "fuzzers of everything that reads what others wrote", 1200, [["tools/fuzz.sh", "20"]]),
    Step("debian13", "build and unit tests on Debian 13 (g++ 14, libnvme 1.13)", 1800, [["tools/debian13.sh", JOBS]]),
    Step("install", "what `cmake --install` places, and that systemd accepts it", 1200,
         [*configure_and_build("release"), [PYTHON, "tests/install/install_test.py", "build/release"]]),
    Step("package", "the Debian package of this release, and lintian's word on it", 1800, [["tools/deb.sh", JOBS]]),
    Step("crash", "kill -9, full drives and failing calls under `spark-stage copy`", 900,
         [*configure_and_build("release"), [PYTHON, "-m", "pytest", "tests/crash", "-c", "tests/crash/pytest.ini", "-q"]]),
    Step("page", "the benchmark's page in headless Chromium, at 380 and 1280 pixels, light and dark", 300,
         [*configure_and_build("release"), [PYTHON, "-m", "pytest", "tests/page", "-c", "tests/page/pytest.ini", "-q"]]),
    scenarios("6.1", LOCAL_DRIVES, "a quarter of an hour about local drives; newest has them"),
    scenarios("newest", []),
    faults("6.1"),
    faults("newest"),
]


def run(command, log, environment, end):
    """Runs to the end or the deadline; no process of it is left behind. Returns why it failed, or nothing."""
    log.write(f"$ {' '.join(command)}\n".encode())
    log.flush()
    try:
        child = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT,
                                 env=os.environ | {"CMAKE_BUILD_PARALLEL_LEVEL": JOBS} | environment,
                                 start_new_session=True)
    except OSError as error:
        return f"{command[0]} can't be started: {error.strerror}"
    try:
        wait_aloud(child, end)
        return f"{command[0]} exited with status {child.returncode}" if child.returncode else None
    except subprocess.TimeoutExpired:
        return f"{command[0]} did not end before the step's deadline"
    finally:
        try:
            os.killpg(child.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        child.wait()


def wait_aloud(child, end):
    """Waits, and says once a minute that it still does."""
    began = time.monotonic()
    while True:
        left = end - time.monotonic()
        if left <= 0:
            raise subprocess.TimeoutExpired(child.args, 0)
        try:
            child.wait(min(60, left))
            return
        except subprocess.TimeoutExpired:
            print(f"   … {time.monotonic() - began:.0f} s", flush=True)


def cpu_seconds():
    """Of all processes that have ended: on a busy machine they tell more than the time that passed."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def run_step(step):
    print(f"== {step.name}: {step.purpose}", flush=True)
    began, cpu_began = time.monotonic(), cpu_seconds()
    path = LOGS / f"{step.name}.log"
    with open(path, "wb") as log:
        problem = None
        for command in step.commands:
            problem = problem or run(command, log, step.environment, began + step.deadline_s)
    seconds, cpu = time.monotonic() - began, cpu_seconds() - cpu_began
    if problem:
        print(f"   FAILED after {seconds:.0f} s: {problem}; the end of {path.relative_to(ROOT)}:")
        for line in path.read_text(errors="replace").splitlines()[-40:]:
            print("   | " + line)
    else:
        print(f"   ok, {seconds:.0f} s", flush=True)
    return not problem, seconds, cpu


def main(names):
    known = {step.name: step for step in STEPS}
    if unknown := [name for name in names if name not in known]:
        print(f"check: no step is called {', '.join(unknown)} - there are: {' '.join(known)}", file=sys.stderr)
        return 2
    LOGS.mkdir(parents=True, exist_ok=True)
    steps = [known[name] for name in names] or STEPS
    try:
        results = [(step, *run_step(step)) for step in steps]
    except KeyboardInterrupt:
        print("check: interrupted", file=sys.stderr)
        return 130
    passed = sum(ok for _, ok, *_ in results)
    print(f"\n{'step':<13} {'seconds':>7} {'CPU s':>7}  result")
    for step, ok, seconds, cpu in results:
        print(f"{step.name:<13} {seconds:>7.0f} {cpu:>7.0f}  {'pass' if ok else 'FAIL'}")
    print(f"{'total':<13} {sum(row[2] for row in results):>7.0f} {sum(row[3] for row in results):>7.0f}\n")
    print(f"{passed} passed, {len(results) - passed} failed")
    return 0 if passed == len(results) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
