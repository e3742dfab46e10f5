#!/usr/bin/python3
"""Everything that tests spark-stage, step by step: tools/check.py [STEP…]. All steps run, then all failures are told.
Only by name: arm64 and packages, for other systems than this computer's, which take long and change seldom.

First what everything needs, built and fetched; then lanes side by side: virtual machines, in three lanes, which wait for
timers now and then, and builds with their tests, in two, at the lowest priority, which take the time that the machines leave.
Scenarios that failed there run once more when all else has ended: three lanes share two cores with the builds, and a deadline
may pass that means nothing. That is told, and what fails again fails the check.
A step's output goes to build/check/STEP.log; its end is shown if it fails.
"""
import os
import re
import signal
import subprocess
import sys
import threading
import time
from dataclasses import dataclass, field, replace
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LOGS = ROOT / "build/check"
JOBS = str(len(os.sched_getaffinity(0)))
PYTHON = "/usr/bin/python3"


@dataclass(eq=False)
class Step:
    name: str
    purpose: str
    deadline_s: int
    commands: list  # of argument lists, run one after the other from the top folder
    environment: dict = field(default_factory=dict)
    needs_programs: bool = False


@dataclass
class Outcome:
    step: Step
    problem: str | None
    seconds: float
    cpu_s: float  # of all its processes: on a busy machine it tells more than the time that passed
    note: str = ""


def configure_and_build(preset, *targets):
    target = ["--target", *targets] if targets else []
    return [["cmake", "--preset", preset], ["cmake", "--build", "--preset", preset, *target]]


def ctest(preset):
    return ["ctest", "--test-dir", f"build/{preset}", "--output-on-failure", "--no-tests=error", "-j", JOBS]


def pytest(folder):
    return [PYTHON, "-m", "pytest", folder, "-c", f"{folder}/pytest.ini", "-q"]


def machines(name, kernel, purpose, *arguments):
    return Step(name, f"{purpose}, in virtual machines, kernel {kernel}", 3600,
                [[PYTHON, "-m", "pytest", *arguments, "-q", "-raP", "-p", "no:cacheprovider", "--durations=30"]],
                {"SPARK_VM_KERNEL": kernel, "SPARK_VM_PATIENCE": "2", "SPARK_VM_LANE": name,
                 "SPARK_VM_PACKAGE": "build/deb", "SPARK_VM_CPUS": "1"}, needs_programs=True)


def scenarios(names):
    return [f"tests/vm/{name}.py" for name in names]


def but(names):
    return ["tests/vm", *(f"--ignore={path}" for path in scenarios(names))]


PACKAGE = Step("package", "the Debian package of this release, and lintian's word on it", 900, [["tools/deb.sh", JOBS]],
               needs_programs=True)
PROGRAMS = Step("build", "the programs, and the tests that run on the machines' kernels", 1800,
                [*configure_and_build("release"), ["cmake", "--preset", "release", "-DSPARK_TESTS=ON"],
                 ["cmake", "--build", "--preset", "release", "--target", "spark_nvmetcp_tests"]])

IMAGES = Step("images", "kernels, emulator and Debian of the virtual machines", 1800, [[PYTHON, "tests/vm/prepare.py"]])

FIRST = [
    Step("setup", "what building and testing needs is installed", 1200, [["tools/setup.sh", "test"]]),
    Step("lint", "layering, co_await trap, lengths, words, format, shell scripts", 120, [[PYTHON, "tools/lint/run.py"]]),
]

# Scenarios about the rig itself, drives, configuration and words: one kernel runs them, and by hand any other.
ANY_KERNEL = ["test_rig", "test_package", "test_cache", "test_power", "test_failing_drive", "test_config", "test_moving", "test_bench",
              "test_docs"]
# These wait most of their time, for the protections of volumes that two hosts want. The newest kernel has a lane for them.
TWO_HOSTS = ["test_sharing", "test_publish", "test_format"]
DEBIAN_13 = Step(
    "debian13", "package, unit tests, installation and TLS on Debian 13 (g++ 14, libnvme 1.13)", 3600,
    [["tools/deb-for.sh", "debian-13", "amd64", JOBS],
     [PYTHON, "-m", "pytest", *scenarios(["test_package", "test_tls"]), "-q", "-p", "no:cacheprovider"]],
    {"SPARK_VM_GUEST": "trixie", "SPARK_VM_KERNEL": "newest", "SPARK_VM_PATIENCE": "2", "SPARK_VM_LANE": "debian13",
     "SPARK_VM_CPUS": "1", "SPARK_VM_PACKAGE": "build/debian-13-amd64/deb",
     "SPARK_VM_INSTALL": "build/debian-13-amd64/installed"})
LANES = [
    [machines("vm-newest", "newest", "scenarios of one host", *but(TWO_HOSTS + ANY_KERNEL)), DEBIAN_13],
    [machines("vm-6.1", "6.1", "scenarios of one host and of two", *but(ANY_KERNEL))],
    [machines("vm-more", "newest", "scenarios of two hosts, and those that a kernel does not change",
              *scenarios(TWO_HOSTS + ANY_KERNEL))],
]
MACHINES = [step for lane in LANES for step in lane]

# A browser and servers with time limits of their own: before the machines begin.
SERVED = [
    Step("page", "the benchmark's page in headless Chromium, at 380 and 1280 pixels, light and dark", 600,
         [pytest("tests/page")], needs_programs=True),
    Step("api", "the API, metrics, alerts and dashboard, on a real daemon and a real Prometheus", 900,
         [pytest("tests/api")], needs_programs=True),
    Step("install", "what `cmake --install` places, and that systemd accepts it", 600,
         [[PYTHON, "tests/install/install_test.py", "build/release"]], needs_programs=True),
]

# Two lanes, so that neither core rests while the other's step waits for something. What works on file systems comes last:
# the kernel does that at its own priority. The machines may leave them next to nothing for most of an hour.
GIVING_WAY_S = 5400
BUILDS = [
    [Step("unit", "unit tests, g++ 12, under address and undefined-behaviour sanitizers", GIVING_WAY_S,
          [*configure_and_build("asan"), ctest("asan")], {"ASAN_OPTIONS": "detect_stack_use_after_return=1"}),
     # Without address randomisation: g++ 12's thread sanitizer does not know the layouts of newer kernels.
     Step("tsan", "the threaded parts under the thread sanitizer", GIVING_WAY_S,
          [*configure_and_build("tsan", "spark_staging_tests"),
           ["setarch", "-R", "build/tsan/tests/unit/staging/spark_staging_tests"]], {"TSAN_OPTIONS": "halt_on_error=1"}),
     Step("tidy", "clang-tidy over every source file", GIVING_WAY_S, [["tools/lint/tidy.sh", JOBS]])],
    [Step("fuzz", "fuzzers of everything that reads what others wrote", GIVING_WAY_S, [["tools/fuzz.sh", "10"]]),
     Step("crash", "kill -9, full drives and failing calls under `spark-stage copy`", GIVING_WAY_S, [pytest("tests/crash")],
          needs_programs=True)],
]

SET_UP_OTHERS = ["tools/setup.sh", "others"]
OTHERS = [
    Step("arm64", "package, unit tests under qemu-user, boot and installation on an emulated arm64 machine", 7200,
         [SET_UP_OTHERS, ["tools/deb-for.sh", "debian-12", "arm64", JOBS],
          [PYTHON, "-m", "pytest", *scenarios(["test_package", "test_boot"]), "-q", "-p", "no:cacheprovider"]],
         {"SPARK_VM_ARCH": "arm64", "SPARK_VM_PATIENCE": "3", "SPARK_VM_LANE": "arm64", "SPARK_VM_CPUS": "1",
          "SPARK_VM_PACKAGE": "build/debian-12-arm64/deb", "SPARK_VM_INSTALL": "build/debian-12-arm64/installed"}),
    Step("packages", "packages for Debian 13 on arm64 and for Ubuntu 24.04, each with its unit tests", 7200,
         [SET_UP_OTHERS, ["tools/deb-for.sh", "debian-13", "arm64", JOBS], ["tools/deb-for.sh", "ubuntu-24.04", "amd64", JOBS]]),
]

_running = set()  # children that end with this program


def start(command, log, environment, is_background):
    environment = os.environ | {"CMAKE_BUILD_PARALLEL_LEVEL": JOBS} | environment
    child = subprocess.Popen([*(["nice", "-n", "19"] if is_background else []), *command], cwd=ROOT, env=environment,
                             stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT, start_new_session=True)
    if is_background:  # kernels that group processes by session compare the groups first
        try:
            Path(f"/proc/{child.pid}/autogroup").write_text("19")
        except OSError:
            pass
    _running.add(child)
    return child


def end(child):
    """No process of it is left behind."""
    try:
        os.killpg(child.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    _running.discard(child)


def wait_aloud(child, name, deadline):
    """Returns the CPU seconds of a child that ended, or None at the deadline; says once a minute that it waits."""
    began = said = time.monotonic()
    while (now := time.monotonic()) < deadline:
        pid, status, used = os.wait4(child.pid, os.WNOHANG)
        if pid:
            child.returncode = os.waitstatus_to_exitcode(status)
            return used.ru_utime + used.ru_stime
        if now - said >= 60:
            said = now
            print(f"   {name}: … {now - began:.0f} s", flush=True)
        time.sleep(0.1)
    return None


def run(step, log, is_background, deadline):
    """Returns why it failed, or None, and its CPU seconds."""
    total = 0.0
    for command in step.commands:
        log.write(f"$ {' '.join(command)}\n".encode())
        log.flush()
        try:
            child = start(command, log, step.environment, is_background)
        except OSError as error:
            return f"{command[0]} can't be started: {error.strerror}", total
        cpu = wait_aloud(child, step.name, deadline)
        end(child)
        if cpu is None:
            child.wait()
            return f"{command[0]} did not end before the step's deadline", total
        total += cpu
        if child.returncode:
            return f"{command[0]} exited with status {child.returncode}", total
    return None, total


def run_step(step, is_background):
    print(f"== {step.name}: {step.purpose}", flush=True)
    began = time.monotonic()
    path = LOGS / f"{step.name}.log"
    with open(path, "wb") as log:
        problem, cpu = run(step, log, is_background, began + step.deadline_s)
    seconds = time.monotonic() - began
    if problem:
        tail = "\n".join("   | " + line for line in path.read_text(errors="replace").splitlines()[-40:])
        print(f"   {step.name}: FAILED after {seconds:.0f} s: {problem}; the end of {path.relative_to(ROOT)}:\n{tail}",
              flush=True)
    else:
        print(f"   {step.name}: ok, {seconds:.0f} s", flush=True)
    return Outcome(step, problem, seconds, cpu)


MOST_AGAIN = 4  # more than that is no accident


def once_more(outcome):
    """Of machines: the scenarios that failed, alone. Returns the outcome of both runs together."""
    step = outcome.step
    failed = re.findall(r"^(?:FAILED|ERROR) (\S+::\S+)", (LOGS / f"{step.name}.log").read_text(errors="replace"), re.MULTILINE)
    if not 0 < len(failed) <= MOST_AGAIN:
        return outcome
    command = [argument for argument in step.commands[-1] if not argument.startswith(("tests/vm", "--ignore="))]
    name = f"{step.name}-again"
    again = run_step(replace(step, name=name, purpose=f"what failed in {step.name}, alone: {', '.join(failed)}",
                             commands=[[*command, *failed]], environment=step.environment | {"SPARK_VM_LANE": name}), False)
    return Outcome(step, again.problem and outcome.problem, outcome.seconds + again.seconds, outcome.cpu_s + again.cpu_s,
                   "" if again.problem else f", {len(failed)} at the second attempt")


def chosen(steps):
    """With what they need."""
    needed = {PROGRAMS: any(step.needs_programs for step in steps),
              PACKAGE: any(step.environment.get("SPARK_VM_PACKAGE") == "build/deb" for step in steps)}
    return [*(step for step in needed if needed[step] and step not in steps), *steps]


def run_lanes(lanes, background=()):
    """Side by side; each is a list of steps, one after the other. Returns the outcomes in the order of their ends.
    What is in the background gives way to the others, if there are others."""
    outcomes = []

    def run_lane(lane, is_background):
        for step in lane:
            outcomes.append(run_step(step, is_background))

    threads = [threading.Thread(target=run_lane, args=(lane, False), daemon=True) for lane in lanes]
    threads += [threading.Thread(target=run_lane, args=(lane, bool(lanes)), daemon=True) for lane in background]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return outcomes


def run_all(steps):
    def of(some):
        return [step for step in steps if step in some]

    def lanes_of(lanes):
        chosen_lanes = [[step for step in lane if step in steps] for lane in lanes]
        return [lane for lane in chosen_lanes if lane]

    outcomes = run_lanes([of(FIRST)])
    outcomes += run_lanes([of([PROGRAMS, PACKAGE, *SERVED]), of([IMAGES])])
    outcomes += run_lanes(lanes_of(LANES), lanes_of(BUILDS))
    outcomes += run_lanes([of(OTHERS)])
    return [once_more(outcome) if outcome.problem and outcome.step in MACHINES else outcome for outcome in outcomes]


def main(names):
    usual = {step.name: step for step in [*FIRST, PROGRAMS, PACKAGE, IMAGES, *SERVED, *MACHINES,
                                         *(step for lane in BUILDS for step in lane)]}
    known = usual | {step.name: step for step in OTHERS}
    if unknown := [name for name in names if name not in known]:
        print(f"check: no step is called {', '.join(unknown)} - there are: {' '.join(known)}", file=sys.stderr)
        return 2
    LOGS.mkdir(parents=True, exist_ok=True)
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # its children end with it
    began = time.monotonic()
    try:
        outcomes = run_all(chosen([known[name] for name in names] or list(usual.values())))
    except KeyboardInterrupt:
        print("check: interrupted", file=sys.stderr)
        return 130
    finally:
        for child in list(_running):
            end(child)
    failed = sum(outcome.problem is not None for outcome in outcomes)
    print(f"\n{'step':<13} {'seconds':>7} {'CPU s':>7}  result")
    for outcome in outcomes:
        print(f"{outcome.step.name:<13} {outcome.seconds:>7.0f} {outcome.cpu_s:>7.0f}  "
              f"{'FAIL' if outcome.problem else 'pass'}{outcome.note}")
    print(f"{'total':<13} {time.monotonic() - began:>7.0f} {sum(outcome.cpu_s for outcome in outcomes):>7.0f}\n")
    print(f"{len(outcomes) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
