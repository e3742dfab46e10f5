#!/usr/bin/python3
"""Runs all tests of spark-stage in steps: tools/check.py [--long] [STEP…]. Runs all steps, then reports all failures. With
--long, or by name, also the steps that take hours: another architecture, long fuzzing, long walks of faults and others.

First builds and fetches the common prerequisites. Then runs two lanes in parallel: a browser and servers, then virtual
machines, which often wait for timers. Beside them, unit tests, histories and crashes use the remaining CPU time at the
lowest priority.
Failed tests run once more after everything else: the lanes and the builds share two cores, so a missed deadline may be a
coincidence. The repetition is reported, and a second failure fails the check.
A step's output goes to build/check/STEP.log; its end is printed if the step fails.
"""
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from dataclasses import dataclass, field, replace
from pathlib import Path

from steps import BUILDS, FIRST, IMAGES, JOBS, LANES, OTHERS, PACKAGE, PROGRAMS, Step

ROOT = Path(__file__).resolve().parents[1]
LOGS = ROOT / "build/check"
NEEDED = 20 << 30  # bytes of builds, images and the machines' drives


@dataclass
class Outcome:
    step: Step
    problem: str | None
    seconds: float
    cpu_s: float  # of all its processes; on a busy machine more meaningful than elapsed time
    note: str = ""
    ended: float = field(default_factory=time.monotonic)

    def reasons(self):
        """The last failed tests in its log with their reasons; if there are none, the reason why the step ended."""
        log = (LOGS / f"{self.step.name}.log").read_text(errors="replace")
        named = re.findall(r"^(?:FAILED|ERROR) \S+::.*|^FAILED (?:\S+\.history|[a-z]+): .*|^\s+\d+ - \S+ \((?:Failed|Timeout|SEGFAULT)\)|^lint: .*",
                           log, re.MULTILINE)
        said = re.findall(r"^E   .*", log, re.MULTILINE)
        return [line.strip()[:220] for line in named[-4:] + said[-2:]] or [self.problem]


_running = set()  # children that end with this program


def start(command, log, environment, is_background):
    environment = os.environ | {"CMAKE_BUILD_PARALLEL_LEVEL": JOBS} | environment
    child = subprocess.Popen([*(["nice", "-n", "19"] if is_background else []), *command], cwd=ROOT, env=environment,
                             stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT, start_new_session=True)
    if is_background:  # with autogroup scheduling the kernel compares the sessions' priorities first
        try:
            Path(f"/proc/{child.pid}/autogroup").write_text("19")
        except OSError:
            pass
    _running.add(child)
    return child


def end(child):
    """Kills all processes of the step."""
    try:
        os.killpg(child.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    _running.discard(child)


def wait_aloud(child, name, deadline):
    """Returns the CPU seconds of a child that ended, or None at the deadline; reports the wait once a minute."""
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
    """Returns the reason of the failure or None, and the CPU seconds."""
    total, problem = 0.0, None
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
            problem = problem or f"{command[0]} exited with status {child.returncode}"
            if not step.runs_all:
                break
    return problem, total


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


MOST_AGAIN = 12  # one failure of a topology may cause those of later tests; more failures than this are no coincidence


def of_failures(command, log):
    """The failed tests by name, each with the cause, and the command that runs only them. Without names, they could not be
    determined. A fixture that could not be set up is one cause, although pytest reports it for each of its tests."""
    if command[0] == "ctest":
        names = re.findall(r"^\s+\d+ - (\S+) \((?:Failed|Timeout|SEGFAULT)\)", log, re.MULTILINE)
        return {name: name for name in names}, [*command, "--rerun-failed"]
    reported = re.findall(r"^(FAILED|ERROR) (\S+::\S+)(?: - (.+))?", log, re.MULTILINE)
    failed = {name: why if kind == "ERROR" and why else name for kind, name, why in reported}
    options = [argument for argument in command if argument.endswith(".ini") or not argument.startswith(("tests/", "--ignore="))]
    return failed, [*options, *failed]


def once_more(outcome):
    """Runs the failed tests alone. Returns the combined outcome of both runs."""
    step = outcome.step
    failed, command = of_failures(step.commands[-1], (LOGS / f"{step.name}.log").read_text(errors="replace"))
    if not 0 < len(set(failed.values())) <= MOST_AGAIN:
        return outcome
    name = f"{step.name}-again"
    again = run_step(replace(step, name=name, purpose=f"what failed in {step.name}, alone: {', '.join(failed)}",
                             commands=[command], environment=step.environment | {"SPARK_VM_LANE": name}), False)
    return Outcome(step, again.problem and outcome.problem, outcome.seconds + again.seconds, outcome.cpu_s + again.cpu_s,
                   "" if again.problem else f", {len(failed)} at the second attempt")


def chosen(steps):
    """The chosen steps, with their prerequisites."""
    needed = {PROGRAMS: any(step.needs_programs for step in steps),
              PACKAGE: any(step.environment.get("SPARK_VM_PACKAGE") == "build/deb" for step in steps)}
    return [*(step for step in needed if needed[step] and step not in steps), *steps]


def run_lanes(*lanes, beside=()):
    """Runs lanes in parallel; a lane is a list of steps that run in sequence. Returns the outcomes in order of their ends.
    `beside`: lanes of a lower priority, if there is a step in any other."""
    outcomes = []
    gives_way = any(lanes)

    def run_lane(lane, is_background):
        for step in lane:
            outcomes.append(run_step(step, is_background))

    threads = [threading.Thread(target=run_lane, args=(lane, is_background), daemon=True)
               for some, is_background in ((lanes, False), (beside, gives_way)) for lane in some]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return outcomes


def run_all(steps):
    def of(some):
        return [step for step in steps if step in some]

    side_by_side = [step for lane in [*LANES, *BUILDS] for step in lane]
    outcomes = run_lanes(of(FIRST))
    outcomes += run_lanes(of([PROGRAMS, PACKAGE]), of([IMAGES]))
    outcomes += run_lanes(*map(of, LANES), beside=list(map(of, BUILDS)))
    outcomes += run_lanes(of(OTHERS))
    return [once_more(outcome) if outcome.problem and outcome.step in side_by_side else outcome for outcome in outcomes]


def lack_of_space():
    drive = shutil.disk_usage(LOGS)
    needed = max(NEEDED, drive.total * 6 // 100)  # the benchmark's tests write only to a drive with 5 % left
    return f"{drive.free >> 30} GiB is free at {LOGS}, all steps need {needed >> 30} GiB" if drive.free < needed else ""


def main(arguments):
    is_long = "--long" in arguments
    names = [argument for argument in arguments if argument != "--long"]
    usual = {step.name: step for step in [*FIRST, PROGRAMS, PACKAGE, IMAGES,
                                         *(step for lane in [*LANES, *BUILDS] for step in lane)]}
    known = usual | {step.name: step for step in OTHERS}
    if unknown := [name for name in names if name not in known]:
        print(f"check: no step is called {', '.join(unknown)} - there are: {' '.join(known)}", file=sys.stderr)
        return 2
    LOGS.mkdir(parents=True, exist_ok=True)
    if not names and (lack := lack_of_space()):
        print(f"check: {lack} - free some space; `make clean` removes the builds", file=sys.stderr)
        return 2
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # its children end with it
    began = time.monotonic()
    try:
        outcomes = run_all(chosen([known[name] for name in names] or (OTHERS if is_long else list(usual.values()))))
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
              f"{'FAIL' if outcome.problem else 'pass'}{outcome.note}, ended at {outcome.ended - began:.0f} s")
    print(f"{'total':<13} {time.monotonic() - began:>7.0f} {sum(outcome.cpu_s for outcome in outcomes):>7.0f}\n")
    print(f"{len(outcomes) - failed} passed, {failed} failed")
    for outcome in outcomes:  # last, where a reader of the end of this output finds it
        for reason in outcome.reasons() if outcome.problem else []:
            print(f"{outcome.step.name}: {reason}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
