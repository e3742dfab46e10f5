import os

import pytest

from fleet import Fleet

FILES = ([(f"large/{i}.bin", (16 << 20) + 5000 * i) for i in range(10)] + [(f"middle/{i}.bin", 3 << 20) for i in range(8)]
         + [(f"small/{i // 100}/{i}.txt", 100 + 50 * (i % 100)) for i in range(3000)] + [("empty", 0)])


@pytest.fixture(scope="session")
def running():
    if os.geteuid() != 0:
        pytest.exit("the fleet needs root, for namespaces and for a drive of its own", 2)
    fleet = Fleet(4, FILES)
    yield fleet
    fleet.stop()


@pytest.fixture
def fleet(running):
    """A fleet without staged data."""
    running.evict_all()
    return running
