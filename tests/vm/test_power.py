"""The power goes while a dataset is copied: what is called done is whole, and the next run goes on."""
import json
import os

import pytest

from rig.house import LOCAL

CUTS = int(os.environ.get("SPARK_POWER_CUTS", "10"))


@pytest.fixture
def power(house):
    """A folder for it, and the tools."""
    house.host.sh("modprobe -a dm-log-writes loop")
    yield f"{LOCAL}/power"
    house.host.run(f"umount {LOCAL}/power/drive; dmsetup remove recorded; losetup -D; rm -rf {LOCAL}/power", 60)


@pytest.mark.parametrize("filesystem", ["ext4", "xfs"])
def test_after_a_power_cut_nothing_under_the_name_differs_and_the_next_copy_goes_on(house, power, filesystem):
    """A copy, and another one that replaces it. Unflushed writes are lost, in part, as a drive's cache loses them."""
    seed = 1
    result = house.host.run(f"/usr/local/lib/rig/power-cuts {filesystem} {CUTS} {seed} {power}", 600)
    assert result.rc == 0, result.err
    seen = json.loads(result.out)
    for half, cuts in seen.items():
        print(f"{half}:", *(f"{cut['after']}/{cut['of']} {'new' if cut['new'] else cut['resumed']}" for cut in cuts))
        assert any(cut["resumed"] > 0 for cut in cuts), "no run went on from the journal"
    assert sum(len(cuts) for cuts in seen.values()) == CUTS
