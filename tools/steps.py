"""The steps of tools/check.py: their commands, and the steps that run in parallel."""
import os
import time
from dataclasses import dataclass, field, replace
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
JOBS = str(len(os.sched_getaffinity(0)))
PYTHON = "/usr/bin/python3"


@dataclass(eq=False)
class Step:
    name: str
    purpose: str
    deadline_s: int
    commands: list  # argument lists, run in sequence from the top folder
    environment: dict = field(default_factory=dict)
    needs_programs: bool = False
    runs_all: bool = False  # its commands need none before them: all run, even if one fails


def configure_and_build(preset, *targets):
    target = ["--target", *targets] if targets else []
    return [["cmake", "--preset", preset], ["cmake", "--build", "--preset", preset, *target]]


def ctest(preset):
    return ["ctest", "--test-dir", f"build/{preset}", "--output-on-failure", "--no-tests=error", "-j", JOBS]


def pytest(folder):
    return [PYTHON, "-m", "pytest", folder, "-c", f"{folder}/pytest.ini", "-q"]


def machines(name, kernel, purpose, *arguments, **environment):
    """Those marked `long` too, unless the arguments say otherwise."""
    return Step(name, f"{purpose}, in virtual machines, kernel {kernel}", 3600,
                [[PYTHON, "-m", "pytest", *arguments, "-q", "-raP", "-p", "no:cacheprovider", "--durations=30"]],
                {"SPARK_VM_KERNEL": kernel, "SPARK_VM_PATIENCE": "2", "SPARK_VM_LANE": name,
                 "SPARK_VM_PACKAGE": "build/deb", "SPARK_VM_CPUS": "1", **environment}, needs_programs=True)


def short_machines(name, kernel, purpose, *arguments, marked="not long"):
    return machines(name, kernel, purpose, *arguments, "-m", marked)


def after(command, step):
    return replace(step, commands=[command, *step.commands])


def scenarios(names):
    return [f"tests/vm/{name}.py" for name in names]


def but(names):
    return ["tests/vm", *(f"--ignore={path}" for path in scenarios(names))]


PACKAGE = Step("package", "the Debian package of this release, and lintian's word on it", 900, [["tools/deb.sh", JOBS]],
               {"DPKG_DEB_COMPRESSOR_TYPE": "zstd"},  # Ubuntu's default: the packages are xz's nevertheless
               needs_programs=True)

# Histories in a simulated world, of these areas. A check runs the same seeds each time, for at most half a minute of CPU time each; those that failed once run too.
HISTORIES = {"volumes": 1500, "copies": 120, "outputs": 300}
WITH_HISTORIES = [area for area in HISTORIES if (ROOT / "tests/histories" / area).is_dir()]
# Here, since the step `package` configures the same folder again, without tests.
PROGRAMS = Step("build", "the programs, those of histories, and the tests that run on the machines' kernels", 1800,
                [*configure_and_build("release"), ["cmake", "--preset", "release", "-DSPARK_TESTS=ON"],
                 ["cmake", "--build", "--preset", "release", "--target", "spark_nvmetcp_tests",
                  *(f"spark_{area}_histories" for area in WITH_HISTORIES)]])


def histories(area, *arguments):
    return [f"build/release/tests/histories/{area}/spark_{area}_histories", *arguments]


def hour_of_histories(area):
    """New seeds in each run: the time of day, printed in the summary."""
    return Step(f"histories-{area}", f"an hour of new histories of {area} in a simulated world", 5400,
                [histories(area, "--seed", str(int(time.time()) * 1000), "--for", "1h")], needs_programs=True)


IMAGES = Step("images", "kernels, emulator and Debian of the virtual machines", 1800, [[PYTHON, "tests/vm/prepare.py"]])

FIRST = [
    Step("setup", "what building and testing needs is installed", 1200, [["tools/setup.sh", "test"]]),
    Step("lint", "layering, co_await trap, lengths, words, format, shell scripts", 120, [[PYTHON, "tools/lint/run.py"]]),
]

# Scenarios about the rig itself, drives, configuration and text: they run with one kernel, or with others on request.
ANY_KERNEL = ["test_rig", "test_package", "test_slurm", "test_cache", "test_room", "test_power", "test_failing_drive",
              "test_config", "test_docs"]
# These mostly wait, for the protections of volumes that two hosts want.
TWO_HOSTS = ["test_sharing", "test_publish", "test_format", "test_nfs"]
# With scenarios marked `on_6_1`, for what the older kernel changes: its target has no reservations. Too much for make check, whose
# limit in CI is near; `vm-6.1-all` has them too.
ON_6_1 = ["test_boot", "test_volumes", "test_sharing", "test_auth", "test_live"]
# Faults of targets, wires, drives and hosts, which mostly wait too.
FAULTS = ["test_auth", "test_tls", "test_frozen", "test_broken", "test_bare", "test_guards", "test_portals", "test_two_targets",
          "test_neighbours", "test_healing", "test_shutdown", "test_crash", "test_cache", "test_power"]
# For scenarios marked `repeats`: races of two hosts, generations that one publishes.
REPEATED = {"SPARK_RACES": "3", "SPARK_GENERATIONS": "8"}
BENCHMARK = ["test_bench", "test_bench_hosts"]
# Jobs of PyTorch's that are killed and resume.
TRAINING = ["test_training", "test_training_hosts"]
# Two hosts with PyTorch, and a target.
TUTORIAL = ["test_tutorial"]
# A host with an old manual setup, which moves in, is rebooted and goes back.
MOVING = ["test_moving"]
# Four machines at once, beside other lanes too many for two cores.
FLEET = ["test_fleet"]
NEEDS_DEBIAN_13 = ["test_stas"]
# Too much for make check, whose limit in CI is near: variants of what other scenarios, histories or unit tests have, and live views.
MORE = ["test_two_targets", "test_neighbours", "test_portals", "test_bench_hosts", "test_fleet_join", "test_failing_drive", "test_tls", "test_nfs"]
LIVE = ["test_live"]
# Minutes of readers that wait; `make check` has the unit tests of live views, on this computer's FUSE, and test_live_lives.
LIVE_API = [f"tests/api/test_live{part}.py" for part in ("", "_access", "_ends", "_sets")]
TAKES_LONG = ["test_many"]
# The documented setup in which two hosts write one volume.
BOTH_WRITE = ["test_export"]
WALK = ["test_soak"]
UPGRADE = ["test_upgrade"]
# Epochs of a job over a slow network, compared with the benchmark's prediction.
VERDICT = ["test_verdict"]
# The container image, which its step makes.
CONTAINER = ["test_container"]
APART = TUTORIAL + MOVING + TRAINING + FLEET + NEEDS_DEBIAN_13 + TAKES_LONG + BOTH_WRITE + WALK + UPGRADE + VERDICT + CONTAINER
# The packages in use: 0.1, of before the restructuring, and 0.2.0. The upgrade must keep their data.
FIRST_RELEASE, RELEASE_0_2 = "4c67491", "96dae2c4"


def upgrade_from(name, commit):
    earlier = f"build/deb-{commit}"
    by_dpkg = [PYTHON, "tests/install/packages_test.py", "build/deb", "build/release", earlier,
               "Packages.test_an_upgrade_from_earlier_packages_keeps_everything"]
    return after(["tools/deb-of.sh", commit, JOBS],
                 after(by_dpkg, machines(name, "newest", f"upgrade from the package of {commit}", *scenarios(UPGRADE),
                                         SPARK_VM_FIRST_PACKAGE=earlier)))


DEBIAN_13 = Step(
    "debian13", "package, unit tests, TLS and nvme-stas on Debian 13 (g++ 14, libnvme 1.13)", 3600,
    [["tools/deb-for.sh", "debian-13", "amd64", JOBS],
     [PYTHON, "-m", "pytest", *scenarios(["test_tls", "test_stas"]), "-q", "-p", "no:cacheprovider"]],
    {"SPARK_VM_GUEST": "trixie", "SPARK_VM_KERNEL": "newest", "SPARK_VM_PATIENCE": "2", "SPARK_VM_LANE": "debian13",
     "SPARK_VM_CPUS": "1", "SPARK_VM_PACKAGE": "build/debian-13-amd64/deb",
     "SPARK_VM_INSTALL": "build/debian-13-amd64/installed"})
# Two lanes of the same length, which begin with what has time limits of its own: a browser and servers. The machines mostly wait.
LANES = [
    [Step("page", "the benchmark's page in headless Chromium, at 380 and 1280 pixels, light and dark", 600,
          [pytest("tests/page")], needs_programs=True),
     Step("api", "the API, metrics, alerts and dashboard, on a real daemon and a real Prometheus", 900,
          [[*pytest("tests/api"), *(f"--ignore={path}" for path in LIVE_API)]], needs_programs=True),
     Step("install", "what packages and `make install` place, do to each other, and leave, that systemd accepts it, and what `make release` refuses", 900,
          [[PYTHON, "tests/install/release_test.py"], [PYTHON, "tests/install/scripts_test.py"], [PYTHON, "tests/install/shards_test.py"],
           [PYTHON, "tests/install/install_test.py", "build/release"],
           [PYTHON, "tests/install/uninstall_test.py", "build/release"],
           [PYTHON, "tests/install/packages_test.py", "build/deb", "build/release"]], needs_programs=True),
     Step("csi", "the Kubernetes driver, with a kubelet that repeats its calls, on plain folders", 900, [pytest("tests/csi")],
          {"SPARK_VM_PACKAGE": "build/deb"}, needs_programs=True),
     short_machines("vm-newest", "newest", "the package, volumes, staging, stage-out, the benchmark and the pages", *but(TWO_HOSTS + FAULTS + MORE + LIVE + APART))],
    [Step("slurm", "Slurm's plugin: a real Slurm of four nodes with a daemon each, and what fails there", 1200,
          [pytest("tests/slurm")], {"SPARK_VM_PACKAGE": "build/deb"}, needs_programs=True),
     # In one lane with `slurm`: both give the same addresses and names to network devices.
     Step("fleet", "four hosts in namespaces that stage from one drive and from each other", 900, [pytest("tests/fleet")],
          needs_programs=True),
     short_machines("vm-faults", "newest", "faults of targets, wires, drives and hosts, and volumes that two hosts want",
                    *scenarios([name for name in FAULTS + TWO_HOSTS if name not in MORE]))],
]
MACHINES = [step for lane in LANES for step in lane if "SPARK_VM_KERNEL" in step.environment]

THREADED = [f"spark_{part}_tests" for part in ("base", "staging", "view", "fleet")]
# They begin beside the servers, which mostly wait, and give way to the machines, which may leave them almost no CPU time for most
# of an hour.
GIVING_WAY_S = 5400
BUILDS = [
    [Step("unit", "unit tests, with the compiler and the flags of the programs", GIVING_WAY_S,
          [["cmake", "--preset", "release", "-DSPARK_TESTS=ON"], ["cmake", "--build", "--preset", "release"], ctest("release")],
          {"SPARK_MUST_RUN": "1"}, needs_programs=True)],
    [Step("histories", "random histories of volumes, copies and outputs in a simulated world, and those that once failed", GIVING_WAY_S,
          [histories(area, "--count", str(HISTORIES[area])) for area in WITH_HISTORIES], needs_programs=True, runs_all=True),
     Step("crash", "kill -9, full drives and failing calls under `spark-stage copy`", GIVING_WAY_S, [pytest("tests/crash")],
          needs_programs=True)],
]

# Their build alone takes as long as the machines of a check.
ASAN = Step("asan", "unit tests, clang 14, under address and undefined-behaviour sanitizers", 5400,
            [*configure_and_build("asan", "all", "fuzzers"), ctest("asan")],
            # Without a small quarantine each of the thousands of forks copies the page tables of hundreds of megabytes.
            {"ASAN_OPTIONS": "detect_stack_use_after_return=1:quarantine_size_mb=16", "SPARK_MUST_RUN": "1"})
FUZZ = Step("fuzz", "fuzzers of everything that reads what others wrote", 1800, [["tools/fuzz.sh", "20"]], {"SPARK_FUZZ_PRESET": "asan"})
# Of threads; the others' tests repeat the work of one thread hundreds of times, or wait for processes.
TSAN = Step(
    "tsan", "the threaded parts, g++ 12, under the thread sanitizer", GIVING_WAY_S,
    [*configure_and_build("tsan", *THREADED),
     # Without address randomisation: g++ 12's thread sanitizer does not support the memory layouts of newer kernels. All at
     # once: the tests of a part run one after the other.
     ["setarch", "-R", "ctest", "--test-dir", "build/tsan", "--output-on-failure", "--no-tests=error", "-j", str(len(THREADED)),
      "-R", f"^({'|'.join(THREADED)})$"]],
    {"TSAN_OPTIONS": "halt_on_error=1",
     "GTEST_FILTER": "-*CacheFaults*:DamageTest.*:SendingShards.*:CachedAttributesTest.*:CatalogTest.*"})
SET_UP_OTHERS = ["tools/setup.sh", "others"]
CSI_TESTS = [PYTHON, "-m", "pytest", "-c", "tests/csi/pytest.ini", "-q"]
IMAGE_TESTS = [*CSI_TESTS, "tests/csi/test_image.py"]
KUBERNETES = machines("kubernetes", "newest", "podman on an ordinary host, and the container image on a node without systemd",
                      *scenarios(CONTAINER), SPARK_VM_IMAGE="build/image/spark-stage-amd64.tar")
OTHERS = [
    Step("arm64", "package, unit tests under qemu-user, boot and installation on an emulated arm64 machine", 7200,
         [SET_UP_OTHERS, ["tools/deb-for.sh", "debian-12", "arm64", JOBS],
          [PYTHON, "-m", "pytest", *scenarios(["test_package", "test_boot"]), "-q", "-p", "no:cacheprovider"]],
         {"SPARK_VM_ARCH": "arm64", "SPARK_VM_PATIENCE": "3", "SPARK_VM_LANE": "arm64", "SPARK_VM_CPUS": "1",
          "SPARK_VM_PACKAGE": "build/debian-12-arm64/deb", "SPARK_VM_INSTALL": "build/debian-12-arm64/installed"}),
    Step("arm64-13", "the same package and unit tests with Debian 13's libraries (libnvme 1.13), and the container image", 7200,
         [SET_UP_OTHERS, ["tools/deb-for.sh", "debian-13", "arm64", JOBS],
          ["tools/image.sh", "debian-13", "arm64", "build/debian-13-arm64/deb"], IMAGE_TESTS],
         {"SPARK_VM_IMAGE": "build/image/spark-stage-arm64.tar"}),
    *(hour_of_histories(area) for area in HISTORIES),
    Step("live", "jobs that read while their data is staged, on this computer's FUSE", 1800,
         [[PYTHON, "-m", "pytest", *LIVE_API, "-c", "tests/api/pytest.ini", "-q"]], needs_programs=True),
    short_machines("vm-live", "newest", "live views on a volume of a real target, with systemd", *scenarios(LIVE)),
    short_machines("vm-more", "newest", "scenarios for which `make check` has no time", *scenarios(MORE)),
    Step("live-kills", "200 kills of daemons, servers and copies while readers of a live view compare every byte", 3600,
         [[PYTHON, "tests/api/live_walk.py", "--seed", str(int(time.time())), "--count", "200"]], needs_programs=True),
    Step("live-entries", "a live view of a million files", 1800, [[*pytest("tests/api"), "-k", "many_entries"]], {"SPARK_LIVE_ENTRIES": "1000000"},
         needs_programs=True),
    ASAN, FUZZ, TSAN,
    Step("tidy", "clang-tidy over every source file", 3600, [["tools/lint/tidy.sh", JOBS]]),
    Step("fuzz-long", "ten minutes of each fuzzer of what anybody may send: the API's requests and the configuration", 3600,
         [["tools/fuzz.sh", "600", "api_fuzz", "config_fuzz"]]),
    upgrade_from("upgrade", FIRST_RELEASE), upgrade_from("upgrade-0.2", RELEASE_0_2),
    DEBIAN_13,
    replace(DEBIAN_13, name="package-13", purpose="installation, upgrade and removal of the packages on Debian 13", commands=[
        DEBIAN_13.commands[0],
        [PYTHON, "-m", "pytest", *scenarios(["test_package"]), "-q", "-p", "no:cacheprovider"]]),
    replace(DEBIAN_13, name="slurm-13", purpose="a job on two real nodes with Debian 13's Slurm, 24.11", commands=[
        DEBIAN_13.commands[0],
        [PYTHON, "-m", "pytest", *scenarios(["test_slurm"]), "-q", "-p", "no:cacheprovider"]]),
    replace(machines("training", "newest", "PyTorch jobs that are killed and resume a hundred times, on one host and on two; two hosts that write one volume",
                     *scenarios(TRAINING + BOTH_WRITE), SPARK_TRAINING_ROUNDS="100"), deadline_s=2 * 3600),
    machines("moving", "newest", "`import` on a host with an old manual setup, its steps, a reboot, and the way back", *scenarios(MOVING)),
    machines("tutorial", "newest", "every command of the tutorial, with PyTorch on two hosts and a pulled cable", *scenarios(TUTORIAL)),
    replace(KUBERNETES, commands=[SET_UP_OTHERS, ["tools/image.sh", "debian-12", "amd64", "build/deb"], [*IMAGE_TESTS, "tests/csi/test_podman.py"],
                                  *KUBERNETES.commands]),
    machines("many", "newest", "100 subsystems with 300 namespaces", *scenarios(TAKES_LONG)),
    replace(machines("vm-long", "newest", "scenarios marked long: slow ones, and variants of others; races and generations repeated", *but(APART),
                     "-m", "long or repeats", **REPEATED), deadline_s=3 * 3600),
    replace(machines("vm-6.1-all", "6.1", "all scenarios that the older kernel may affect", *but(ANY_KERNEL + BENCHMARK + APART), **REPEATED),
            deadline_s=3 * 3600),
    Step("links", "links between hosts: four faults, each named within ten seconds, and twenty runs on links in order", 1200,
         [[PYTHON, "-m", "pytest", "tests/fleet/test_link.py", "-c", "tests/fleet/pytest.ini", "-q"]], {"SPARK_LINK_RUNS": "4", "SPARK_LINK_WITHIN_S": "10"}, needs_programs=True),
    short_machines("vm-6.1", "6.1", "what the older kernel affects most", *scenarios(ON_6_1), marked="on_6_1 and not long"),
    machines("fleet-vm", "newest", "three hosts that read a volume of a real target once, and their faults", *scenarios(FLEET)),
    replace(machines("verdict", "newest", "the benchmark's verdict beside a PyTorch job", *scenarios(VERDICT)),
            deadline_s=3 * 3600),
    machines("demo", "newest", "what `make demo` shows", *scenarios(["test_docs"]), "-k", "demo", SPARK_VM_DEMO="1"),
    *(replace(machines(f"soak-{kernel}", kernel, "300 steps of a random walk of faults", *scenarios(WALK),
                       SPARK_SOAK_SEED="2", SPARK_SOAK_STEPS="300"), deadline_s=3 * 3600) for kernel in ("newest", "6.1")),
]
