import time

import pytest

from rig.topology import Topology

_topologies = []


@pytest.fixture(scope="module")
def bare_rig():
    """Machines without the product."""
    with Topology() as rig:
        _topologies.append(rig)
        yield rig
        _topologies.remove(rig)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    report = (yield).get_result()
    if report.failed:
        for rig in _topologies:
            for machine in rig.machines:
                report.sections.append((f"machine {machine.name}", machine.report()))
