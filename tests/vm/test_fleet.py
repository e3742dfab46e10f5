"""Three hosts stage from one read-only volume of a real target, and from each other: the volume is read about once."""
import pytest

from rig.topology import Topology
from rig.trio import MOUNT, SIZE, Trio
from rig import image


@pytest.fixture(scope="module")
def running():
    with Topology(install_tree=image.install_product()) as rig:
        made = Trio(rig)
        try:
            made.start()
            yield made
        except BaseException:
            print(rig.report())
            raise


@pytest.fixture
def trio(running):
    """All hosts are up, and nothing is staged."""
    for index in range(3):
        running.wait_whole(index)
    running.empty()
    return running


def check_same(trio, staged, indices):
    assert len({one["hash"] for one in staged}) == 1, staged
    right = trio.digest(indices[0], f"{MOUNT}/imagenet")
    for index in indices:
        assert trio.digest(index) == right, trio.hosts[index].name


def test_three_hosts_read_a_volume_of_a_real_target_once(trio):
    before = trio.bytes_read()
    staged = trio.stage((0, 1, 2))
    ratio = (trio.bytes_read() - before) / SIZE
    print(f"the target read {ratio:.3f} x the dataset; {[one['bytes_from'] for one in staged]}")
    for one in staged:
        assert one["bytes_from"]["volume"] + one["bytes_from"]["peers"] == SIZE, one
        assert not one["warnings"], one
    assert ratio <= 1.15
    check_same(trio, staged, (0, 1, 2))


def test_a_host_that_comes_later_reads_nothing_from_the_volume(trio):
    trio.stage((0,))
    before = trio.bytes_read()
    staged = trio.stage((1, 2))
    print(f"{trio.bytes_read() - before} bytes read by the target")
    assert all(one["bytes_from"] == {"volume": 0, "peers": SIZE} for one in staged), staged
    assert trio.bytes_read() - before < SIZE / 20  # metadata
