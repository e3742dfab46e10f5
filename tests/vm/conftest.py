import pytest

from rig import image
from rig.bare import start_bare_pair
from rig.house import House
from rig.pair import Pair, start_second_host
from rig.settings import LANE, REPOSITORY
from rig.topology import Topology
from soak.world import World

# The tests of the rig run first, then the boot of a host before its target. Each later module leaves the house unchanged.
ORDER = ["test_rig", "test_package", "test_upgrade", "test_slurm", "test_container", "test_fleet", "test_models", "test_fleet_join", "test_tutorial", "test_boot", "test_discover", "test_contract", "test_volumes", "test_sharing",
         "test_publish", "test_format", "test_staging", "test_live", "test_cache", "test_room", "test_nfs", "test_read_only",
         "test_crash", "test_stage_out", "test_outputs", "test_training", "test_training_hosts", "test_export", "test_power", "test_failing_drive", "test_config", "test_auth", "test_tls",
         "test_moving", "test_bench", "test_bench_hosts",
         "test_verdict",
         "test_docs", "test_pages", "test_frozen", "test_broken", "test_bare", "test_guards",
         "test_portals", "test_two_targets", "test_neighbours", "test_stas", "test_healing", "test_shutdown", "test_many", "test_soak"]

_topologies = []
_ever_started = []  # topologies, including ended ones
_cpu_seconds = {}  # of all machines, by test; the time of a fixture counts for the first test that uses it


def pytest_sessionstart():
    (REPOSITORY / f"build/check/{LANE}-failures.log").unlink(missing_ok=True)


def pytest_collection_modifyitems(items):
    items.sort(key=lambda item: ORDER.index(item.path.stem))


def _started(topology):
    with topology as rig:
        _topologies.append(rig)
        _ever_started.append(rig)
        yield rig
        _topologies.remove(rig)


@pytest.fixture(scope="module")
def bare_rig():
    """Machines without the product installed. They end with their module: the house starts next."""
    yield from _started(Topology())


@pytest.fixture(scope="module")
def bare_pair(bare_rig):
    return start_bare_pair(bare_rig)


@pytest.fixture(scope="session")
def product_rig():
    yield from _started(Topology(install_tree=image.install_product()))


@pytest.fixture(scope="session")
def cold_house(product_rig):
    """The host has booted with its daemon; this fixture has not started the target yet."""
    house = House(product_rig)
    house.start_host()
    return house


@pytest.fixture(scope="session")
def house(cold_house):
    """Host and target with every shared volume ready. A scenario must restore this state."""
    if not cold_house.target_machine.is_running():
        cold_house.start_target()
    cold_house.wait_ready()
    return cold_house


@pytest.fixture(scope="package")
def second_host(product_rig, house):
    machine = start_second_host(product_rig)
    yield machine
    machine.kill()


@pytest.fixture
def pair(house, second_host):
    both = Pair(house, second_host)
    both.export()
    yield both
    both.end()


@pytest.fixture(scope="module")
def own_rig():
    """Machines of one module alone, which need not restore their state."""
    yield from _started(Topology(install_tree=image.install_product()))


@pytest.fixture(scope="module")
def soak_world(own_rig):
    world = World(own_rig)
    world.start()
    return world


@pytest.fixture
def xfs_pair(house, second_host):
    """A volume fenced by a reservation alone, since xfs has no multi-mount protection."""
    both = Pair(house, second_host)
    both.export(kind="xfs")
    yield both
    both.end()


def _cpu_of_machines():
    return sum(machine.cpu_seconds() for rig in _ever_started for machine in rig.machines)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_protocol(item):
    before = _cpu_of_machines()
    yield
    _cpu_seconds[item.nodeid] = _cpu_of_machines() - before


def pytest_terminal_summary(terminalreporter):
    """Prints CPU time per test: under emulation, with other runs in parallel, it says more than elapsed time."""
    terminalreporter.section(f"CPU of the machines: {sum(_cpu_seconds.values()):.0f} s, most of it for")
    for name, seconds in sorted(_cpu_seconds.items(), key=lambda one: -one[1])[:40]:
        terminalreporter.line(f"{seconds:8.1f} s  {name}")


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    report = (yield).get_result()
    if report.failed:
        for rig in _topologies:
            for machine in rig.machines:
                report.sections.append((f"machine {machine.name}", machine.report()))
        _write_down(item, report)


def _write_down(item, report):
    """Writes each failure immediately, so that an interrupted run still leaves its failure messages."""
    folder = REPOSITORY / "build/check"
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / f"{LANE}-failures.log", "a") as log:
        log.write(f"===== {item.nodeid} ({report.when})\n{report.longreprtext}\n")
        for title, text in report.sections:
            log.write(f"----- {title}\n{text}\n")
